//! Compares two logs, or two streams of events: missing, reordered and different events, and schema drift.
//!
//! Logs are compared by their valid ticks, one by one, without loading either. Streams are lines of JSON such as
//! [`export::jsonl`](super::export::jsonl) writes: any object with a `kind`, and perhaps a `tick` and a `seat`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};

use sametick_sim::{Row, Seat, Tick};
use serde_json::Value;

use crate::disk::Source;

use super::cursor::{Records, Ticks};
use super::export::{header_to_json, hex, record_to_json};
use super::reader::{LogReader, ReadError};
use sametick_sim::record::{Record, TickInputs};

/// How many differences are kept; the rest is only counted.
pub const MAX_DIFFERENCES: usize = 1000;

/// The differences, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// The first [`MAX_DIFFERENCES`].
    pub first: Vec<Difference>,
    /// The total number of differences.
    pub count: u64,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The headers differ: with another `schema` or `build`, nothing else can be expected to be equal.
    Header {
        /// The field.
        field: String,
        /// Its value on the left.
        left: String,
        /// Its value on the right.
        right: String,
    },
    /// An event is on one side only.
    Missing {
        /// The side that lacks it.
        side: Side,
        /// The event.
        event: Event,
    },
    /// An event is on both sides, with different content.
    Different {
        /// The event on the left.
        left: Event,
        /// The event on the right.
        right: Event,
    },
    /// An event is on both sides, but others come before it on one and after it on the other.
    Reordered {
        /// The event.
        event: Event,
        /// Its index among the events of the left.
        left_at: usize,
        /// Its index among the events of the right.
        right_at: usize,
    },
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first log or stream.
    Left,
    /// The second log or stream.
    Right,
}

/// One event, as far as a comparison needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its kind.
    pub kind: String,
    /// Its tick, if it has one.
    pub tick: Option<Tick>,
    /// Its seat, if it has one.
    pub seat: Option<Seat>,
    /// Everything else about it.
    pub detail: String,
}

/// Why streams cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A stream cannot be read.
    #[error("the {side:?} stream cannot be read: {error}")]
    Io {
        /// The side of the stream.
        side: Side,
        /// The underlying error.
        error: io::Error,
    },
    /// A line is not an event.
    #[error("line {line} of the {side:?} stream is no JSON object with a \"kind\"")]
    NotAnEvent {
        /// The side of the stream.
        side: Side,
        /// The line number, from 1.
        line: usize,
    },
}

impl Differences {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first tick that differs, among the differences that were kept.
    pub fn first_tick(&self) -> Option<Tick> {
        let tick = |difference: &Difference| match difference {
            Difference::Header { .. } => None,
            Difference::Missing { event, .. }
            | Difference::Different { left: event, .. }
            | Difference::Reordered { event, .. } => event.tick,
        };
        self.first.iter().filter_map(tick).min()
    }

    fn push(&mut self, difference: Difference) {
        self.count += 1;
        if self.first.len() < MAX_DIFFERENCES {
            self.first.push(difference);
        }
    }
}

/// Compares the valid records of two logs.
///
/// The name and the start time of the session make no difference. Records about closed ticks are compared in the order
/// of those ticks, not of their arrival. With `to`, only records about ticks up to it are compared.
pub fn logs<A: Source, B: Source>(
    left: &mut LogReader<A>,
    right: &mut LogReader<B>,
    to: Option<Tick>,
) -> Result<Differences, ReadError> {
    let mut out = Differences::default();
    headers(&header_to_json(left.header()), &header_to_json(right.header()), &mut out);
    ticks(left.ticks(), right.ticks(), to, &mut out)?;
    let [left, right] = [events_of(left.holding())?, events_of(right.holding())?];
    events(&up_to(left, to), &up_to(right, to), &mut out);
    Ok(out)
}

/// Splits events into those in order of occurrence and those reported later about closed ticks, in the order of those
/// ticks.
fn apart(events: Vec<Event>) -> [Vec<Event>; 2] {
    let is_said =
        |event: &Event| matches!(&*event.kind, "check" | "dissent" | "snapshot" | "desync" | "dispute");
    let (mut said, happened): (Vec<Event>, Vec<Event>) = events.into_iter().partition(is_said);
    said.sort_by_key(|event| event.tick);
    [happened, said]
}

/// The events about ticks up to this one.
fn up_to(mut events: Vec<Event>, to: Option<Tick>) -> Vec<Event> {
    if let Some(to) = to {
        events.retain(|event| event.tick.is_some_and(|tick| tick <= to));
    }
    events
}

/// Compares two streams of events, each a line of JSON, as [`logs`] compares logs.
pub fn streams(
    left: impl BufRead,
    right: impl BufRead,
    to: Option<Tick>,
) -> Result<Differences, StreamError> {
    let mut out = Differences::default();
    let (left_header, left) = read_stream(left, Side::Left)?;
    let (right_header, right) = read_stream(right, Side::Right)?;
    headers(&left_header, &right_header, &mut out);
    let ([left, left_said], [right, right_said]) = (apart(up_to(left, to)), apart(up_to(right, to)));
    events(&left, &right, &mut out);
    events(&left_said, &right_said, &mut out);
    Ok(out)
}

/// Header fields that name a log and are not its content.
const NAMES: [&str; 4] = ["kind", "session", "listed", "started_unix_ms"];

fn headers(left: &Value, right: &Value, out: &mut Differences) {
    let fields = |header: &Value| -> BTreeMap<String, Value> {
        header
            .as_object()
            .into_iter()
            .flatten()
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect()
    };
    let (left, right) = (fields(left), fields(right));
    let missing: Vec<&String> = right.keys().filter(|field| !left.contains_key(*field)).collect();
    for field in left.keys().chain(missing).filter(|field| !NAMES.contains(&field.as_str())) {
        let [ours, theirs] =
            [&left, &right].map(|header| header.get(field).map_or(String::new(), Value::to_string));
        if ours != theirs {
            out.push(Difference::Header { field: field.clone(), left: ours, right: theirs });
        }
    }
}

fn ticks<A: Source, B: Source>(
    mut left: Ticks<'_, A>,
    mut right: Ticks<'_, B>,
    to: Option<Tick>,
    out: &mut Differences,
) -> Result<(), ReadError> {
    let mut ours = left.next()?.cloned();
    let mut theirs = right.next()?.cloned();
    while ours.is_some() || theirs.is_some() {
        let ticks =
            [&ours, &theirs].map(|inputs| inputs.as_ref().map_or(u64::MAX, |inputs| inputs.tick().0.into()));
        let now = ticks[0].min(ticks[1]);
        if to.is_some_and(|to| now > to.0.into()) {
            return Ok(());
        }
        let [left_rows, right_rows] =
            [&ours, &theirs].map(|inputs| inputs.as_ref().filter(|inputs| u64::from(inputs.tick().0) == now));
        if left_rows != right_rows {
            rows(left_rows, right_rows, out);
        }
        if ticks[0] == now {
            ours = left.next()?.cloned();
        }
        if ticks[1] == now {
            theirs = right.next()?.cloned();
        }
    }
    Ok(())
}

/// Compares one tick, or reports it as missing.
fn rows(left: Option<&TickInputs>, right: Option<&TickInputs>, out: &mut Differences) {
    let list = |inputs: Option<&TickInputs>| inputs.map(events_of_tick).unwrap_or_default();
    events(&list(left), &list(right), out);
}

/// The events of a tick, one per seat; an empty tick is still an event.
fn events_of_tick(inputs: &TickInputs) -> Vec<Event> {
    let event =
        |kind: &str, seat, detail| Event { kind: kind.into(), tick: Some(inputs.tick()), seat, detail };
    let mut list = vec![event("tick", None, String::new())];
    list.extend(inputs.brought().map(|gift| {
        event("brought", gift.owner.seat(), format!("{} 0x{}", gift.owner.name(), hex(gift.bytes)))
    }));
    list.extend(inputs.iter().map(|row| event("input", Some(row.seat), detail_of(&row))));
    list
}

fn detail_of(row: &Row<&[u8]>) -> String {
    let joined = if row.joined { "joined " } else { "" };
    let left = if row.left { " left" } else { "" };
    match row.input {
        Some(input) => format!("{joined}0x{}{left}", hex(input)),
        None if row.is_omitted() => "omitted".into(),
        None => format!("{joined}nothing{left}"),
    }
}

/// Every valid record but ticks, in the order of the ticks it is about.
fn events_of<S: Source>(mut records: Records<'_, S>) -> Result<Vec<Event>, ReadError> {
    let mut list = vec![];
    while let Some(record) = records.next()? {
        if !matches!(record, Record::Inputs(_) | Record::Resumed { .. }) {
            list.extend(events_of_line(&record_to_json(record)).unwrap_or_default());
        }
    }
    // Joins and leaves come before their tick is closed, everything else after it.
    let about_closed = |event: &Event| !matches!(&*event.kind, "joined" | "left" | "kicked" | "timed_out");
    list.sort_by_key(|event| (event.tick.map_or(u64::MAX, |tick| tick.0.into()), about_closed(event)));
    Ok(list)
}

fn read_stream(stream: impl BufRead, side: Side) -> Result<(Value, Vec<Event>), StreamError> {
    let (mut header, mut list) = (Value::Null, vec![]);
    for (number, line) in stream.lines().enumerate() {
        let line = line.map_err(|error| StreamError::Io { side, error })?;
        if line.trim().is_empty() {
            continue;
        }
        let not_an_event = StreamError::NotAnEvent { side, line: number + 1 };
        let Ok(value) = serde_json::from_str::<Value>(&line) else { return Err(not_an_event) };
        if value["kind"] == "header" {
            header = value;
        } else {
            list.extend(events_of_line(&value).ok_or(not_an_event)?);
        }
    }
    Ok((header, list))
}

/// The events of a line: one, or those of every seat in a tick.
fn events_of_line(value: &Value) -> Option<Vec<Event>> {
    let kind = value["kind"].as_str()?;
    let tick = value["tick"].as_u64().and_then(|tick| u32::try_from(tick).ok()).map(Tick);
    let seat = |value: &Value| value["seat"].as_u64().and_then(|seat| u16::try_from(seat).ok()).map(Seat);
    let detail = |value: &Value, without: &[&str]| {
        let fields: BTreeMap<&String, &Value> = value.as_object().into_iter().flatten().collect();
        let kept = fields.into_iter().filter(|(field, _)| !without.contains(&field.as_str()));
        kept.map(|(field, value)| format!("{field}={value}")).collect::<Vec<_>>().join(" ")
    };
    let event = |kind: &str, of: &Value, detail| Event { kind: kind.into(), tick, seat: seat(of), detail };
    let mut list = vec![event(kind, value, detail(value, &["kind", "tick", "seat", "rows", "brought"]))];
    let brought = value["brought"].as_array().into_iter().flatten();
    list.extend(brought.map(|gift| event("brought", gift, detail(gift, &["seat"]))));
    let rows = value["rows"].as_array().into_iter().flatten();
    list.extend(rows.map(|row| event("input", row, detail(row, &["seat"]))));
    Some(list)
}

/// Compares two lists of events.
fn events(left: &[Event], right: &[Event], out: &mut Differences) {
    type Key<'a> = (&'a str, Option<Tick>, Option<Seat>);
    fn key(event: &Event) -> Key<'_> {
        (&event.kind, event.tick, event.seat)
    }
    // Indices on the right by key, last first, so that equal keys are taken in order.
    let mut places: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
    for (at, event) in right.iter().enumerate().rev() {
        places.entry(key(event)).or_default().push(at);
    }
    let mut pairs = vec![];
    for (left_at, event) in left.iter().enumerate() {
        match places.get_mut(&key(event)).and_then(Vec::pop) {
            Some(right_at) => pairs.push((left_at, right_at)),
            None => out.push(Difference::Missing { side: Side::Right, event: event.clone() }),
        }
    }
    let in_order = longest_rising(&pairs);
    for (&(left_at, right_at), in_order) in pairs.iter().zip(in_order) {
        let (ours, theirs) = (&left[left_at], &right[right_at]);
        if ours != theirs {
            out.push(Difference::Different { left: ours.clone(), right: theirs.clone() });
        } else if !in_order {
            out.push(Difference::Reordered { event: ours.clone(), left_at, right_at });
        }
    }
    let mut rest: Vec<usize> = places.into_values().flatten().collect();
    rest.sort_unstable();
    for at in rest {
        out.push(Difference::Missing { side: Side::Left, event: right[at].clone() });
    }
}

/// The pairs that belong to a longest rising subsequence of right indices: the others have been moved.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<bool> {
    // For each length, the pair that ends such a run with the lowest index; and for each pair its predecessor.
    let mut ends: Vec<usize> = vec![];
    let mut before = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before[at] = length.checked_sub(1).map(|length| ends[length]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut kept = vec![false; pairs.len()];
    let mut next = ends.last().copied();
    while let Some(at) = next {
        kept[at] = true;
        next = before[at];
    }
    kept
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        self.tick.map_or(Ok(()), |tick| write!(f, " in tick {tick}"))?;
        self.seat.map_or(Ok(()), |seat| write!(f, " on seat {seat}"))?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Header { field, left, right } => write!(f, "header: {field} is {left} and {right}"),
            Difference::Missing { side: Side::Left, event } => write!(f, "only in the right one: {event}"),
            Difference::Missing { side: Side::Right, event } => write!(f, "only in the left one: {event}"),
            Difference::Different { left, right } => write!(f, "{left}; in the right one: {}", right.detail),
            Difference::Reordered { event, left_at, right_at } => {
                write!(f, "event {left_at} of the left one is event {right_at} of the right one: {event}")
            }
        }
    }
}
