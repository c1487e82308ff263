//! The cost of a stranger's first packet, next to that of a client with the passphrase.

use std::hint::black_box;

use sametick_transport::clock::{random, unix_seconds};
use sametick_transport::noise::{Called, Calling, Psk};
use sametick_transport::proof_journal::ProofJournal;
use sametick_wire::access::{AccessKey, CONNECTION_ID_LEN, Source};
use sametick_wire::hello::Stamp;

use crate::echo::hello;
use crate::{line, rate, table};

const SOURCE: Source = Source::unproven(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

pub fn report() {
    // With a passphrase, or it would not be remembered.
    let key = AccessKey::from_root(&[7; 32]);
    let psk = Psk::new(&key);
    let stamp = Stamp { unix_s: unix_seconds(), nonce: random() };
    let first = Calling::new(&psk, &hello().to_bytes(&key, stamp).unwrap()).ok().unwrap().first().to_vec();
    let mut garbage = first.clone();
    garbage[0] ^= 1;
    let proofs = ProofJournal::in_memory(key.clone());
    let (stranger, used) = (random::<CONNECTION_ID_LEN>(), key.connection_id(unix_seconds(), random()));
    proofs.check_connection_id(SOURCE, &used).unwrap();
    table("first packets, on one core");
    let taken = rate(|| usize::from(black_box(Called::new(&psk, black_box(&first))).is_ok()));
    line("udp: taken (Noise, without the answer)", taken, taken);
    let refused = rate(|| usize::from(black_box(psk.check_first(black_box(&garbage))).is_err()));
    line("udp: a stranger's, refused", refused, taken);
    let refused =
        rate(|| usize::from(black_box(proofs.check_connection_id(SOURCE, black_box(&stranger))).is_err()));
    line("quic: a stranger's, refused", refused, taken);
    let refused =
        rate(|| usize::from(black_box(proofs.check_connection_id(SOURCE, black_box(&used))).is_err()));
    line("quic: a replayed one, refused", refused, taken);
}
