//! Sound events of arena, and its kill feed.

use std::collections::VecDeque;

use sametick_arena::{Event, Own};
use sametick_sim::Seat;

/// The player has shot.
pub const SHOT: u32 = 1;
/// The player was hit.
pub const HURT: u32 = 2;
/// The player has hit another one.
pub const HIT: u32 = 4;
/// The player has killed another one.
pub const KILL: u32 = 8;
/// The player was killed.
pub const DEATH: u32 = 16;
/// Something was built.
pub const BUILT: u32 = 32;
/// Something was destroyed or removed.
pub const FELL: u32 = 64;
/// The player has respawned.
pub const ALIVE: u32 = 128;
/// Another player has shot.
pub const SHOT_AT: u32 = 256;

/// The most kills in the feed, and for how long they are shown.
const FEED: usize = 6;
const FEED_MS: u64 = 8_000;

/// A kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    pub killer: Option<u16>,
    pub victim: u16,
    pub at_ms: u64,
}

/// The state at the last call.
#[derive(Default)]
pub struct Ears {
    own: Option<Own>,
    /// Number, score and deaths of every player.
    tallies: Vec<(u16, u16, u16)>,
    /// The newest first.
    feed: VecDeque<Kill>,
    now_ms: u64,
}

impl Ears {
    /// The events of the own player since the last call, as far as they are predicted, and so heard at once.
    pub fn feel(&mut self, own: Option<Own>) -> u32 {
        let (Some(was), Some(is)) = (core::mem::replace(&mut self.own, own), own) else { return 0 };
        let bit = |happened: bool, bit: u32| if happened { bit } else { 0 };
        bit(is.cooldown > was.cooldown, SHOT)
            | bit(is.health < was.health, HURT)
            | bit(was.is_alive() && !is.is_alive(), DEATH)
            | bit(!was.is_alive() && is.is_alive(), ALIVE)
    }

    /// The kills since the last call, derived from the scores.
    pub fn count(
        &mut self,
        now_ms: u64,
        seat: Option<Seat>,
        tallies: impl Iterator<Item = (u16, u16, u16)>,
    ) -> u32 {
        let now: Vec<_> = tallies.collect();
        let (mut killers, mut victims) = (Vec::new(), Vec::new());
        for (number, score, deaths) in &now {
            let Some((_, before, died)) = self.tallies.iter().find(|(other, ..)| other == number) else {
                continue;
            };
            killers.extend((*before..*score).map(|_| *number));
            victims.extend((*died..*deaths).map(|_| *number));
        }
        let mut bits = 0;
        for killer in &killers {
            bits |= if seat.is_some_and(|seat| seat.0 == *killer) { KILL } else { 0 };
        }
        for (index, victim) in victims.into_iter().enumerate() {
            self.feed.push_front(Kill { killer: killers.get(index).copied(), victim, at_ms: now_ms });
        }
        self.feed.truncate(FEED);
        self.feed.retain(|kill| now_ms.saturating_sub(kill.at_ms) < FEED_MS);
        (self.tallies, self.now_ms) = (now, now_ms);
        bits
    }

    /// The recent kills, with their age in seconds.
    pub fn feed(&self) -> impl Iterator<Item = (Kill, u64)> {
        self.feed.iter().map(|kill| (*kill, self.now_ms.saturating_sub(kill.at_ms) / 1_000))
    }
}

/// The sound bit of an event; events of the own player come from prediction instead.
pub fn bit(event: &Event, seat: Option<Seat>) -> u32 {
    let mine = |number: u16| seat.is_some_and(|seat| seat.0 == number);
    match event {
        Event::Shot { by, .. } if !mine(*by) => SHOT_AT,
        Event::Hit { by, victim: Some(_), .. } if mine(*by) => HIT,
        Event::Built { .. } => BUILT,
        Event::Destroyed { .. } => FELL,
        _ => 0,
    }
}
