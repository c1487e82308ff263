//! Claims to come back: made from the server's secret, so that none has to be kept and none can be guessed.

use core::fmt;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// A peer of a session. Whoever drives a relay or a room gives one to each link, later ones to later links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u64);

/// What lets a peer come back as who it was: its seat, though its last link may seem to be there still, and without the
/// ticks it has. Known to that peer and the server only.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Tells this session from others of its name, such as those before the server was restarted.
    pub run: u64,
    /// Who.
    pub token: [u8; 16],
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({:016x}, …)", self.run)
    }
}

/// The claims of one session.
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
    /// Those of a session, by its number, on the server with this secret.
    pub fn new(secret: &[u8; 32], session: u64) -> Claims {
        let key = *blake3::keyed_hash(secret, &session.to_le_bytes()).as_bytes();
        let [a, b, c, d, e, f, g, h, ..] = *blake3::keyed_hash(&key, b"run").as_bytes();
        Claims { key, run: u64::from_le_bytes([a, b, c, d, e, f, g, h]) }
    }

    /// The claim of a member: another one for every link.
    pub fn of(&self, member: Member) -> Claim {
        let mut token = [0; 16];
        let hash = blake3::keyed_hash(&self.key, &member.0.to_le_bytes());
        token.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
        Claim { run: self.run, token }
    }

    /// Whether a claim speaks of this session, and not of another of its name.
    pub fn are_of_this_run(&self, claim: &Claim) -> bool {
        claim.run == self.run
    }

    /// Whether a claim is that of a member.
    pub fn is_good(&self, claim: &Claim, member: Member) -> bool {
        let is_its: bool = self.of(member).token.ct_eq(&claim.token).into();
        claim.run == self.run && is_its
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
}
