//! Generates the committed seeds of the target `log`, logs of today's format, and compares them. After a change of the
//! format, `SEEDS=write cargo test --manifest-path fuzz/Cargo.toml --test log_seeds` writes them anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test that writes files asks the environment whether it should"
)]

use std::fs;
use std::path::Path;

use sametick_sim::{Row, Seat, StateHash, Tick};
use sametick_store::log::{EncoderOptions, Header, Leaving, LogEncoder, Record, TickInputs};

#[test]
fn seeds_are_of_this_format() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/log");
    let write = std::env::var_os("SEEDS").is_some_and(|what| what == "write");
    let frames = frames();
    let whole = [&[0], &frames.concat()[..]].concat();
    let torn = whole[..whole.len() - 3].to_vec();
    for (name, bytes) in [("whole", whole), ("torn", torn), ("payloads", payloads(&frames))] {
        let path = folder.join(name);
        if write {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|read| read == bytes), "log/{name} differs");
    }
}

/// A short session with every kind of record, in several groups.
fn frames() -> Vec<Vec<u8>> {
    let options = EncoderOptions { frame_ticks: 4, group_ticks: 10 };
    let mut encoder = LogEncoder::new(&Header::new("fuzz", "fuzz")).unwrap().with_options(options);
    for (number, record) in records().iter().enumerate() {
        encoder.push(record).unwrap_or_else(|error| panic!("record {number}: {error}"));
    }
    encoder.flush();
    let (mut all, mut frame) = (vec![], vec![]);
    while encoder.poll_frame(&mut frame).is_some() {
        all.push(frame.clone());
    }
    all
}

fn records() -> Vec<Record> {
    let (hash, seat) = (StateHash(7), Seat(3));
    let mut all = vec![];
    for tick in (1..=24).map(Tick) {
        let (joined, left) = (tick == Tick(2), tick == Tick(20));
        if joined {
            all.push(Record::Joined { tick, seat, name: "ada".into(), commit: "abc".into() });
        }
        if left {
            all.push(Record::Left { tick, seat, why: Leaving::TimedOut });
        }
        let input = [tick.0 as u8 / 5; 6];
        let input = (tick.0 % 7 != 0).then_some(&input[..tick.0 as usize % 9 % 7]);
        let mut inputs = TickInputs::new();
        inputs.clear(tick);
        if (2..=20).contains(&tick.0) {
            inputs.push(Row { seat, joined, left, input });
        }
        all.push(Record::Inputs(inputs));
    }
    let tick = Tick(20);
    all.extend([
        Record::Check { tick, hash },
        Record::Dissent { tick, seat, hash },
        Record::Snapshot { tick, hash, place: "save".into() },
        Record::Desync { tick, seat },
        Record::Dispute { tick },
        Record::Rewind { to: Tick(8) },
        Record::End,
        Record::Resumed { unix_ms: 1 },
    ]);
    all
}

/// The frames after the header in the encoding of the target's own mode.
fn payloads(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![1];
    for frame in &frames[1..] {
        let head_len = frame.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let payload = &frame[head_len..frame.len() - 4];
        all.push(frame[0] & 3);
        all.extend((payload.len() as u16).to_le_bytes());
        all.extend_from_slice(payload);
    }
    all
}
