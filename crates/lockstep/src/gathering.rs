//! Save collection: the relay asks one peer after the other for a state, piece by piece, and takes it only if its hash
//! is the agreed one. The relay hashes the bytes itself and trusts no peer.

use alloc::vec::Vec;

use sametick_sim::{StateHash, Tick, Time};

use crate::message::{MAX_STATE, PIECE_BYTES, Piece, ToPeer};
use crate::session::Member;

/// The relay moves on to the next peer after this long without an answer.
pub const PATIENCE_US: u64 = 3_000_000;

/// The first and smallest piece size asked for: at a megabit a second it takes 16 ms, about a tick.
const LEAST_PIECE: u32 = 2 << 10;

/// The largest piece size asked for.
const MOST_PIECE: u32 = 2 * PIECE_BYTES as u32;

/// The largest piece size asked for from a peer that does nothing else.
pub(crate) const MOST_ALONE: u32 = 4 * PIECE_BYTES as u32;

/// A piece that takes this much longer than the quickest was too large for its path: other packets have to get past it.
const TARGET_US: u64 = 20_000;

/// The result of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The save is not complete yet.
    On,
    /// The peer does not have the state.
    Missing,
    /// The peer's answer contradicts the question or an earlier answer.
    PassOver,
    /// The state is complete and has the agreed hash.
    Complete(Vec<u8>),
}

/// A save that the relay is collecting from a peer.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    tick: Tick,
    from: Member,
    /// The agreed hash, once there is one.
    hash: Option<StateHash>,
    /// The size of the state, once the peer has sent it.
    length: Option<u32>,
    bytes: Vec<u8>,
    /// When the outstanding piece was asked for.
    asked_at: Option<Time>,
    piece: u32,
    quickest_us: u64,
    /// No other packets have to get past the pieces.
    is_alone: bool,
    deadline: Time,
}

impl Gathering {
    /// Asks a peer for its state after a tick. The peer has that state, or will have it at `there_at`.
    pub fn new(tick: Tick, from: Member, there_at: Time) -> Gathering {
        Gathering {
            tick,
            from,
            hash: None,
            length: None,
            bytes: Vec::new(),
            asked_at: None,
            piece: LEAST_PIECE,
            quickest_us: u64::MAX,
            is_alone: false,
            deadline: there_at.plus_micros(PATIENCE_US),
        }
    }

    /// Asks a peer that does nothing else: pieces are as large as possible, whatever they delay.
    pub fn alone(tick: Tick, from: Member, there_at: Time) -> Gathering {
        Gathering { is_alone: true, ..Gathering::new(tick, from, there_at) }
    }

    pub fn tick(&self) -> Tick {
        self.tick
    }

    pub fn from(&self) -> Member {
        self.from
    }

    /// The time by which something must have arrived.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Whether the peer has been silent for too long. Time until the players agree does not count against it.
    pub fn is_overdue(&self, now: Time) -> bool {
        now >= self.deadline && (self.length.is_none() || self.hash.is_some())
    }

    /// Whether the players can no longer agree on that tick.
    pub fn is_hopeless(&self, closed: Tick, remembered_ticks: u32) -> bool {
        self.hash.is_none() && closed.ticks_since(self.tick) > remembered_ticks
    }

    /// The players agree on the state of the tick.
    pub fn on_agreed(&mut self, now: Time, hash: StateHash) {
        if self.hash.is_none() {
            self.hash = Some(hash);
            self.deadline = self.deadline.max(now.plus_micros(PATIENCE_US));
        }
    }

    /// The peer answers with the size of its state.
    pub fn on_offer(&mut self, now: Time, member: Member, tick: Tick, bytes: Option<u32>) -> Step {
        if (member, tick) != (self.from, self.tick) {
            return Step::On;
        }
        match bytes {
            None => Step::Missing,
            Some(_) if self.length.is_some() => Step::On,
            Some(bytes) if bytes == 0 || bytes as usize > MAX_STATE => Step::PassOver,
            Some(bytes) => {
                self.length = Some(bytes);
                self.deadline = now.plus_micros(PATIENCE_US);
                Step::On
            }
        }
    }

    /// The next piece to ask for, if one is due.
    pub fn ask(&mut self, now: Time) -> Option<ToPeer> {
        let length = self.length.filter(|_| self.hash.is_some() && self.asked_at.is_none())?;
        self.asked_at = Some(now);
        self.deadline = now.plus_micros(PATIENCE_US);
        let offset = self.bytes.len() as u32;
        Some(ToPeer::GivePiece { tick: self.tick, offset, bytes: self.piece.min(length - offset) })
    }

    /// A piece has arrived.
    pub fn on_piece(&mut self, now: Time, member: Member, piece: &Piece) -> Step {
        if (member, piece.tick) != (self.from, self.tick) {
            return Step::On;
        }
        let (Some(asked_at), Some(length), Some(hash)) = (self.asked_at.take(), self.length, self.hash)
        else {
            return Step::PassOver;
        };
        let left = length as usize - self.bytes.len();
        let is_asked_for = piece.offset as usize == self.bytes.len()
            && (1..=left.min(self.piece as usize)).contains(&piece.bytes.len());
        if !is_asked_for {
            return Step::PassOver;
        }
        self.bytes.extend_from_slice(&piece.bytes);
        self.adapt(now.micros_since(asked_at));
        if self.bytes.len() < length as usize {
            return Step::On;
        }
        match StateHash::of_bytes(&self.bytes) == hash {
            true => Step::Complete(core::mem::take(&mut self.bytes)),
            false => Step::PassOver,
        }
    }

    /// Makes pieces larger while they arrive quickly, and smaller when a queue builds up.
    fn adapt(&mut self, took_us: u64) {
        self.quickest_us = self.quickest_us.min(took_us);
        let is_quick = self.is_alone || took_us <= self.quickest_us + TARGET_US;
        let piece = if is_quick { self.piece * 2 } else { self.piece / 2 };
        let most = if self.is_alone { MOST_ALONE } else { MOST_PIECE };
        self.piece = piece.clamp(LEAST_PIECE, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Simulates a peer that has `bytes`, while the players agree on `hash`.
    fn gather(bytes: &[u8], hash: StateHash, took_ms: impl Fn(usize) -> u64) -> (Step, Vec<usize>) {
        let (peer, tick, mut now) = (Member(1), Tick(60), 0);
        let mut gathering = Gathering::new(tick, peer, at(0));
        assert_eq!(gathering.ask(at(0)), None);
        assert_eq!(gathering.on_offer(at(0), peer, tick, Some(bytes.len() as u32)), Step::On);
        assert_eq!(gathering.ask(at(0)), None, "nothing is agreed on");
        gathering.on_agreed(at(0), hash);
        let mut pieces = vec![];
        while let Some(ToPeer::GivePiece { offset, bytes: most, .. }) = gathering.ask(at(now)) {
            assert_eq!(gathering.ask(at(now)), None, "one at a time");
            let piece = bytes[offset as usize..][..most as usize].to_vec();
            now += took_ms(piece.len());
            pieces.push(piece.len());
            match gathering.on_piece(at(now), peer, &Piece { tick, offset, bytes: piece }) {
                Step::On => {}
                end => return (end, pieces),
            }
        }
        panic!("it never ends");
    }

    #[test]
    fn a_state_comes_in_pieces_and_is_taken_if_it_is_the_agreed_one() {
        let bytes: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
        let hash = StateHash::of_bytes(&bytes);
        let (step, pieces) = gather(&bytes, hash, |_| 40);
        assert_eq!(step, Step::Complete(bytes.clone()));
        assert!(pieces.len() < 20, "{pieces:?}");
        assert_eq!(gather(&bytes, StateHash(hash.0 ^ 1), |_| 40).0, Step::PassOver);
    }

    #[test]
    fn on_a_slow_line_pieces_stay_small() {
        let bytes = vec![7; 200_000];
        // A megabit a second, and 50 ms of round trip.
        let (_, pieces) = gather(&bytes, StateHash::of_bytes(&bytes), |len| 50 + len as u64 / 125);
        assert!(pieces[4..].iter().all(|len| *len <= 8 << 10), "{pieces:?}");
    }

    #[test]
    fn a_peer_with_a_wrong_answer_is_passed_over() {
        let (peer, tick) = (Member(1), Tick(60));
        let begun = || {
            let mut gathering = Gathering::new(tick, peer, at(0));
            gathering.on_agreed(at(0), StateHash(1));
            gathering
        };
        let mut gathering = begun();
        assert_eq!(gathering.on_offer(at(0), peer, tick, None), Step::Missing);
        assert_eq!(gathering.on_offer(at(0), peer, tick, Some(0)), Step::PassOver);
        assert_eq!(gathering.on_offer(at(0), peer, tick, Some(MAX_STATE as u32 + 1)), Step::PassOver);
        assert_eq!(gathering.on_offer(at(0), Member(2), tick, None), Step::On, "nobody asked them");
        let piece = |offset, len| Piece { tick, offset, bytes: vec![0; len] };
        assert_eq!(gathering.on_piece(at(0), peer, &piece(0, 5)), Step::PassOver, "nobody asked for it");
        for (offset, len) in [(1, 5), (0, 0), (0, 11)] {
            let mut gathering = begun();
            gathering.on_offer(at(0), peer, tick, Some(10));
            assert!(gathering.ask(at(0)).is_some());
            assert_eq!(gathering.on_piece(at(0), peer, &piece(offset, len)), Step::PassOver);
        }
    }

    #[test]
    fn only_silence_of_the_asked_peer_times_out() {
        let (peer, tick) = (Member(1), Tick(60));
        let mut gathering = Gathering::new(tick, peer, at(500));
        assert!(!gathering.is_overdue(at(3_499)) && gathering.is_overdue(at(3_500)));
        gathering.on_offer(at(600), peer, tick, Some(10));
        assert!(!gathering.is_overdue(at(60_000)));
        assert!(!gathering.is_hopeless(Tick(500), 480) && gathering.is_hopeless(Tick(541), 480));
        gathering.on_agreed(at(60_000), StateHash(1));
        gathering.ask(at(60_000));
        assert!(!gathering.is_overdue(at(62_999)) && gathering.is_overdue(at(63_000)));
    }
}
