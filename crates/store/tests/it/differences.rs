//! Comparing two logs, or two streams of events: differences are named by tick and seat.

use sametick_sim::{Row, SchemaHash, Seat, StateHash, Tick};
use sametick_store::log::diff::{self, Difference, Differences, Side};
use sametick_store::log::{EncoderOptions, Header, LogEncoder, LogReader, Record, TickInputs, export};

use crate::sessions::{Wild, drain, header, log_of};
use crate::trips::SMALL;

fn compare(left: &[Record], right: &[Record]) -> Differences {
    let (left, right) = (log_of(left, SMALL), log_of(right, EncoderOptions::at(60)));
    let mut left = LogReader::open(&left[..]).unwrap();
    let mut right = LogReader::open(&right[..]).unwrap();
    diff::logs(&mut left, &mut right, None).unwrap()
}

fn jsonl(records: &[Record]) -> String {
    let bytes = log_of(records, SMALL);
    let mut out = vec![];
    export::jsonl(&mut LogReader::open(&bytes[..]).unwrap(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Two players, four ticks, a check.
fn session() -> Vec<Record> {
    let mut records = vec![];
    for tick in (1..=4).map(Tick) {
        let joined = tick == Tick(1);
        for seat in [Seat(0), Seat(1)].into_iter().filter(|_| joined) {
            records.push(Record::Joined { tick, seat, name: format!("p{seat}"), commit: "0123abc".into() });
        }
        let mut inputs = TickInputs::new();
        let row = |seat, input| Row { seat, joined, left: false, input };
        inputs.set(tick, [row(Seat(0), Some(&[7][..])), row(Seat(1), (tick != Tick(3)).then_some(&[8][..]))]);
        records.push(Record::Inputs(inputs));
    }
    records.push(Record::Check { tick: Tick(4), hash: StateHash(1) });
    records.push(Record::End);
    records
}

#[test]
fn a_log_equals_itself_in_any_division() {
    for seed in 0..20 {
        let records = Wild::records(seed, 100);
        assert_eq!(compare(&records, &records), Differences::default(), "seed {seed}");
        let lines = jsonl(&records);
        assert_eq!(diff::streams(lines.as_bytes(), lines.as_bytes(), None).unwrap(), Differences::default());
    }
}

#[test]
fn a_rewind_to_the_same_ticks_makes_no_difference() {
    let records = session();
    let mut rewound = records[..6].to_vec();
    rewound.push(Record::Rewind { to: Tick(2) });
    rewound.push(Record::Resumed { unix_ms: 1 });
    rewound.extend_from_slice(&records[4..]);
    assert_eq!(compare(&records, &rewound), Differences::default());
}

#[test]
fn another_input_is_named_by_tick_and_seat() {
    let (left, mut right) = (session(), session());
    let mut inputs = TickInputs::new();
    let row = |seat, input| Row { seat, joined: false, left: false, input: Some(input) };
    inputs.set(Tick(3), [row(Seat(0), &[7][..]), row(Seat(1), &[9][..])]);
    right[4] = Record::Inputs(inputs);
    let differences = compare(&left, &right);
    assert_eq!(differences.count, 1);
    assert_eq!(differences.first_tick(), Some(Tick(3)));
    assert_eq!(
        differences.first[0].to_string(),
        "input in tick 3 on seat 1: omitted; in the right one: 0x09"
    );
    let differences = diff::streams(jsonl(&left).as_bytes(), jsonl(&right).as_bytes(), None).unwrap();
    assert_eq!(differences.first[0].to_string(), "input in tick 3 on seat 1; in the right one: input=\"09\"");
}

#[test]
fn missing_and_moved_events_are_distinguished() {
    let (left, mut right) = (session(), session());
    right.swap(0, 1);
    let moved = compare(&left, &right);
    assert!(matches!(&moved.first[..], [Difference::Reordered { .. }]), "{moved:?}");
    right.truncate(5);
    let missing = compare(&left, &right);
    let missing = missing
        .first
        .iter()
        .filter(|difference| matches!(difference, Difference::Missing { side: Side::Right, .. }));
    // The last tick with two inputs, the check and the end.
    assert_eq!(missing.count(), 5);
}

#[test]
fn schema_drift_is_reported_first() {
    let other = Header { schema: SchemaHash::from_bytes([1; 32]), session: "another".into(), ..header() };
    let [left, right] = [&header(), &other].map(|header| drain(&mut LogEncoder::new(header).unwrap()));
    let mut left = LogReader::open(&left[..]).unwrap();
    let mut right = LogReader::open(&right[..]).unwrap();
    let differences = diff::logs(&mut left, &mut right, None).unwrap();
    assert!(matches!(&differences.first[..], [Difference::Header { field, .. }] if field == "schema"));
}

#[test]
fn exported_lines_keep_their_names() {
    let lines = jsonl(&session());
    let expected = [
        r#"{"commit":"0123abc","kind":"joined","name":"p0","seat":0,"tick":1}"#,
        r#"{"commit":"0123abc","kind":"joined","name":"p1","seat":1,"tick":1}"#,
        r#"{"kind":"inputs","rows":[{"input":"07","joined":true,"seat":0},{"input":"08","joined":true,"seat":1}],"tick":1}"#,
        r#"{"kind":"inputs","rows":[{"input":"07","seat":0},{"input":"08","seat":1}],"tick":2}"#,
        r#"{"kind":"inputs","rows":[{"input":"07","seat":0},{"seat":1}],"tick":3}"#,
        r#"{"kind":"inputs","rows":[{"input":"07","seat":0},{"input":"08","seat":1}],"tick":4}"#,
        r#"{"hash":"0000000000000001","kind":"check","tick":4}"#,
        r#"{"kind":"end"}"#,
    ];
    let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let read: Vec<_> = lines.lines().skip(1).map(value).collect();
    assert_eq!(read, expected.map(value));
    assert_eq!(value(lines.lines().next().unwrap())["game"], "pong");
    assert!(diff::streams(&b"{}"[..], &b""[..], None).is_err());
}

#[test]
fn ticks_after_a_limit_can_be_left_out() {
    let mut halves = (0..1000).map(|seed| {
        let records = Wild::records(seed, 200);
        let cut = records.len() / 2;
        let last = records[cut..].iter().filter_map(Record::tick).min().unwrap() - 1;
        (records, cut, last)
    });
    // In many worlds the second half goes back to the beginning, and nothing is left to compare.
    let (records, cut, last) = halves.find(|(.., last)| *last > Tick(10)).unwrap();
    let (left, right) = (log_of(&records, SMALL), log_of(&records[..cut], SMALL));
    let differences = |to| {
        let [mut left, mut right] = [&left, &right].map(|log| LogReader::open(&log[..]).unwrap());
        diff::logs(&mut left, &mut right, to).unwrap().count
    };
    assert!(differences(None) > 0);
    assert_eq!(differences(Some(last)), 0);
}
