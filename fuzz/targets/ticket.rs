//! Whatever arrives as a ticket, only what the gateway signed is good, and exactly that.
//!
//! The input: a mode, then a whole ticket, or what a signed ticket says and how it is changed on the way.
#![cfg_attr(fuzzing, no_main)]

use std::sync::OnceLock;

use sametick_wire::access::{PROOF_WINDOW_S, Silence};
use sametick_wire::ticket::{MAX_TICKET, Ticket, TicketSigner, TicketVerifier};

const NOW_S: u64 = 1_800_000_000;

sametick_fuzz::target!(|bytes: &[u8]| {
    let (signer, verifier) = keys();
    match bytes {
        [0, raw @ ..] => assert!(verifier.check(NOW_S, raw).is_err() || is_seed(raw)),
        [session_len, off, flip, rest @ ..] => {
            let (session, player) = rest.split_at(rest.len().min(usize::from(*session_len)));
            let ticket = Ticket {
                id: [*off; 16],
                issued_s: NOW_S - 128 + u64::from(*off),
                session: String::from_utf8_lossy(session).into_owned(),
                player: String::from_utf8_lossy(player).into_owned(),
            };
            let Some(mut signed) = signer.sign(&ticket) else { return };
            assert!(signed.len() <= MAX_TICKET);
            let fresh = ticket.issued_s.abs_diff(NOW_S) <= PROOF_WINDOW_S;
            match verifier.check(NOW_S, &signed) {
                Ok((read, proof)) => assert!(fresh && read == ticket && proof.id == ticket.id),
                Err(why) => assert!(!fresh && why == Silence::Stale),
            }
            let at = usize::from(*flip) % signed.len();
            signed[at] ^= *flip | 1;
            assert_eq!(verifier.check(NOW_S, &signed).err(), Some(Silence::BadTicket));
        }
        _ => {}
    }
});

fn keys() -> &'static (TicketSigner, TicketVerifier) {
    static KEYS: OnceLock<(TicketSigner, TicketVerifier)> = OnceLock::new();
    KEYS.get_or_init(|| {
        let signer = TicketSigner::from_secret(&[1; 32]);
        let verifier = signer.verifier();
        (signer, verifier)
    })
}

/// The only good ticket that anybody has seen is the seed's.
fn is_seed(raw: &[u8]) -> bool {
    let (signer, _) = keys();
    let ticket = Ticket { id: [5; 16], issued_s: NOW_S, session: "room-1".into(), player: "ada".into() };
    signer.sign(&ticket).is_some_and(|seed| seed == raw)
}
