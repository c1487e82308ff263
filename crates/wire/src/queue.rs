//! A queue of small messages in one buffer: nothing is allocated once it has grown to its usual size, and a message has
//! three bytes of overhead, so that a peer's empty messages cost us hardly more than they cost the peer.

use alloc::vec::Vec;

use crate::channel::Channel;

/// The head of each message: its channel and its length (u16).
const HEAD: usize = 3;

/// Messages waiting to be sent or handed out, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    bytes: Vec<u8>,
    /// The offset of the oldest message's head.
    start: usize,
}

impl Queue {
    /// Adds a message of an unreliable channel.
    pub fn push(&mut self, channel: Channel, message: &[u8]) {
        let len = u16::try_from(message.len()).expect("unreliable messages fit one datagram");
        let [low, high] = len.to_le_bytes();
        self.bytes.extend_from_slice(&[channel.number(), low, high]);
        self.bytes.extend_from_slice(message);
    }

    /// The oldest message.
    pub fn first(&self) -> Option<(Channel, &[u8])> {
        let (&[channel, low, high], rest) = self.bytes.get(self.start..)?.split_first_chunk::<HEAD>()?;
        let len = u16::from_le_bytes([low, high]);
        Some((Channel::from_number(channel)?, rest.get(..usize::from(len))?))
    }

    /// Drops the oldest message.
    pub fn drop_first(&mut self) {
        let Some((_, message)) = self.first() else { return };
        self.start += HEAD + message.len();
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// The number of bytes that wait, heads included.
    pub fn queued(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The number of bytes that would wait with one more message.
    pub fn queued_with(&self, message: &[u8]) -> usize {
        self.queued() + HEAD + message.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in(ops: Vec<Option<(bool, Vec<u8>)>>) {
            let (mut queue, mut model) = (Queue::default(), VecDeque::new());
            for op in ops {
                match op {
                    Some((input, message)) => {
                        let channel = if input { Channel::Input } else { Channel::State };
                        queue.push(channel, &message);
                        model.push_back((channel, message));
                    }
                    None => {
                        queue.drop_first();
                        model.pop_front();
                    }
                }
                let first = model.front().map(|(channel, message)| (*channel, &message[..]));
                prop_assert_eq!(queue.first(), first);
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
        }
    }
}
