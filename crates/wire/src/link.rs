//! One end of a link, as a state machine: pass in packets that arrived and messages to send, and drain its outputs.
//!
//! ```text
//!   send ─▶ ┌──────┐ ─▶ Datagram / Stream   to the carrier
//! handle ─▶ │ Link │ ─▶ Message             to the game
//!           └──────┘ ─▶ Closed, WakeAt
//! ```
//! After each `handle` or `send`, call [`Link::poll_output`] until it returns [`Output::WakeAt`] (or `Done`), and call
//! [`Link::handle`] at that time with [`Input::Timeout`]. `hub.rs` of the crate `transport` is the driver.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::Time;

use crate::arrivals::Arrivals;
use crate::channel::{Channel, Delivery};
use crate::closing::{Closed, Closing, Last, Reason, THROWN_OUT, put_close};
use crate::codec::Malformed;
use crate::datagrams::Datagrams;
use crate::lanes::Lane;
use crate::packet::{MAX_DATAGRAM, MAX_QUIC_DATAGRAM};
use crate::queue::Queue;
use crate::rtt::Rtt;
use crate::streams::Streams;

/// The time-out: the other side is gone after a silence of this length (V2).
pub const TIME_OUT_US: u64 = 10_000_000;

/// An idle side sends something this often, so that a false time-out takes ten lost packets in a row.
pub const KEEP_ALIVE_US: u64 = 1_000_000;

/// The number of extra sockets for the datagrams of a WebSocket link. Each more than halves the late ones
/// (docs/benchmarks.md).
pub const EXTRA_SOCKETS: usize = 4;

/// How often a close is sent over raw datagrams before we stop waiting for its ack, and the interval.
const CLOSE_TRIES: u32 = 5;
const CLOSE_EVERY_US: u64 = 100_000;

/// The most bytes of unreliable messages that wait for the driver; beyond it the oldest is dropped.
const MAX_OUTBOX: usize = 64 << 10;

/// The kind of carrier below a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Only datagrams (raw UDP): the link provides reliability.
    Datagrams,
    /// Datagrams, and one reliable stream for each ordered channel (QUIC, WebTransport).
    DatagramsAndStreams,
    /// One reliable stream for everything (WebSocket).
    Stream,
}

/// A reliable stream of the carrier. Lane `n` belongs to the ordered channel with that number; a carrier with one
/// stream only has lane 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u8);

/// What happens to a link.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A whole datagram arrived.
    Datagram(&'a [u8]),
    /// The next bytes of a lane arrived, split anywhere.
    Stream(LaneId, &'a [u8]),
    /// A carrier of one stream gains or loses datagrams beside it: a WebSocket link has extra sockets.
    Datagrams(bool),
    /// The time of the last [`Output::WakeAt`] has come.
    Timeout,
}

/// What a link asks its driver to do. The bytes are in the buffer that was passed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this datagram.
    Datagram,
    /// Send these bytes on this lane.
    Stream(LaneId),
    /// A message arrived on this channel.
    Message(Channel),
    /// The link has ended. Comes once, after everything else but `Done`.
    Closed(Closed),
    /// Nothing to do before this time, unless something arrives or is sent.
    WakeAt(Time),
    /// Nothing to do ever again.
    Done,
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Longer than [`Channel::max_message`].
    TooLong,
    /// The channel's queue is full: the other side is too slow, or we are too fast.
    Full,
    /// The link has ended or is about to.
    Closed,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SendError::TooLong => "the message is longer than its channel allows",
            SendError::Full => "the channel's queue is full",
            SendError::Closed => "the link is closed",
        })
    }
}

impl core::error::Error for SendError {}

/// Statistics of one link, as seen from this end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// The smoothed round trip, once there is one.
    pub rtt_us: Option<u64>,
    /// The shortest round trip.
    pub min_rtt_us: Option<u64>,
    /// The smoothed difference between one round trip and the next.
    pub jitter_us: u64,
    /// Datagrams sent.
    pub packets_sent: u64,
    /// Datagrams sent that did not arrive.
    pub packets_lost: u64,
    /// Datagrams the other side has sent, as far as we can tell.
    pub packets_expected: u64,
    /// Datagrams that arrived; repeats are not counted.
    pub packets_received: u64,
    /// Duplicate datagrams.
    pub packets_repeated: u64,
    /// Bytes given to the carrier.
    pub bytes_sent: u64,
    /// Bytes taken from the carrier.
    pub bytes_received: u64,
    /// Reliable bytes that were sent again.
    pub bytes_resent: u64,
    /// Redundant messages that we gave up.
    pub redundant_given_up: u64,
    /// Redundant messages of the other side that never arrived.
    pub redundant_skipped: u64,
}

/// The result of handling a packet or lane.
pub(crate) enum Heard {
    Nothing,
    Something,
    Close,
}

#[derive(Clone, Debug)]
enum State {
    Open,
    Closing(Closing),
    Ended(Closed),
    Done,
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct Link {
    now: Time,
    heard_at: Time,
    state: State,
    last: Last,
    streams: Streams,
    datagrams: Option<Datagrams>,
    /// Whether the carrier takes datagrams now: a single stream may gain and lose them.
    has_datagrams: bool,
    lanes: Vec<Lane>,
    inbox: Queue,
    outbox: Queue,
    bytes_sent: u64,
    bytes_received: u64,
}

const ALL_ORDERED: &[Channel] = &[Channel::Control, Channel::Chat, Channel::Diagnostics, Channel::Chunks];

impl Link {
    /// A link whose handshake has just been done.
    pub fn new(now: Time, carrier: Carrier) -> Link {
        let datagrams = match carrier {
            Carrier::Datagrams => Some(Datagrams::new(now, MAX_DATAGRAM, true)),
            Carrier::DatagramsAndStreams => Some(Datagrams::new(now, MAX_QUIC_DATAGRAM, false)),
            Carrier::Stream => None,
        };
        let lanes = match carrier {
            Carrier::Datagrams => Vec::new(),
            Carrier::DatagramsAndStreams => {
                ALL_ORDERED.chunks(1).map(|one| Lane::new(now, one, false)).collect()
            }
            Carrier::Stream => [Lane::new(now, ALL_ORDERED, true)].into(),
        };
        Link {
            now,
            heard_at: now,
            state: State::Open,
            last: Last::Nothing,
            streams: Streams::default(),
            has_datagrams: datagrams.is_some(),
            datagrams,
            lanes,
            inbox: Queue::default(),
            outbox: Queue::default(),
            bytes_sent: 0,
            bytes_received: 0,
        }
    }

    /// Queues a message. It leaves with the next [`Link::poll_output`].
    pub fn send(&mut self, now: Time, channel: Channel, message: &[u8]) -> Result<(), SendError> {
        self.now = self.now.max(now);
        if !matches!(self.state, State::Open) {
            return Err(SendError::Closed);
        }
        if message.len() > channel.max_message() {
            return Err(SendError::TooLong);
        }
        match (channel.delivery(), self.datagrams.as_mut().filter(|_| self.has_datagrams)) {
            (Delivery::Ordered, _) if !self.streams.out(channel).push(message) => {
                return Err(SendError::Full);
            }
            (Delivery::Ordered, _) => {}
            (Delivery::Redundant, Some(datagrams)) => datagrams.push_redundant(message),
            (Delivery::Redundant, None) if self.outbox.queued_with(message) > MAX_OUTBOX => {
                return Err(SendError::Full);
            }
            (Delivery::Redundant, None) => self.outbox.push(channel, message),
            (Delivery::Newest, _) => {
                while self.outbox.queued_with(message) > MAX_OUTBOX {
                    self.outbox.drop_first();
                }
                self.outbox.push(channel, message);
            }
        }
        Ok(())
    }

    /// Ends the link. Queued reliable messages are given up: wait for [`Link::is_flushed`] first if that matters.
    /// Nothing more is handed out, not even what has arrived. A text longer than 200 bytes is cut.
    pub fn close(&mut self, now: Time, code: u8, text: &str) {
        self.now = self.now.max(now);
        self.streams.deafen();
        self.inbox.clear();
        if matches!(self.state, State::Open) {
            self.state = State::Closing(Closing::new(self.now, code, text));
        }
    }

    /// Handles an event. After an error the link has ended: the other side does not speak the protocol.
    pub fn handle(&mut self, now: Time, input: Input<'_>) -> Result<(), Malformed> {
        self.now = self.now.max(now);
        let now = self.now;
        if matches!(self.state, State::Ended(_) | State::Done) {
            return Ok(());
        }
        let heard = match input {
            Input::Datagram(bytes) => self.on_datagram(now, bytes),
            Input::Stream(lane, bytes) => self.on_stream(now, lane, bytes),
            Input::Datagrams(carried) if self.lanes.len() == 1 => Ok(self.on_datagrams(now, carried)),
            Input::Datagrams(_) => Ok(Heard::Nothing),
            Input::Timeout => Ok(self.on_time(now)),
        };
        if self.streams.is_deaf() {
            self.inbox.clear();
        }
        match heard {
            Ok(Heard::Nothing) => {}
            Ok(Heard::Something) => self.heard_at = now,
            Ok(Heard::Close) => {
                let reason = self.streams.take_close().unwrap_or(Reason { code: 0, text: String::new() });
                self.state = State::Ended(Closed::There(reason));
                self.last = Last::Ack;
            }
            Err(error) => {
                self.break_off(error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The other side has broken a rule: it is told which one, once.
    fn break_off(&mut self, error: Malformed) {
        self.state = State::Ended(Closed::Violation(error));
        self.last = Last::RawMessage(Closing::new(self.now, THROWN_OUT, error.rule()));
    }

    fn on_datagram(&mut self, now: Time, bytes: &[u8]) -> Result<Heard, Malformed> {
        self.bytes_received += bytes.len() as u64;
        let datagrams = self.datagrams.as_mut().ok_or(Malformed::Forbidden("this link has no datagrams"))?;
        datagrams.on_packet(now, bytes, &mut self.streams, &mut self.inbox)
    }

    fn on_stream(&mut self, now: Time, lane: LaneId, bytes: &[u8]) -> Result<Heard, Malformed> {
        self.bytes_received += bytes.len() as u64;
        let lane = self
            .lanes
            .get_mut(usize::from(lane.0))
            .ok_or(Malformed::Forbidden("this link has no such stream"))?;
        lane.on_bytes(now, bytes, &mut self.streams, &mut self.inbox)
    }

    /// Unreliable messages go by datagrams while the carrier has them, and otherwise on the stream; on the switch,
    /// unacknowledged ones are sent again on the stream. Datagrams in flight are still accepted.
    fn on_datagrams(&mut self, now: Time, carried: bool) -> Heard {
        self.has_datagrams = carried;
        match (&mut self.datagrams, carried) {
            (Some(datagrams), false) => {
                let outbox = &mut self.outbox;
                datagrams.take_redundant(|message| outbox.push(Channel::Input, message));
            }
            (None, true) => self.datagrams = Some(Datagrams::new(now, MAX_QUIC_DATAGRAM, false)),
            _ => {}
        }
        Heard::Nothing
    }

    fn on_time(&mut self, now: Time) -> Heard {
        if now.micros_since(self.heard_at) >= TIME_OUT_US {
            self.state = State::Ended(Closed::TimedOut);
        } else if let (Some(datagrams), true) = (&mut self.datagrams, self.has_datagrams) {
            datagrams.on_time(now, &mut self.streams);
        }
        Heard::Nothing
    }

    /// The next output; its bytes go into `buf`.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        if let Some(channel) = self.pop_message(buf) {
            return Output::Message(channel);
        }
        let output = match &self.state {
            State::Open => self.poll_carrier(buf),
            State::Closing(_) => self.poll_closing(buf),
            State::Ended(_) => self.poll_ended(buf),
            State::Done => Output::Done,
        };
        if matches!(output, Output::Datagram | Output::Stream(_)) {
            self.bytes_sent += buf.len() as u64;
        }
        output
    }

    fn pop_message(&mut self, buf: &mut Vec<u8>) -> Option<Channel> {
        if let Some((channel, message)) = self.inbox.first() {
            buf.clear();
            buf.extend_from_slice(message);
            self.inbox.drop_first();
            return Some(channel);
        }
        for channel in ALL_ORDERED {
            match self.streams.pop(*channel, buf) {
                Ok(true) => return Some(*channel),
                Ok(false) => {}
                // The error recurs with every call, but ends the link once.
                Err(error) if matches!(self.state, State::Open | State::Closing(_)) => {
                    self.break_off(error);
                }
                Err(_) => {}
            }
        }
        None
    }

    fn poll_carrier(&mut self, buf: &mut Vec<u8>) -> Output {
        let Link { now, datagrams, has_datagrams, lanes, streams, outbox, .. } = self;
        let mut wake_at = self.heard_at.plus_micros(TIME_OUT_US);
        if let (Some(datagrams), true) = (datagrams, *has_datagrams) {
            if datagrams.poll(*now, outbox, streams, None, buf) {
                return Output::Datagram;
            }
            wake_at = wake_at.min(datagrams.wake_at(streams));
        }
        for (id, lane) in (0..).zip(lanes) {
            if lane.poll(*now, outbox, streams, None, buf) {
                return Output::Stream(LaneId(id));
            }
            wake_at = lane.wake_at(streams).map_or(wake_at, |at| at.min(wake_at));
        }
        Output::WakeAt(wake_at)
    }

    /// Sends the close: once on a lane, which is reliable; as a datagram until it is acknowledged, a limited number of
    /// times.
    fn poll_closing(&mut self, buf: &mut Vec<u8>) -> Output {
        let Link { now, datagrams, lanes, streams, outbox, state, .. } = self;
        let State::Closing(closing) = state else { return Output::Done };
        let acked = !lanes.is_empty() || datagrams.as_ref().is_none_or(Datagrams::close_acked);
        if closing.tries > 0 && (acked || closing.tries >= CLOSE_TRIES) {
            *state = State::Ended(Closed::Here);
            return self.poll_ended(buf);
        }
        if *now < closing.next_at {
            return Output::WakeAt(closing.next_at);
        }
        closing.tries += 1;
        closing.next_at = now.plus_micros(CLOSE_EVERY_US);
        let ways = (lanes.first_mut(), datagrams.as_mut());
        put_close(ways, *now, outbox, streams, closing, buf).unwrap_or(Output::WakeAt(closing.next_at))
    }

    fn poll_ended(&mut self, buf: &mut Vec<u8>) -> Output {
        let Link { now, datagrams, lanes, streams, outbox, .. } = self;
        match (core::mem::take(&mut self.last), datagrams) {
            (Last::Ack, Some(datagrams)) if lanes.is_empty() => {
                datagrams.ack_at_once(*now);
                datagrams.poll(*now, outbox, streams, None, buf);
                return Output::Datagram;
            }
            (Last::RawMessage(closing), datagrams) => {
                let ways = (lanes.first_mut(), datagrams.as_mut());
                if let Some(output) = put_close(ways, *now, outbox, streams, &closing, buf) {
                    return output;
                }
            }
            _ => {}
        }
        match core::mem::replace(&mut self.state, State::Done) {
            State::Ended(closed) => Output::Closed(closed),
            _ => Output::Done,
        }
    }

    /// Bytes of reliable messages that are held because they are incomplete, came too early, or were not taken yet.
    pub fn held(&self) -> usize {
        self.streams.held()
    }

    /// Whether everything on reliable channels has been acknowledged (or given to a carrier that is reliable).
    pub fn is_flushed(&self) -> bool {
        self.streams.is_flushed()
    }

    /// Bytes that wait on a reliable channel, including those in flight.
    pub fn queued(&self, channel: Channel) -> usize {
        self.streams.queued(channel).unwrap_or(self.outbox.queued())
    }

    /// The statistics so far.
    pub fn stats(&self) -> LinkStats {
        let none = Rtt::default();
        let datagrams = self.datagrams.as_ref().filter(|_| self.has_datagrams);
        let lane = self.lanes.first().map(Lane::rtt);
        let mut rtts = datagrams.map(Datagrams::rtt).into_iter().chain(lane);
        let rtt = rtts.find(|rtt| rtt.smoothed_us().is_some()).unwrap_or(&none);
        let arrivals = datagrams.map(Datagrams::arrivals);
        LinkStats {
            rtt_us: rtt.smoothed_us(),
            min_rtt_us: rtt.min_us(),
            jitter_us: rtt.jitter_us(),
            packets_sent: datagrams.map_or(0, Datagrams::packets_sent),
            packets_lost: datagrams.map_or(0, Datagrams::packets_lost),
            packets_expected: arrivals.map_or(0, Arrivals::expected),
            packets_received: arrivals.map_or(0, Arrivals::received),
            packets_repeated: arrivals.map_or(0, Arrivals::repeated),
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            bytes_resent: datagrams.map_or(0, Datagrams::resent_bytes),
            redundant_given_up: datagrams.map_or(0, |datagrams| datagrams.redundant().0.given_up()),
            redundant_skipped: datagrams.map_or(0, |datagrams| datagrams.redundant().1.skipped()),
        }
    }
}
