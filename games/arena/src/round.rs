//! Rounds: what is fought for, who has won, and how the next one begins.
//!
//! A round is over when a player has the points. With [`Setup::rounds`](crate::Setup::rounds) everyone sees for a while who has won;
//! then points are cleared, everyone begins elsewhere, and nobody moves until the countdown is over. Without it the game is over.

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::state::{Arena, Event, Own};
use crate::step::RATE;

/// For how long everyone sees who has won: six seconds.
pub const WON_TICKS: u8 = 180;

/// From the beginning of a round until somebody can move or shoot: three seconds.
pub const START_TICKS: u8 = 90;

/// Which round it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Round {
    /// From 1 on.
    pub number: u16,
    /// How many ticks are left of what it waits for: of showing who has won, or of the countdown. None while it is fought.
    pub ticks: u8,
}

impl Round {
    /// The first one begins at once: each player who comes has a shield.
    pub(crate) const FIRST: Round = Round { number: 1, ticks: 0 };

    pub(crate) const fn fits(&self) -> bool {
        self.number > 0 && self.ticks <= WON_TICKS
    }

    /// How long it still waits, in seconds begun.
    pub(crate) const fn wait_seconds(&self) -> u8 {
        self.ticks.div_ceil(RATE.per_second() as u8)
    }
}

impl Arena {
    /// For how long somebody who comes now cannot move.
    pub(crate) fn frozen_ticks(&self) -> u8 {
        if self.won.is_none() { self.round.ticks.min(START_TICKS) } else { 0 }
    }

    /// Whether a player with so many points has won.
    pub(crate) fn judge(&mut self, number: u16, score: u16) {
        let points = self.rules.points;
        if points > 0 && score >= points {
            self.won = Some(number);
            self.round.ticks = if self.rules.rounds { WON_TICKS } else { 0 };
            self.happened.push(Event::RoundWon { winner: number, round: self.round.number });
        }
    }

    /// Another tick of what the round waits for.
    pub(crate) fn go_on(&mut self) {
        let is_due = self.round.ticks == 1 && self.won.is_some();
        self.round.ticks = self.round.ticks.saturating_sub(1);
        if is_due {
            self.begin_round();
        }
    }

    /// Everyone begins again, far from each other. What was built stays, and so does what characters have done.
    fn begin_round(&mut self) {
        (self.won, self.round) =
            (None, Round { number: self.round.number.saturating_add(1), ticks: START_TICKS });
        self.shots.clear();
        self.happened.push(Event::RoundBegan { round: self.round.number });
        for person in &mut self.people {
            (person.score, person.deaths, person.plan) = (0, 0, None);
            // Nobody is in the way of those who begin before them.
            (person.own.health, person.own.respawn, person.own.frozen) = (0, 1, START_TICKS);
        }
        for at in 0..self.people.len() {
            if self.spawn(at) {
                self.sort_by_x();
                let Own { number, at, .. } = self.people[at].own;
                self.happened.push(Event::Respawned { number, at });
            }
        }
    }
}
