//! The bytes of every record and every kind of frame: the format changes on purpose or not at all.

use sametick_sim::{Row, Seat, StateHash, Tick};
use sametick_store::log::{EncoderOptions, Header, Leaving, LogEncoder, Record, TickInputs};

use crate::sessions::{header, log_of};
use crate::trips::read_all;

fn inputs(tick: u32, rows: &[Row<&[u8]>]) -> Record {
    let mut inputs = TickInputs::new();
    inputs.set(Tick(tick), rows.iter().copied());
    Record::Inputs(inputs)
}

fn row(seat: u16, joined: bool, left: bool, input: Option<&[u8]>) -> Row<&[u8]> {
    Row { seat: Seat(seat), joined, left, input }
}

/// Each record in a frame of its own.
fn frames(records: &[Record]) -> Vec<String> {
    let header = Header { started_unix_ms: 1_800_000_000_000, ..header() };
    let mut encoder = LogEncoder::new(&header).unwrap();
    let (mut all, mut frame) = (vec![], vec![]);
    for record in records {
        encoder.push(record).unwrap();
        encoder.flush();
    }
    while encoder.poll_frame(&mut frame).is_some() {
        all.push(frame.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    all
}

#[test]
fn golden_bytes() {
    let (tick, hash) = (Tick(2), StateHash(0x0123_4567_89ab_cdef));
    let joined = |seat, name: &str, commit: &str| {
        let (name, commit) = (name.into(), commit.into());
        Record::Joined { tick: Tick(1), seat: Seat(seat), name, commit }
    };
    let left = |seat, why| Record::Left { tick: Tick(3), seat: Seat(seat), why };
    let records = [
        joined(0, "ada", "0123abc"),
        joined(200, "grace", "ffff"),
        joined(7, "", "0123abc"),
        inputs(
            1,
            &[row(0, true, false, Some(&[5])), row(7, true, false, None), row(200, true, false, Some(&[]))],
        ),
        inputs(
            2,
            &[
                row(0, false, false, Some(&[4])),
                row(7, false, false, Some(&[1, 2, 3, 4])),
                row(200, false, false, None),
            ],
        ),
        left(0, Leaving::Left),
        left(7, Leaving::Kicked),
        left(200, Leaving::TimedOut),
        Record::Check { tick, hash },
        Record::Dissent { tick, seat: Seat(7), hash },
        Record::Snapshot { tick, hash, place: "save".into() },
        Record::Desync { tick, seat: Seat(7) },
        Record::Dispute { tick },
        inputs(
            3,
            &[row(0, false, true, Some(&[4])), row(7, false, true, None), row(200, false, true, Some(&[]))],
        ),
        inputs(4, &[]),
        Record::Rewind { to: Tick(2) },
        Record::End,
        Record::Resumed { unix_ms: 1_800_000_060_000 },
    ];
    let expected = [
        // The preamble and the header.
        concat!(
            "73616d657469636b2d6c6f670200c00204706f6e6700000000000000000000000000000000073031",
            "32336162630000000000000000000000000000000000000000000000000000000000000000030102",
            "03073c000364656e0080a0f1c2b134016b8302a9",
        ),
        // The first group.
        "21475250a700000100793d670b",
        // Joined, thrice.
        "1e70001b0b230aafdf3662a7",
        "369176d89a719ac7d0497c1d8c810fa9f42e",
        "0e435774c882eee9",
        // Ticks 1 and 2.
        "12f0799a1d0faf3f17",
        "1ee3be7f2bc285c4314875dc",
        // Left, kicked, timed out.
        "0a18603950a5b8",
        "0a19bf3091083d",
        "0a37537f156423",
        // Check, dissent, snapshot, desync, dispute.
        "2a15a2424c8397e4b17e341dd9f79f",
        "2a094eec919c8e671c71c770ff40d5",
        "3e0b06f8f028f5c28f5b2e8e1fe76c295f1d3e66",
        "0a0866f441a0c9",
        "0607647d605f",
        // Ticks 3 and 4, the last with nobody there.
        "0afb58d6662c20",
        "06d43c8e1e11",
        // The rewind is a group.
        "49475250a7a901010303000000070000c8000094786ced",
        // End, resumed.
        "0a35d022e33235",
        "26648b428b40b77465fdaf0b2c0b",
    ];
    assert_eq!(frames(&records), expected);
}

/// Seats from 255 on are written otherwise, in events and in groups alike.
#[test]
fn golden_bytes_of_high_seats() {
    let seats = [0, 254, 255, 256, 999];
    let joined = |seat| Record::Joined {
        tick: Tick(1),
        seat: Seat(seat),
        name: String::new(),
        commit: "0123abc".into(),
    };
    let rows = seats.map(|seat| row(seat, true, false, Some(&[5])));
    let mut records = seats.map(joined).to_vec();
    records.extend([inputs(1, &rows), Record::Rewind { to: Tick(1) }]);
    records.push(Record::Dissent { tick: Tick(1), seat: Seat(999), hash: StateHash(1) });
    let expected = [
        // Joined, five times.
        "12700002affe321634",
        "0e9eb26a7412b43e",
        "16935bb6ef07e0ab0411",
        "16974af14f05de4d9b45",
        "16913ee06e5c0166a0fa",
        "1ef6e4f79cc5461658e34050",
        // The rewind is a group, and names all of them.
        "75475250a748010205000000fe0000ffff000000ff00010000ffe7030000fa7fad07",
        "365fffe07ce0000000000000003731533bc4",
    ];
    assert_eq!(frames(&records)[2..], expected);
    assert_eq!(read_all(&log_of(&records, EncoderOptions::at(60))), records);
}
