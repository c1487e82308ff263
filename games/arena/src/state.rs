//! Everything that matters in a session of arena. The fields are open to look at; only a step should change them.

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
/// Read from bytes, it is a state that some game could be in, as far as a step cares: from whomever it comes, stepping
/// it does not panic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(remote = "Self")]
pub struct Arena {
    /// How many steps there have been.
    pub tick: Tick,
    /// What is played.
    pub rules: Rules,
    /// The number of the player who has won this round.
    pub won: Option<u16>,
    /// Which round it is, and what it waits for.
    pub round: Round,
    /// Who is there, in the order of their numbers: those on seats, then bots.
    pub people: Vec<Person>,
    /// Where they are from left to right, so that neighbours are found without asking everyone.
    pub by_x: Vec<Place>,
    /// What stands where.
    pub map: Map,
    /// What flies, the oldest first.
    pub shots: Vec<Shot>,
    /// The number of the last shot.
    pub next_shot: u32,
    /// What was asked for in the last step.
    pub asks: Vec<Ask>,
    /// What happened in the last step.
    pub happened: Vec<Event>,
    /// All randomness there is.
    pub rng: Rng,
}

/// Someone who plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Person {
    /// What their own screen predicts.
    pub own: Own,
    /// How others push them in this step.
    pub push: At,
    /// What they might build.
    pub plan: Option<Plan>,
    /// How many they have shot.
    pub score: u16,
    /// How often they were shot.
    pub deaths: u16,
    /// Who they are, among [`CHARACTERS`](crate::kept::CHARACTERS).
    pub character: u8,
    /// What that character has done, here and elsewhere.
    pub life: Life,
    /// For how many more ticks the player is a newcomer, whom bots spare.
    pub newcomer: u16,
    /// Whether the player has fired a shot since joining: bots defend themselves.
    pub fired: bool,
}

/// All of a player that is decided by what they do themselves: a screen predicts it with the code of the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Entity)]
#[entity(name = "own", feature = "movement")]
pub struct Own {
    /// The number of the player: that of the seat, or of the bot.
    pub number: u16,
    /// Where the avatar is.
    #[entity(place)]
    pub at: At,
    /// Where it looks.
    #[entity(turn = 256)]
    pub aim: u8,
    /// Where it walks: the code of a [`Walk`].
    pub walk: u8,
    /// Whether the trigger is held.
    pub firing: bool,
    /// In how many ticks it may fire again.
    pub cooldown: u8,
    /// What is left of it; nothing while it is dead.
    pub health: u8,
    /// In how many ticks it lives again; zero while it is alive.
    pub respawn: u8,
    /// How many structures it has.
    pub built: u8,
    /// In how many ticks it may build or take away again.
    pub busy: u8,
    /// Where it did so last.
    pub touched: [i16; 2],
    /// Whether it took away then.
    pub removed: bool,
    /// For how many more ticks nothing hurts it; a shot of its own ends that.
    pub shield: u8,
    /// In how many ticks the round begins: until then it neither walks nor shoots nor builds.
    pub frozen: u8,
}

/// Where someone is from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Schema)]
pub struct Place {
    /// How far from the left.
    pub x: i32,
    /// Who, among [`Arena::people`].
    pub index: u16,
}

/// Something to hear or see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A shot was fired.
    Shot {
        /// Who fired.
        by: u16,
        /// From where.
        at: At,
        /// In which direction.
        aim: u8,
    },
    /// A shot met something.
    Hit {
        /// Who fired.
        by: u16,
        /// Where it met.
        at: At,
        /// Whom, if it was somebody.
        victim: Option<u16>,
    },
    /// Someone was shot dead.
    Killed {
        /// By whom.
        killer: u16,
        /// Who.
        victim: u16,
    },
    /// Something was built.
    Built {
        /// By whom.
        by: u16,
        /// Where.
        tile: Tile,
        /// What.
        kind: Kind,
    },
    /// Something was shot down or taken away.
    Destroyed {
        /// Where.
        tile: Tile,
        /// What.
        kind: Kind,
    },
    /// Something was not built or taken away.
    Refused {
        /// Who asked for it.
        by: u16,
        /// Where.
        tile: Tile,
        /// Why not.
        why: Denied,
    },
    /// Someone lives again.
    Respawned {
        /// Who.
        number: u16,
        /// Where.
        at: At,
    },
    /// A player has the points.
    RoundWon {
        /// Who.
        winner: u16,
        /// Which round this was.
        round: u16,
    },
    /// Another round: the points are cleared, and everyone begins elsewhere.
    RoundBegan {
        /// Which.
        round: u16,
    },
}

impl Own {
    /// Whether it is alive.
    pub const fn is_alive(&self) -> bool {
        self.respawn == 0
    }

    /// Whether nothing hurts it.
    pub const fn is_shielded(&self) -> bool {
        self.is_alive() && self.shield > 0
    }

    /// The same on a map: whoever tells it could say anything.
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
    /// Whoever has a number: that of a seat, or [`FIRST_BOT`] and more for bots.
    pub fn person(&self, number: u16) -> Option<&Person> {
        self.people.get(self.find(number).ok()?)
    }

    /// Whoever sits on a seat.
    pub fn at_seat(&self, seat: Seat) -> Option<&Person> {
        self.person(seat.index() as u16)
    }

    pub(crate) fn find(&self, number: u16) -> Result<usize, usize> {
        self.people.binary_search_by_key(&number, |person| person.own.number)
    }

    /// Whether everything is within the bounds in which a step keeps it.
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

    /// Everyone is there once, where they are.
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

/// Why a state is none that a game could be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadState {
    /// The size or the number of seats is out of range.
    Rules,
    /// The round waits for longer than any does.
    Round,
    /// Something stands where nothing can, or the bits say otherwise.
    Map,
    /// Someone is there who cannot be, or in a way they cannot be.
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
            BadState::People => "someone is there who cannot be, or in a way they cannot be",
            BadState::Places => "the order of players from left to right is wrong",
            BadState::Shots => "a shot is outside the map, or too old, or out of order",
        })
    }
}

impl core::error::Error for BadState {}
