//! Claims to come back: made from the relay's secret, so that none has to be kept and none can be guessed.

use subtle::ConstantTimeEq;

use crate::message::Claim;
use crate::planted::{self, Bug};
use crate::session::{Member, SessionId};

/// The claims of one session.
#[derive(Clone)]
pub(crate) struct Claims {
    key: [u8; 32],
    run: u64,
}

impl core::fmt::Debug for Claims {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Claims({:016x}, …)", self.run)
    }
}

impl Claims {
    /// Those of a session of the relay with this secret.
    pub fn new(secret: &[u8; 32], id: SessionId) -> Claims {
        let key = *blake3::keyed_hash(secret, &id.0.to_le_bytes()).as_bytes();
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
        claim.run == self.run && (is_its || planted::has(Bug::AnyClaim))
    }
}
