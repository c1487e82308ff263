//! The replicated entities of arena, and its `Hosted` implementation.
//!
//! Distances are in units, of which a tile has 256: 6144 are 24 tiles, and 12288 are 48.

use alloc::vec::Vec;

use sametick_sim::replica::{
    self, Audience, Entity, Events, Hosted, Parts, PredictionError, Promise, Scene, ViewId,
};
use sametick_sim::{Seat, TickRate};

use crate::around::Known;
use crate::build::{self, may_place};
use crate::command::{self, Command};
use crate::input::{Input, Walk};
use crate::movement::{self, SPEED};
use crate::presence;
use crate::projectile;
use crate::setup::{FIRST_BOT, Rules};
use crate::space::{At, UNIT, square, way};
use crate::state::{Arena, Event, Own, Person};
use crate::step::RATE;

/// Rooms with up to this many seats show all players to all others; larger ones only those nearby.
pub const MAX_KNOWN_SEATS: u16 = 64;

/// How far sounds are heard: up to the near zone.
const EARSHOT: f32 = 24.0 * UNIT as f32;

/// A prediction error larger than this is corrected at once.
const SNAP: i64 = 3 * UNIT as i64 / 2;

/// The map as a whole. There is one, with the number 0.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "presence")]
pub struct Ground {
    /// The number of tiles per side.
    pub size: u16,
    /// The score that wins; zero if the game has no end.
    pub points: u16,
    /// The number of the winner of this round, until the next one.
    pub won: Option<u16>,
    /// The number of the round, from 1 on.
    pub round: u16,
    /// The seconds until a round begins; zero during a round, and after the last.
    pub wait: u8,
}

/// A player, alive or dead. Its number is that of the seat, or of the bot.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "presence", zone(far within 12288.0 at 10 hz))]
pub struct Player {
    /// The number of kills.
    pub score: u16,
    /// The number of deaths.
    pub deaths: u16,
    /// Whether the player has an avatar now.
    pub alive: bool,
    /// Whether it is a bot.
    pub bot: bool,
    /// The index of the character among [`CHARACTERS`](crate::kept::CHARACTERS).
    pub character: u8,
}

/// The avatar of a living player. Its number is the player's.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "movement", zone(near within 6144.0 at 10 hz), zone(far within 12288.0 at 2 hz))]
pub struct Avatar {
    /// Its position.
    #[entity(place)]
    pub at: At,
    /// Its aim, in 256 directions, clockwise from the right.
    #[entity(turn = 256)]
    pub aim: u8,
    /// Its remaining health.
    #[entity(zones = "near")]
    pub health: u8,
    /// Whether it is invulnerable now.
    #[entity(zones = "near")]
    pub shielded: bool,
}

/// A structure on a tile.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "build", zone(far within 12288.0 at 10 hz))]
pub struct Structure {
    /// Its column and row.
    pub tile: [i16; 2],
    /// The code of its [`Kind`](build::Kind).
    pub kind: u8,
    /// Its remaining health.
    pub health: u8,
    /// The number of the player who built it, or [`NOBODY`](build::NOBODY).
    pub owner: u16,
}

/// A player's planned structure. Its number is the player's.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "build", zone(near within 6144.0 at 10 hz))]
pub struct Preview {
    /// Its column and row.
    pub tile: [i16; 2],
    /// The code of its [`Kind`](build::Kind).
    pub kind: u8,
    /// Whether it could be built now.
    pub ok: bool,
}

/// A shot in the air.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "projectile", zone(near within 6144.0 at 10 hz))]
pub struct Projectile {
    /// Its position.
    #[entity(place)]
    pub at: At,
    /// Its direction.
    #[entity(turn = 256)]
    pub aim: u8,
    /// The number of the player who fired it.
    pub owner: u16,
}

impl Hosted for Arena {
    const KINDS: &'static [replica::Kind] =
        &[Ground::KIND, Player::KIND, Avatar::KIND, Structure::KIND, Preview::KIND, Projectile::KIND];
    const UPDATES: TickRate = TickRate::hz(10);
    const CHARACTERS: &'static [&'static str] = crate::kept::CHARACTERS;

    type Own = Own;
    type Event = Event;
    type Command = Command;

    /// The avatar's position, also while it waits to respawn. A spectator looks from the middle of the map.
    fn eye(&self, view: ViewId) -> Option<[f32; 3]> {
        let middle = i32::from(self.rules.size) * UNIT / 2;
        Some(place_of(self.person(view.0).map_or([middle; 2], |person| person.own.at)))
    }

    fn show(&self, scene: &mut Scene) {
        let Rules { size, points, .. } = self.rules;
        let (round, wait) = (self.round.number, self.round.wait_seconds());
        scene.put(0, None, &Ground { size, points, won: self.won, round, wait });
        for person in &self.people {
            self.show_person(person, scene);
        }
        for block in self.map.blocks() {
            let structure = Structure {
                tile: block.tile.pair(),
                kind: block.kind.code(),
                health: block.health,
                owner: block.owner,
            };
            let place = place_of(block.tile.centre());
            scene.put_at(block.tile.number(), view_of(block.owner), Some(place), &structure);
        }
        for shot in &self.shots {
            let projectile = Projectile { at: shot.at, aim: shot.aim, owner: shot.owner };
            scene.put(shot.id, view_of(shot.owner), &projectile);
        }
    }

    fn own(&self, view: ViewId) -> Option<Own> {
        self.person(view.0).map(|person| person.own)
    }

    fn predict(own: &mut Own, input: &Input, around: &Scene) {
        *own = own.inside();
        let known = Known::new(own, around);
        presence::hear(own, input);
        let motion = movement::motion(own, &known);
        movement::go(own, motion, &known);
        build::rest(own);
        if let Some(action) = input.action {
            build::predict(own, action, &known);
        }
        projectile::fires(own);
        presence::settle(own);
        presence::waits(own);
    }

    fn prediction_error(predicted: &Own, right: &Own) -> PredictionError {
        let far = square(way(predicted.at, right.at));
        // A respawned avatar does not blend over from where it died.
        let is_same_life = predicted.is_alive() && right.is_alive();
        let snaps = far > SNAP * SNAP || predicted.is_alive() != right.is_alive();
        let walks = is_same_life && right.frozen == 0 && !Walk::of_code(right.walk).is_still();
        let speed = if walks { SPEED * RATE.per_second() as i32 } else { 0 };
        PredictionError { distance: sametick_sim::maths::sqrt(far as f32), speed: speed as f32, snaps }
    }

    fn events(&self, events: &mut Events<Event>) {
        for event in &self.happened {
            let near = |at: At| (Audience::Near(place_of(at), EARSHOT), Promise::Lossy);
            let (audience, promise) = match event {
                Event::Shot { at, .. } | Event::Hit { at, .. } => near(*at),
                Event::Built { tile, .. } | Event::Destroyed { tile, .. } => near(tile.centre()),
                Event::Killed { .. } | Event::RoundWon { .. } | Event::RoundBegan { .. } => {
                    (Audience::Everyone, Promise::Reliable)
                }
                Event::Refused { by: number, .. } | Event::Respawned { number, .. } => {
                    (Audience::View(ViewId(*number)), Promise::Lossy)
                }
            };
            events.tell(audience, promise, *event);
        }
    }

    fn merge(earlier: &Input, later: &Input) -> Input {
        later.after(earlier)
    }

    fn order(input: &mut Input, place: u16) {
        input.place = place;
    }

    fn keep(&self, seat: Seat, out: &mut Vec<u8>) {
        self.keep_person(seat, out);
    }

    fn keep_character(&self, seat: Seat, out: &mut Vec<u8>) {
        self.keep_life(seat, out);
    }

    fn keep_parts(&self, parts: &mut Parts) {
        self.keep_blocks(parts);
    }

    fn command(held: &Input, command: Command, inputs: &mut Vec<Input>) {
        command::carry_out(held, command, inputs);
    }
}

impl Arena {
    fn show_person(&self, person: &Person, scene: &mut Scene) {
        let Person { own, plan, score, deaths, character, .. } = *person;
        let (id, owner, place) = (u32::from(own.number), view_of(own.number), place_of(own.at));
        let player = Player { score, deaths, alive: own.is_alive(), bot: person.is_bot(), character };
        let seen_from = (self.rules.seats > MAX_KNOWN_SEATS).then_some(place);
        scene.put_at(id, owner, seen_from, &player);
        if own.is_alive() {
            let Own { at, aim, health, .. } = own;
            let avatar = Avatar { at, aim, health, shielded: own.is_shielded() };
            scene.put_at(id, owner, Some(place), &avatar);
        }
        if let Some(plan) = plan {
            let ok = may_place(&own, plan.tile, plan.kind, self).is_ok();
            let preview = Preview { tile: plan.tile.pair(), kind: plan.kind.code(), ok };
            scene.put_at(id, owner, Some(place_of(plan.tile.centre())), &preview);
        }
    }
}

fn place_of([x, y]: At) -> [f32; 3] {
    [x as f32, y as f32, 0.0]
}

/// The view of a player; none for bots.
fn view_of(number: u16) -> Option<ViewId> {
    (number < FIRST_BOT).then_some(ViewId(number))
}
