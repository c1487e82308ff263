//! The feature "presence": players who join and leave, die and respawn, and their scores.

use sametick_sim::Inputs;

use crate::around::Around;
use crate::build::{Ask, NOBODY};
use crate::input::{Input, Walk};
use crate::kept::CHARACTERS;
use crate::movement::RADIUS;
use crate::setup::FIRST_BOT;
use crate::space::{At, Tile, UNIT, square, way};
use crate::state::{Arena, Event, Own, Person, Place};

/// The health of a new avatar.
pub const MAX_HEALTH: u8 = 100;

/// The time from death to the next life: two seconds.
pub const RESPAWN_TICKS: u8 = 60;

/// How long an avatar is invulnerable after a spawn, unless it shoots: three seconds.
pub const SHIELD_TICKS: u8 = 90;

/// How long after joining a player is a newcomer, whom bots spare: twenty seconds.
pub const NEWCOMER_TICKS: u16 = 600;

/// How much worse bots aim at a newcomer who shoots.
const NEWCOMER_HANDICAP: u8 = 4;

/// Bots aim worse at a player with fewer points than this in a round, and by how much.
const FEW_POINTS: u16 = 3;
const FEW_POINTS_HANDICAP: u8 = 2;

/// The most deaths of a player that make bots aim worse.
const MAX_PITY: u16 = 3;

/// The number of free places tried for a spawn; the one farthest from all players is taken.
const SPAWNS_TRIED: usize = 8;

/// Players further away than this do not influence the choice of a spawn.
const SPAWN_SIGHT: i32 = 16 * UNIT;

/// Applies the lasting parts of an input to its player.
pub(crate) fn hear(own: &mut Own, input: &Input) {
    (own.walk, own.aim, own.firing) = (input.walk.code(), input.aim, input.fire);
}

/// Counts down to the respawn. Returns whether it is due. The last tick of waiting lasts until there is a free place.
pub(crate) fn waits(own: &mut Own) -> bool {
    let due = own.respawn == 1;
    own.respawn = own.respawn.saturating_sub(1).max(u8::from(due));
    due
}

/// Counts down the wait for the round, or else the shield.
pub(crate) fn settle(own: &mut Own) {
    if own.frozen > 0 {
        own.frozen -= 1;
    } else {
        own.shield = own.shield.saturating_sub(1);
    }
}

impl Person {
    /// How much worse bots aim at this player: none if they spare the player.
    pub(crate) fn handicap(&self) -> Option<u8> {
        if self.is_bot() {
            return Some(0);
        }
        let is_newcomer = self.newcomer > 0;
        let new = if is_newcomer { NEWCOMER_HANDICAP } else { 0 };
        let few = if self.score < FEW_POINTS { FEW_POINTS_HANDICAP } else { 0 };
        let pity = self.deaths.saturating_sub(self.score).min(MAX_PITY) as u8;
        (self.fired || !is_newcomer).then_some(new.max(few).max(pity))
    }
}

impl Arena {
    /// Handles joins and inputs.
    pub(crate) fn sit_all(&mut self, inputs: &Inputs<Input>) {
        self.drop_absent(inputs);
        let seats = usize::from(self.rules.seats);
        for row in inputs.iter().filter(|row| row.seat.index() < seats) {
            let number = row.seat.index() as u16;
            if row.joined {
                self.leave(number);
            }
            let at = self.find(number).unwrap_or_else(|at| {
                self.enter(at, number);
                at
            });
            if let Some(input) = &row.input {
                self.take(at, input);
            }
        }
    }

    /// Applies a player's input of this tick.
    pub(crate) fn take(&mut self, at: usize, input: &Input) {
        let own = &mut self.people[at].own;
        hear(own, input);
        if let Some(action) = input.action {
            self.asks.push(Ask { place: input.place, number: own.number, action });
        }
    }

    /// Removes the players whose seats are empty.
    fn drop_absent(&mut self, inputs: &Inputs<Input>) {
        let mut rows = inputs.iter().peekable();
        let mut at = 0;
        while let Some(number) =
            self.people.get(at).map(|person| person.own.number).filter(|number| *number < FIRST_BOT)
        {
            while rows.next_if(|row| row.seat.index() < usize::from(number)).is_some() {}
            if rows.peek().is_some_and(|row| row.seat.index() == usize::from(number)) {
                at += 1;
            } else {
                self.leave(number);
            }
        }
    }

    /// Removes the players who leave after this tick.
    pub(crate) fn drop_left(&mut self, inputs: &Inputs<Input>) {
        for row in inputs.iter().filter(|row| row.left) {
            self.leave(row.seat.index() as u16);
        }
    }

    /// Adds a new player at this index.
    pub(crate) fn enter(&mut self, at: usize, number: u16) {
        let frozen = self.frozen_ticks();
        let own = Own { number, walk: Walk::STILL.code(), respawn: 1, frozen, ..Own::default() };
        for place in self.by_x.iter_mut().filter(|place| usize::from(place.index) >= at) {
            place.index += 1;
        }
        // Bots use all characters.
        let character = if number < FIRST_BOT { 0 } else { (usize::from(number) % CHARACTERS.len()) as u8 };
        let newcomer = if number < FIRST_BOT { NEWCOMER_TICKS } else { 0 };
        self.people.insert(at, Person { own, character, newcomer, ..Person::default() });
        self.by_x.insert(0, Place { x: 0, index: at as u16 });
        self.spawn(at);
        self.sort_by_x();
    }

    /// Removes a player. The player's structures stay.
    fn leave(&mut self, number: u16) {
        let Ok(at) = self.find(number) else { return };
        self.people.remove(at);
        self.by_x.retain(|place| usize::from(place.index) != at);
        for place in self.by_x.iter_mut().filter(|place| usize::from(place.index) > at) {
            place.index -= 1;
        }
        self.map.disown(number);
    }

    /// A player is killed.
    pub(crate) fn die(&mut self, at: usize, killer: u16) {
        let person = &mut self.people[at];
        let victim = person.own.number;
        person.own.respawn = RESPAWN_TICKS;
        person.plan = None;
        if self.won.is_none() {
            self.count(at, killer);
        }
        self.happened.push(Event::Killed { killer, victim });
    }

    /// Counts a death, and a point for the killer.
    fn count(&mut self, at: usize, killer: u16) {
        let person = &mut self.people[at];
        person.life.deaths = person.life.deaths.saturating_add(1);
        person.deaths = person.deaths.saturating_add(1);
        if let Ok(at) = self.find(killer) {
            let person = &mut self.people[at];
            person.score = person.score.saturating_add(1);
            person.life.kills = person.life.kills.saturating_add(1);
            let score = person.score;
            self.judge(killer, score);
        }
    }

    /// Counts down shields and newcomer times.
    pub(crate) fn settle_all(&mut self) {
        for person in &mut self.people {
            settle(&mut person.own);
            person.newcomer = person.newcomer.saturating_sub(1);
        }
    }

    /// Respawns the players who have waited long enough.
    pub(crate) fn respawn_all(&mut self) {
        for at in 0..self.people.len() {
            if waits(&mut self.people[at].own) && self.spawn(at) {
                self.sort_by_x();
                let Own { number, at, .. } = self.people[at].own;
                self.happened.push(Event::Respawned { number, at });
            }
        }
    }

    /// Spawns an avatar, if there is a free place. The order from left to right has to be restored after this.
    pub(crate) fn spawn(&mut self, at: usize) -> bool {
        let Some(place) = self.spawn_place() else { return false };
        let own = &mut self.people[at].own;
        own.at = place;
        (own.health, own.respawn, own.cooldown, own.shield) = (MAX_HEALTH, 0, 0, SHIELD_TICKS);
        true
    }

    /// Of some free places the one farthest from all players; any free one if random tries find none.
    fn spawn_place(&mut self) -> Option<At> {
        let last = i32::from(self.rules.size) - 1;
        let mut best: Option<(i64, At)> = None;
        for _ in 0..SPAWNS_TRIED {
            let (x, y) = (self.rng.between(0, last), self.rng.between(0, last));
            let Some(at) = self.free_place(x, y) else { continue };
            let room = self.room_at(at);
            if best.is_none_or(|(most, _)| room > most) {
                best = Some((room, at));
            }
        }
        let any = || (0..=last).find_map(|y| (0..=last).find_map(|x| self.free_place(x, y)));
        best.map(|(_, at)| at).or_else(any)
    }

    /// The centre of a tile, if it has no structure and no avatar.
    fn free_place(&self, x: i32, y: i32) -> Option<At> {
        let at = Tile::new(x, y).filter(|_| !self.is_solid(x, y))?.centre();
        let mut free = true;
        self.others(NOBODY, at, 2 * RADIUS, |_, _| free = false);
        free.then_some(at)
    }

    /// The squared distance to the nearest player.
    fn room_at(&self, at: At) -> i64 {
        let mut room = square([SPAWN_SIGHT, 0]);
        self.others(NOBODY, at, SPAWN_SIGHT, |_, other| room = room.min(square(way(at, other))));
        room
    }
}
