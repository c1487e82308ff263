//! Generates sessions as players could have played them: players join, leave, are late, play well or press random
//! inputs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::{Game, Inputs, Rng, Row, Seat, Tick, to_canonical};
use sametick_store::log::Header;

use super::AnyGame;
use super::invent::{self, Width};

/// How often the players of a rehearsal compare their states, as those of a relay do.
const CHECK_TICKS: u32 = 30;

/// How many seats there are, at most: one more than most games have, for a spectator.
const SEATS: u64 = 5;

/// A generated session: a setup and the inputs of all seats, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// The canonical bytes of the setup.
    pub setup: Vec<u8>,
    /// What happened in every tick, from tick 1 on. If there are fewer than were asked for, the game panics in the
    /// last.
    pub ticks: Vec<TickInputs>,
}

impl Rehearsal {
    /// The header of its log.
    pub fn header(&self, game: &dyn AnyGame, session: &str) -> Header {
        Header {
            build: game.build(),
            schema: game.schema(),
            setup: self.setup.clone(),
            rate: game.rate(),
            ..Header::new(game.name(), session)
        }
    }

    /// The records of its log, with the hashes that the game computes. The tick in which it panics is the last.
    pub fn records(&self, game: &dyn AnyGame) -> Vec<Record> {
        let mut run = game.begin(&self.setup).expect("a rehearsal is made of what the game can read");
        let mut records = Vec::new();
        for inputs in &self.ticks {
            add_comings_and_goings(inputs, &mut records);
            records.push(Record::Inputs(inputs.clone()));
            if catch_unwind(AssertUnwindSafe(|| run.step(inputs))).is_err() {
                break;
            }
            if inputs.tick().0.is_multiple_of(CHECK_TICKS) {
                records.push(Record::Check { tick: inputs.tick(), hash: run.hash() });
            }
        }
        records.push(Record::End);
        records
    }
}

fn add_comings_and_goings(inputs: &TickInputs, records: &mut Vec<Record>) {
    let tick = inputs.tick();
    for row in inputs.iter() {
        let seat = row.seat;
        if row.joined {
            records.push(Record::Joined {
                tick,
                seat,
                name: format!("player {seat}"),
                commit: String::new(),
            });
        }
        if row.left {
            records.push(Record::Left { tick, seat, why: Leaving::Left });
        }
    }
}

/// A player on a seat.
struct Player {
    seat: Seat,
    /// Whether the player sends random inputs for now.
    wild: bool,
    /// Its last input, if one could be generated.
    last: Option<Vec<u8>>,
}

pub fn rehearse<G: Game>(
    autopilot: Option<fn(&G, Seat) -> G::Input>,
    setup: Option<fn(u64) -> G::Setup>,
    seed: u64,
    ticks: u32,
) -> Option<Rehearsal> {
    let mut rng = Rng::new(seed);
    let setup = match setup {
        Some(setup) => setup(seed),
        None => invent::value(&mut rng, Width::Small)?,
    };
    let mut state = G::new(&setup);
    let seats = 1 + rng.below(SEATS) as u16;
    let mut players: Vec<Player> = vec![];
    let mut rehearsal = Rehearsal { setup: canonical(&setup), ticks: Vec::new() };
    let mut inputs = Inputs::new();
    for tick in (1..=ticks).map(Tick) {
        let mut now = TickInputs::new();
        now.clear(tick);
        for seat in (0..seats).map(Seat) {
            act(&state, seat, autopilot, &mut players, &mut rng, &mut now);
        }
        now.decode(&mut inputs);
        let survived = catch_unwind(AssertUnwindSafe(|| state.step(&inputs))).is_ok();
        rehearsal.ticks.push(now);
        if !survived {
            break;
        }
    }
    Some(rehearsal)
}

/// The input of one seat in one tick, if a player sits there or sits down.
fn act<G: Game>(
    state: &G,
    seat: Seat,
    autopilot: Option<fn(&G, Seat) -> G::Input>,
    players: &mut Vec<Player>,
    rng: &mut Rng,
    now: &mut TickInputs,
) {
    let joined = !players.iter().any(|player| player.seat == seat);
    if joined {
        if rng.chance(19, 20) {
            return;
        }
        players.push(Player { seat, wild: autopilot.is_none(), last: None });
    }
    let Some(at) = players.iter().position(|player| player.seat == seat) else { return };
    let player = &mut players[at];
    // Now and then a player changes its style for a while, is late, or leaves.
    if rng.chance(1, 120) {
        player.wild = autopilot.is_none() || !player.wild;
    }
    let left = !joined && rng.chance(1, 1_500);
    let late = rng.chance(1, 25);
    match autopilot.filter(|_| !player.wild) {
        Some(autopilot) => player.last = Some(canonical(&autopilot(state, seat))),
        // Buttons are held for some ticks.
        None if player.last.is_none() || rng.chance(1, 6) => {
            player.last = invent::value::<G::Input>(rng, Width::Full).map(|input| canonical(&input));
        }
        None => {}
    }
    let input = player.last.as_deref().filter(|_| !late);
    now.push(Row { seat, joined, left, input });
    if left {
        players.remove(at);
    }
}

fn canonical<T: serde::Serialize>(value: &T) -> Vec<u8> {
    to_canonical(value).expect("what a game sends has canonical bytes")
}
