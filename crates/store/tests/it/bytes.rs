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
            "73616d657469636b2d6c6f670100b80204706f6e6700000000000000000000000000000000073031",
            "32336162630000000000000000000000000000000000000000000000000000000000000000030102",
            "03073c0364656e80a0f1c2b134011c91e306",
        ),
        // The first group.
        "21475250a7000001004a82d1ce",
        // Joined, thrice.
        "1e70001b0b230aafa1f0511f",
        "369176d89a719ac7d0497c1d8c8146b864e3",
        "0e435774a82a0d8b",
        // Ticks 1 and 2.
        "12f0799a1dc5df9b76",
        "1ee3be7f2bc285c431df0a48",
        // Left, kicked, timed out.
        "0a1860acfbb5c5",
        "0a19bf43080716",
        "0a37530c8c6b08",
        // Check, dissent, snapshot, desync, dispute.
        "2a15a2424c8397e4b17e34d31540ce",
        "2a094eec919c8e671c71c7d7e68b24",
        "3e0b06f8f028f5c28f5b2e8e1fe76c29b2ee4d17",
        "0a086687d8afe2",
        "0607dffc20cc",
        // Ticks 3 and 4, the last with nobody there.
        "0afb586e911648",
        "06d4870f5e82",
        // The rewind is a group.
        "49475250a7a901010303000000070000c80000a561072c",
        // End, resumed.
        "0a35d0b7482248",
        "26648b428b40b77465fdf90ffe15",
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
        "12700002af3a0b9016",
        "0e9eb26a14ba575c",
        "16935bb6ef076c010ab9",
        "16974af14f05bbc464b8",
        "16913ee06e5c8dccae52",
        "1ef6e4f79cc5461658743fc4",
        // The rewind is a group, and names all of them.
        "75475250a748010205000000fe0000ffff000000ff00010000ffe7030000cbc9608b",
        "365fffe07ce00000000000000037598e107c",
    ];
    assert_eq!(frames(&records)[2..], expected);
    assert_eq!(read_all(&log_of(&records, EncoderOptions::at(60))), records);
}
