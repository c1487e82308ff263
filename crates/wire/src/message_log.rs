//! The log of messages on one end of a link (L7): the newest ones, in a bounded buffer, and the line of JSON that every
//! end of every protocol writes for a message.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Seat, Tick, Time};
use serde::Serialize;

use crate::Channel;
use crate::hex::to_hex;

/// A description of a message, for people who read logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its kind, in one word.
    pub kind: &'static str,
    /// Its tick, if it has one.
    pub tick: Option<Tick>,
    /// It carries a claim or a token: its bytes authenticate the player, so they are left out of logs.
    pub is_secret: bool,
}

impl Described {
    /// A message without a tick.
    pub const fn kind(kind: &'static str) -> Described {
        Described { kind, tick: None, is_secret: false }
    }

    /// A message for this tick.
    pub const fn at(kind: &'static str, tick: Tick) -> Described {
        Described { kind, tick: Some(tick), is_secret: false }
    }

    /// The same, marked as secret.
    pub const fn secret(self) -> Described {
        Described { is_secret: true, ..self }
    }

    /// The same, for this tick if it could be read.
    pub const fn with_tick(self, tick: Option<Tick>) -> Described {
        Described { tick, ..self }
    }
}

/// A message in the log, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When it was sent or received, on the clock of this end.
    pub at: Time,
    /// Sent by this end; received otherwise.
    pub sent: bool,
    /// Its channel.
    pub channel: Channel,
    /// The seat of the link's player, if known.
    pub seat: Option<Seat>,
    /// A tick near those of the message.
    pub near: Tick,
}

/// The newest messages of a link. Nothing is allocated once it is full.
#[derive(Clone, Debug)]
pub struct MessageLog {
    max_bytes: usize,
    messages: VecDeque<(Logged, usize)>,
    /// The bytes of all messages, one after the other.
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl MessageLog {
    /// An empty log, which takes up at most about this much memory.
    pub fn new(max_bytes: usize) -> MessageLog {
        MessageLog { max_bytes, messages: VecDeque::new(), bytes: VecDeque::new(), dropped: 0 }
    }

    /// Adds a message. The oldest ones are dropped to make room; a message that is larger than the log is only counted.
    pub fn push(&mut self, logged: Logged, bytes: &[u8]) {
        let needed = bytes.len() + OVERHEAD;
        if needed > self.max_bytes {
            self.dropped += 1;
            return;
        }
        while self.len_bytes() + needed > self.max_bytes {
            self.drop_oldest();
        }
        self.messages.push_back((logged, bytes.len()));
        self.bytes.extend(bytes);
    }

    /// The number of messages that were dropped before the first in the log.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Passes every message to `see`, the oldest first.
    pub fn for_each(&self, mut see: impl FnMut(&Logged, &[u8])) {
        let (mut buf, mut from) = (Vec::new(), 0);
        for (logged, len) in &self.messages {
            buf.clear();
            buf.extend(self.bytes.range(from..from + len));
            from += len;
            see(logged, &buf);
        }
    }

    /// Drops every message: they have been written elsewhere.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.bytes.clear();
        self.dropped = 0;
    }

    fn len_bytes(&self) -> usize {
        self.bytes.len() + self.messages.len() * OVERHEAD
    }

    fn drop_oldest(&mut self) {
        if let Some((_, len)) = self.messages.pop_front() {
            self.bytes.drain(..len);
            self.dropped += 1;
        }
    }
}

/// The memory of a message beside its bytes.
const OVERHEAD: usize = size_of::<(Logged, usize)>();

/// A message as a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageLine<'a> {
    unix_us: u64,
    session: &'a str,
    seat: Option<u16>,
    direction: &'static str,
    kind: &'static str,
    tick: Option<u32>,
    bytes: usize,
    /// Hexadecimal; empty for a secret message.
    payload: String,
}

impl<'a> MessageLine<'a> {
    /// The line of a message of this session, sent or received at this Unix time.
    pub fn new(unix_us: u64, session: &'a str, logged: &Logged, about: Described, bytes: &[u8]) -> Self {
        MessageLine {
            unix_us,
            session,
            seat: logged.seat.map(|seat| seat.0),
            direction: if logged.sent { "send" } else { "recv" },
            kind: about.kind,
            tick: about.tick.map(|tick| tick.0),
            bytes: bytes.len(),
            payload: if about.is_secret { String::new() } else { to_hex(bytes) },
        }
    }
}

/// The first line of a log that has dropped some messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DroppedLine<'a> {
    session: &'a str,
    kind: &'static str,
    messages: u64,
}

impl<'a> DroppedLine<'a> {
    /// This many messages of this session came before those in the log.
    pub fn new(session: &'a str, messages: u64) -> Self {
        DroppedLine { session, kind: "dropped", messages }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn logged(number: u32) -> Logged {
        let at = Time::from_micros(u64::from(number) * 1_000);
        let seat = Some(Seat(1));
        Logged { at, sent: number.is_multiple_of(2), channel: Channel::Input, seat, near: Tick(number) }
    }

    fn content(log: &MessageLog) -> Vec<(Tick, Vec<u8>)> {
        let mut seen = Vec::new();
        log.for_each(|logged, bytes| seen.push((logged.near, bytes.to_vec())));
        seen
    }

    proptest! {
        #[test]
        fn the_newest_messages_are_kept_whole_within_the_limit(
            lens in prop::collection::vec(0..300usize, 0..200),
            max_bytes in 100..3_000usize,
        ) {
            let mut log = MessageLog::new(max_bytes);
            let mut all = Vec::new();
            for (number, len) in (0u32..).zip(&lens) {
                let bytes = vec![number as u8; *len];
                log.push(logged(number), &bytes);
                if len + OVERHEAD <= max_bytes {
                    all.push((Tick(number), bytes));
                }
                prop_assert!(log.len_bytes() <= max_bytes);
            }
            let kept = content(&log);
            prop_assert!(all.ends_with(&kept));
            prop_assert_eq!(kept.len() as u64 + log.dropped(), lens.len() as u64);
            // The message dropped last had no room beside the rest.
            if let Some((_, next)) = all.len().checked_sub(kept.len() + 1).map(|index| &all[index]) {
                prop_assert!(log.len_bytes() + next.len() + OVERHEAD + 300 + OVERHEAD > max_bytes);
            }
        }
    }

    #[test]
    fn a_cleared_log_is_empty() {
        let mut log = MessageLog::new(OVERHEAD + 1);
        log.push(logged(1), b"a");
        log.push(logged(2), b"b");
        assert_eq!((content(&log), log.dropped()), (vec![(Tick(2), b"b".to_vec())], 1));
        log.clear();
        assert_eq!((content(&log), log.dropped()), (vec![], 0));
    }
}
