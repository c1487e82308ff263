//! What others see of a session, and how a host runs it for players who know only a part.
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

/// Rooms with up to so many seats show everyone who is there to everyone; larger ones only those around.
pub const MAX_KNOWN_SEATS: u16 = 64;

/// How far sounds are heard: as far as their makers are seen well.
const EARSHOT: f32 = 24.0 * UNIT as f32;

/// What is predicted wrongly by more than this is mended at once.
const SNAP: i64 = 3 * UNIT as i64 / 2;

/// The map as such. There is one, with the number 0.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "presence")]
pub struct Ground {
    /// How many tiles a side has.
    pub size: u16,
    /// Who has scored so often has won; nobody ever if this is zero.
    pub points: u16,
    /// The number of the player who has won this round, until the next one.
    pub won: Option<u16>,
    /// Which round it is, from 1 on.
    pub round: u16,
    /// In how many seconds a round begins; zero while one is played, and after the last.
    pub wait: u8,
}

/// Someone who plays, alive or not. Its number is that of the seat, or of the bot.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "presence", zone(far within 12288.0 at 10 hz))]
pub struct Player {
    /// How many they have shot.
    pub score: u16,
    /// How often they were shot.
    pub deaths: u16,
    /// Whether they have an avatar now.
    pub alive: bool,
    /// Whether it is a bot.
    pub bot: bool,
    /// Who they are, among [`CHARACTERS`](crate::kept::CHARACTERS).
    pub character: u8,
}

/// The body of a player who is alive. Its number is the player's.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "movement", zone(near within 6144.0 at 10 hz), zone(far within 12288.0 at 2 hz))]
pub struct Avatar {
    /// Where it is.
    #[entity(place)]
    pub at: At,
    /// Where it looks, in 256 directions from the right over downwards.
    #[entity(turn = 256)]
    pub aim: u8,
    /// What is left of it.
    #[entity(zones = "near")]
    pub health: u8,
    /// Whether nothing hurts it now.
    #[entity(zones = "near")]
    pub shielded: bool,
}

/// What stands on a tile.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "build", zone(far within 12288.0 at 10 hz))]
pub struct Structure {
    /// Its column and row.
    pub tile: [i16; 2],
    /// The code of its [`Kind`](build::Kind).
    pub kind: u8,
    /// What is left of it.
    pub health: u8,
    /// The number of whoever built it, or [`NOBODY`](build::NOBODY).
    pub owner: u16,
}

/// What a player might build. Its number is the player's.
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
    /// Where it is.
    #[entity(place)]
    pub at: At,
    /// Where it flies.
    #[entity(turn = 256)]
    pub aim: u8,
    /// The number of whoever fired it.
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

    /// From the avatar, also while it waits for its next life. Who only watches looks from the middle of the map.
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

    fn apart(predicted: &Own, right: &Own) -> PredictionError {
        let far = square(way(predicted.at, right.at));
        // Nobody walks from where they fell to where they appear again.
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

/// The view of a player; bots have none.
fn view_of(number: u16) -> Option<ViewId> {
    (number < FIRST_BOT).then_some(ViewId(number))
}
