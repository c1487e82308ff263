//! For any bytes as a first message, the verifier stays silent, refuses or understands, and a proof is good once.
//!
//! The input: a mode, then bytes. Raw bytes hardly ever pass the proof, so other modes put a proof in front of them,
//! made here from the documentation of the protocol.
#![cfg_attr(fuzzing, no_main)]

use std::net::{IpAddr, Ipv4Addr};

use sametick_wire::access::{AccessKey, Silence, Source};
use sametick_wire::hello::{HelloOutcome, HelloVerifier, MAGIC, MAX_HELLO, Refusal, Stamp, VERSION};

const NOW_S: u64 = 1_800_000_000;
const NONCE: [u8; 16] = [7; 16];
const SOURCE: Source = Source::proven(IpAddr::V4(Ipv4Addr::LOCALHOST));

sametick_fuzz::target!(|bytes: &[u8]| {
    let Some((mode, body)) = bytes.split_first() else { return };
    match mode {
        0 => assert!(matches!(
            open_door().knock(NOW_S, SOURCE, body),
            HelloOutcome::Silent(_) | HelloOutcome::Proven(_)
        )),
        1 => knock(&mut open_door(), VERSION, body),
        _ => knock(&mut open_door(), u16::from(*mode), body),
    }
});

fn open_door() -> HelloVerifier {
    HelloVerifier::new(AccessKey::open())
}

/// A first message with a good proof around any body.
fn proven(version: u16, body: &[u8]) -> Vec<u8> {
    let root = blake3::derive_key("sametick 1 open access", &[]);
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&NOW_S.to_le_bytes());
    out.extend_from_slice(&NONCE);
    let mut hasher = blake3::Hasher::new_keyed(&blake3::derive_key("sametick 1 hello", &root));
    let mac = hasher.update(&out).update(body).finalize();
    out.extend_from_slice(mac.as_bytes());
    out.extend_from_slice(body);
    out
}

fn knock(door: &mut HelloVerifier, version: u16, body: &[u8]) {
    let bytes = proven(version, body);
    match door.knock(NOW_S, SOURCE, &bytes) {
        HelloOutcome::Silent(Silence::NoProof) => assert!(bytes.len() > MAX_HELLO),
        HelloOutcome::Silent(why) => panic!("the proof was good: {why:?}"),
        HelloOutcome::Refused(Refusal::Version { client, .. }) => {
            assert!(client == version && version != VERSION)
        }
        HelloOutcome::Refused(_) => assert_eq!(version, VERSION),
        HelloOutcome::Proven(proven) => {
            // One text may have several encodings; ours is understood the same.
            let stamp = Stamp { unix_s: NOW_S, nonce: NONCE };
            let again = proven.hello.to_bytes(&AccessKey::open(), stamp).expect("it was short enough");
            assert!(again.len() <= MAX_HELLO);
            let again = open_door().knock(NOW_S, SOURCE, &again);
            assert!(matches!(again, HelloOutcome::Proven(again) if again.hello == proven.hello));
        }
    }
    if bytes.len() <= MAX_HELLO {
        assert_eq!(door.knock(NOW_S, SOURCE, &bytes), HelloOutcome::Silent(Silence::Replayed));
    }
}
