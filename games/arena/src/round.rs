//! Rounds: the points to win, the winner, and the start of the next round.
//!
//! A round is over when a player has the points. With [`Setup::rounds`](crate::Setup::rounds) the winner is shown for a
//! while; then points are cleared, all players respawn elsewhere, and cannot move until the countdown is over. Without
//! it the game is over.

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::state::{Arena, Event, Own};
use crate::step::RATE;

/// How long the winner is shown: six seconds.
pub const WON_TICKS: u8 = 180;

/// From the beginning of a round until players can move or shoot: three seconds.
pub const START_TICKS: u8 = 90;

/// The state of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Round {
    /// Its number, from 1 on.
    pub number: u16,
    /// The remaining ticks of showing the winner, or of the countdown. Zero while it is played.
    pub ticks: u8,
}

impl Round {
    /// The first round begins at once: each player who joins has a shield.
    pub(crate) const FIRST: Round = Round { number: 1, ticks: 0 };

    pub(crate) const fn fits(&self) -> bool {
        self.number > 0 && self.ticks <= WON_TICKS
    }

    /// The remaining wait, in seconds, rounded up.
    pub(crate) const fn wait_seconds(&self) -> u8 {
        self.ticks.div_ceil(RATE.per_second() as u8)
    }
}

impl Arena {
    /// How long a player who joins now cannot move.
    pub(crate) fn frozen_ticks(&self) -> u8 {
        if self.won.is_none() { self.round.ticks.min(START_TICKS) } else { 0 }
    }

    /// Ends the round if a player with this score has won.
    pub(crate) fn judge(&mut self, number: u16, score: u16) {
        let points = self.rules.points;
        if points > 0 && score >= points {
            self.won = Some(number);
            self.round.ticks = if self.rules.rounds { WON_TICKS } else { 0 };
            self.happened.push(Event::RoundWon { winner: number, round: self.round.number });
        }
    }

    /// Counts down the wait.
    pub(crate) fn go_on(&mut self) {
        let is_due = self.round.ticks == 1 && self.won.is_some();
        self.round.ticks = self.round.ticks.saturating_sub(1);
        if is_due {
            self.begin_round();
        }
    }

    /// All players respawn, far from each other. Structures and the records of characters stay.
    fn begin_round(&mut self) {
        (self.won, self.round) =
            (None, Round { number: self.round.number.saturating_add(1), ticks: START_TICKS });
        self.shots.clear();
        self.happened.push(Event::RoundBegan { round: self.round.number });
        for person in &mut self.people {
            (person.score, person.deaths, person.plan) = (0, 0, None);
            // Players who respawn later do not block the places.
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
