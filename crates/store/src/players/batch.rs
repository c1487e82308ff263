//! A queue of waiting writes that keeps the newest by key, in an order equivalent to the order of arrival.

use std::collections::{HashMap, VecDeque};

use super::storage::Write;
use super::words::{PlaceId, PlayerId, TokenHash};

/// The key of a write: of two writes with the same key, the later one counts.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Checkpoint(PlaceId, PlayerId),
    Part(PlaceId, u32),
    Place(PlaceId),
    Player(PlayerId),
    Token(TokenHash),
    Profile(PlayerId, Box<(String, String)>),
    Active(PlayerId, Box<str>),
    Sweep(Scope),
}

/// A set of rows that a write can delete or change besides its own row.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Scope {
    Place(PlaceId),
    Token(TokenHash),
    TokensOf(PlayerId),
    ProfilesOf(PlayerId),
}

/// Writes that wait.
///
/// A write replaces an older one of the same row, so that memory grows with rows and not with time. Where another write
/// has swept over that row in between (a room was deleted, a token retired), it goes to the end instead: order matters
/// there.
#[derive(Default)]
pub struct Batch {
    writes: VecDeque<Write>,
    /// How many were taken from the front; the indices in `newest` count from before them.
    taken: u64,
    newest: HashMap<Key, u64>,
    coalesced: u64,
    /// Whether any waiting write sweeps; mostly none does, which saves look-ups.
    sweeps: bool,
}

impl Batch {
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The number of the next write at the end.
    pub fn end(&self) -> u64 {
        self.taken + self.writes.len() as u64
    }

    /// Returns and resets the number of writes that replaced an older one.
    pub fn take_coalesced(&mut self) -> u64 {
        std::mem::take(&mut self.coalesced)
    }

    pub fn push(&mut self, write: Write) {
        let key = key_of(&write);
        if let Key::Sweep(_) = key {
            self.sweeps = true;
            return self.append(key, write);
        }
        let older = self.newest.get(&key).copied();
        match older.filter(|at| !self.was_swept_since(*at, &write)) {
            Some(at) => {
                self.writes[(at - self.taken) as usize] = write;
                self.coalesced += 1;
            }
            None => self.append(key, write),
        }
    }

    /// Removes the first write.
    pub fn pop(&mut self) -> Option<Write> {
        let write = self.writes.pop_front()?;
        let key = key_of(&write);
        if self.newest.get(&key) == Some(&self.taken) {
            self.newest.remove(&key);
        }
        self.taken += 1;
        self.sweeps &= !self.writes.is_empty();
        Some(write)
    }

    /// Puts back the write that was removed last.
    pub fn unpop(&mut self, write: Write) {
        self.taken -= 1;
        self.newest.entry(key_of(&write)).or_insert(self.taken);
        self.sweeps |= matches!(key_of(&write), Key::Sweep(_));
        self.writes.push_front(write);
    }

    /// All writes, in order.
    pub fn as_slice(&mut self) -> &[Write] {
        self.writes.make_contiguous()
    }

    pub fn clear(&mut self) {
        self.taken = self.end();
        self.writes.clear();
        self.newest.clear();
        self.sweeps = false;
    }

    fn append(&mut self, key: Key, write: Write) {
        self.newest.insert(key, self.end());
        self.writes.push_back(write);
    }

    fn was_swept_since(&self, at: u64, write: &Write) -> bool {
        let swept = |scope| self.newest.get(&Key::Sweep(scope)).is_some_and(|sweep| *sweep > at);
        self.sweeps
            && match write {
                Write::Checkpoint { place, .. } | Write::Part { place, .. } | Write::Place { place, .. } => {
                    swept(Scope::Place(*place))
                }
                Write::Token { hash, player, .. } => {
                    swept(Scope::Token(*hash)) || swept(Scope::TokensOf(*player))
                }
                Write::Player { player, .. }
                | Write::Profile { player, .. }
                | Write::Active { player, .. } => swept(Scope::ProfilesOf(*player)),
                Write::Forget { .. }
                | Write::Retire { .. }
                | Write::RetireAll { .. }
                | Write::Mend { .. } => true,
            }
    }
}

fn key_of(write: &Write) -> Key {
    match write {
        Write::Checkpoint { place, player, .. } => Key::Checkpoint(*place, *player),
        Write::Part { place, key, .. } => Key::Part(*place, *key),
        Write::Place { place, .. } => Key::Place(*place),
        Write::Player { player, .. } => Key::Player(*player),
        Write::Token { hash, .. } => Key::Token(*hash),
        Write::Profile { player, game, character, .. } => {
            Key::Profile(*player, Box::new((game.clone(), character.clone())))
        }
        Write::Active { player, game, .. } => Key::Active(*player, game.as_str().into()),
        Write::Forget { place } => Key::Sweep(Scope::Place(*place)),
        Write::Retire { hash } => Key::Sweep(Scope::Token(*hash)),
        Write::RetireAll { player } => Key::Sweep(Scope::TokensOf(*player)),
        Write::Mend { player, .. } => Key::Sweep(Scope::ProfilesOf(*player)),
    }
}
