//! Redundant messages: each is in every packet until one of these packets is acknowledged, so that no loss shorter than
//! a whole round trip delays them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::block::{MAX_REDUNDANT_COUNT, Messages, Until, put_redundant, redundant_len};
use crate::codec::Malformed;

/// The most bytes of a packet for repeats; older messages are given up when newer ones need the room.
pub const REDUNDANT_BUDGET: usize = 600;

/// The sending end.
#[derive(Clone, Debug)]
pub struct RedundantOut {
    /// The bytes of all messages that are still repeated, oldest first. Its front is trimmed lazily.
    bytes: Vec<u8>,
    /// The lengths of those messages.
    lens: VecDeque<usize>,
    /// Where the oldest message begins in `bytes`.
    start: usize,
    /// The number of the oldest message.
    first: u64,
    /// The number of the first message that has not been in any packet.
    fresh: u64,
    /// Every message below this has arrived, or was given up before the newest one that has.
    acked: u64,
    given_up: u64,
}

impl RedundantOut {
    /// An empty sender. Room for a full block is allocated at once, so that nothing is allocated later.
    pub fn new() -> RedundantOut {
        RedundantOut {
            bytes: Vec::with_capacity(2 * REDUNDANT_BUDGET),
            lens: VecDeque::with_capacity(MAX_REDUNDANT_COUNT + 1),
            start: 0,
            first: 0,
            fresh: 0,
            acked: 0,
            given_up: 0,
        }
    }

    /// Queues a message, giving up the oldest ones if they would not fit into a packet with it.
    pub fn push(&mut self, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.lens.push_back(message.len());
        while self.lens.len() > MAX_REDUNDANT_COUNT || self.block_len() > REDUNDANT_BUDGET {
            self.drop_first();
            self.given_up += 1;
        }
        self.fresh = self.fresh.max(self.first);
    }

    fn drop_first(&mut self) {
        self.start += self.lens.pop_front().unwrap_or(0);
        self.first += 1;
        if self.start == self.bytes.len() || self.start > REDUNDANT_BUDGET {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// The length of a block with all messages.
    pub fn block_len(&self) -> usize {
        redundant_len(self.until(), self.lens.iter().copied())
    }

    /// Whether a message waits to be sent for the first time.
    pub fn has_fresh(&self) -> bool {
        self.fresh < self.next()
    }

    /// Whether a message is not acknowledged yet.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// Messages given up before they were acknowledged.
    pub const fn given_up(&self) -> u64 {
        self.given_up
    }

    fn next(&self) -> u64 {
        self.first + self.lens.len() as u64
    }

    fn until(&self) -> Until {
        Until::new(self.next(), self.lens.len(), self.first <= self.acked)
    }

    /// The messages that are still repeated, oldest first.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let (bytes, mut at) = (&self.bytes, self.start);
        self.lens.iter().map(move |len| {
            at += len;
            &bytes[at - len..at]
        })
    }

    /// Appends the block with all messages. Returns the number after the newest, to be passed to [`Self::on_acked`].
    pub fn put(&mut self, out: &mut Vec<u8>) -> u64 {
        put_redundant(out, self.until(), self.messages());
        self.fresh = self.next();
        self.fresh
    }

    /// Stops repeating its messages: they are sent another way.
    pub fn stop_repeating(&mut self) {
        while !self.lens.is_empty() {
            self.drop_first();
        }
        self.fresh = self.first;
    }

    /// A packet arrived that carried every message below `until`.
    pub fn on_acked(&mut self, until: u64) {
        self.acked = self.acked.max(until);
        while self.first < until && !self.lens.is_empty() {
            self.drop_first();
        }
    }
}

impl Default for RedundantOut {
    fn default() -> Self {
        RedundantOut::new()
    }
}

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct RedundantIn {
    /// The number of the first message that has not arrived.
    next: u64,
    /// The newest packet that had a block.
    newest_from: Option<u64>,
    skipped: u64,
}

impl RedundantIn {
    /// Hands every message of the block in this packet that is new to `deliver`, oldest first.
    pub fn on_block<'a>(
        &mut self,
        packet: u64,
        messages: &Messages<'a>,
        mut deliver: impl FnMut(&'a [u8]),
    ) -> Result<(), Malformed> {
        // A later block had every message of this one that was not acknowledged or given up by then; and the few bits
        // of its number are meaningful only if it is the newest.
        if self.newest_from.is_some_and(|newest| packet < newest) {
            return Ok(());
        }
        self.newest_from = Some(packet);
        let first = messages.first(self.next)?;
        for (number, message) in (first..).zip(messages.iter()) {
            if number >= self.next {
                self.skipped += number - self.next;
                self.next = number + 1;
                deliver(message);
            }
        }
        Ok(())
    }

    /// Messages that the sender gave up before any packet with them arrived.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Reader;
    use crate::frame::Frame;
    use alloc::vec;
    use proptest::prelude::*;
    use sametick_sim::Rng;

    fn receive(receiver: &mut RedundantIn, packet: u64, block: &[u8], got: &mut Vec<Vec<u8>>) {
        match Frame::read(&mut Reader::new(block)).unwrap() {
            Frame::Redundant(messages) => {
                receiver.on_block(packet, &messages, |message| got.push(message.to_vec())).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn messages_arrive_once_in_order_if_packets_sometimes_do(
            seed: u64, loss in 0u64..70, count in 1u64..70_000,
        ) {
            let mut rng = Rng::new(seed);
            let (mut sender, mut receiver) = (RedundantOut::new(), RedundantIn::default());
            let (mut got, mut sent) = (vec![], vec![]);
            // Blocks and acks that come after later ones.
            let (mut late_block, mut late_ack) = (None, None);
            for number in 0..count.min(if seed.is_multiple_of(16) { 70_000 } else { 300 }) {
                let message = number.to_le_bytes()[..1 + (number % 4) as usize].to_vec();
                sender.push(&message);
                sent.push(message);
                let mut block = vec![];
                let until = sender.put(&mut block);
                if rng.chance(loss, 100) {
                    continue;
                }
                if rng.chance(1, 8) {
                    late_block = Some((number, block, until));
                    continue;
                }
                receive(&mut receiver, number, &block, &mut got);
                if let Some((number, block, until)) = late_block.take_if(|_| rng.chance(1, 4)) {
                    receive(&mut receiver, number, &block, &mut got);
                    late_ack = Some(until);
                }
                if !rng.chance(loss, 100) {
                    sender.on_acked(until);
                    late_ack.take().into_iter().for_each(|until| sender.on_acked(until));
                }
            }
            if !sender.is_empty() {
                let mut block = vec![];
                let until = sender.put(&mut block);
                receive(&mut receiver, until, &block, &mut got);
            }
            prop_assert_eq!(sender.given_up() > 0 && loss == 0, false);
            if sender.given_up() == 0 {
                prop_assert_eq!(receiver.skipped(), 0);
                prop_assert_eq!(got, sent);
            } else {
                prop_assert_eq!(got.len() as u64 + receiver.skipped(), sent.len() as u64);
            }
        }

        #[test]
        fn later_messages_arrive_after_any_number_was_given_up(seed: u64) {
            let mut rng = Rng::new(seed);
            let (mut sender, mut receiver) = (RedundantOut::new(), RedundantIn::default());
            let (mut got, mut sent, mut packet) = (vec![], 0u64, 0);
            for _ in 0..60 {
                // Up to several times the size of a block, while nothing arrives.
                for _ in 0..1 + rng.below(300) * rng.below(2) {
                    sender.push(&sent.to_le_bytes());
                    sent += 1;
                }
                let mut block = vec![];
                let until = sender.put(&mut block);
                packet += 1;
                receive(&mut receiver, packet, &block, &mut got);
                if rng.chance(1, 2) {
                    sender.on_acked(until);
                }
            }
            let numbers: Vec<u64> = got.iter().map(|m| u64::from_le_bytes(m[..].try_into().unwrap())).collect();
            prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(numbers.len() as u64 + receiver.skipped(), sent);
            prop_assert_eq!(numbers.last(), Some(&(sent - 1)));
        }

        #[test]
        fn a_block_never_outgrows_its_budget(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 1..100)) {
            let mut sender = RedundantOut::new();
            for message in &messages {
                sender.push(message);
                prop_assert!(sender.block_len() <= REDUNDANT_BUDGET);
                let mut block = vec![];
                sender.put(&mut block);
                prop_assert_eq!(block.len(), sender.block_len());
            }
        }
    }
}
