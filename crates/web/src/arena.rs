//! Arena on a page: draws the state in lockstep, or a view's entities in a room, with the same code.

mod ears;
mod hands;
mod hud;
mod picture;
mod room;

use sametick_arena::setup::QUICK_BOTS;
use sametick_arena::{Arena, Input, Own, Setup, look};
use sametick_lockstep::message::Seated;
use sametick_sim::contest::Contest;
use sametick_sim::replica::{Entity, Hosted, Scene};
use sametick_sim::{Game, Seat, Tick};

use crate::options::Options;
use crate::screen::{Controls, Pictured, Shape};
use ears::Ears;
use hands::Hands;
use hud::{Hud, Standings};
use picture::{Camera, Mine};

/// The most seats on a page.
const MAX_PLAYERS: u16 = 64;

/// Entities that are visible.
trait Sight {
    /// Those of one type, with their numbers.
    fn each<E: Entity>(&self) -> impl Iterator<Item = (u32, E)>;
}

impl Sight for Scene {
    fn each<E: Entity>(&self) -> impl Iterator<Item = (u32, E)> {
        self.iter()
    }
}

/// State that is kept between frames.
pub struct Memory {
    /// The entities of a state.
    scene: Scene,
    ears: Ears,
    hands: Hands,
    camera: Camera,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            scene: Scene::new(Arena::KINDS),
            ears: Ears::default(),
            hands: Hands::default(),
            camera: Camera::default(),
        }
    }
}

/// The setup of a new session or room, and its number of seats.
fn setup(options: &Options, seed: u64) -> (Setup, u16) {
    let seats = options.players.clamp(1, MAX_PLAYERS);
    let bots = if options.bots { QUICK_BOTS } else { 0 };
    let of_scenario = |wanted| Setup { bots, ..<Arena as Contest>::setup(&wanted) };
    let quick = || Setup::quick(seed, seats, options.bots);
    (options.wanted(seed, seats).map_or_else(quick, of_scenario), seats)
}

/// The time of a state.
fn millis(tick: Tick) -> u64 {
    Arena::RATE.due_micros(tick) / 1_000
}

impl Pictured for Arena {
    type Hud = Hud;
    type Memory = Memory;

    fn setup(options: &Options, seed: u64) -> (Setup, u16) {
        setup(options, seed)
    }

    fn look(&self, confirmed: &Arena, seat: Option<Seat>, _: Tick, memory: &mut Memory) -> u32 {
        memory.scene.clear();
        self.show(&mut memory.scene);
        let ears = &mut memory.ears;
        let tallies = confirmed.people.iter().map(|person| (person.own.number, person.score, person.deaths));
        let counted = ears.count(millis(self.tick), seat, tallies);
        let felt = ears.feel(own(self, seat));
        self.happened.iter().fold(counted | felt, |bits, event| bits | ears::bit(event, seat))
    }

    fn draw(&self, seat: Option<Seat>, memory: &mut Memory, shapes: &mut Vec<Shape>) {
        memory.scene.clear();
        self.show(&mut memory.scene);
        let number = seat.map(|seat| u32::from(seat.0));
        let plan = number.and_then(|number| look::preview(number, &memory.scene.get(number)?));
        picture::draw(
            &memory.scene,
            &Mine { number, own: own(self, seat), plan },
            &mut memory.camera,
            shapes,
        );
    }

    fn hud(&self, seat: Option<Seat>, roster: &[Seated], memory: &Memory) -> Hud {
        let name = |seat: Seat| roster.iter().find(|seated| seated.seat == seat).map(|it| it.name.clone());
        let standings = Standings::of(&memory.scene, seat, name);
        Hud::new("lockstep", seat, own(self, seat), standings, memory.ears.feed())
    }

    fn input(&self, seat: Seat, memory: &mut Memory, controls: &Controls) -> Input {
        own(self, Some(seat)).map(|own| memory.hands.input(&own, controls)).unwrap_or_default()
    }

    fn nothing() -> Input {
        Input::default()
    }
}

fn own(arena: &Arena, seat: Option<Seat>) -> Option<Own> {
    arena.at_seat(seat?).map(|person| person.own)
}

#[cfg(test)]
mod tests;
