//! The initial state of a log that goes on from a save. It stands between the header and the first group, in frames of
//! its own, so that the log alone leads to every state after it.

use crate::disk::Source;

use super::frame::{self, CRC_LEN, FrameKind, MAX_HEAD_LEN, MAX_PAYLOAD, put_varint, take_varint};
use super::reader::{OpenError, ReadError};
use super::window::{Fault, Window};

/// The largest initial state of a log: the largest state of a save.
pub const MAX_BEGINNING_BYTES: usize = 8 << 20;

/// How much of the state is in one frame: a payload less its number.
const PART_BYTES: usize = MAX_PAYLOAD / 2;

/// Encodes a state as frames, each ready to be appended.
pub(super) fn frames(state: &[u8], mut offset: u64) -> Vec<Vec<u8>> {
    let parts = state.chunks(PART_BYTES).scan(state.len(), |left, part| {
        *left -= part.len();
        Some((*left, part))
    });
    let frame_of = |(left, part): (usize, &[u8])| {
        let (mut payload, mut frame) = (Vec::new(), Vec::new());
        put_varint(&mut payload, left as u64);
        payload.extend_from_slice(part);
        frame::put(&mut frame, offset, FrameKind::State, &payload);
        offset += frame.len() as u64;
        frame
    };
    parts.map(frame_of).collect()
}

/// Reads a state whose first frame lies at `at`: passes on its parts, and returns where the next frame begins.
pub(super) fn read<S: Source>(
    window: &mut Window<S>,
    mut at: u64,
    end: u64,
    mut take: impl FnMut(&[u8]),
) -> Result<u64, OpenError> {
    let mut expected = None;
    loop {
        let nonsense = |what| ReadError::Nonsense { offset: at, kind: FrameKind::State, what };
        let frame = match window.frame(at, end) {
            Ok(frame) => frame,
            Err(Fault::Io(error)) => return Err(error.into()),
            Err(Fault::Cut) => return Err(OpenError::NoHeader { bytes: end }),
            Err(Fault::Damaged) => return Err(ReadError::Damaged { offset: at }.into()),
        };
        if frame.kind != FrameKind::State {
            return Err(nonsense("another frame, where the state that the log begins with goes on").into());
        }
        let mut part = frame.payload;
        let left = take_varint(&mut part).and_then(|left| usize::try_from(left).ok());
        let left = left.filter(|left| *left <= MAX_BEGINNING_BYTES && !part.is_empty());
        let left = left.ok_or_else(|| nonsense("no part of a state"))?;
        let all = left + part.len();
        if all > MAX_BEGINNING_BYTES || expected.is_some_and(|expected| expected != all) {
            return Err(nonsense("a part of another state").into());
        }
        take(part);
        at = frame.next;
        if left == 0 {
            return Ok(at);
        }
        expected = Some(left);
    }
}

const _: () = assert!(PART_BYTES + MAX_HEAD_LEN + CRC_LEN < MAX_PAYLOAD);
