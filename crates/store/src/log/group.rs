//! The start of a group: a frame with the position of the session and the offset of the group before it.
//!
//! Groups are the index of a log: the last one is found from the end of the file, and each leads to the one before.
//! Reading can begin at any of them. A rewind is a group too: one whose first tick is not the next one voids everything
//! after that tick.

use sametick_sim::{Seat, Tick};

use super::frame::{put_varint, take_varint};
use super::timeline::{Place, Timeline};
use super::{LONG_SEAT, MAX_INPUT_BYTES, MAX_TICK_BYTES};

/// The first bytes of the payload, so that a search from the end of a file is quick.
pub(super) const MARK: &[u8; 4] = b"GRP\xa7";

const REWOUND: u8 = 1;
const JOINED: u8 = 1;
const LEAVING: u8 = 2;

/// The payload of a group's first frame.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Whether ticks from `first` on in earlier groups are void.
    pub(super) rewound: bool,
    /// The next tick.
    pub(super) first: Tick,
    /// The taken seats, with their last inputs.
    pub(super) places: Vec<Place>,
}

/// The part of a group that the index needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupHead {
    /// How many bytes before this frame the previous group begins, if there is one in this file.
    pub(super) back: Option<u64>,
    pub(super) rewound: bool,
    pub(super) first: Tick,
}

/// Writes the payload for the position of `timeline`.
pub(super) fn put(out: &mut Vec<u8>, back: Option<u64>, rewound: bool, timeline: &Timeline) {
    out.extend_from_slice(MARK);
    put_varint(out, back.unwrap_or(0));
    out.push(if rewound { REWOUND } else { 0 });
    put_varint(out, u64::from(timeline.next.0));
    put_varint(out, timeline.places.len() as u64);
    for place in &timeline.places {
        let joined = if place.joined { JOINED } else { 0 };
        let leaving = if place.leaving { LEAVING } else { 0 };
        put_seat(out, place.seat);
        out.push(joined | leaving);
        put_varint(out, place.last.len() as u64);
        out.extend_from_slice(&place.last);
    }
}

impl GroupHead {
    /// Reads the head of a payload.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<GroupHead> {
        *bytes = bytes.strip_prefix(MARK)?;
        let back = Some(take_varint(bytes)?).filter(|&back| back > 0);
        let rewound = match take_byte(bytes)? {
            0 => false,
            REWOUND => true,
            _ => return None,
        };
        let first = Tick(u32::try_from(take_varint(bytes)?).ok()?);
        Some(GroupHead { back, rewound, first })
    }
}

impl Group {
    /// Reads a whole payload.
    pub(super) fn read(mut bytes: &[u8]) -> Option<Group> {
        let GroupHead { rewound, first, .. } = GroupHead::read(&mut bytes)?;
        let count = take_varint(&mut bytes)?;
        let mut places: Vec<Place> = Vec::new();
        for _ in 0..count {
            let place = read_place(&mut bytes)?;
            if places.last().is_some_and(|last| last.seat >= place.seat) {
                return None;
            }
            places.push(place);
        }
        let held = places.iter().map(|place| place.last.len()).sum::<usize>();
        let ours = bytes.is_empty() && held <= MAX_TICK_BYTES;
        ours.then_some(Group { rewound, first, places })
    }

    /// Whether this group states the position of `timeline`.
    pub(super) fn fits(&self, timeline: &Timeline) -> bool {
        let same = |(ours, theirs): (&Place, &Place)| {
            ours.seat == theirs.seat
                && ours.joined == theirs.joined
                && ours.leaving == theirs.leaving
                && ours.last == theirs.last
        };
        self.first == timeline.next
            && self.places.len() == timeline.places.len()
            && self.places.iter().zip(&timeline.places).all(same)
    }
}

fn read_place(bytes: &mut &[u8]) -> Option<Place> {
    let seat = take_seat(bytes)?;
    let flags = take_byte(bytes)?;
    let length = usize::try_from(take_varint(bytes)?).ok().filter(|&length| length <= MAX_INPUT_BYTES)?;
    let (last, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let known = flags & !(JOINED | LEAVING) == 0;
    let (joined, leaving) = (flags & JOINED != 0, flags & LEAVING != 0);
    known.then(|| Place { joined, leaving, last: last.to_vec(), ..Place::new(seat) })
}

/// Writes a seat in one byte, or [`LONG_SEAT`] and two more, the low one first.
fn put_seat(out: &mut Vec<u8>, seat: Seat) {
    out.push(seat.0.min(LONG_SEAT) as u8);
    if seat.0 >= LONG_SEAT {
        out.extend(seat.0.to_le_bytes());
    }
}

fn take_seat(bytes: &mut &[u8]) -> Option<Seat> {
    let seat = u16::from(take_byte(bytes)?);
    if seat < LONG_SEAT {
        return Some(Seat(seat));
    }
    let seat = u16::from_le_bytes([take_byte(bytes)?, take_byte(bytes)?]);
    Some(Seat(seat)).filter(|seat| seat.0 >= LONG_SEAT)
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}
