//! Any bytes as a log are refused or understood, and after repairing a torn tail they are a log.
//!
//! The input: a mode, then bytes. Raw bytes hardly ever have the right CRCs, so the other mode takes payloads and puts
//! frames around them behind a good header, made here from the documentation of the format.
#![cfg_attr(fuzzing, no_main)]

use sametick_sim::Tick;
use sametick_store::log::{Header, LogEncoder, LogReader, Record};

sametick_fuzz::target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((0, raw)) => read(raw),
        Some((_, payloads)) => read(&framed(payloads)),
        None => {}
    }
});

/// A log of payloads: each a kind, two bytes of length, and that many bytes.
fn framed(mut payloads: &[u8]) -> Vec<u8> {
    let mut log = vec![];
    let mut encoder = LogEncoder::new(&Header::new("fuzz", "fuzz")).expect("short texts");
    encoder.poll_frame(&mut log);
    while let Some((&[kind, low, high], rest)) = payloads.split_first_chunk() {
        let len = rest.len().min(u16::from_le_bytes([low, high]).into());
        let (payload, rest) = rest.split_at(len);
        payloads = rest;
        let start = log.len();
        let mut head = len << 2 | usize::from(kind & 3);
        while head >= 0x80 {
            log.push(head as u8 | 0x80);
            head >>= 7;
        }
        log.push(head as u8);
        log.extend_from_slice(payload);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&(start as u64).to_le_bytes()), &log[start..]);
        log.extend_from_slice(&crc.to_le_bytes());
    }
    log
}

fn read(bytes: &[u8]) {
    let Ok(mut reader) = LogReader::open(bytes) else { return };
    let tail = reader.tail();
    assert_eq!(tail.valid_bytes + tail.torn_bytes, bytes.len() as u64);
    if tail.torn_bytes > 0 {
        let rest = &bytes[..tail.valid_bytes as usize];
        let rest = LogReader::open(rest).expect("what is valid is a log").tail();
        assert_eq!((rest.torn_bytes, rest.last_tick), (0, tail.last_tick));
    }
    let Ok(summary) = reader.verify() else { return };
    let (mut holding, mut middle) = (0, Tick::ZERO);
    let mut ticks = reader.ticks();
    while let Some(inputs) = ticks.next().expect("it was verified") {
        holding += 1;
        middle = if holding % 2 == 0 { middle } else { inputs.tick() };
    }
    assert_eq!(holding, summary.ticks - summary.void_ticks);
    if holding > 0 {
        let found = reader.ticks_from(middle).next().map(|inputs| inputs.map(|inputs| inputs.tick()));
        assert_eq!(found.expect("it was verified"), Some(middle));
    }
    let mut records = reader.records();
    let mut rewinds = 0;
    while let Some(record) = records.next().expect("it was verified") {
        rewinds += u64::from(matches!(record, Record::Rewind { .. }));
    }
    assert!(rewinds <= summary.records);
}
