//! Tickets: what a gateway signs and a player shows at a host. The host needs the public key only, so it cannot make
//! tickets itself.

use alloc::string::String;
use alloc::vec::Vec;

use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::access::{ProofId, Silence, check_time};

/// The longest ticket, signature included.
pub const MAX_TICKET: usize = 300;

const SIGNATURE_LEN: usize = 64;

/// What a ticket says. It is good for one handshake within the proof window around `issued_s`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Unique; from the operating system's randomness.
    pub id: [u8; 16],
    /// When it was made, in Unix seconds.
    pub issued_s: u64,
    /// Which session it lets its holder into.
    pub session: String,
    /// Who holds it.
    pub player: String,
}

/// The gateway's side: signs tickets.
pub struct TicketSigner(SigningKey);

impl TicketSigner {
    /// A signer with this secret.
    pub fn from_secret(secret: &[u8; 32]) -> TicketSigner {
        TicketSigner(SigningKey::from_bytes(secret))
    }

    /// What hosts check tickets with.
    pub fn verifier(&self) -> TicketVerifier {
        TicketVerifier(self.0.verifying_key())
    }

    /// The signed bytes of a ticket, or `None` if its texts are too long for one.
    pub fn sign(&self, ticket: &Ticket) -> Option<Vec<u8>> {
        let mut bytes = postcard::to_allocvec(ticket).ok()?;
        let signature = self.0.sign(&bytes);
        bytes.extend_from_slice(&signature.to_bytes());
        (bytes.len() <= MAX_TICKET).then_some(bytes)
    }
}

/// The host's side: checks tickets.
#[derive(Clone, Debug)]
pub struct TicketVerifier(VerifyingKey);

impl TicketVerifier {
    /// A verifier with this public key.
    pub fn from_public(public: &[u8; 32]) -> Option<TicketVerifier> {
        VerifyingKey::from_bytes(public).ok().map(TicketVerifier)
    }

    /// The public key.
    pub fn public(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Checks the signature and the time. What comes back must still be noted as used.
    pub fn check(&self, unix_s: u64, bytes: &[u8]) -> Result<(Ticket, ProofId), Silence> {
        if bytes.len() > MAX_TICKET {
            return Err(Silence::BadTicket);
        }
        let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_LEN>().ok_or(Silence::BadTicket)?;
        let signature = Signature::from_bytes(signature);
        self.0.verify(signed, &signature).map_err(|_| Silence::BadTicket)?;
        let ticket: Ticket = postcard::from_bytes(signed).map_err(|_| Silence::BadTicket)?;
        check_time(unix_s, ticket.issued_s)?;
        let proof = ProofId { id: ticket.id, stamped_s: ticket.issued_s };
        Ok((ticket, proof))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_800_000_000;

    fn ticket() -> Ticket {
        Ticket { id: [5; 16], issued_s: NOW, session: "room-1".into(), player: "ada".into() }
    }

    #[test]
    fn golden_bytes() {
        let bytes = TicketSigner::from_secret(&[1; 32]).sign(&ticket()).unwrap();
        assert_eq!(&bytes[16..32], b"\x80\xa4\xa7\xda\x06\x06room-1\x03ada"[..].get(..16).unwrap());
        assert_eq!(bytes.len(), 16 + 5 + 7 + 4 + SIGNATURE_LEN);
    }

    #[test]
    fn texts_that_do_not_fit_are_not_signed() {
        let long = Ticket { session: "x".repeat(MAX_TICKET), ..ticket() };
        assert_eq!(TicketSigner::from_secret(&[1; 32]).sign(&long), None);
    }

    proptest! {
        #[test]
        fn only_what_the_gateway_signed_is_good(off in -300i64..300, flip in 0usize..96 * 8) {
            let signer = TicketSigner::from_secret(&[1; 32]);
            let ticket = Ticket { issued_s: NOW.checked_add_signed(off).unwrap(), ..ticket() };
            let mut bytes = signer.sign(&ticket).unwrap();
            let public = TicketVerifier::from_public(&signer.verifier().public()).unwrap();
            match public.check(NOW, &bytes) {
                Ok((read, _)) => prop_assert!(read == ticket && off.abs() <= 120),
                Err(why) => prop_assert!(why == Silence::Stale && off.abs() > 120),
            }
            let stranger = TicketSigner::from_secret(&[2; 32]).verifier();
            prop_assert_eq!(stranger.check(NOW, &bytes).err(), Some(Silence::BadTicket));
            let at = flip / 8 % bytes.len();
            bytes[at] ^= 1 << (flip % 8);
            prop_assert_eq!(public.check(NOW, &bytes).err(), Some(Silence::BadTicket));
        }
    }
}
