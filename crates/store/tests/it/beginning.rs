//! A log that goes on from a save contains its state, and leads to every later state by itself.

use sametick_sim::{Row, Seat, StateHash, Tick};
use sametick_store::log::{
    Header, LogEncoder, LogReader, MAX_BEGINNING_BYTES, OpenError, Position, Record, TickInputs,
    VERSION_WITH_STATE,
};

use crate::sessions::header;

fn after(state: &[u8], ticks: u32) -> Vec<u8> {
    let header = Header { started_unix_ms: 1_800_000_000_000, ..header() };
    let mut encoder = LogEncoder::after(&header, Position::after(Tick(900), [Seat(1)]), state).unwrap();
    let hash = StateHash::of_bytes(state);
    encoder.push(&Record::Snapshot { tick: Tick(900), hash, place: "log".into() }).unwrap();
    encoder.push(&Record::Rewind { to: Tick(900) }).unwrap();
    let mut inputs = TickInputs::new();
    for tick in (901..901 + ticks).map(Tick) {
        inputs
            .set(tick, [Row { seat: Seat(1), joined: false, left: false, input: Some(&[tick.0 as u8][..]) }]);
        encoder.push_inputs(&inputs).unwrap();
    }
    encoder.flush();
    let (mut log, mut frame) = (vec![], vec![]);
    while encoder.poll_frame(&mut frame).is_some() {
        log.extend_from_slice(&frame);
    }
    log
}

#[test]
fn states_of_any_length_and_later_ticks_are_read_back() {
    for length in [1, 100, 131_072, 131_073, 700_000, MAX_BEGINNING_BYTES] {
        let state: Vec<u8> = (0..length as u32).map(|at| ((at * 7) >> 3) as u8).collect();
        let log = after(&state, 90);
        let mut reader = LogReader::open(&log[..]).unwrap();
        assert!(reader.has_state() && reader.state().unwrap() == Some(state), "{length}");
        assert_eq!((reader.header().first_tick, reader.tail().last_tick), (Tick(901), Tick(990)));
        let summary = reader.verify().unwrap();
        assert_eq!((summary.ticks, summary.void_ticks), (90, 0));
        assert_eq!(reader.ticks_from(Tick(950)).next().unwrap().map(TickInputs::tick), Some(Tick(950)));
        // It is resumed like any other log.
        let mut encoder = LogEncoder::resume(&reader.header().clone(), summary.position);
        encoder.push(&Record::End).unwrap();
        encoder.flush();
        let (mut longer, mut frame) = (log.clone(), vec![]);
        while encoder.poll_frame(&mut frame).is_some() {
            longer.extend_from_slice(&frame);
        }
        let mut reader = LogReader::open(&longer[..]).unwrap();
        assert!(reader.tail().ended && reader.state().unwrap().is_some());
    }
}

/// The frames of a state look like any bytes: also like a group where none is.
#[test]
fn state_bytes_are_not_taken_for_frames() {
    let inner = after(&[7; 50], 30);
    let log = after(&inner.repeat(5), 30);
    let mut reader = LogReader::open(&log[..]).unwrap();
    assert_eq!((reader.verify().unwrap().ticks, reader.tail().last_tick), (30, Tick(930)));
}

#[test]
fn a_cut_or_changed_state_is_reported() {
    let state = vec![5; 200_000];
    let log = after(&state, 30);
    assert_eq!(u16::from_le_bytes([log[12], log[13]]), VERSION_WITH_STATE);
    for cut in [100, 1_000, 131_000, 140_000, 200_000] {
        let opened = LogReader::open(&log[..cut]);
        assert!(matches!(opened, Err(OpenError::NoHeader { bytes }) if bytes == cut as u64), "{cut}");
    }
    for at in [120, 1_000, 140_000] {
        let mut log = log.clone();
        log[at] ^= 4;
        assert!(matches!(LogReader::open(&log[..]), Err(OpenError::Read(_))), "{at}");
    }
    // Without the state, in the older version, the log is invalid.
    let mut older = log;
    older[12] = 2;
    assert!(LogReader::open(&older[..]).and_then(|mut log| Ok(log.verify()?)).is_err());
}

#[test]
fn golden_bytes_of_a_state() {
    let log = after(&[1, 2, 3], 0);
    let header_end = log.windows(4).position(|at| at == [0x80, 0xa0, 0xf1, 0xc2]).unwrap() + 6 + 2 + 4;
    let frame: Vec<String> =
        log[header_end..header_end + 9].iter().map(|byte| format!("{byte:02x}")).collect();
    // Four bytes of kind 3: none left after these, and the state.
    assert_eq!(frame[..5].join(" "), "13 00 01 02 03");
}
