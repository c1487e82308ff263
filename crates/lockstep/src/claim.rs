//! Claims to come back to a session, also after the relay was restarted: a claim says itself whose it is, and only the relay
//! can have made it.

use core::fmt;

use sametick_sim::{Seat, Tick};
use sametick_wire::Member;
use sametick_wire::claims::Claims;
use serde::{Deserialize, Serialize};

/// What lets a peer come back as who it was: its seat, though its last link may seem to be there still, and without the
/// ticks it has. Known to that peer and the relay only.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Tells this session from others of its name.
    pub run: u64,
    /// By which link it took part: the number of its [`Member`].
    pub member: u64,
    /// Where it sat, if it played.
    pub seat: Option<Seat>,
    /// The tick in which it sat down.
    pub since: Tick,
    /// How often the session had been taken up again by then.
    pub restarts: u32,
    /// The tick after which it was last taken up; zero if never.
    pub from: Tick,
    /// Proves the rest.
    pub token: [u8; 16],
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claim { run, member, seat, since, restarts, from, .. } = self;
        write!(f, "Claim({run:016x}, {member}, {seat:?} since {since}, {restarts} from {from}, …)")
    }
}

/// How many bytes are proved: a link, whether there is a seat and which, and three numbers.
const SAID_BYTES: usize = 8 + 1 + 2 + 3 * 4;

impl Claim {
    /// A claim that these claims vouch for.
    pub(crate) fn new(
        claims: &Claims,
        member: Member,
        place: Option<(Seat, Tick)>,
        (restarts, from): (u32, Tick),
    ) -> Claim {
        let (seat, since) = (place.map(|it| it.0), place.map_or(Tick::ZERO, |it| it.1));
        let (run, member) = (claims.run(), member.0);
        let mut claim = Claim { run, member, seat, since, restarts, from, token: [0; 16] };
        claim.token = claims.seal(&claim.said());
        claim
    }

    /// Whether these claims vouch for it.
    pub(crate) fn is_true(&self, claims: &Claims) -> bool {
        self.run == claims.run() && claims.has_sealed(&self.said(), &self.token)
    }

    /// What is proved.
    fn said(&self) -> [u8; SAID_BYTES] {
        let mut said = [0; SAID_BYTES];
        let seat = self.seat.map_or(0, |seat| seat.0);
        let parts = [
            &self.member.to_le_bytes()[..],
            &[u8::from(self.seat.is_some())],
            &seat.to_le_bytes(),
            &self.since.0.to_le_bytes(),
            &self.restarts.to_le_bytes(),
            &self.from.0.to_le_bytes(),
        ];
        let bytes = parts.into_iter().flatten();
        said.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_over_a_restart_and_nothing_of_it_can_be_changed() {
        let claims = Claims::new(&[1; 32], 7);
        let claim = Claim::new(&claims, Member(3), Some((Seat(1), Tick(40))), (2, Tick(900)));
        assert!(claim.is_true(&Claims::new(&[1; 32], 7)), "the same secret and number");
        assert!(!claim.is_true(&Claims::new(&[1; 32], 8)) && !claim.is_true(&Claims::new(&[2; 32], 7)));
        let forged = [
            Claim { member: 4, ..claim },
            Claim { seat: Some(Seat(0)), ..claim },
            Claim { seat: None, ..claim },
            Claim { since: Tick(41), ..claim },
            Claim { restarts: 3, ..claim },
            Claim { from: Tick(901), ..claim },
            Claim { run: claim.run ^ 1, ..claim },
            Claim { token: [0; 16], ..claim },
        ];
        assert!(forged.iter().all(|claim| !claim.is_true(&claims)));
    }
}
