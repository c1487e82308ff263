//! Saved parts of a place, which outlive the room: numbered pieces of bytes.

use alloc::vec::Vec;

/// The most bytes of saved state of a player, of a character, or of one part of a place.
pub const MAX_KEPT: usize = 256;

/// The header of a part: its number and its length.
const PART_HEAD: usize = 6;

/// Numbered parts of a place. Made once and reused.
///
/// ```
/// use sametick_sim::replica::{Parts, parts_in, put_part};
///
/// let mut parts = Parts::default();
/// parts.put(3, b"wall");
/// parts.put(7, b"gate");
/// let mut bytes = Vec::new();
/// parts.iter().for_each(|(number, part)| put_part(&mut bytes, number, part));
/// assert!(parts_in(&bytes).eq(parts.iter()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The number of each, and its end in `bytes`.
    ends: Vec<(u32, usize)>,
    bytes: Vec<u8>,
}

impl Parts {
    /// Adds a part.
    ///
    /// # Panics
    /// If its number is not higher than those before, or it has more than [`MAX_KEPT`] bytes.
    pub fn put(&mut self, number: u32, part: &[u8]) {
        assert!(
            self.ends.last().is_none_or(|last| last.0 < number),
            "parts come in the order of their numbers"
        );
        assert!(part.len() <= MAX_KEPT, "a part is small");
        self.bytes.extend_from_slice(part);
        self.ends.push((number, self.bytes.len()));
    }

    /// All parts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(number, end)| {
            let part = &self.bytes[start..*end];
            start = *end;
            (*number, part)
        })
    }

    /// Removes all parts, keeping the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }

    /// Reports the changes since another state: the bytes of a new or changed part, none for a removed one.
    pub fn changes_since<'a>(&'a self, before: &'a Parts, mut changed: impl FnMut(u32, Option<&'a [u8]>)) {
        let (mut now, mut then) = (self.iter().peekable(), before.iter().peekable());
        loop {
            match (now.peek().copied(), then.peek().copied()) {
                (None, None) => return,
                (Some((number, part)), Some((same, old))) if number == same => {
                    if part != old {
                        changed(number, Some(part));
                    }
                    now.next();
                    then.next();
                }
                (Some((number, part)), later) if later.is_none_or(|(later, _)| number < later) => {
                    changed(number, Some(part));
                    now.next();
                }
                (_, Some((number, _))) => {
                    changed(number, None);
                    then.next();
                }
                (Some(_), None) => unreachable!("it is before nothing"),
            }
        }
    }
}

/// Appends a part in the form in which it is loaded into a game.
///
/// # Panics
/// If it has more than [`MAX_KEPT`] bytes.
pub fn put_part(out: &mut Vec<u8>, number: u32, part: &[u8]) {
    assert!(part.len() <= MAX_KEPT, "a part is small");
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&(part.len() as u16).to_le_bytes());
    out.extend_from_slice(part);
}

/// The parts in loaded bytes, up to the first invalid one.
pub fn parts_in(mut bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    core::iter::from_fn(move || {
        let (&[a, b, c, d, low, high], rest) = bytes.split_first_chunk::<PART_HEAD>()?;
        let (part, rest) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
        bytes = rest;
        Some((u32::from_le_bytes([a, b, c, d]), part))
    })
}
