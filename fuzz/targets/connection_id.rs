//! Of any first connection ids, only a fresh proof of the passphrase is good, and only once; records of used proofs
//! read as they were written.
//!
//! The input: a mode, then the id, or the time and nonce of one that is made here.
#![cfg_attr(fuzzing, no_main)]

use std::net::{IpAddr, Ipv4Addr};

use sametick_wire::access::{AccessKey, PROOF_WINDOW_S, ProofId, RECORD_LEN, Silence, Source, UsedProofs};

const NOW_S: u64 = 1_800_000_000;
const SOURCE: Source = Source::unproven(IpAddr::V4(Ipv4Addr::LOCALHOST));

sametick_fuzz::target!(|bytes: &[u8]| {
    let key = AccessKey::open();
    let Some((mode, rest)) = bytes.split_first() else { return };
    if mode & 1 == 0 {
        if let Ok(proof) = key.check_connection_id(NOW_S, rest) {
            assert!(proof.stamped_s.abs_diff(NOW_S) <= PROOF_WINDOW_S);
            assert_eq!(
                rest[..10],
                key.connection_id(proof.stamped_s, rest[4..10].try_into().expect("six"))[..10]
            );
        }
        return;
    }
    if let Some((record, _)) = rest.split_first_chunk::<RECORD_LEN>() {
        assert_eq!(ProofId::from_record(record).to_record(), *record);
    }
    let Some((time, rest)) = rest.split_first_chunk::<8>() else { return };
    let Some((nonce, _)) = rest.split_first_chunk() else { return };
    let now_s = u64::from_le_bytes(*time);
    let mut used = UsedProofs::default();
    for stamped_s in [now_s, now_s.saturating_add(u64::from(*mode)), now_s.saturating_sub(u64::from(*mode))] {
        let id = key.connection_id(stamped_s, *nonce);
        match key.check_connection_id(now_s, &id) {
            Ok(proof) => {
                assert!(proof.stamped_s.abs_diff(now_s) <= PROOF_WINDOW_S);
                // Two of the three are equal at the ends of time.
                let _ = used.note(now_s, SOURCE, proof);
                assert_eq!(used.note(now_s, SOURCE, proof), Err(Silence::Replayed));
            }
            Err(why) => assert!(why == Silence::Stale && stamped_s.abs_diff(now_s) > PROOF_WINDOW_S),
        }
    }
});
