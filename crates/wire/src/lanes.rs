//! The stream side of a link: carriers that are reliable already (WebSocket, QUIC and WebTransport streams). It sends
//! no acks of its own; an occasional ping marks how far the other side has come, so that bulk never piles up in front
//! of inputs.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::Time;

use crate::channel::Channel;
use crate::closing::Closing;
use crate::codec::{Malformed, Reader};
use crate::frame::{self, Frame, MAX_CHUNK};
use crate::link::{Heard, KEEP_ALIVE_US};
use crate::queue::Queue;
use crate::rtt::Rtt;
use crate::streams::Streams;
use crate::window::{MIN_WINDOW, Window};

/// The longest frame on a lane: a full chunk and its head. A peer cannot make us buffer more of an unfinished frame.
const MAX_FRAME: usize = MAX_CHUNK + 16;

/// The most bytes of one output: several small messages share it, and it stays below the 16 KiB a WebSocket message may
/// have.
const MAX_OUTPUT: usize = 8_192;

/// A mark is set after this many bytes of reliable streams at the latest.
const MARK_EVERY: u64 = MIN_WINDOW / 2;

/// The most bytes in flight on one lane. A carrier buffers a limited amount (256 KiB) for a peer that reads slowly, and
/// drops a peer beyond it: bulk alone must never reach that.
pub const MAX_LANE_WINDOW: u64 = 128 << 10;

#[derive(Clone, Debug)]
struct Mark {
    id: u16,
    bytes: u64,
    at: Time,
}

/// One stream of the carrier, both directions.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// The beginning of a frame whose end has not arrived.
    unfinished: Vec<u8>,
    channels: &'static [Channel],
    /// Whether unreliable messages are sent here too, because the carrier has nothing else.
    messages: bool,
    rtt: Rtt,
    window: Window,
    marks: VecDeque<Mark>,
    unmarked: u64,
    next_mark: u16,
    pong: Option<u16>,
    /// When a mark was last set, or found to be still in flight.
    marked_at: Time,
}

impl Lane {
    pub fn new(now: Time, channels: &'static [Channel], messages: bool) -> Lane {
        Lane {
            unfinished: Vec::new(),
            channels,
            messages,
            rtt: Rtt::default(),
            window: Window::up_to(MAX_LANE_WINDOW, now),
            marks: VecDeque::new(),
            unmarked: 0,
            next_mark: 0,
            pong: None,
            marked_at: now,
        }
    }

    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Handles the next bytes of the lane, split anywhere.
    pub fn on_bytes(
        &mut self,
        now: Time,
        bytes: &[u8],
        streams: &mut Streams,
        inbox: &mut Queue,
    ) -> Result<Heard, Malformed> {
        if self.unfinished.is_empty() {
            return self.on_frames(now, bytes, streams, inbox);
        }
        let mut all = core::mem::take(&mut self.unfinished);
        all.extend_from_slice(bytes);
        let heard = self.on_frames(now, &all, streams, inbox);
        if self.unfinished.is_empty() {
            // Keeps the memory for the next partial frame.
            all.clear();
            self.unfinished = all;
        }
        heard
    }

    fn on_frames(
        &mut self,
        now: Time,
        bytes: &[u8],
        streams: &mut Streams,
        inbox: &mut Queue,
    ) -> Result<Heard, Malformed> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let rest = reader.rest();
            match Frame::read(&mut reader) {
                Ok(frame) => {
                    if let Heard::Close = self.on_frame(now, &frame, streams, inbox)? {
                        return Ok(Heard::Close);
                    }
                }
                Err(Malformed::Truncated) if rest.len() < MAX_FRAME => {
                    self.unfinished.extend_from_slice(rest);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Heard::Something)
    }

    fn on_frame(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        streams: &mut Streams,
        inbox: &mut Queue,
    ) -> Result<Heard, Malformed> {
        match *frame {
            Frame::Message { channel, bytes } if self.messages => inbox.push(channel, bytes),
            Frame::Chunk { channel, bytes } if self.channels.contains(&channel) => {
                streams.on_next(channel, bytes)?;
            }
            Frame::Ping { id } => self.pong = Some(id),
            Frame::Pong { id } => self.on_pong(now, id),
            Frame::Close { code, text } => {
                streams.closed_by_peer(code, text);
                return Ok(Heard::Close);
            }
            _ => return Err(Malformed::Forbidden("a stream carries messages, prompts and closes")),
        }
        Ok(Heard::Something)
    }

    /// The other side has reached this mark; an unknown id does nothing.
    fn on_pong(&mut self, now: Time, id: u16) {
        let Some(at) = self.marks.iter().position(|mark| mark.id == id) else { return };
        let sent_at = self.marks[at].at;
        let bytes = self.marks.drain(..=at).map(|mark| mark.bytes).sum();
        self.rtt.sample(now.micros_since(sent_at));
        self.window.on_acked(bytes, &self.rtt);
    }

    /// When something is due next.
    pub fn wake_at(&self, streams: &Streams) -> Option<Time> {
        let paced = self.has_chunks(streams).then(|| self.window.ready_at(&self.rtt)).flatten();
        let keep_alive = self.messages.then(|| self.marked_at.plus_micros(KEEP_ALIVE_US));
        paced.into_iter().chain(keep_alive).min()
    }

    /// A mark now and then measures the round trip of a busy lane and keeps an idle one alive. Where there are packets
    /// beside the lanes, they do both.
    fn is_mark_due(&self, now: Time) -> bool {
        self.messages && now.micros_since(self.marked_at) >= KEEP_ALIVE_US
    }

    fn has_chunks(&self, streams: &Streams) -> bool {
        self.channels.iter().any(|channel| streams.is_channel_ready(*channel))
    }

    fn is_due(&self, now: Time, outbox: &Queue, streams: &Streams, closing: bool) -> bool {
        closing
            || self.pong.is_some()
            || self.messages && !outbox.is_empty()
            || self.window.room() > 0 && self.has_chunks(streams)
            || self.is_mark_due(now)
    }

    /// Writes the next bytes of the lane into `out`, if any are due.
    pub fn poll(
        &mut self,
        now: Time,
        outbox: &mut Queue,
        streams: &mut Streams,
        closing: Option<&Closing>,
        out: &mut Vec<u8>,
    ) -> bool {
        self.window.tick(now, &self.rtt);
        if !self.is_due(now, outbox, streams, closing.is_some()) {
            return false;
        }
        out.clear();
        if let Some(id) = self.pong.take() {
            frame::put_pong(out, id);
        }
        if self.messages {
            put_messages(outbox, out);
        }
        self.put_chunks(streams, out);
        if self.unmarked >= MARK_EVERY || self.is_mark_due(now) && self.marks.is_empty() {
            self.put_mark(now, out);
        }
        if self.is_mark_due(now) {
            self.marked_at = now;
        }
        if let Some(closing) = closing {
            frame::put_close(out, closing.code, closing.text.as_bytes());
        }
        !out.is_empty()
    }

    fn put_chunks(&mut self, streams: &mut Streams, out: &mut Vec<u8>) {
        for channel in self.channels {
            loop {
                let room = MAX_OUTPUT.saturating_sub(out.len() + 8).min(MAX_CHUNK);
                let room = room.min(self.window.room() as usize);
                let Some(range) = streams.out(*channel).next_piece(room) else { break };
                let before = out.len();
                frame::put_chunk_head(out, *channel, (range.end - range.start) as usize);
                streams.out(*channel).put_piece(out, range.clone());
                streams.out(*channel).on_acked(range);
                let len = (out.len() - before) as u64;
                self.window.on_sent(len);
                self.unmarked += len;
            }
        }
    }

    fn put_mark(&mut self, now: Time, out: &mut Vec<u8>) {
        frame::put_ping(out, self.next_mark);
        self.marked_at = now;
        self.marks.push_back(Mark {
            id: self.next_mark,
            bytes: core::mem::take(&mut self.unmarked),
            at: now,
        });
        self.next_mark = self.next_mark.wrapping_add(1);
    }
}

fn put_messages(outbox: &mut Queue, out: &mut Vec<u8>) {
    while let Some((channel, message)) = outbox.first() {
        if !out.is_empty() && out.len() + message.len() + 8 > MAX_OUTPUT {
            break;
        }
        frame::put_message(out, channel, message);
        outbox.drop_first();
    }
}
