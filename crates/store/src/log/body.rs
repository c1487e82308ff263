//! The entropy coding of ticks and events, in both directions.
//!
//! A tick costs one likely bit for "no event", and for each taken seat one for "arrived in time" and one for
//! "unchanged"; a changed input is coded as the exclusive or with the last input, byte by byte. Neither taken seats nor
//! tick numbers are coded: the [timeline](super::timeline) knows them.

use sametick_sim::{Owner, Restored, Seat, StateHash, Tick};

use super::model::Models;
use super::timeline::Place;
use super::{LONG_SEAT, MAX_BROUGHT_BYTES, MAX_INPUT_BYTES, MAX_NAME_BYTES, MAX_PLACE_BYTES};
use sametick_sim::record::{Leaving, Record};
use sametick_wire::range::Coder;

/// Kinds of events. These numbers are in the file.
mod kind {
    pub(super) const END_OF_FRAME: usize = 0;
    pub(super) const JOINED: usize = 1;
    pub(super) const LEFT: usize = 2;
    pub(super) const CHECK: usize = 3;
    pub(super) const DISSENT: usize = 4;
    pub(super) const SNAPSHOT: usize = 5;
    pub(super) const DESYNC: usize = 6;
    pub(super) const DISPUTE: usize = 7;
    pub(super) const RESUMED: usize = 8;
    pub(super) const END: usize = 9;
    pub(super) const BROUGHT: usize = 10;
}

/// Bits that hold the length of any input.
const LENGTH_BITS: u32 = 12;
const _: () = assert!(MAX_INPUT_BYTES < 1 << LENGTH_BITS && MAX_BROUGHT_BYTES < 1 << LENGTH_BITS);

/// Codes one seat's input, or that it is missing; either way `place.last` holds the last input. The length is at most
/// 4095: a reader has to check it.
pub(super) fn code_input(
    coder: &mut impl Coder,
    models: &mut Models,
    place: &mut Place,
    given: Option<&[u8]>,
) -> bool {
    let present = coder.bit(place.models.present(), given.is_some());
    let changed =
        present && coder.bit(place.models.changed(), given.is_some_and(|given| given != place.last));
    if changed {
        let given = given.unwrap_or(&[]);
        if coder.bit(&mut models.resized, given.len() != place.last.len()) {
            let length = coder.number(&mut models.length, given.len() as u64, LENGTH_BITS);
            place.last.resize(length as usize, 0);
        }
        for (at, last) in place.last.iter_mut().enumerate() {
            let given = given.get(at).copied().unwrap_or(0);
            *last ^= coder.tree(models.byte(at), usize::from(given ^ *last)) as u8;
        }
    }
    place.models.note(present, changed);
    present
}

/// Codes the end of a frame.
pub(super) fn put_end(coder: &mut impl Coder, models: &mut Models) {
    put_kind(coder, models, kind::END_OF_FRAME);
}

/// Codes an event that is neither a tick nor a rewind. `commit` is that of the header, `next` the next tick.
pub(super) fn put_event(
    coder: &mut impl Coder,
    models: &mut Models,
    commit: &str,
    next: Tick,
    record: &Record,
) {
    match record {
        Record::Joined { seat, name, commit: theirs, .. } => {
            put_kind(coder, models, kind::JOINED);
            put_seat(coder, *seat);
            put_text(coder, name);
            if !coder.bit(&mut models.same_commit, theirs == commit) {
                put_text(coder, theirs);
            }
        }
        Record::Left { seat, why, .. } => {
            put_kind(coder, models, kind::LEFT);
            put_seat(coder, *seat);
            coder.even(leaving_number(*why), 2);
        }
        Record::Check { tick, hash } => {
            put_kind(coder, models, kind::CHECK);
            put_closed(coder, models, next, *tick);
            coder.even(hash.0, 64);
            models.note_check();
        }
        Record::Dissent { tick, seat, hash } => {
            put_kind(coder, models, kind::DISSENT);
            put_closed(coder, models, next, *tick);
            put_seat(coder, *seat);
            coder.even(hash.0, 64);
        }
        Record::Snapshot { tick, hash, place } => {
            put_kind(coder, models, kind::SNAPSHOT);
            put_closed(coder, models, next, *tick);
            coder.even(hash.0, 64);
            put_text(coder, place);
        }
        Record::Desync { tick, seat } => {
            put_kind(coder, models, kind::DESYNC);
            put_closed(coder, models, next, *tick);
            put_seat(coder, *seat);
        }
        Record::Dispute { tick } => {
            put_kind(coder, models, kind::DISPUTE);
            put_closed(coder, models, next, *tick);
        }
        Record::Resumed { unix_ms } => {
            put_kind(coder, models, kind::RESUMED);
            coder.even(*unix_ms, 64);
        }
        Record::End => put_kind(coder, models, kind::END),
        Record::Inputs(_) | Record::Rewind { .. } => unreachable!("ticks and rewinds are not events"),
    }
}

/// Codes an external item of the tick that follows.
pub(super) fn put_brought(coder: &mut impl Coder, models: &mut Models, brought: Restored<&[u8]>) {
    put_kind(coder, models, kind::BROUGHT);
    let owner = match brought.owner {
        Owner::Place => 0,
        Owner::Player(_) => 1,
        Owner::Character(_) => 2,
    };
    coder.even(owner, 2);
    if let Some(seat) = brought.owner.seat() {
        put_seat(coder, seat);
    }
    coder.even(brought.bytes.len() as u64, LENGTH_BITS);
    brought.bytes.iter().for_each(|byte| _ = coder.even(u64::from(*byte), 8));
}

fn take_brought(coder: &mut impl Coder) -> Taken {
    let owner = match coder.even(0, 2) {
        0 => Owner::Place,
        1 => Owner::Player(take_seat(coder)),
        2 => Owner::Character(take_seat(coder)),
        _ => return Taken::Nonsense("something brought that is nobody's"),
    };
    let length = coder.even(0, LENGTH_BITS) as usize;
    if length > MAX_BROUGHT_BYTES {
        return Taken::Nonsense("something brought that is longer than a log takes");
    }
    Taken::Restored(Restored { owner, bytes: (0..length).map(|_| coder.even(0, 8) as u8).collect() })
}

/// What [`take_event`] read.
pub(super) enum Taken {
    /// The next record.
    Event(Record),
    /// A part of the tick that follows.
    Restored(Restored<Vec<u8>>),
    /// The frame is over.
    EndOfFrame,
    /// Bytes that no writer writes.
    Nonsense(&'static str),
}

/// Reads an event or the end of the frame, after the bit that says that it is no tick.
pub(super) fn take_event(coder: &mut impl Coder, models: &mut Models, commit: &str, next: Tick) -> Taken {
    match coder.tree(&mut models.kind, 0) {
        kind::END_OF_FRAME => Taken::EndOfFrame,
        kind::JOINED => take_joined(coder, models, commit, next),
        kind::LEFT => take_left(coder, next),
        kind::RESUMED => Taken::Event(Record::Resumed { unix_ms: coder.even(0, 64) }),
        kind::END => Taken::Event(Record::End),
        kind::BROUGHT => take_brought(coder),
        kind @ kind::CHECK..=kind::DISPUTE => take_about_closed(coder, models, next, kind),
        _ => Taken::Nonsense("an unknown kind of event"),
    }
}

fn take_joined(coder: &mut impl Coder, models: &mut Models, commit: &str, next: Tick) -> Taken {
    let seat = take_seat(coder);
    let Some(name) = take_text(coder, MAX_NAME_BYTES) else {
        return Taken::Nonsense("a name that is too long or not UTF-8");
    };
    let commit = if coder.bit(&mut models.same_commit, false) {
        Some(commit.into())
    } else {
        take_text(coder, MAX_NAME_BYTES)
    };
    let Some(commit) = commit else { return Taken::Nonsense("a commit that is too long or not UTF-8") };
    Taken::Event(Record::Joined { tick: next, seat, name, commit })
}

fn take_left(coder: &mut impl Coder, next: Tick) -> Taken {
    let seat = take_seat(coder);
    match leaving_from_number(coder.even(0, 2)) {
        Some(why) => Taken::Event(Record::Left { tick: next, seat, why }),
        None => Taken::Nonsense("an unknown way to leave"),
    }
}

fn take_about_closed(coder: &mut impl Coder, models: &mut Models, next: Tick, kind: usize) -> Taken {
    let back = coder.number(&mut models.back, 0, 32);
    let Some(tick) = u64::from(next.0).checked_sub(back + 1) else {
        return Taken::Nonsense("a tick before the first");
    };
    let tick = Tick(tick as u32);
    let event = match kind {
        kind::CHECK => {
            models.note_check();
            Record::Check { tick, hash: StateHash(coder.even(0, 64)) }
        }
        kind::DISSENT => {
            let seat = take_seat(coder);
            Record::Dissent { tick, seat, hash: StateHash(coder.even(0, 64)) }
        }
        kind::SNAPSHOT => {
            let hash = StateHash(coder.even(0, 64));
            let Some(place) = take_text(coder, MAX_PLACE_BYTES) else {
                return Taken::Nonsense("a place that is too long or not UTF-8");
            };
            Record::Snapshot { tick, hash, place }
        }
        kind::DESYNC => Record::Desync { tick, seat: take_seat(coder) },
        _ => Record::Dispute { tick },
    };
    Taken::Event(event)
}

fn put_kind(coder: &mut impl Coder, models: &mut Models, kind: usize) {
    coder.bit(models.event(), true);
    coder.tree(&mut models.kind, kind);
}

/// Codes a closed tick by its distance from the next one.
fn put_closed(coder: &mut impl Coder, models: &mut Models, next: Tick, tick: Tick) {
    coder.number(&mut models.back, u64::from(next.0 - 1 - tick.0), 32);
}

/// Codes a seat in eight bits, or [`LONG_SEAT`] and 16 more.
fn put_seat(coder: &mut impl Coder, seat: Seat) {
    let short = seat.0.min(LONG_SEAT);
    coder.even(u64::from(short), 8);
    if short == LONG_SEAT {
        coder.even(u64::from(seat.0), 16);
    }
}

fn take_seat(coder: &mut impl Coder) -> Seat {
    match coder.even(0, 8) as u16 {
        LONG_SEAT => Seat(coder.even(0, 16) as u16),
        seat => Seat(seat),
    }
}

/// Codes a text of at most 255 bytes, which every limit on a text is within.
fn put_text(coder: &mut impl Coder, text: &str) {
    coder.even(text.len() as u64, 8);
    for byte in text.bytes() {
        coder.even(u64::from(byte), 8);
    }
}

fn take_text(coder: &mut impl Coder, max_bytes: usize) -> Option<String> {
    let length = Some(coder.even(0, 8)).filter(|&length| length <= max_bytes as u64)?;
    String::from_utf8((0..length).map(|_| coder.even(0, 8) as u8).collect()).ok()
}

fn leaving_number(why: Leaving) -> u64 {
    match why {
        Leaving::Left => 0,
        Leaving::Kicked => 1,
        Leaving::TimedOut => 2,
    }
}

fn leaving_from_number(number: u64) -> Option<Leaving> {
    [Leaving::Left, Leaving::Kicked, Leaving::TimedOut].get(number as usize).copied()
}
