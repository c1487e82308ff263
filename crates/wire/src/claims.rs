//! Claims with which a peer resumes its seat: derived from the server's secret, so that they need no storage and cannot
//! be guessed.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use sametick_sim::{Seat, Time};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::identity::PlayerId;

/// A peer of a session. The driver of a relay or a room assigns one to each link, with growing numbers. Where sessions
/// survive a restart, no number is assigned twice even across restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u64);

/// Lets a peer resume its seat, even if its last link still seems alive, without resending the ticks it has. A secret
/// of that peer and the server.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Tells this session from others of its name, such as those before a restart of the server.
    pub run: u64,
    /// The secret of the peer.
    pub token: [u8; 16],
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({:016x}, …)", self.run)
    }
}

/// Derives the claims of one session.
#[derive(Clone)]
pub struct Claims {
    key: [u8; 32],
    run: u64,
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claims({:016x}, …)", self.run)
    }
}

impl Claims {
    /// For the session with this number, on the server with this secret.
    pub fn new(secret: &[u8; 32], session: u64) -> Claims {
        let key = *blake3::keyed_hash(secret, &session.to_le_bytes()).as_bytes();
        let [a, b, c, d, e, f, g, h, ..] = *blake3::keyed_hash(&key, b"run").as_bytes();
        Claims { key, run: u64::from_le_bytes([a, b, c, d, e, f, g, h]) }
    }

    /// The claim of a member: a different one for every link.
    pub fn of(&self, member: Member) -> Claim {
        let mut token = [0; 16];
        let hash = blake3::keyed_hash(&self.key, &member.0.to_le_bytes());
        token.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
        Claim { run: self.run, token }
    }

    /// The number that tells this session from others of its name.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// A proof that this server has sent `said`: valid after a restart too, with the same secret and session number.
    pub fn seal(&self, said: &[u8]) -> [u8; 16] {
        let key = *blake3::keyed_hash(&self.key, b"seal").as_bytes();
        let mut token = [0; 16];
        let hash = blake3::keyed_hash(&key, said);
        token.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
        token
    }

    /// Whether this server has sealed it.
    pub fn has_sealed(&self, said: &[u8], token: &[u8; 16]) -> bool {
        self.seal(said).ct_eq(token).into()
    }

    /// Whether a claim is for this session, and not for another of its name.
    pub fn are_of_this_run(&self, claim: &Claim) -> bool {
        claim.run == self.run
    }

    /// Whether a claim is that of a member.
    pub fn is_good(&self, claim: &Claim, member: Member) -> bool {
        let is_its: bool = self.of(member).token.ct_eq(&claim.token).into();
        claim.run == self.run && is_its
    }
}

/// The most departed players that are remembered.
const MAX_GONE: usize = 256;

/// The default time for which the seat of a disconnected player is held: a minute (B9).
pub const HOLD_US: u64 = 60_000_000;

/// Seats that are held for their players.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    /// The latest departure is last.
    gone: VecDeque<Hold>,
}

/// A seat that is held for its player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The seat.
    pub seat: Seat,
    /// The player's link; none if that was before a restart.
    pub member: Option<Member>,
    /// The player, if known.
    pub player: Option<PlayerId>,
    /// Until when it is held. After that its player still gets it if it is free.
    pub until: Time,
    /// No other player gets it until then, not even if no other seat is free: the player was disconnected without a
    /// goodbye.
    pub is_firm: bool,
    /// State that the player gets back.
    pub kept: Vec<u8>,
}

impl Holds {
    /// A player has left a seat.
    pub fn push(&mut self, hold: Hold) {
        if self.gone.len() == MAX_GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(hold);
    }

    /// The hold on a seat, if it has not expired.
    pub fn of(&self, now: Time, seat: Seat) -> Option<&Hold> {
        self.gone.iter().find(|hold| hold.seat == seat && now < hold.until)
    }

    /// The best of these free seats for a player without a held one: one that is not held, or else one whose player has
    /// said goodbye.
    pub fn free_among(&self, now: Time, mut free: impl Iterator<Item = Seat> + Clone) -> Option<Seat> {
        let is_left = |seat: &Seat| self.of(now, *seat).is_none_or(|hold| !hold.is_firm);
        free.clone().find(|seat| self.of(now, *seat).is_none()).or_else(|| free.find(is_left))
    }

    /// The hold of a returning player, found by player id or by claim.
    pub fn find(&self, player: Option<PlayerId>, is_claimed: impl Fn(Member) -> bool) -> Option<&Hold> {
        self.gone.iter().rev().find(|hold| {
            let is_player = player.is_some() && hold.player == player;
            // A claim alone does not give the seat of a known player.
            let is_free = hold.player.is_none() || hold.player == player;
            is_player || is_free && hold.member.is_some_and(&is_claimed)
        })
    }

    /// The hold of the link for which this is true.
    pub fn claimed_by(&self, is_claimed: impl Fn(Member) -> bool) -> Option<&Hold> {
        self.gone.iter().rev().find(|hold| hold.member.is_some_and(&is_claimed))
    }

    /// A player has taken the seat: it is no longer held.
    pub fn clear(&mut self, seat: Seat) {
        self.gone.retain(|hold| hold.seat != seat);
    }

    /// The player must not resume.
    pub fn forget(&mut self, player: PlayerId) {
        self.gone.retain(|hold| hold.player != Some(player));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_good_for_one_member_of_one_session_of_one_server() {
        let claims = Claims::new(&[1; 32], 7);
        let claim = claims.of(Member(3));
        assert!(claims.is_good(&claim, Member(3)) && claims.are_of_this_run(&claim));
        assert!(!claims.is_good(&claim, Member(4)));
        for others in [Claims::new(&[1; 32], 8), Claims::new(&[2; 32], 7)] {
            assert!(!others.is_good(&claim, Member(3)) && !others.are_of_this_run(&claim));
        }
    }

    #[test]
    fn a_seat_is_held_after_a_disconnect_and_given_away_last() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let mut holds = Holds::default();
        let hold = |seat, member, player: Option<u128>, is_firm| Hold {
            seat: Seat(seat),
            member: Some(Member(member)),
            player: player.map(PlayerId),
            until: at(60),
            is_firm,
            kept: alloc::vec![seat as u8],
        };
        holds.push(hold(0, 10, Some(7), true));
        holds.push(hold(1, 11, None, false));
        let free = |seats: &'static [u16]| seats.iter().copied().map(Seat);
        assert_eq!(holds.free_among(at(1), free(&[0, 1, 2])), Some(Seat(2)));
        assert_eq!(holds.free_among(at(1), free(&[0, 1])), Some(Seat(1)), "they have said goodbye");
        assert_eq!(holds.free_among(at(1), free(&[0])), None);
        assert_eq!(holds.free_among(at(60), free(&[0])), Some(Seat(0)), "not for ever");
        let seat = |player: Option<u128>, claimed: u64| {
            holds.find(player.map(PlayerId), |member| member == Member(claimed)).map(|hold| hold.seat.0)
        };
        assert_eq!((seat(Some(7), 99), seat(None, 11), seat(Some(8), 11)), (Some(0), Some(1), Some(1)));
        // A claim is not enough where the player is known.
        assert_eq!((seat(None, 10), seat(Some(8), 10)), (None, None));
        holds.forget(PlayerId(7));
        holds.clear(Seat(1));
        assert_eq!(holds.find(Some(PlayerId(7)), |_| true), None);
    }
}
