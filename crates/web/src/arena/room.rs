//! Arena in a room: the own avatar is predicted, the others are interpolated, at the display's frame rate.

use sametick_arena::build::could_place;
use sametick_arena::kept::Life;
use sametick_arena::{Arena, Input, Player, look};
use sametick_room::View;
use sametick_room::view::JoinAs;
use sametick_sim::replica::Entity;
use sametick_sim::{Seat, Tick, TickRate, Time};

use super::hud::{Hud, Standings};
use super::picture::{self, Mine};
use super::{Memory, Sight, ears, setup};
use crate::diagnostics::Figures;
use crate::options::{COMMIT, Options};
use crate::persona::Persona;
use crate::screen::{Controls, OnScreen, Place, Shape};

impl Sight for View<Arena> {
    fn each<E: Entity>(&self) -> impl Iterator<Item = (u32, E)> {
        self.shown().map(|(id, _, entity)| (id, entity))
    }
}

fn number(view: &View<Arena>) -> Option<u32> {
    view.seat().map(|seat| u32::from(seat.0))
}

impl OnScreen for View<Arena> {
    type Hud = Hud;
    type Memory = Memory;
    /// The rate of most displays: a view can be sampled at any moment.
    const FRAMES: TickRate = TickRate::hz(60);

    fn join(options: &Options, seed: u64) -> JoinAs<Arena> {
        let (setup, seats) = setup(options, seed);
        JoinAs {
            name: options.name.clone(),
            commit: COMMIT.into(),
            setup,
            seed,
            seats,
            watch: options.watch,
            listed: options.listed,
        }
    }

    fn frame(&self, now: Time) -> Option<Tick> {
        let number = now.as_micros() * u64::from(Self::FRAMES.per_second()) / 1_000_000;
        (self.stats().updates > 0).then_some(Tick(number as u32))
    }

    fn next_frame(&self, now: Time) -> Option<Time> {
        self.frame(now).map(|frame| Time::ZERO.plus_micros(Self::FRAMES.due_micros(frame.next())))
    }

    fn look(&mut self, now: Time, _: Tick, memory: &mut Memory) -> u32 {
        View::look(self, now);
        let (seat, ears) = (self.seat(), &mut memory.ears);
        let tallies = self
            .newest()
            .iter::<Player>()
            .filter_map(|(number, player)| Some((u16::try_from(number).ok()?, player.score, player.deaths)));
        let mut bits = ears.count(now.as_micros() / 1_000, seat, tallies);
        bits |= ears.feel(self.predicted().map(|(_, own)| *own));
        while let Some((_, event)) = self.poll_event() {
            bits |= ears::bit(&event, seat);
        }
        bits
    }

    fn draw(&self, memory: &mut Memory, shapes: &mut Vec<Shape>) {
        let own = self.own();
        let plan = number(self).zip(memory.hands.plan()).zip(own).map(|((number, (tile, kind)), own)| {
            let corner = tile.pair().map(f32::from);
            look::Preview { number, corner, kind, ok: could_place(&own, tile, kind, self.newest()) }
        });
        let mine = Mine { number: number(self), own, plan };
        picture::draw(self, &mine, &mut memory.camera, shapes);
    }

    fn draw_ghost(&self, memory: &mut Memory, shapes: &mut Vec<Shape>) {
        let mine = Mine { number: number(self), own: self.newest_own(), plan: None };
        picture::draw(self.newest(), &mine, &mut memory.camera, shapes);
    }

    fn hud(&self, memory: &Memory) -> Option<Hud> {
        let roster = self.roster();
        let name = |seat: Seat| roster.iter().find(|seated| seated.seat == seat).map(|it| it.name.clone());
        let standings = Standings::of(self.newest(), self.seat(), name);
        let own = self.predicted().map(|(_, own)| *own);
        Some(Hud::new("room", self.seat(), own, standings, memory.ears.feed()))
    }

    fn input(&self, memory: &mut Memory, controls: &Controls) -> Input {
        self.predicted().map(|(_, own)| memory.hands.input(own, controls)).unwrap_or_default()
    }

    fn place(&self) -> Place {
        Place {
            seat: self.seat().map(|seat| seat.0),
            progress: 1.0,
            spectators: 0,
            pace: self.pace_percent(),
        }
    }

    fn figures(&self) -> Option<Figures> {
        Some(Figures::of_view(self))
    }

    fn persona(&self) -> Option<Persona> {
        Some(Persona::of_view(self, Life::of_kept))
    }

    fn choose_character(&mut self, name: &str) {
        View::choose_character(self, name);
    }
}
