//! Frames: the length and kind, the payload, and a CRC-32C that also covers where in the file the frame lies.
//!
//! ```text
//! file:  "sametick-log" version:u16  frame*
//! frame: varint(payload length << 2 | kind)  payload  crc:u32     (all little-endian)
//! ```
//!
//! Because the CRC covers the offset, a frame that was moved, repeated or left over from another file is not valid, and
//! a search for a valid frame among damage finds none by accident.

/// What every log begins with.
pub(crate) const MAGIC: &[u8; 12] = b"sametick-log";

/// The version of the format.
pub const VERSION: u16 = 2;

/// The format version of a log with an initial state. No single flipped bit turns one version into the other.
pub const VERSION_WITH_STATE: u16 = 4;

/// Magic and version.
pub(super) const PREAMBLE_LEN: usize = MAGIC.len() + 2;

/// The longest payload: a header with its setup, or the last tick of a frame at its largest.
pub(super) const MAX_PAYLOAD: usize = 256 * 1024;

pub(super) const CRC_LEN: usize = 4;

/// The longest head of a frame: a varint below 2^20.
pub(super) const MAX_HEAD_LEN: usize = 3;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Facts about the session. The first frame, and only that.
    Header,
    /// The start of a group: the position of the session, so that reading can begin here.
    Group,
    /// Ticks and events, coded with the models adapted by the earlier frames of the group.
    Data,
    /// A part of the initial state. Right after the header, if at all.
    State,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: FrameKind,
    pub(super) head_len: usize,
    pub(super) payload_len: usize,
}

impl Head {
    /// Reads the head of a frame; `None` if there is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Head> {
        let mut rest = bytes.get(..bytes.len().min(MAX_HEAD_LEN))?;
        let value = take_varint(&mut rest)?;
        let kind = match value & 3 {
            0 => FrameKind::Header,
            1 => FrameKind::Group,
            2 => FrameKind::Data,
            _ => FrameKind::State,
        };
        let payload_len = usize::try_from(value >> 2).ok().filter(|&len| len <= MAX_PAYLOAD)?;
        Some(Head { kind, head_len: bytes.len().min(MAX_HEAD_LEN) - rest.len(), payload_len })
    }

    /// The length of the whole frame.
    pub(super) fn frame_len(self) -> usize {
        self.head_len + self.payload_len + CRC_LEN
    }

    /// The payload of a frame of this length, if its CRC is right for this offset.
    pub(super) fn payload(self, offset: u64, frame: &[u8]) -> Option<&[u8]> {
        let (covered, crc) = frame.split_last_chunk::<CRC_LEN>()?;
        let right = u32::from_le_bytes(*crc) == crc_at(offset, covered);
        covered.get(self.head_len..).filter(|_| right)
    }
}

/// Writes a frame that will lie at `offset`.
pub(super) fn put(out: &mut Vec<u8>, offset: u64, kind: FrameKind, payload: &[u8]) {
    assert!(payload.len() <= MAX_PAYLOAD, "frames are closed long before");
    let start = out.len();
    let kind = match kind {
        FrameKind::Header => 0,
        FrameKind::Group => 1,
        FrameKind::Data => 2,
        FrameKind::State => 3,
    };
    put_varint(out, (payload.len() as u64) << 2 | kind);
    out.extend_from_slice(payload);
    let crc = crc_at(offset, &out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// Seven bits a byte, lowest first; the top bit says that more follow.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads what [`put_varint`] wrote.
pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn crc_at(offset: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&offset.to_le_bytes()), bytes)
}
