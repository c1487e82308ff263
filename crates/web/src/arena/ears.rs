//! What there is to hear of arena, and who shot whom.

use std::collections::VecDeque;

use sametick_arena::{Event, Own};
use sametick_sim::Seat;

/// An own shot.
pub const SHOT: u32 = 1;
/// Was hit.
pub const HURT: u32 = 2;
/// Has hit somebody.
pub const HIT: u32 = 4;
/// Has shot somebody dead.
pub const KILL: u32 = 8;
/// Was shot dead.
pub const DEATH: u32 = 16;
/// Something was built.
pub const BUILT: u32 = 32;
/// Something fell or was taken away.
pub const FELL: u32 = 64;
/// Lives again.
pub const ALIVE: u32 = 128;
/// Somebody else's shot.
pub const SHOT_AT: u32 = 256;

/// So many are told of at most, for so long.
const FEED: usize = 6;
const FEED_MS: u64 = 8_000;

/// Someone was shot dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    pub killer: Option<u16>,
    pub victim: u16,
    pub at_ms: u64,
}

/// What was known when one listened last.
#[derive(Default)]
pub struct Ears {
    own: Option<Own>,
    /// Number, score and deaths of everybody.
    tallies: Vec<(u16, u16, u16)>,
    /// The newest first.
    feed: VecDeque<Kill>,
    now_ms: u64,
}

impl Ears {
    /// What happened to oneself since, as far as it shows there: it is predicted, and so heard at once.
    pub fn feel(&mut self, own: Option<Own>) -> u32 {
        let (Some(was), Some(is)) = (core::mem::replace(&mut self.own, own), own) else { return 0 };
        let bit = |happened: bool, bit: u32| if happened { bit } else { 0 };
        bit(is.cooldown > was.cooldown, SHOT)
            | bit(is.health < was.health, HURT)
            | bit(was.is_alive() && !is.is_alive(), DEATH)
            | bit(!was.is_alive() && is.is_alive(), ALIVE)
    }

    /// Who has shot whom since, from what everybody has scored.
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

    /// Who has shot whom lately, and how many seconds ago.
    pub fn feed(&self) -> impl Iterator<Item = (Kill, u64)> {
        self.feed.iter().map(|kill| (*kill, self.now_ms.saturating_sub(kill.at_ms) / 1_000))
    }
}

/// What an event is heard as; what happens to oneself is felt without it.
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
