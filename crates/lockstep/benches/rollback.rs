//! The cost of rollback besides the game: our peer, GGRS and a loop by hand, on a plain state with a trivial step.
//!
//! `taskset -c 1 cargo bench -p sametick-lockstep --bench rollback` (`-- ours` runs one of the three, for a profile)
//!
//! A frame takes one confirmed tick of a remote player and one own input. Every other frame mispredicts the remote
//! input and re-simulates the ticks in between. The cost of such a tick is the extra time of those frames compared with
//! the others of their round, divided by those ticks, without the game's own step. The contestants alternate by round;
//! figures are medians of rounds, a round's figure is the mean of its frames.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

#[path = "rollback/game.rs"]
mod game;
#[path = "rollback/hand.rs"]
mod hand;
#[path = "rollback/other.rs"]
mod other;
#[path = "rollback/ours.rs"]
mod ours;

use std::hint::black_box;
use std::time::Instant;

use game::Plain;
use sametick_sim::{Game, Inputs, Seat};

/// Frames in a round: enough for every periodic duty, few enough that rounds are rarely interrupted.
const FRAMES: u32 = 120;

/// Rounds of each contestant.
const ROUNDS: usize = 151;

/// A player's machine.
trait Contestant {
    /// Events of other machines before the next frame; the remote input is as predicted or not.
    fn prepare(&mut self, wrong: bool);

    /// Runs one frame.
    fn frame(&mut self);

    /// Whether the last frame also hashed its state.
    fn hashed(&self) -> bool;

    /// Ticks re-simulated so far.
    fn resimulated(&self) -> u64;
}

/// A running mean.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
    }

    fn get(self) -> f64 {
        self.sum / self.count
    }
}

/// Means of a round.
#[derive(Clone, Copy, Default)]
struct Round {
    /// Frames with a right prediction.
    frame_ns: Mean,
    /// Frames with a wrong prediction, and how many ticks they re-simulated.
    wrong_ns: Mean,
    again: Mean,
    /// Of both, the frames that also hashed the state.
    hashed_ns: [Mean; 2],
    /// Per frame, with the events of other machines.
    allocations: f64,
}

fn round(contestant: &mut dyn Contestant, clock_ns: f64) -> Round {
    // Other contestants have left their data in the caches, where a game finds its own.
    let allocations = allocation_counter::measure(|| {
        for frame in 0..FRAMES {
            contestant.prepare(frame % 2 == 1);
            contestant.frame();
        }
    });
    let mut round =
        Round { allocations: allocations.count_total as f64 / f64::from(FRAMES), ..Round::default() };
    for frame in 0..FRAMES {
        contestant.prepare(frame % 2 == 1);
        let before = contestant.resimulated();
        let start = Instant::now();
        contestant.frame();
        let ns = start.elapsed().as_nanos() as f64 - clock_ns;
        match (contestant.resimulated() - before, contestant.hashed()) {
            (0, false) => round.frame_ns.add(ns),
            (ticks, true) => round.hashed_ns[usize::from(ticks > 0)].add(ns),
            (ticks, false) => {
                round.wrong_ns.add(ns);
                round.again.add(ticks as f64);
            }
        }
    }
    round
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The time that reading the clock adds to a measurement.
fn clock_ns() -> f64 {
    median((0..10_000).map(|_| {
        let start = Instant::now();
        black_box(());
        start.elapsed().as_nanos() as f64
    }))
}

fn step_ns<const WORDS: usize>() -> f64 {
    const STEPS: u32 = 1_000;
    let mut state = Box::new(Plain::<WORDS>::new(&()));
    let mut inputs = Inputs::new();
    inputs.set(Seat(0), 1);
    inputs.set(Seat(1), 1);
    median((0..101).map(|_| {
        let start = Instant::now();
        (0..STEPS).for_each(|_| black_box(&mut state).step(black_box(&inputs)));
        start.elapsed().as_nanos() as f64 / f64::from(STEPS)
    }))
}

/// The measurements of one contestant.
struct Figures {
    name: &'static str,
    again_ns: f64,
    frame_ns: f64,
    hash_ns: f64,
    allocations: f64,
}

fn measure<const WORDS: usize>(depth: u32, only: Option<&str>) {
    let (clock_ns, step_ns) = (clock_ns(), step_ns::<WORDS>());
    let mut contestants: Vec<(&str, Box<dyn Contestant>)> = vec![
        ("by hand", Box::new(hand::ByHand::<WORDS>::new(depth))),
        ("ggrs", Box::new(other::Ggrs::<WORDS>::new(depth))),
        ("ours", Box::new(ours::Ours::<WORDS>::new(depth))),
    ];
    contestants.retain(|(name, _)| only.is_none_or(|only| name == &only));
    let mut rounds: Vec<Vec<Round>> = contestants.iter().map(|_| vec![]).collect();
    for _ in 0..ROUNDS {
        for ((_, contestant), rounds) in contestants.iter_mut().zip(&mut rounds) {
            rounds.push(round(contestant.as_mut(), clock_ns));
        }
    }
    let figures = contestants.iter().zip(&rounds).map(|((name, _), rounds)| {
        let of = |figure: &dyn Fn(&Round) -> f64| median(rounds.iter().map(figure));
        Figures {
            name,
            again_ns: of(&|it| (it.wrong_ns.get() - it.frame_ns.get()) / it.again.get() - step_ns),
            frame_ns: of(&|it| it.frame_ns.get()),
            hash_ns: of(&|it| match it.hashed_ns {
                [right, _] if right.count > 0.0 => right.get() - it.frame_ns.get(),
                [_, wrong] => wrong.get() - it.wrong_ns.get(),
            }),
            allocations: of(&|it| it.allocations),
        }
    });
    let figures: Vec<Figures> = figures.collect();
    let reference = figures.first().map_or(f64::NAN, |hand| hand.again_ns);
    println!(
        "\n| {:>2} KB, {depth} ticks again, step {step_ns:.1} ns | ns a tick | ratio | ns a frame | a hash | allocations |",
        WORDS / 256
    );
    println!("|----------------------------------|----------:|------:|-----------:|-------:|------------:|");
    for Figures { name, again_ns, frame_ns, hash_ns, allocations } in figures {
        let ratio = again_ns / reference;
        let hash = if hash_ns.is_nan() { String::new() } else { format!("{hash_ns:.0}") };
        println!(
            "| {name:32} | {again_ns:>9.1} | {ratio:>5.2} | {frame_ns:>10.0} | {hash:>6} | {allocations:>11.1} |"
        );
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    for depth in [1, 8] {
        measure::<256>(depth, only.as_deref());
        measure::<16_384>(depth, only.as_deref());
    }
}
