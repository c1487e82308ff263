//! The open links of a hub, as its application uses them.

use std::collections::HashMap;
use std::net::IpAddr;

use sametick_wire::{Channel, Input, Link, LinkStats, SendError, Time};

use super::Key;
use super::budget::{Excess, Held};
use crate::endpoint::RawMessage;

pub(super) struct Entry {
    pub link: Link,
    /// When the link wants to be woken.
    pub wake_at: Time,
    /// The earliest timer that is set for it: a later time needs no new one.
    pub timer_at: Option<Time>,
    pub dirty: bool,
    /// The address of a remote client; set only on the server's side, where it limits what the link may hold.
    pub network: Option<IpAddr>,
    /// Whether it has joined a session or room.
    pub has_joined: bool,
    /// The bytes it holds, where these are counted.
    held: usize,
}

/// The open links of a hub.
#[derive(Default)]
pub struct Links {
    pub(super) now: Time,
    pub(super) entries: HashMap<Key, Entry>,
    /// Links with something to drain.
    pub(super) dirty: Vec<Key>,
    /// Links that exceed a budget, their own or that of their address.
    pub(super) over: Vec<Key>,
    held: Held,
    /// The open raw WebSockets, and whether they are still read.
    pub(super) raw_sockets: HashMap<Key, bool>,
    /// Messages to send on raw WebSockets; `None` closes one.
    pub(super) said: Vec<(Key, Option<RawMessage>)>,
}

impl Links {
    /// The current time of the hub.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a message; it leaves when the application returns.
    pub fn send(&mut self, key: Key, channel: Channel, message: &[u8]) -> Result<(), SendError> {
        let now = self.now;
        let entry = self.entries.get_mut(&key).ok_or(SendError::Closed)?;
        let sent = entry.link.send(now, channel, message);
        self.mark(key);
        sent
    }

    /// Ends a link.
    pub fn close(&mut self, key: Key, code: u8, text: &str) {
        let now = self.now;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.link.close(now, code, text);
            self.weigh(key);
            self.mark(key);
        }
    }

    /// The statistics of a link.
    pub fn stats(&self, key: Key) -> Option<LinkStats> {
        self.entries.get(&key).map(|entry| entry.link.stats())
    }

    /// Bytes that wait on a channel of a link.
    pub fn queued(&self, key: Key, channel: Channel) -> usize {
        self.entries.get(&key).map_or(0, |entry| entry.link.queued(channel))
    }

    /// The keys of all open links.
    pub fn keys(&self) -> Vec<Key> {
        self.entries.keys().copied().collect()
    }

    /// How many links are open.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no link is open.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sends a message on a raw WebSocket; it leaves when the application returns.
    pub fn say(&mut self, key: Key, words: RawMessage) {
        self.said.push((key, Some(words)));
    }

    /// Closes a raw WebSocket after the messages sent on it. Nothing more is read.
    pub fn hang_up(&mut self, key: Key) {
        self.raw_sockets.entry(key).and_modify(|is_heard| *is_heard = false);
        self.said.push((key, None));
    }

    pub(super) fn open(&mut self, key: Key, link: Link, network: Option<IpAddr>) {
        let entry = Entry {
            link,
            wake_at: self.now,
            timer_at: None,
            dirty: false,
            network,
            has_joined: false,
            held: 0,
        };
        self.entries.insert(key, entry);
        self.mark(key);
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        if let Some(network) = entry.network {
            self.held.change(network, entry.held, 0);
        }
        Some(entry)
    }

    /// Counts the bytes a link holds. Returns the link to close for it, if any.
    pub(super) fn weigh(&mut self, key: Key) -> Option<Excess> {
        let entry = self.entries.get_mut(&key)?;
        let (network, held) = (entry.network?, entry.link.held());
        self.held.change(network, entry.held, held);
        entry.held = held;
        self.held.excess(network, held, entry.has_joined)
    }

    /// The link that holds most, of one address or of all.
    pub(super) fn largest(&self, of: Option<IpAddr>) -> Option<Key> {
        let counted = self.entries.iter().filter(|(_, entry)| of.is_none() || entry.network == of);
        counted.max_by_key(|(_, entry)| entry.held).map(|(key, _)| *key)
    }

    pub(super) fn mark(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key).filter(|entry| !entry.dirty) {
            entry.dirty = true;
            self.dirty.push(key);
        }
    }

    /// An error also comes out as `Closed` when the link is drained.
    pub(super) fn handle(&mut self, key: Key, input: Input<'_>) {
        let now = self.now;
        if let Some(entry) = self.entries.get_mut(&key) {
            let _ = entry.link.handle(now, input);
            if self.weigh(key).is_some() {
                self.over.push(key);
            }
            self.mark(key);
        }
    }
}
