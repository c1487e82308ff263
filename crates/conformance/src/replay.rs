//! Replays a recorded game: the hash of every state.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sametick_arena::Arena;
use sametick_pong::Pong;
use sametick_sim::record::{Record, decode_inputs};
use sametick_sim::{Game, Inputs, StateHash, from_canonical};
use sametick_store::log::LogReader;

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The hash after every tick, from tick 1 on.
    pub hashes: Vec<StateHash>,
    /// The number of recorded hashes, agreed by players or computed by a host, that the replay reproduced.
    pub checks: u32,
}

/// Replays a log of this build.
pub fn replay(log: &[u8]) -> Result<Replay, String> {
    let text = |error: &dyn core::fmt::Display| error.to_string();
    let build = LogReader::open(log).map_err(|error| text(&error))?.header().build;
    match build {
        Pong::BUILD => replay_of::<Pong>(log),
        Arena::BUILD => replay_of::<Arena>(log),
        other => Err(alloc::format!("the log is of build {other}, which is neither game's")),
    }
}

fn replay_of<G: Game>(log: &[u8]) -> Result<Replay, String> {
    let text = |error: &dyn core::fmt::Display| error.to_string();
    let mut reader = LogReader::open(log).map_err(|error| text(&error))?;
    let setup = from_canonical(&reader.header().setup).map_err(|error| alloc::format!("{error:?}"))?;
    let (mut state, mut inputs, mut done) = (G::new(&setup), Inputs::new(), Replay::default());
    let mut records = reader.holding();
    while let Some(record) = records.next().map_err(|error| text(&error))? {
        match record {
            Record::Inputs(rows) => {
                decode_inputs(rows.iter(), &mut inputs);
                state.step(&inputs);
                done.hashes.push(StateHash::of(&state));
            }
            Record::Check { tick, hash } => {
                let at = usize::try_from(tick.0).ok().and_then(|tick| tick.checked_sub(1));
                if at.and_then(|at| done.hashes.get(at)) != Some(hash) {
                    return Err(alloc::format!("the state after tick {tick} differs from the recorded one"));
                }
                done.checks += 1;
            }
            _ => {}
        }
    }
    Ok(done)
}
