//! A queue of small messages in one buffer: nothing is allocated once it has grown to its usual size.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::channel::Channel;

/// Messages waiting to be sent or handed out, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    bytes: Vec<u8>,
    /// Where the oldest message begins.
    start: usize,
    items: VecDeque<(Channel, usize)>,
}

impl Queue {
    /// Adds a message.
    pub fn push(&mut self, channel: Channel, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.items.push_back((channel, message.len()));
    }

    /// The oldest message.
    pub fn first(&self) -> Option<(Channel, &[u8])> {
        let (channel, len) = *self.items.front()?;
        Some((channel, &self.bytes[self.start..self.start + len]))
    }

    /// Drops the oldest message.
    pub fn drop_first(&mut self) {
        let Some((_, len)) = self.items.pop_front() else { return };
        self.start += len;
        if self.items.is_empty() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// How many bytes wait.
    pub fn queued(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
