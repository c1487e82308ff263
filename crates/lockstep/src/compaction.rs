//! Log compaction (L16): when a session is saved so that older ticks can be forgotten. Counts ticks, knows no game.
//!
//! ```
//! use sametick_lockstep::compaction::{Compaction, CompactionConfig, Look, Trigger};
//! use sametick_sim::{Tick, TickRate, Time};
//!
//! let compaction = Compaction::new(CompactionConfig::default(), Tick::ZERO);
//! let mut look = Look::at(Time::ZERO, TickRate::hz(60), Tick(3 * 60 * 60 - 1));
//! assert_eq!(compaction.due(&look), None);
//! look.closed = Tick(3 * 60 * 60);
//! assert_eq!(compaction.due(&look), Some(Trigger::Time));
//! ```

use sametick_sim::{Tick, TickRate, Time};

/// The delay before a failed save is tried again; it doubles with each failure: the state may be too large, or the game
/// unknown.
pub const RETRY_US: u64 = 10_000_000;

/// The most doublings of that delay: to more than five minutes.
const MAX_DOUBLINGS: u32 = 5;

/// How often a session is saved, and on which triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionConfig {
    /// The longest session time between saves: 2 to 5 minutes in production.
    pub every_us: u64,
    /// The most ticks between saves.
    pub hot_ticks: u32,
    /// A join that has to be sent more than this much session time triggers a save.
    pub join_hot_us: u64,
    /// No save before the session has lasted this long: many sessions are over by then.
    pub not_before_us: u64,
    /// Whether saves go to an object store: ticks before a save are then forgotten only once it is stored.
    pub has_store: bool,
    /// Whether the driver simulates the session where it can: it is then asked for a state before players are.
    pub has_keeper: bool,
}

impl Default for CompactionConfig {
    fn default() -> CompactionConfig {
        CompactionConfig {
            every_us: 180_000_000,
            hot_ticks: 20_000,
            join_hot_us: 30_000_000,
            not_before_us: 5_000_000,
            has_store: false,
            has_keeper: false,
        }
    }
}

/// Why a session is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The session is over.
    End,
    /// Too many ticks have been closed since the last save.
    Ticks,
    /// Too much time has passed since the last save.
    Time,
    /// A peer that joins would have to catch up with too many ticks.
    Join,
}

/// The condition of a session, as compaction needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The time.
    pub now: Time,
    /// The session's tick rate.
    pub rate: TickRate,
    /// The last closed tick.
    pub closed: Tick,
    /// The tick that would be saved: the last one on which the players agree.
    pub reached: Tick,
    /// A peer is joining.
    pub joining: bool,
    /// A peer is catching up.
    pub catching_up: bool,
    /// All members have left.
    pub ending: bool,
}

impl Look {
    /// A session without joins or peers catching up, whose players agree on every closed tick.
    pub const fn at(now: Time, rate: TickRate, closed: Tick) -> Look {
        Look { now, rate, closed, reached: closed, joining: false, catching_up: false, ending: false }
    }
}

/// Decides when a session is to be saved.
#[derive(Clone, Debug)]
pub struct Compaction {
    config: CompactionConfig,
    /// The tick after which the session began.
    began: Tick,
    /// The tick of the last save.
    saved: Tick,
    retry_at: Time,
    /// How often saving failed since the last save.
    failures: u32,
}

impl Compaction {
    /// Compaction of a session that begins after this tick.
    pub const fn new(config: CompactionConfig, began: Tick) -> Compaction {
        Compaction { config, began, saved: began, retry_at: Time::ZERO, failures: 0 }
    }

    /// The tick of the last save; the tick after which the session began if there was none.
    pub const fn saved(&self) -> Tick {
        self.saved
    }

    /// Whether ticks before a save are kept until the save is stored.
    pub const fn has_store(&self) -> bool {
        self.config.has_store
    }

    /// Whether the driver simulates the session.
    pub const fn has_keeper(&self) -> bool {
        self.config.has_keeper
    }

    /// Whether a joining peer would have to catch up with so many ticks that a save is better.
    pub fn is_long(&self, rate: TickRate, closed: Tick) -> bool {
        rate.due_micros(Tick(closed.ticks_since(self.saved))) > self.config.join_hot_us
    }

    /// Whether the session is to be saved now, and why.
    pub fn due(&self, look: &Look) -> Option<Trigger> {
        let Look { now, rate, closed, reached, joining, catching_up, ending } = *look;
        let lasted_us = rate.due_micros(Tick(closed.ticks_since(self.began)));
        let is_too_early = lasted_us < self.config.not_before_us || !ending && now < self.retry_at;
        if is_too_early || catching_up || reached <= self.saved {
            return None;
        }
        let hot = closed.ticks_since(self.saved);
        let triggers = [
            (ending, Trigger::End),
            (hot >= self.config.hot_ticks, Trigger::Ticks),
            (rate.due_micros(Tick(hot)) >= self.config.every_us, Trigger::Time),
            (joining && self.is_long(rate, closed), Trigger::Join),
        ];
        triggers.into_iter().find_map(|(is_due, trigger)| is_due.then_some(trigger))
    }

    /// The session has been saved at this tick.
    pub fn on_saved(&mut self, tick: Tick) {
        self.saved = self.saved.max(tick);
        self.failures = 0;
    }

    /// No save could be obtained.
    pub fn on_failed(&mut self, now: Time) {
        self.retry_at = now.plus_micros(RETRY_US << self.failures.min(MAX_DOUBLINGS));
        self.failures += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sametick_sim::Rng;

    const RATE: TickRate = TickRate::hz(20);

    /// Simulates a session tick by tick: passes the look, the trigger due, and the tick of the save before.
    fn live(seed: u64, see: &mut dyn FnMut(&Look, Option<Trigger>, Tick)) {
        let mut rng = Rng::new(seed);
        let config = CompactionConfig {
            every_us: (120 + rng.below(180)) * 1_000_000,
            hot_ticks: if rng.chance(1, 2) { 1_000 } else { 20_000 },
            ..CompactionConfig::default()
        };
        let (mut compaction, mut reached, mut catching_up) =
            (Compaction::new(config, Tick::ZERO), Tick::ZERO, 0);
        let is_quiet = rng.chance(1, 3);
        for tick in (1..=8_000).map(Tick) {
            if tick.0 % 30 == 0 && !rng.chance(1, 5) {
                reached = tick;
            }
            let joining = !is_quiet && rng.chance(1, 400);
            let look = Look {
                now: Time::from_micros(RATE.due_micros(tick)),
                reached,
                joining,
                catching_up: catching_up > 0,
                ending: tick.0 == 8_000,
                ..Look::at(Time::ZERO, RATE, tick)
            };
            let (due, before) = (compaction.due(&look), compaction.saved());
            see(&look, due, before);
            match due {
                Some(_) if rng.chance(1, 4) => compaction.on_failed(look.now),
                Some(_) => compaction.on_saved(look.reached),
                None => {}
            }
            catching_up = if joining { rng.below(100) } else { catching_up.saturating_sub(1) };
        }
    }

    proptest! {
        #[test]
        fn never_in_the_first_seconds(seed: u64) {
            live(seed, &mut |look, due, _| assert!(due.is_none() || look.closed >= Tick(100)));
        }

        #[test]
        fn never_without_progress(seed: u64) {
            live(seed, &mut |look, due, saved| assert!(due.is_none() || look.reached > saved));
        }

        #[test]
        fn never_while_a_peer_catches_up(seed: u64) {
            live(seed, &mut |look, due, _| assert!(due.is_none() || !look.catching_up));
        }

        #[test]
        fn a_join_saves_only_a_log_longer_than_half_a_minute(seed: u64) {
            live(seed, &mut |look, due, saved| {
                let hot_us = RATE.due_micros(Tick(look.closed.ticks_since(saved)));
                assert!(due != Some(Trigger::Join) || look.joining && hot_us > 30_000_000);
            });
        }

        #[test]
        fn the_hot_log_is_bounded_by_time_and_by_ticks(seconds in 120..300u32, hot_ticks in 500..20_000u32) {
            let config = CompactionConfig {
                every_us: u64::from(seconds) * 1_000_000,
                hot_ticks,
                ..CompactionConfig::default()
            };
            let (mut compaction, bound) = (Compaction::new(config, Tick::ZERO), hot_ticks.min(seconds * 20));
            let mut saves = 0;
            for tick in (1..=30_000).map(Tick) {
                // The agreed tick is a little older than the closed one.
                let reached = Tick(tick.0.saturating_sub(5) / 30 * 30);
                let look = Look { reached, ..Look::at(Time::ZERO, RATE, tick) };
                if compaction.due(&look).is_some() {
                    compaction.on_saved(reached);
                    saves += 1;
                }
                prop_assert!(tick.ticks_since(compaction.saved()) <= bound);
            }
            prop_assert!(saves >= 30_000 / bound - 1 && saves <= 30_000 / (bound - 35));
        }

        #[test]
        fn the_end_is_saved_whatever_failed_before(seed: u64) {
            live(seed, &mut |look, due, saved| {
                if look.ending {
                    let may = !look.catching_up && look.reached > saved;
                    assert_eq!(due, may.then_some(Trigger::End));
                }
            });
        }
    }

    #[test]
    fn each_trigger_by_itself() {
        let compaction = Compaction::new(CompactionConfig::default(), Tick::ZERO);
        let look = |hz, closed| Look::at(Time::ZERO, TickRate::hz(hz), Tick(closed));
        assert_eq!(compaction.due(&look(60, 10_799)), None);
        assert_eq!(compaction.due(&look(60, 10_800)), Some(Trigger::Time));
        assert_eq!(compaction.due(&look(240, 20_000)), Some(Trigger::Ticks));
        let join = |closed| Look { joining: true, ..look(60, closed) };
        assert_eq!((compaction.due(&join(1_800)), compaction.due(&join(1_801))), (None, Some(Trigger::Join)));
        let end = |closed| Look { ending: true, ..look(60, closed) };
        assert_eq!((compaction.due(&end(299)), compaction.due(&end(300))), (None, Some(Trigger::End)));
    }

    #[test]
    fn a_failed_save_is_tried_again_later() {
        let mut compaction = Compaction::new(CompactionConfig::default(), Tick::ZERO);
        let at = |us| Look::at(Time::from_micros(us), RATE, Tick(5_000));
        compaction.on_failed(Time::ZERO);
        assert_eq!(compaction.due(&at(RETRY_US - 1)), None);
        assert_eq!(compaction.due(&at(RETRY_US)), Some(Trigger::Time));
        compaction.on_failed(Time::from_micros(RETRY_US));
        assert_eq!(compaction.due(&at(3 * RETRY_US - 1)), None);
        assert_eq!(compaction.due(&at(3 * RETRY_US)), Some(Trigger::Time));
        compaction.on_saved(Tick(5_000));
        assert_eq!(compaction.due(&at(3 * RETRY_US)), None);
    }
}
