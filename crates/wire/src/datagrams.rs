//! The packet side of a link: numbers and acks, the contents of each packet, and the reaction to loss.
//!
//! Used on raw UDP for everything, and inside QUIC and WebTransport for the unreliable channels.

use alloc::vec::Vec;

use sametick_sim::Time;

use crate::arrivals::{Arrival, Arrivals};
use crate::cadence::Cadence;
use crate::channel::{Channel, Delivery, ORDERED_CHANNELS};
use crate::closing::Closing;
use crate::codec::{Malformed, Reader, varint_len};
use crate::frame::{self, Frame, MAX_FRAGMENT};
use crate::link::{Heard, KEEP_ALIVE_US};
use crate::packet::{Ack, DELAY_UNIT_US, Head};
use crate::queue::Queue;
use crate::redundant::{RedundantIn, RedundantOut};
use crate::rtt::{MAX_ACK_DELAY_US, Rtt};
use crate::sent::{PacketContents, PacketReport, Pieces, SentPackets, SentPiece, piece_bytes};
use crate::streams::Streams;
use crate::window::Window;

/// After this many packets that want an ack soon, one is sent at once: bulk is not kept waiting.
const ACK_AT_ONCE: u32 = 4;

/// After this many packets that want any ack, one is sent at once: an ack covers 64, so four in a row may be lost.
const HELD_ACK_AT_ONCE: u32 = 16;

/// The longest wait before unacknowledged data is sent again, however often that failed: a burst of losses has to
/// swallow 25 packets in a row before the link times out.
const MAX_RETRY_US: u64 = 400_000;

/// How often an ack carries a delay, for the other side to measure round trips, while nothing depends on it: three
/// ticks of 60 Hz.
const TELL_DELAY_EVERY_US: u64 = 45_000;

/// Room for [`Frame::Prompt`] that is left in every packet.
const PROMPT_LEN: usize = 1;

/// The least room for which a piece of a reliable stream is worth its head.
const MIN_PIECE: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Datagrams {
    max_len: usize,
    /// Whether reliable streams are sent in packets too, because the carrier has none.
    streams: bool,
    arrivals: Arrivals,
    sent: SentPackets,
    rtt: Rtt,
    window: Window,
    redundant_out: RedundantOut,
    redundant_in: RedundantIn,
    /// The packet that the last delivered newest-wins message came in.
    newest_from: Option<u64>,
    ack_due: Option<Time>,
    /// Packets received since we last sent one: those that want an ack soon, and all that want one.
    urgent_in: u32,
    unacked_in: u32,
    cadence: Cadence,
    /// The newest number that we have acknowledged, and when we last sent its delay.
    acked: Option<u64>,
    delay_told: Time,
    probe: bool,
    last_sent: Time,
    /// When the retry timer was last started, and how often it has fired since an ack.
    retry_from: Time,
    retries: u32,
    lost: u64,
    resent_bytes: u64,
    close_acked: bool,
}

impl Datagrams {
    pub fn new(now: Time, max_len: usize, streams: bool) -> Datagrams {
        Datagrams {
            max_len,
            streams,
            arrivals: Arrivals::default(),
            sent: SentPackets::default(),
            rtt: Rtt::default(),
            window: Window::new(now),
            redundant_out: RedundantOut::new(),
            redundant_in: RedundantIn::default(),
            newest_from: None,
            ack_due: None,
            urgent_in: 0,
            unacked_in: 0,
            cadence: Cadence::new(now),
            acked: None,
            delay_told: now,
            // The first packet tells the other side that the handshake's answer has arrived.
            probe: true,
            last_sent: now,
            retry_from: now,
            retries: 0,
            lost: 0,
            resent_bytes: 0,
            close_acked: false,
        }
    }

    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    pub fn packets_sent(&self) -> u64 {
        self.sent.next_number()
    }

    pub fn packets_lost(&self) -> u64 {
        self.lost
    }

    pub fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    pub fn close_acked(&self) -> bool {
        self.close_acked
    }

    pub fn redundant(&self) -> (&RedundantOut, &RedundantIn) {
        (&self.redundant_out, &self.redundant_in)
    }

    /// Hands out the redundant messages that are not acknowledged, and stops repeating them.
    pub fn take_redundant(&mut self, take: impl FnMut(&[u8])) {
        self.redundant_out.messages().for_each(take);
        self.redundant_out.stop_repeating();
    }

    pub fn push_redundant(&mut self, message: &[u8]) {
        self.redundant_out.push(message);
    }

    /// Handles a packet. Duplicates are ignored.
    pub fn on_packet(
        &mut self,
        now: Time,
        bytes: &[u8],
        streams: &mut Streams,
        inbox: &mut Queue,
    ) -> Result<Heard, Malformed> {
        if bytes.len() > self.max_len {
            return Err(Malformed::TooLong);
        }
        let mut reader = Reader::new(bytes);
        let head = Head::read(&mut reader)?;
        let Arrival::New { number, newest } = self.arrivals.note(now, head.number) else {
            return Ok(Heard::Nothing);
        };
        if let Some(ack) = head.ack {
            self.on_ack(now, &ack, newest, streams)?;
        }
        let mut heard = Heard::Something;
        let (wanted, mut urgent) = (!reader.is_empty(), false);
        let gaps = !newest || self.arrivals.has_recent_gap();
        while !reader.is_empty() {
            let frame = Frame::read(&mut reader)?;
            urgent |= frame.is_urgent(gaps);
            if let Heard::Close = self.on_frame(number, frame, streams, inbox)? {
                heard = Heard::Close;
            }
        }
        if wanted {
            self.wants_ack(now, newest, urgent);
        }
        Ok(heard)
    }

    fn wants_ack(&mut self, now: Time, newest: bool, urgent: bool) {
        self.unacked_in += 1;
        self.urgent_in += u32::from(urgent);
        // An out-of-order packet closes a gap that the sender may be about to repair: acknowledge it soon.
        let at_once = urgent && (self.urgent_in >= ACK_AT_ONCE || !newest);
        let due = if at_once || self.unacked_in >= HELD_ACK_AT_ONCE {
            now
        } else {
            let soon = now.plus_micros(MAX_ACK_DELAY_US);
            self.cadence.next_by().filter(|next| !urgent && *next > soon).unwrap_or(soon)
        };
        self.ack_due = Some(self.ack_due.map_or(due, |before| before.min(due)));
    }

    fn on_frame(
        &mut self,
        number: u64,
        frame: Frame<'_>,
        streams: &mut Streams,
        inbox: &mut Queue,
    ) -> Result<Heard, Malformed> {
        match frame {
            Frame::Message { channel, bytes } if channel.delivery() == Delivery::Newest => {
                if self.newest_from.is_none_or(|last| number >= last) {
                    self.newest_from = Some(number);
                    inbox.push(channel, bytes);
                }
            }
            Frame::Redundant(messages) => {
                let deliver = |message: &_| inbox.push(Channel::Input, message);
                self.redundant_in.on_block(number, &messages, deliver)?;
            }
            Frame::Ordered { channel, offset, bytes } if self.streams => {
                streams.on_piece(channel, offset, bytes)?;
            }
            // A ping only has to be acknowledged, as every frame is.
            Frame::Prompt { .. } | Frame::Ping { .. } | Frame::Pong { .. } => {}
            Frame::Close { code, text } => {
                streams.closed_by_peer(code, text);
                return Ok(Heard::Close);
            }
            Frame::Message { .. } | Frame::Ordered { .. } | Frame::Chunk { .. } => {
                return Err(Malformed::Forbidden(
                    "in packets, inputs are in a block and reliable messages go by streams if there are any",
                ));
            }
        }
        Ok(Heard::Something)
    }

    fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        in_order: bool,
        streams: &mut Streams,
    ) -> Result<(), Malformed> {
        let Datagrams { sent, arrivals, rtt, window, redundant_out, close_acked, .. } = self;
        let (mut acked_bytes, mut progress) = (0, false);
        let sent_at = sent.on_ack(ack, in_order, |news| {
            if let PacketReport::Acked { redundant_until, eliciting, close, told, pieces, suspected } = news {
                told.into_iter().for_each(|low| arrivals.on_known(low));
                progress |= eliciting;
                *close_acked |= close;
                redundant_out.on_acked(redundant_until);
                acked_bytes += if suspected { 0 } else { piece_bytes(pieces.clone()) };
                pieces.for_each(|piece| streams.on_acked(piece));
            }
        })?;
        if let (Some(sent_at), Some(delay)) = (sent_at, ack.delay) {
            rtt.sample(now.micros_since(sent_at).saturating_sub(delay * DELAY_UNIT_US));
        }
        if acked_bytes > 0 {
            window.on_acked(acked_bytes, rtt);
        }
        if progress {
            self.retries = 0;
            self.retry_from = now;
        }
        self.look_for_losses(now, streams);
        Ok(())
    }

    fn look_for_losses(&mut self, now: Time, streams: &mut Streams) {
        let (patience_us, held_us) = (self.rtt.retry_us(), self.rtt.held_retry_us());
        self.judge(now, streams, |sent, tell| sent.look(now, patience_us, held_us, tell));
    }

    /// Has `look` examine the packets that were sent, and applies its reports.
    fn judge(
        &mut self,
        now: Time,
        streams: &mut Streams,
        look: impl FnOnce(&mut SentPackets, &mut dyn FnMut(PacketReport<'_>)),
    ) {
        let Datagrams { sent, rtt, window, lost, resent_bytes, .. } = self;
        look(sent, &mut |told| match told {
            PacketReport::Suspected(pieces) => *resent_bytes += give_back(now, pieces, streams, window, rtt),
            PacketReport::Lost => *lost += 1,
            PacketReport::Acked { .. } => {}
        });
    }

    /// Does everything that is due by now.
    pub fn on_time(&mut self, now: Time, streams: &mut Streams) {
        self.window.tick(now, &self.rtt);
        self.look_for_losses(now, streams);
        if self.retry_at().is_some_and(|at| at <= now) {
            self.judge(now, streams, |sent, tell| sent.suspect_all(tell));
            self.probe = true;
            self.retries += 1;
            self.retry_from = now;
        }
        if now.micros_since(self.last_sent) >= KEEP_ALIVE_US {
            self.probe = true;
        }
    }

    fn retry_at(&self) -> Option<Time> {
        let urgent = self.sent.awaits_ack_soon();
        let patience_us = if urgent { self.rtt.retry_us() } else { self.rtt.held_retry_us() };
        let wait_us = (patience_us << self.retries.min(6)).min(MAX_RETRY_US.max(patience_us));
        self.sent.awaits_ack().then(|| self.retry_from.plus_micros(wait_us))
    }

    /// When something is due next.
    pub fn wake_at(&self, streams: &Streams) -> Time {
        let paced = (self.streams && streams.is_ready()).then(|| self.window.ready_at(&self.rtt)).flatten();
        let overdue = self.sent.overdue_at(self.rtt.retry_us());
        [self.ack_due, self.retry_at(), paced, overdue]
            .into_iter()
            .flatten()
            .fold(self.last_sent.plus_micros(KEEP_ALIVE_US), Time::min)
    }

    /// Whether there is something to send, the ack aside.
    fn has_cargo(&self, outbox: &Queue, streams: &Streams, closing: bool) -> bool {
        closing
            || self.probe
            || !outbox.is_empty()
            || self.redundant_out.has_fresh()
            || self.streams && self.window.room() > 0 && streams.is_ready()
    }

    /// Writes the next packet into `out`, if one is due.
    pub fn poll(
        &mut self,
        now: Time,
        outbox: &mut Queue,
        streams: &mut Streams,
        closing: Option<&Closing>,
        out: &mut Vec<u8>,
    ) -> bool {
        self.window.tick(now, &self.rtt);
        let has_cargo = self.has_cargo(outbox, streams, closing.is_some());
        if !has_cargo && self.ack_due.is_none_or(|due| due > now) {
            return false;
        }
        self.judge(now, streams, |sent, tell| sent.make_room(tell));
        out.clear();
        let ack = self.arrivals.ack(now, self.should_tell_delay(now));
        Head { number: self.sent.next_number() as u16, ack }.put(out);
        if ack.is_some_and(|ack| ack.delay.is_some()) {
            self.delay_told = now;
        }
        let mut cargo = PacketContents::default();
        // A packet for an ack alone repeats nothing if another packet will do so soon.
        if has_cargo || self.cadence.next_by().is_none_or(|next| next <= now) {
            cargo = self.put_cargo(now, outbox, streams, closing, out);
        }
        cargo.told = self.arrivals.newest();
        self.finish(now, cargo);
        debug_assert!(out.len() <= self.max_len);
        true
    }

    /// Whether the ack of the next packet is useful for measuring a round trip: it is new, and the other side waits for
    /// it or has had no measurement for a while.
    fn should_tell_delay(&self, now: Time) -> bool {
        let rested = now.micros_since(self.delay_told) >= TELL_DELAY_EVERY_US;
        self.arrivals.newest() > self.acked && (rested || self.urgent_in > 0)
    }

    /// Writes the frames of a packet, the redundant block last.
    fn put_cargo(
        &mut self,
        now: Time,
        outbox: &mut Queue,
        streams: &mut Streams,
        closing: Option<&Closing>,
        out: &mut Vec<u8>,
    ) -> PacketContents {
        let head_len = out.len();
        let mut wanted = !outbox.is_empty() || self.redundant_out.has_fresh();
        match closing {
            Some(closing) => frame::put_close(out, closing.code, closing.text.as_bytes()),
            None => self.put_newest(outbox, out),
        }
        let room = self.max_len - out.len() - PROMPT_LEN;
        let block_len = Some(self.redundant_out.block_len())
            .filter(|len| !self.redundant_out.is_empty() && *len <= room)
            .unwrap_or(0);
        let pieces = self.put_pieces(streams, self.max_len - block_len, out);
        wanted |= pieces;
        if wanted {
            self.cadence.on_sent(now);
        }
        let eliciting = out.len() + block_len > head_len;
        let mut urgent = pieces || closing.is_some();
        if self.probe && !eliciting {
            frame::put_ping(out, 0);
            urgent = true;
        } else if !urgent && eliciting {
            // If we send rarely, no later packet will make up for this one.
            urgent = self.probe || self.cadence.next_by().is_none();
            if urgent || self.window.is_flying() {
                frame::put_prompt(out, !urgent);
            }
        }
        let redundant_until = if block_len > 0 { self.redundant_out.put(out) } else { 0 };
        let (eliciting, close) = (out.len() > head_len, closing.is_some());
        PacketContents { redundant_until, eliciting, urgent, close, told: None }
    }

    /// Makes the next [`Self::poll`] send a packet, for its ack.
    pub fn ack_at_once(&mut self, now: Time) {
        self.ack_due = Some(now);
    }

    fn finish(&mut self, now: Time, cargo: PacketContents) {
        let first = cargo.eliciting && !self.sent.awaits_ack();
        if first || cargo.urgent && !self.sent.awaits_ack_soon() {
            self.retry_from = now;
        }
        self.sent.push(now, cargo);
        self.acked = cargo.told;
        self.probe = false;
        self.ack_due = None;
        self.urgent_in = 0;
        self.unacked_in = 0;
        self.last_sent = now;
    }

    fn put_newest(&mut self, outbox: &mut Queue, out: &mut Vec<u8>) {
        while let Some((channel, message)) = outbox.first() {
            let len = 1 + varint_len(message.len() as u64) + message.len();
            if out.len() + len > self.max_len - PROMPT_LEN {
                break;
            }
            frame::put_message(out, channel, message);
            outbox.drop_first();
        }
    }

    /// Fills a packet with pieces of reliable streams, up to `max_len`. Returns whether there were any.
    fn put_pieces(&mut self, streams: &mut Streams, max_len: usize, out: &mut Vec<u8>) -> bool {
        if !self.streams {
            return false;
        }
        let len_before = out.len();
        for channel in &Channel::ALL[..ORDERED_CHANNELS] {
            let channel = *channel;
            const HEAD: usize = 1 + 10 + 2;
            let room = max_len.saturating_sub(out.len() + HEAD).min(MAX_FRAGMENT);
            let room = room.min(self.window.room() as usize);
            if room < MIN_PIECE.min(streams.out(channel).queued()) {
                continue;
            }
            let Some(range) = streams.out(channel).next_piece(room) else { continue };
            let len = range.end - range.start;
            frame::put_ordered_head(out, channel, range.start, len as usize);
            streams.out(channel).put_piece(out, range.clone());
            self.window.on_sent(len);
            self.sent.load(SentPiece::new(channel, &range));
        }
        out.len() > len_before
    }
}

/// Queues the reliable bytes of a packet that seems lost again. Returns their number.
fn give_back(now: Time, pieces: Pieces<'_>, streams: &mut Streams, window: &mut Window, rtt: &Rtt) -> u64 {
    let bytes = piece_bytes(pieces.clone());
    if bytes > 0 {
        window.on_lost(now, bytes, rtt);
        pieces.for_each(|piece| streams.on_lost(piece));
    }
    bytes
}
