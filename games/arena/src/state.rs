//! The state of a session of arena. The fields are public for reading; only a step should change them.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use postcard_schema::Schema;
use sametick_sim::replica::Entity;
use sametick_sim::{Rng, Seat, Tick};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::build::{Ask, BUILD_TICKS, Denied, Kind, MAX_BUILT, Plan};
use crate::input::Walk;
use crate::kept::{CHARACTERS, Life};
use crate::map::Map;
use crate::presence::{MAX_HEALTH, NEWCOMER_TICKS, RESPAWN_TICKS, SHIELD_TICKS};
use crate::projectile::{FIRE_TICKS, MAX_SHOTS, SHOT_TICKS, Shot};
use crate::round::{Round, START_TICKS};
use crate::setup::{FIRST_BOT, Rules};
use crate::space::{At, MAX_SIZE, Tile, UNIT};

/// The state of a session of arena.
///
/// A deserialised state has been checked: whatever its source, stepping it does not panic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(remote = "Self")]
pub struct Arena {
    /// The number of steps so far.
    pub tick: Tick,
    /// The rules.
    pub rules: Rules,
    /// The number of the winner of this round.
    pub won: Option<u16>,
    /// The state of the round.
    pub round: Round,
    /// All players, in the order of their numbers: those on seats, then bots.
    pub people: Vec<Person>,
    /// Their order from left to right, so that neighbours are found without comparing all pairs.
    pub by_x: Vec<Place>,
    /// The structures of the map.
    pub map: Map,
    /// The shots, the oldest first.
    pub shots: Vec<Shot>,
    /// The number of the last shot.
    pub next_shot: u32,
    /// The build requests of the last step.
    pub asks: Vec<Ask>,
    /// The events of the last step.
    pub happened: Vec<Event>,
    /// The source of all randomness.
    pub rng: Rng,
}

/// A player or a bot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Person {
    /// The state that the client predicts.
    pub own: Own,
    /// The push by others in this step.
    pub push: At,
    /// The planned structure.
    pub plan: Option<Plan>,
    /// The number of kills.
    pub score: u16,
    /// The number of deaths.
    pub deaths: u16,
    /// The index of the character among [`CHARACTERS`](crate::kept::CHARACTERS).
    pub character: u8,
    /// The record of that character, in all rooms.
    pub life: Life,
    /// The remaining ticks in which the player is a newcomer, whom bots spare.
    pub newcomer: u16,
    /// Whether the player has fired a shot since joining: bots defend themselves.
    pub fired: bool,
}

/// The part of a player's state that depends only on the player's own inputs: the client predicts it with the code of
/// the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Entity)]
#[entity(name = "own", feature = "movement")]
pub struct Own {
    /// The number of the player: that of the seat, or of the bot.
    pub number: u16,
    /// The position of the avatar.
    #[entity(place)]
    pub at: At,
    /// Its aim.
    #[entity(turn = 256)]
    pub aim: u8,
    /// Its walking direction: the code of a [`Walk`].
    pub walk: u8,
    /// Whether the trigger is held.
    pub firing: bool,
    /// The ticks until it may fire again.
    pub cooldown: u8,
    /// Its remaining health; zero while it is dead.
    pub health: u8,
    /// The ticks until it respawns; zero while it is alive.
    pub respawn: u8,
    /// The number of its structures.
    pub built: u8,
    /// The ticks until it may build or remove again.
    pub busy: u8,
    /// The tile of its last building action.
    pub touched: [i16; 2],
    /// Whether that action was a removal.
    pub removed: bool,
    /// The remaining ticks of invulnerability; a shot of its own ends it.
    pub shield: u8,
    /// The ticks until the round begins: until then it neither walks nor shoots nor builds.
    pub frozen: u8,
}

/// A player's place in the order from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Schema)]
pub struct Place {
    /// The x coordinate.
    pub x: i32,
    /// The index in [`Arena::people`].
    pub index: u16,
}

/// Something to hear or see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A shot was fired.
    Shot {
        /// The player who fired.
        by: u16,
        /// The position of the player.
        at: At,
        /// The direction.
        aim: u8,
    },
    /// A shot hit something.
    Hit {
        /// The player who fired.
        by: u16,
        /// The position of the hit.
        at: At,
        /// The player who was hit, if any.
        victim: Option<u16>,
    },
    /// A player was killed.
    Killed {
        /// The player who fired.
        killer: u16,
        /// The player who was killed.
        victim: u16,
    },
    /// Something was built.
    Built {
        /// The builder.
        by: u16,
        /// The tile.
        tile: Tile,
        /// The kind.
        kind: Kind,
    },
    /// A structure was destroyed or removed.
    Destroyed {
        /// The tile.
        tile: Tile,
        /// The kind.
        kind: Kind,
    },
    /// A request was denied.
    Refused {
        /// The player.
        by: u16,
        /// The tile.
        tile: Tile,
        /// The reason.
        why: Denied,
    },
    /// A player lives again.
    Respawned {
        /// The player.
        number: u16,
        /// The position.
        at: At,
    },
    /// A player has won the round.
    RoundWon {
        /// The winner.
        winner: u16,
        /// The number of the round.
        round: u16,
    },
    /// Another round begins: the points are cleared, and all players respawn elsewhere.
    RoundBegan {
        /// The number of the round.
        round: u16,
    },
}

impl Own {
    /// Whether it is alive.
    pub const fn is_alive(&self) -> bool {
        self.respawn == 0
    }

    /// Whether it is invulnerable.
    pub const fn is_shielded(&self) -> bool {
        self.is_alive() && self.shield > 0
    }

    /// The same, clamped to the map: it may come from untrusted data.
    pub(crate) fn inside(self) -> Own {
        Own { at: self.at.map(|part| part.clamp(0, i32::from(MAX_SIZE) * UNIT)), ..self }
    }

    fn fits(&self, size: u16) -> bool {
        let end = i32::from(size) * UNIT;
        self.at.iter().all(|part| (0..=end).contains(part))
            && self.cooldown <= FIRE_TICKS
            && self.health <= MAX_HEALTH
            && (self.health > 0) == self.is_alive()
            && self.respawn <= RESPAWN_TICKS
            && self.built <= MAX_BUILT
            && self.busy <= BUILD_TICKS
            && self.shield <= SHIELD_TICKS
            && self.frozen <= START_TICKS
            && Walk::try_from(self.walk).is_ok()
    }
}

impl Person {
    /// Whether it is played by a bot.
    pub const fn is_bot(&self) -> bool {
        self.own.number >= FIRST_BOT
    }
}

impl Arena {
    /// The player with this number: that of a seat, or [`FIRST_BOT`] and more for bots.
    pub fn person(&self, number: u16) -> Option<&Person> {
        self.people.get(self.find(number).ok()?)
    }

    /// The player on a seat.
    pub fn at_seat(&self, seat: Seat) -> Option<&Person> {
        self.person(seat.index() as u16)
    }

    pub(crate) fn find(&self, number: u16) -> Result<usize, usize> {
        self.people.binary_search_by_key(&number, |person| person.own.number)
    }

    /// Checks that all values are within the bounds that a step keeps.
    pub fn check(&self) -> Result<(), BadState> {
        let checks = [
            (self.rules.are_in_range(), BadState::Rules),
            (self.round.fits(), BadState::Round),
            (self.map.size() == self.rules.size && self.map.is_sound(), BadState::Map),
            (self.people_fit(), BadState::People),
            (self.places_fit(), BadState::Places),
            (self.shots_fit(), BadState::Shots),
        ];
        checks.into_iter().find(|(fits, _)| !fits).map_or(Ok(()), |(_, bad)| Err(bad))
    }

    fn people_fit(&self) -> bool {
        let Rules { size, bots, seats, .. } = self.rules;
        let known =
            |number: u16| number < seats || (FIRST_BOT..FIRST_BOT + u16::from(bots)).contains(&number);
        let plan = |plan: &Plan| plan.ticks > 0 && plan.ticks <= crate::build::PREVIEW_TICKS;
        self.people.is_sorted_by(|a, b| a.own.number < b.own.number)
            && self.people.iter().all(|person| {
                known(person.own.number)
                    && person.own.fits(size)
                    && person.plan.as_ref().is_none_or(plan)
                    && usize::from(person.character) < CHARACTERS.len()
                    && person.newcomer <= NEWCOMER_TICKS
            })
    }

    /// Whether the order has each player once, at its position.
    fn places_fit(&self) -> bool {
        let mut seen = vec![false; self.people.len()];
        let fits = |place: &Place| {
            let seen = seen.get_mut(usize::from(place.index)).map(|seen| core::mem::replace(seen, true));
            let person = self.people.get(usize::from(place.index));
            seen == Some(false) && person.is_some_and(|person| person.own.at[0] == place.x)
        };
        self.by_x.len() == self.people.len() && self.by_x.is_sorted() && self.by_x.iter().all(fits)
    }

    fn shots_fit(&self) -> bool {
        let end = i32::from(self.rules.size) * UNIT;
        let fits = |shot: &Shot| {
            shot.at.iter().all(|part| (0..=end).contains(part))
                && (1..=SHOT_TICKS).contains(&shot.ticks)
                && shot.id <= self.next_shot
        };
        let in_order = self.shots.is_sorted_by(|a, b| a.id < b.id);
        self.shots.len() <= MAX_SHOTS && in_order && self.shots.iter().all(fits)
    }
}

impl Serialize for Arena {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // `remote = "Self"` makes the derived code a function of the type, so that reading can check afterwards.
        Arena::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Arena {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arena, D::Error> {
        let arena = Arena::deserialize(deserializer)?;
        arena.check().map_err(de::Error::custom)?;
        Ok(arena)
    }
}

/// Why a state is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadState {
    /// The size or the number of seats is out of range.
    Rules,
    /// The wait of the round is too long.
    Round,
    /// A structure is invalid, or the bits do not match the structures.
    Map,
    /// A player is invalid.
    People,
    /// The order from left to right is wrong.
    Places,
    /// A shot is outside, or too old.
    Shots,
}

impl fmt::Display for BadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadState::Rules => "the size of the map or the number of seats is out of range",
            BadState::Round => "the round waits for longer than any round does",
            BadState::Map => "the map and what stands on it do not fit together",
            BadState::People => "a player is invalid, or in an impossible state",
            BadState::Places => "the order of players from left to right is wrong",
            BadState::Shots => "a shot is outside the map, or too old, or out of order",
        })
    }
}

impl core::error::Error for BadState {}
