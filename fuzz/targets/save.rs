//! Any bytes as a save or as a log's manifest are refused or equal to what is written again.
//!
//! The input: a mode, then bytes. Raw bytes hardly ever have the right CRCs, so half of the modes use them as a head, a
//! state or segments, in a frame made here from the documentation of the formats.
#![cfg_attr(fuzzing, no_main)]

use sametick_store::saves::{Manifest, Save, SaveInfo};

sametick_fuzz::target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    match mode % 4 {
        0 => read_save(bytes),
        1 => read_save(&framed_save(bytes)),
        2 => read_manifest(bytes),
        _ => read_manifest(&with_crc([b"sametick-cold\x01\0", bytes].concat())),
    }
});

/// A save whose head and body are given: two bytes of length, the head, the rest.
fn framed_save(bytes: &[u8]) -> Vec<u8> {
    let (len, bytes) = bytes.split_first_chunk::<2>().unwrap_or((&[0; 2], bytes));
    let (head, body) = bytes.split_at(bytes.len().min(u16::from_le_bytes(*len).into()));
    let len = (head.len() as u32).to_le_bytes();
    let front = with_crc([b"sametick-save\x01\0", &len[..], head].concat());
    with_crc([&front[..], body].concat())
}

fn with_crc(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn read_save(bytes: &[u8]) {
    let info = SaveInfo::from_prefix(bytes);
    let Ok(save) = Save::from_bytes(bytes) else { return };
    assert_eq!(info.as_ref(), Ok(&save.info));
    assert!(save.to_bytes().expect("it was read") == bytes);
    let _ = save.is_true();
}

fn read_manifest(bytes: &[u8]) {
    let Ok(manifest) = Manifest::from_bytes(bytes) else { return };
    assert!(manifest.to_bytes() == bytes);
    let in_logs: usize = manifest.logs().map(<[_]>::len).sum();
    assert_eq!(in_logs, manifest.segments().len());
    assert!(manifest.bytes_of_last() <= manifest.bytes());
}
