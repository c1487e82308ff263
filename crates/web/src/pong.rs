//! Pong on a page.

use sametick_lockstep::message::Seated;
use sametick_pong::court::{DEPTH, UNIT};
use sametick_pong::{
    Bar, Driver, Input, MAX_SPEED, Motion, Phase, Pong, Setup, View, Wall, What, setup, steer,
};
use sametick_sim::contest::Contest;
use sametick_sim::{Seat, Tick};
use serde::Serialize;

use crate::options::Options;
use crate::screen::{Controls, Held, Pictured, Shape};

const BALL: f32 = 1.0;
const PADDLES: f32 = 10.0;
const WALLS: f32 = 20.0;

/// The HUD, as the page gets it.
#[derive(Debug, Serialize)]
pub struct Hud {
    game: &'static str,
    phase: &'static str,
    /// The seat that serves.
    server: Option<u16>,
    winner: Option<u16>,
    points: u8,
    /// Whether no other game follows.
    once: bool,
    hits: u16,
    /// The countdown before a serve: 3, 2, 1.
    countdown: Option<u8>,
    court: Court,
    seats: Vec<Place>,
}

#[derive(Debug, Serialize)]
struct Court {
    w: f32,
    h: f32,
}

#[derive(Debug, Serialize)]
struct Place {
    seat: u16,
    wall: &'static str,
    score: u8,
    ready: bool,
    driver: &'static str,
    name: Option<String>,
    you: bool,
}

/// The last position of the ball, to tell a move from a jump.
#[derive(Default)]
pub struct Memory {
    ball: Option<(Tick, [f32; 2])>,
    jumps: u32,
}

impl Memory {
    /// The number of jumps of the ball so far.
    fn on_ball(&mut self, tick: Tick, at: Option<[f32; 2]>) -> f32 {
        let ticks = |before: Tick| tick.0.abs_diff(before.0).max(1) as f32;
        let moved = match (self.ball, at) {
            (Some((before, [x, y])), Some([to_x, to_y])) => {
                let most = MAX_SPEED as f32 / UNIT as f32 * ticks(before);
                (to_x - x) * (to_x - x) + (to_y - y) * (to_y - y) <= most * most
            }
            _ => false,
        };
        self.jumps += u32::from(!moved);
        self.ball = at.map(|at| (tick, at));
        self.jumps as f32
    }
}

impl Pictured for Pong {
    type Hud = Hud;
    type Memory = Memory;

    fn setup(options: &Options, seed: u64) -> (Setup, u16) {
        let players = options.players.clamp(setup::MIN_PLAYERS.into(), setup::MAX_PLAYERS.into()) as u8;
        let endless = || Setup { seed, players, ..Setup::default() };
        let wanted = options.wanted(seed, players.into());
        let setup = wanted.map_or_else(endless, |wanted| <Pong as Contest>::setup(&wanted));
        // Where players come and go, another game follows.
        (Setup { bots: options.bots, once: false, ..setup }, players.into())
    }

    fn draw(&self, _: Option<Seat>, memory: &mut Memory, shapes: &mut Vec<Shape>) {
        let view = View::of(self);
        let epoch = memory.on_ball(self.tick, view.ball);
        for (wall, paddle) in Wall::ALL.into_iter().zip(view.paddles) {
            let index = wall.index() as f32;
            match paddle {
                Some(bar) => shapes.push(bar_shape(PADDLES + index, 1.0, bar, f32::from(wall.seat().0))),
                None => shapes.push(bar_shape(WALLS + index, 2.0, solid(wall, view.half), -1.0)),
            }
        }
        if let Some([x, y]) = view.ball {
            let size = 2.0 * view.radius;
            shapes.push(Shape { epoch, ..Shape::new(BALL, 0.0, [x, y], [size; 2]) });
        }
    }

    fn look(&self, _: &Pong, _: Option<Seat>, since: Tick, _: &mut Memory) -> u32 {
        let bit = |what: What| match what {
            What::Hit(_) => 1,
            What::Bounced(_) => 2,
            What::Point(_) | What::Let => 4,
            What::Won(_) => 8,
            What::Served(_) => 16,
        };
        self.events_since(since).fold(0, |bits, event| bits | bit(event.what))
    }

    fn hud(&self, own: Option<Seat>, roster: &[Seated], _: &Memory) -> Hud {
        let view = View::of(self);
        let (phase, server, winner, hits) = match self.phase {
            Phase::Waiting { server, .. } => ("waiting", Some(server), None, 0),
            Phase::Serving { server, .. } => ("serving", Some(server), None, 0),
            Phase::Rally { hits, .. } => ("playing", None, None, hits),
            Phase::Pause { server, .. } => ("pause", Some(server), None, 0),
            Phase::Over { winner, .. } => ("over", None, Some(winner), 0),
        };
        let place = |wall: Wall| {
            let (seat, paddle) = (wall.seat(), self.paddle(wall));
            Place {
                seat: seat.0,
                wall: wall_name(wall),
                score: paddle.score,
                ready: paddle.ready,
                driver: match paddle.driver {
                    Driver::Nobody => "nobody",
                    Driver::Player { .. } => "player",
                    Driver::Bot { .. } => "bot",
                },
                name: roster.iter().find(|seated| seated.seat == seat).map(|seated| seated.name.clone()),
                you: own == Some(seat),
            }
        };
        Hud {
            game: "pong",
            phase,
            server: server.map(|wall| wall.seat().0),
            winner: winner.map(|wall| wall.seat().0),
            points: self.rules.points,
            once: self.rules.once,
            hits,
            countdown: self.count(),
            court: Court { w: 2.0 * view.half[0], h: 2.0 * view.half[1] },
            seats: self.rules.court().open_walls().map(place).collect(),
        }
    }

    fn input(&self, seat: Seat, _: &mut Memory, controls: &Controls) -> Input {
        let Some(wall) = Wall::of(seat).filter(|wall| self.rules.court().is_open(*wall)) else {
            return Input::NONE;
        };
        let upright = matches!(wall, Wall::Left | Wall::Right);
        let (less, more) = if upright { (Held::UP, Held::DOWN) } else { (Held::LEFT, Held::RIGHT) };
        let keys = Motion::of_keys(controls.held.has(less), controls.held.has(more));
        let motion = match controls.pointer {
            Some([x, y]) if keys == Motion::Still => {
                let aim = if upright { y } else { x };
                steer(self.paddle(wall), (aim * UNIT as f32) as i32)
            }
            _ => keys,
        };
        let input = Input::moving(motion);
        match self.phase {
            _ if !controls.action => input,
            Phase::Over { .. } => input.and_rematch(),
            _ => input.and_serve(),
        }
    }

    fn nothing() -> Input {
        Input::NONE
    }
}

fn bar_shape(id: f32, kind: f32, bar: Bar, tint: f32) -> Shape {
    Shape { tint, ..Shape::new(id, kind, bar.centre, bar.half.map(|half| 2.0 * half)) }
}

/// The bar of a wall that no player defends: just outside of the court.
fn solid(wall: Wall, half: [f32; 2]) -> Bar {
    let thin = DEPTH as f32 / UNIT as f32 / 2.0;
    let [x, y] = half;
    match wall {
        Wall::Left => Bar { centre: [-x - thin, 0.0], half: [thin, y] },
        Wall::Right => Bar { centre: [x + thin, 0.0], half: [thin, y] },
        Wall::Top => Bar { centre: [0.0, -y - thin], half: [x, thin] },
        Wall::Bottom => Bar { centre: [0.0, y + thin], half: [x, thin] },
    }
}

fn wall_name(wall: Wall) -> &'static str {
    match wall {
        Wall::Left => "left",
        Wall::Right => "right",
        Wall::Top => "top",
        Wall::Bottom => "bottom",
    }
}

#[cfg(test)]
mod tests {
    use sametick_sim::{Game, Inputs};

    use super::*;

    fn playing() -> Pong {
        let mut pong = Pong::new(&Setup { seed: 7, ..Setup::default() });
        let mut inputs = Inputs::new();
        inputs.join(Seat(0));
        for _ in 0..600 {
            inputs.set(Seat(0), Input::NONE.and_serve());
            pong.step(&inputs);
            if matches!(pong.phase, Phase::Rally { .. }) {
                return pong;
            }
            inputs.clear();
        }
        panic!("nobody serves");
    }

    const STILL: Controls = Controls { held: Held(0), pointer: None, action: false, build: 0 };

    #[test]
    fn a_court_of_two_has_paddles_walls_and_a_ball() {
        let (mut pong, mut memory) = (playing(), Memory::default());
        let mut frames = vec![];
        for _ in 0..30 {
            let mut shapes = vec![];
            pong.draw(None, &mut memory, &mut shapes);
            frames.push(shapes);
            let mut inputs = Inputs::new();
            inputs.set(Seat(0), Input::NONE);
            pong.step(&inputs);
        }
        let kinds: Vec<f32> = frames[0].iter().map(|shape| shape.kind).collect();
        assert_eq!(kinds, [1.0, 1.0, 2.0, 2.0, 0.0]);
        let balls: Vec<&Shape> = frames.iter().filter_map(|shapes| shapes.last()).collect();
        assert!(balls.windows(2).all(|pair| pair[0].epoch == pair[1].epoch && pair[0].x != pair[1].x));
    }

    #[test]
    fn the_countdown_before_a_serve_is_shown() {
        let (mut pong, mut inputs) = (Pong::new(&Setup { seed: 7, ..Setup::default() }), Inputs::new());
        let mut counted = vec![];
        inputs.set(Seat(0), Input::NONE.and_serve());
        for _ in 0..300 {
            pong.step(&inputs);
            counted.extend(pong.hud(Some(Seat(0)), &[], &Memory::default()).countdown);
        }
        counted.dedup();
        assert_eq!(counted, [3, 2, 1]);
    }

    #[test]
    fn keys_override_the_pointer_and_the_button_fits_the_phase() {
        let pong = playing();
        let input = |controls: Controls| pong.input(Seat(0), &mut Memory::default(), &controls);
        assert_eq!(input(STILL), Input::NONE);
        assert_eq!(input(Controls { held: Held(Held::UP), ..STILL }).motion(), Motion::Less);
        assert_eq!(input(Controls { held: Held(Held::LEFT), ..STILL }).motion(), Motion::Still);
        let finger = Controls { pointer: Some([0.0, 1e9]), ..STILL };
        assert_eq!(input(finger).motion(), Motion::More);
        assert_eq!(input(Controls { held: Held(Held::UP), ..finger }).motion(), Motion::Less);
        assert!(input(Controls { action: true, ..STILL }).serves());
        assert_eq!(
            pong.input(Seat(3), &mut Memory::default(), &finger),
            Input::NONE,
            "who only watches does nothing"
        );
    }

    #[test]
    fn names_come_from_the_roster_and_bots_have_none() {
        let roster = [Seated { seat: Seat(0), name: "Ada".into() }];
        let hud = playing().hud(Some(Seat(0)), &roster, &Memory::default());
        let seats: Vec<_> =
            hud.seats.iter().map(|place| (place.driver, place.name.as_deref(), place.you)).collect();
        assert_eq!(seats, [("player", Some("Ada"), true), ("bot", None, false)]);
        assert_eq!((hud.phase, hud.points, hud.countdown), ("playing", 11, None));
    }
}
