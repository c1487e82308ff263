//! A peer's last confirmed states, kept to find the tick at which a desync began and what differed. They are not
//! simulated again: a state that went wrong once need not go wrong twice.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::{Game, StateHash, Tick, to_canonical};

use crate::message::{CHECK_EVERY, RECENT_TICKS};

/// Memory for copies of states; of larger states only the hashes are kept, and a copy at every check.
pub const MAX_KEPT_BYTES: usize = 64 << 20;

/// The number of states kept: of a large state there is a copy at or before each of the last [`RECENT_TICKS`].
const KEPT_TICKS: usize = (RECENT_TICKS + CHECK_EVERY) as usize;

enum Kept<G> {
    /// In a box, because moving a state copies it once more.
    State(Box<G>),
    Hash(StateHash),
}

/// The last confirmed states.
pub struct Recent<G> {
    kept: VecDeque<(Tick, Kept<G>)>,
    copies: bool,
}

impl<G: Game> Recent<G> {
    /// An empty store. `state` shows how large states are.
    pub fn new(state: &G) -> Recent<G> {
        let bytes = to_canonical(state).map_or(0, |bytes| bytes.len()).max(size_of::<G>());
        Recent::with_copies(bytes.saturating_mul(KEPT_TICKS) <= MAX_KEPT_BYTES)
    }

    fn with_copies(copies: bool) -> Recent<G> {
        Recent { kept: VecDeque::with_capacity(KEPT_TICKS), copies }
    }

    /// Keeps the state after a tick.
    pub fn push(&mut self, tick: Tick, state: &G) {
        // The buffer of the oldest state is reused: states that own memory keep it.
        let oldest = if self.kept.len() == KEPT_TICKS { self.kept.pop_front() } else { None };
        let kept = if self.copies || tick.0.is_multiple_of(CHECK_EVERY) {
            match oldest {
                Some((_, Kept::State(mut place))) => {
                    place.as_mut().clone_from(state);
                    Kept::State(place)
                }
                _ => Kept::State(Box::new(state.clone())),
            }
        } else {
            Kept::Hash(StateHash::of(state))
        };
        self.kept.push_back((tick, kept));
    }

    /// Forgets the states after a tick.
    pub fn rewind(&mut self, tick: Tick) {
        while self.kept.back().is_some_and(|(last, _)| *last > tick) {
            self.kept.pop_back();
        }
    }

    /// The hashes of these ticks, as far as they are kept, and the tick of the first.
    pub fn hashes(&self, from: Tick, to: Tick) -> (Tick, Vec<StateHash>) {
        let last = self.kept.len().saturating_sub(RECENT_TICKS as usize);
        let asked = self.kept.iter().skip(last).filter(|(tick, _)| (from..=to).contains(tick));
        let first = asked.clone().next().map_or(from, |(tick, _)| *tick);
        let hash = |(_, kept): &(Tick, Kept<G>)| match kept {
            Kept::State(state) => StateHash::of(&**state),
            Kept::Hash(hash) => *hash,
        };
        (first, asked.map(hash).collect())
    }

    /// The last kept state at or before a tick.
    pub fn state_before(&self, to: Tick) -> Option<(Tick, &G)> {
        self.kept.iter().rev().filter(|(tick, _)| *tick <= to).find_map(|(tick, kept)| match kept {
            Kept::State(state) => Some((*tick, &**state)),
            Kept::Hash(_) => None,
        })
    }

    /// The first kept state at or after a tick.
    pub fn state(&self, from: Tick) -> Option<(Tick, &G)> {
        self.kept.iter().filter(|(tick, _)| *tick >= from).find_map(|(tick, kept)| match kept {
            Kept::State(state) => Some((*tick, &**state)),
            Kept::Hash(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postcard_schema::Schema;
    use sametick_sim::{BuildId, Inputs, TickRate};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Serialize, Deserialize, Schema)]
    struct Count(u32);

    impl Game for Count {
        const NAME: &'static str = "count";
        const RATE: TickRate = TickRate::hz(60);
        const BUILD: BuildId = BuildId::from_bytes([7; 16]);
        type Setup = ();
        type Input = u8;

        fn new((): &()) -> Count {
            Count(0)
        }

        fn step(&mut self, _: &Inputs<u8>) {
            self.0 += 1;
        }
    }

    fn filled(copies: bool) -> Recent<Count> {
        let mut recent = Recent::with_copies(copies);
        (1..=300).for_each(|tick| recent.push(Tick(tick), &Count(tick)));
        recent
    }

    #[test]
    fn hashed_large_states_and_copied_small_ones_agree() {
        let [small, large] = [true, false].map(filled);
        assert_eq!(small.hashes(Tick(100), Tick(290)), large.hashes(Tick(100), Tick(290)));
        let (first, hashes) = small.hashes(Tick(1), Tick(300));
        assert_eq!((first, hashes.len()), (Tick(181), 120));
        assert_eq!(hashes[0], StateHash::of(&Count(181)));
        assert_eq!(small.state(Tick(200)).map(|(tick, _)| tick), Some(Tick(200)));
        assert_eq!(large.state(Tick(200)).map(|(tick, _)| tick), Some(Tick(210)), "at the next check");
        for back in 0..=RECENT_TICKS {
            let to = Tick(300 - back);
            assert_eq!(small.state_before(to).map(|(tick, _)| tick), Some(to));
            let checked = Tick(to.0 / CHECK_EVERY * CHECK_EVERY);
            assert_eq!(large.state_before(to).map(|(tick, _)| tick), Some(checked));
        }
    }

    #[test]
    fn rewound_states_are_forgotten() {
        let mut recent = filled(true);
        recent.rewind(Tick(250));
        assert!(recent.state(Tick(251)).is_none());
        assert_eq!(recent.hashes(Tick(250), Tick(260)).1.len(), 1);
    }
}
