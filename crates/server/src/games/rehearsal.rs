//! Sessions as players could have played them: who comes, goes, is late, plays well or presses anything at all.

use sametick_sim::record::{TickInputs, decode_inputs};
use sametick_sim::{Game, Inputs, Rng, Row, Seat, Tick, to_canonical};

use super::invent::{self, Width};

/// How many seats there are, at most: one more than most games have, for someone who only watches.
const SEATS: u64 = 5;

/// A session that nobody has played: a setup and what everyone did, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// The canonical bytes of the setup.
    pub setup: Vec<u8>,
    /// What happened in every tick, from tick 1 on.
    pub ticks: Vec<TickInputs>,
}

/// Someone on a seat.
struct Player {
    seat: Seat,
    /// Whether they press anything at all for now, rather than play.
    wild: bool,
    /// What they did last, if anything could be thought of.
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
    let seats = 1 + rng.below(SEATS) as u8;
    let mut players: Vec<Player> = vec![];
    let mut rehearsal = Rehearsal { setup: canonical(&setup), ticks: Vec::new() };
    let mut inputs = Inputs::new();
    for tick in (1..=ticks).map(Tick) {
        let mut now = TickInputs::new();
        now.clear(tick);
        for seat in (0..seats).map(Seat) {
            act(&state, seat, autopilot, &mut players, &mut rng, &mut now);
        }
        decode_inputs(now.iter(), &mut inputs);
        state.step(&inputs);
        rehearsal.ticks.push(now);
    }
    Some(rehearsal)
}

/// What one seat does in one tick, if somebody sits there or sits down.
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
    // Now and then someone changes their mind for a while, is late, or leaves.
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
