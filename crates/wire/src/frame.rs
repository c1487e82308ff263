//! Frames: the contents of packets and lanes. A kind and a channel in one byte, then the fields of the kind.
//!
//! | kind | on | fields |
//! |---|---|---|
//! | 0 `Prompt` | datagrams | none; the channel's place says whether only gaps matter |
//! | 1 `Message` | datagrams, single lane | length, bytes |
//! | 3 `Ordered` | datagrams without streams | offset, length, bytes |
//! | 4 `Chunk` | lanes | length, bytes: the channel's stream goes on |
//! | 5 `Ping` | all | id (u16) |
//! | 6 `Pong` | all | id (u16) |
//! | 7 `Close` | all | code (u8), length, text |
//! | 8 to 15 `Redundant` | datagrams | see [`crate::block`] |

use alloc::vec::Vec;

use crate::block::{BLOCK, Messages};
use crate::channel::{Channel, Delivery};
use crate::codec::{Malformed, Reader, put_bytes, put_varint};

/// The longest piece of a reliable stream in one frame on a lane: small enough that an input queued behind it waits
/// for a few kilobytes only, and far below the 16 KiB a WebSocket message may have.
pub const MAX_CHUNK: usize = 4_096;

/// The longest piece of a reliable stream in one datagram.
pub const MAX_FRAGMENT: usize = 1_200;

/// The longest text of a close: a sentence for a person.
pub const MAX_CLOSE_TEXT: usize = 200;

const PROMPT: u8 = 0;
const MESSAGE: u8 = 1;
const ORDERED: u8 = 3;
const CHUNK: u8 = 4;
const PING: u8 = 5;
const PONG: u8 = 6;
const CLOSE: u8 = 7;

/// One frame, borrowing its bytes from the packet it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The sender would like this packet to be acknowledged soon.
    Prompt {
        /// Only if something before it is missing.
        gaps: bool,
    },
    /// A whole unreliable message.
    Message {
        /// The channel.
        channel: Channel,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// Consecutive messages of [`Channel::Input`]; nothing follows them.
    Redundant(Messages<'a>),
    /// A piece of a reliable stream, at its place.
    Ordered {
        /// The channel.
        channel: Channel,
        /// The number of bytes of the stream before it.
        offset: u64,
        /// The piece.
        bytes: &'a [u8],
    },
    /// The next piece of a reliable stream, on a lane that keeps order.
    Chunk {
        /// The channel.
        channel: Channel,
        /// The piece.
        bytes: &'a [u8],
    },
    /// A request for a `Pong` with the same id on a lane; in a datagram the ack is the answer.
    Ping {
        /// The id.
        id: u16,
    },
    /// The answer to a `Ping`.
    Pong {
        /// The id.
        id: u16,
    },
    /// The other side has ended the link.
    Close {
        /// The reason, for programs.
        code: u8,
        /// The reason, for people. Not always UTF-8: the peer wrote it.
        text: &'a [u8],
    },
}

fn head(kind: u8, channel: Channel) -> u8 {
    kind << 4 | channel.number()
}

/// Appends the request for an ack soon, perhaps only if something before it is missing.
pub fn put_prompt(out: &mut Vec<u8>, gaps: bool) {
    out.push(PROMPT << 4 | u8::from(gaps));
}

/// Appends a whole unreliable message.
pub fn put_message(out: &mut Vec<u8>, channel: Channel, bytes: &[u8]) {
    out.push(head(MESSAGE, channel));
    put_bytes(out, bytes);
}

/// Appends the head of a piece of a reliable stream; the caller appends `len` bytes after it.
pub fn put_ordered_head(out: &mut Vec<u8>, channel: Channel, offset: u64, len: usize) {
    out.push(head(ORDERED, channel));
    put_varint(out, offset);
    put_varint(out, len as u64);
}

/// Appends the head of the next piece of a stream on a lane; the caller appends `len` bytes after it.
pub fn put_chunk_head(out: &mut Vec<u8>, channel: Channel, len: usize) {
    out.push(head(CHUNK, channel));
    put_varint(out, len as u64);
}

/// Appends a ping.
pub fn put_ping(out: &mut Vec<u8>, id: u16) {
    out.push(PING << 4);
    out.extend_from_slice(&id.to_le_bytes());
}

/// Appends the answer to a ping.
pub fn put_pong(out: &mut Vec<u8>, id: u16) {
    out.push(PONG << 4);
    out.extend_from_slice(&id.to_le_bytes());
}

/// Appends the end of the link. `text` must not be longer than [`MAX_CLOSE_TEXT`].
pub fn put_close(out: &mut Vec<u8>, code: u8, text: &[u8]) {
    assert!(text.len() <= MAX_CLOSE_TEXT, "a close carries a sentence");
    out.push(CLOSE << 4);
    out.push(code);
    put_bytes(out, text);
}

impl<'a> Frame<'a> {
    /// Reads one frame.
    pub fn read(reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
        let head = reader.u8()?;
        if head >= BLOCK {
            return Ok(Frame::Redundant(Messages::read(head, reader)?));
        }
        let number = head & 0x0f;
        let channel = Channel::from_number(number).ok_or(Malformed::UnknownKind)?;
        let of = |delivery| {
            if channel.delivery() == delivery {
                Ok(channel)
            } else {
                Err(Malformed::Forbidden("each channel has its own kind of frame"))
            }
        };
        let plain = || {
            if number == 0 { Ok(()) } else { Err(Malformed::Forbidden("bits that mean nothing are zero")) }
        };
        Ok(match head >> 4 {
            PROMPT if number <= 1 => Frame::Prompt { gaps: number == 1 },
            PROMPT => return Err(Malformed::Forbidden("bits that mean nothing are zero")),
            MESSAGE if channel.delivery() != Delivery::Ordered => {
                Frame::Message { channel, bytes: reader.bytes(channel.max_message())? }
            }
            MESSAGE => return Err(Malformed::Forbidden("each channel has its own kind of frame")),
            ORDERED => Frame::Ordered {
                channel: of(Delivery::Ordered)?,
                offset: reader.varint()?,
                bytes: reader.bytes(MAX_FRAGMENT)?,
            },
            CHUNK => Frame::Chunk { channel: of(Delivery::Ordered)?, bytes: reader.bytes(MAX_CHUNK)? },
            PING => plain().and(Ok(Frame::Ping { id: reader.u16()? }))?,
            PONG => plain().and(Ok(Frame::Pong { id: reader.u16()? }))?,
            CLOSE => {
                plain()?;
                Frame::Close { code: reader.u8()?, text: reader.bytes(MAX_CLOSE_TEXT)? }
            }
            _ => return Err(Malformed::UnknownKind),
        })
    }

    /// Whether the packet that carries it should be acknowledged soon, because the other side waits for that. `gaps`
    /// says whether packets before it are missing.
    pub const fn is_urgent(&self, gaps: bool) -> bool {
        match self {
            Frame::Prompt { gaps: only_gaps } => !*only_gaps || gaps,
            Frame::Ordered { .. } | Frame::Ping { .. } | Frame::Close { .. } => true,
            Frame::Message { .. } | Frame::Redundant(_) | Frame::Chunk { .. } | Frame::Pong { .. } => false,
        }
    }

    /// Appends the frame. Hot paths use the `put_*` functions, which need no frame in memory first.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Prompt { gaps } => put_prompt(out, *gaps),
            Frame::Message { channel, bytes } => put_message(out, *channel, bytes),
            Frame::Redundant(messages) => messages.put(out),
            Frame::Ordered { channel, offset, bytes } => {
                put_ordered_head(out, *channel, *offset, bytes.len());
                out.extend_from_slice(bytes);
            }
            Frame::Chunk { channel, bytes } => {
                put_chunk_head(out, *channel, bytes.len());
                out.extend_from_slice(bytes);
            }
            Frame::Ping { id } => put_ping(out, *id),
            Frame::Pong { id } => put_pong(out, *id),
            Frame::Close { code, text } => put_close(out, *code, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Until, put_redundant};
    use crate::channel::MAX_NEWEST_MESSAGE;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let golden: [(Frame<'_>, &[u8]); 8] = [
            (Frame::Prompt { gaps: false }, b"\x00"),
            (Frame::Prompt { gaps: true }, b"\x01"),
            (Frame::Message { channel: Channel::State, bytes: b"hi" }, b"\x15\x02hi"),
            (Frame::Ordered { channel: Channel::Chunks, offset: 300, bytes: b"xyz" }, b"\x33\xac\x02\x03xyz"),
            (Frame::Chunk { channel: Channel::Chat, bytes: b"hello" }, b"\x41\x05hello"),
            (Frame::Ping { id: 7 }, b"\x50\x07\x00"),
            (Frame::Pong { id: 7 }, b"\x60\x07\x00"),
            (Frame::Close { code: 3, text: b"bye" }, b"\x70\x03\x03bye"),
        ];
        for (frame, bytes) in golden {
            let mut out = vec![];
            frame.put(&mut out);
            assert_eq!(out, bytes, "{frame:?}");
            let mut reader = Reader::new(bytes);
            assert_eq!(Frame::read(&mut reader), Ok(frame));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_channel_only_takes_its_own_kind_of_frame() {
        for bytes in
            [&b"\x02"[..], b"\x10\x00", b"\x24", b"\x35\x00\x00", b"\x44\x00", b"\x51\x00\x00", b"\x16\x00"]
        {
            assert!(Frame::read(&mut Reader::new(bytes)).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_whole_message_is_no_longer_than_its_channel_takes() {
        for channel in [Channel::Input, Channel::State] {
            for (len, expected) in [(channel.max_message(), true), (channel.max_message() + 1, false)] {
                let mut out = vec![];
                put_message(&mut out, channel, &vec![0; len]);
                assert_eq!(Frame::read(&mut Reader::new(&out)).is_ok(), expected, "{channel:?} {len}");
            }
        }
    }

    fn any_frame() -> impl Strategy<Value = Vec<u8>> {
        let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
        let ordered = prop::sample::select(&Channel::ALL[..ORDERED]);
        let put = |frame: Frame<'_>| {
            let mut out = vec![];
            frame.put(&mut out);
            out
        };
        const ORDERED: usize = crate::channel::ORDERED_CHANNELS;
        prop_oneof![
            Just(vec![0]),
            Just(vec![1]),
            bytes(MAX_NEWEST_MESSAGE)
                .prop_map(move |b| put(Frame::Message { channel: Channel::State, bytes: &b })),
            (ordered.clone(), any::<u64>(), bytes(MAX_FRAGMENT))
                .prop_map(move |(channel, offset, b)| put(Frame::Ordered { channel, offset, bytes: &b })),
            (ordered, bytes(MAX_CHUNK))
                .prop_map(move |(channel, b)| put(Frame::Chunk { channel, bytes: &b })),
            any::<u16>().prop_map(move |id| put(Frame::Ping { id })),
            any::<u16>().prop_map(move |id| put(Frame::Pong { id })),
            (any::<u8>(), bytes(MAX_CLOSE_TEXT))
                .prop_map(move |(code, text)| put(Frame::Close { code, text: &text })),
        ]
    }

    proptest! {
        #[test]
        fn frames_round_trip_in_a_row(frames in prop::collection::vec(any_frame(), 0..8), block: bool) {
            let mut all = frames.concat();
            if block {
                put_redundant(&mut all, Until::new(5, 2, true), [&b"a"[..], b"bc"].into_iter());
            }
            let mut reader = Reader::new(&all);
            let mut out = vec![];
            while !reader.is_empty() {
                Frame::read(&mut reader).unwrap().put(&mut out);
            }
            prop_assert_eq!(out, all);
        }

        #[test]
        fn what_is_read_is_written_back_the_same(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            if let Ok(frame) = Frame::read(&mut reader) {
                let mut out = vec![];
                frame.put(&mut out);
                prop_assert_eq!(&out[..], &bytes[..bytes.len() - reader.rest().len()]);
            }
        }
    }
}
