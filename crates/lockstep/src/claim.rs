//! Claims with which a peer resumes its seat, also after a relay restart: a claim states its owner and is authenticated
//! by the relay.

use core::fmt;

use sametick_sim::{Seat, Tick};
use sametick_wire::Member;
use sametick_wire::claims::Claims;
use serde::{Deserialize, Serialize};

/// What lets a peer resume: it gets its own seat even if its last link still seems open, and is not sent the ticks it
/// has. Known to that peer and the relay only.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Distinguishes this session from others with the same name.
    pub run: u64,
    /// The link over which the peer took part: the number of its [`Member`].
    pub member: u64,
    /// The seat, if the peer played.
    pub seat: Option<Seat>,
    /// The tick in which the peer took the seat.
    pub since: Tick,
    /// How often the session had been resumed after a restart by then.
    pub restarts: u32,
    /// The tick after which the session was last resumed; zero if it never was.
    pub from: Tick,
    /// Authenticates the other fields.
    pub token: [u8; 16],
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claim { run, member, seat, since, restarts, from, .. } = self;
        write!(f, "Claim({run:016x}, {member}, {seat:?} since {since}, {restarts} from {from}, …)")
    }
}

/// Authenticated bytes: the link, whether there is a seat and which, and three numbers.
const SAID_BYTES: usize = 8 + 1 + 2 + 3 * 4;

impl Claim {
    /// A claim authenticated with the secret of `claims`.
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

    /// Whether the claim was authenticated with the secret of `claims`.
    pub(crate) fn is_true(&self, claims: &Claims) -> bool {
        self.run == claims.run() && claims.has_sealed(&self.said(), &self.token)
    }

    /// The authenticated bytes.
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
    fn a_claim_survives_a_restart_and_cannot_be_altered() {
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
