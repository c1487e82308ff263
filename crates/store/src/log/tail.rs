//! The search for the last group and the last valid frame of a log that may be cut anywhere.
//!
//! One frame is appended and synced before the next, so only the last can be torn. Invalid bytes with nothing valid
//! after them are a torn tail; with a valid frame after them, they were once written in full, and are damage.

use std::io;

use sametick_sim::Tick;

use crate::disk::Source;

use super::MAX_TICK_BYTES;
use super::frame::{CRC_LEN, FrameKind, Head, MAX_HEAD_LEN, MAX_PAYLOAD};
use super::group::MARK;
use super::window::{Fault, Window};

/// How much is searched at once, from the end to the front.
const STRETCH: usize = 8 * 1024;

/// The longest tail that can be torn: the longest frame.
pub(super) const MAX_TORN: u64 = (MAX_HEAD_LEN + MAX_PAYLOAD + CRC_LEN) as u64;

/// More than the first frame of a group ever has: every seat with its flags and length, and the inputs of a tick.
/// Bounds the cost of bytes that only look like groups.
const MAX_GROUP_BYTES: usize = 16 * 1024;
const _: () = assert!(MAX_TICK_BYTES + 256 * 4 + 32 <= MAX_GROUP_BYTES);

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The length of the valid part; the rest, if any, was torn off in the middle of a frame.
    pub valid_bytes: u64,
    /// The length of the invalid rest: [`repair`](super::repair) cuts it.
    pub torn_bytes: u64,
    /// The last tick in the log.
    pub last_tick: Tick,
    /// Whether the session was ended, rather than cut off.
    pub ended: bool,
}

/// The offset of the last group of a log whose first frame ends at `front`.
pub(super) fn find_last_group<S: Source>(
    window: &mut Window<S>,
    front: u64,
    end: u64,
) -> io::Result<Option<u64>> {
    let mut high = end;
    while high > front {
        let low = high.saturating_sub(STRETCH as u64).max(front);
        // A mark may lie across the border.
        let len = (high - low) as usize + MARK.len() - 1;
        let stretch = window.bytes(low, len)?;
        let marks = stretch.windows(MARK.len()).enumerate().rev();
        let marks: Vec<u64> = marks.filter(|(_, at)| *at == MARK).map(|(at, _)| low + at as u64).collect();
        for mark in marks {
            if let Some(group) = group_at_mark(window, mark, front, end)? {
                return Ok(Some(group));
            }
        }
        high = low;
    }
    Ok(None)
}

/// The offset of the group whose payload begins at `mark`, if there is one.
fn group_at_mark<S: Source>(
    window: &mut Window<S>,
    mark: u64,
    front: u64,
    end: u64,
) -> io::Result<Option<u64>> {
    for head_len in 1..=MAX_HEAD_LEN as u64 {
        let Some(offset) = mark.checked_sub(head_len).filter(|&offset| offset >= front) else { break };
        let head = Head::read(window.bytes(offset, MAX_HEAD_LEN)?);
        let plausible = |head: &Head| head.head_len as u64 == head_len && head.payload_len <= MAX_GROUP_BYTES;
        if head.filter(plausible).is_none() {
            continue;
        }
        match window.frame(offset, end) {
            Ok(frame) if frame.kind == FrameKind::Group && frame.payload.starts_with(MARK) => {
                return Ok(Some(offset));
            }
            Err(Fault::Io(error)) => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}

/// Whether a valid frame begins after `offset`, within the longest tail that can be torn.
pub(super) fn valid_after<S: Source>(window: &mut Window<S>, offset: u64, end: u64) -> io::Result<bool> {
    let last = end.saturating_sub(CRC_LEN as u64).min(offset + MAX_TORN);
    for at in offset + 1..last {
        match window.frame(at, end) {
            Ok(_) => return Ok(true),
            Err(Fault::Io(error)) => return Err(error),
            _ => {}
        }
    }
    Ok(false)
}
