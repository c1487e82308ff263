//! Generates the committed seeds of the target `save`, saves and manifests of today's format, and compares them. After
//! a change of the format, `SEEDS=write cargo test --manifest-path fuzz/Cargo.toml --test save_seeds` writes them anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test that writes files asks the environment whether it should"
)]

use std::fs;
use std::path::Path;

use sametick_sim::{StateHash, Tick};
use sametick_store::log::Header;
use sametick_store::saves::{Manifest, Save, SaveInfo, Segment};

#[test]
fn seeds_are_of_this_format() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/save");
    let write = std::env::var_os("SEEDS").is_some_and(|what| what == "write");
    let (save, manifest) = (save(), manifest());
    let head_len = u32::from_le_bytes(save[15..19].try_into().unwrap()) as usize;
    let (head, body) = (&save[19..19 + head_len], &save[19 + head_len + 4..save.len() - 4]);
    let framed = [&[1], &(head_len as u16).to_le_bytes()[..], head, body].concat();
    let segments = &manifest[15..manifest.len() - 4];
    let seeds = [
        ("save", [&[0], &save[..]].concat()),
        ("framed_save", framed),
        ("manifest", [&[2], &manifest[..]].concat()),
        ("segments", [&[3], segments].concat()),
    ];
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if write {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|read| read == bytes), "save/{name} differs");
    }
}

fn save() -> Vec<u8> {
    let state = b"a state".to_vec();
    let info = SaveInfo {
        tick: Tick(900),
        hash: StateHash::of_bytes(&state),
        ..SaveInfo::of_log(&Header::new("fuzz", "fuzz"), "fuzz-0")
    };
    Save { info, state, table: vec![1, 2] }.to_bytes().unwrap()
}

fn manifest() -> Vec<u8> {
    let mut manifest = Manifest::default();
    for (first, number, begins) in [(1, 0, true), (601, 1, false), (500, 0, true)] {
        let segment = Segment { first: Tick(first), ticks: 600, bytes: 1000, crc: 7, number, begins };
        manifest.push(segment).unwrap();
    }
    manifest.to_bytes()
}
