//! Compares two logs side by side: the first tick with different states, the inputs that differ, and the fields.

use sametick_sim::Tick;
use sametick_sim::diff::Difference;
use sametick_sim::record::TickInputs;

use super::{Playback, ReplayError, step};
use crate::progress::Progress;

/// How many fields are listed.
const NAMED: usize = 16;

/// Where two logs diverge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The first tick after which the states differ; zero if they differ before the first tick.
    pub tick: Tick,
    /// The first tick at or before it in which the inputs differ. `None` if the same inputs led to different states.
    pub inputs: Option<InputsAt>,
    /// The fields in which the states differ.
    pub differences: Vec<Difference>,
}

/// The inputs of a tick in two logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputsAt {
    /// In the first log.
    pub ours: TickInputs,
    /// In the second log.
    pub theirs: TickInputs,
}

/// Plays two logs side by side, for as long as both go on, up to a tick.
pub fn compare(
    ours: &mut Playback<'_>,
    theirs: &mut Playback<'_>,
    to: Tick,
) -> Result<Option<Divergence>, ReplayError> {
    if ours.game.build() != theirs.game.build() {
        return Err(ReplayError::Mixed(ours.log.path().to_owned(), theirs.log.path().to_owned()));
    }
    let last = ours.log.last_tick().min(theirs.log.last_tick()).min(to);
    // If a log lacks its beginning and begins with a save, the other one is played up to that tick.
    let begin = ours.run.tick().max(theirs.run.tick()).min(last);
    ours.go_to(begin.max(ours.begins()))?;
    theirs.go_to(begin.max(theirs.begins()))?;
    let mut progress = Progress::new("comparing", u64::from(last.0));
    let mut inputs: Option<InputsAt> = None;
    if ours.run.hash() != theirs.run.hash() {
        return Ok(Some(diverged(ours, theirs, None)));
    }
    let (our_damage, their_damage) = (ours.log.damage(), theirs.log.damage());
    let (our_path, their_path) = (ours.log.path().to_owned(), theirs.log.path().to_owned());
    let mut our_ticks = ours.log.reader().ticks_from(begin.next());
    let mut their_ticks = theirs.log.reader().ticks_from(begin.next());
    while ours.run.tick() < last {
        let next = (our_ticks.next().map_err(&our_damage)?, their_ticks.next().map_err(&their_damage)?);
        let (Some(our_inputs), Some(their_inputs)) = next else { break };
        if inputs.is_none() && our_inputs != their_inputs {
            inputs = Some(InputsAt { ours: our_inputs.clone(), theirs: their_inputs.clone() });
        }
        step(&mut *ours.run, our_inputs, &our_path)?;
        step(&mut *theirs.run, their_inputs, &their_path)?;
        progress.at(u64::from(ours.run.tick().0));
        if ours.run.hash() != theirs.run.hash() {
            return Ok(Some(diverged(ours, theirs, inputs)));
        }
    }
    Ok(None)
}

fn diverged(ours: &Playback<'_>, theirs: &Playback<'_>, inputs: Option<InputsAt>) -> Divergence {
    let [our_state, their_state] = [ours, theirs].map(|playback| {
        let mut state = Vec::new();
        playback.run.save(&mut state);
        state
    });
    let differences = ours.game.differences(&our_state, &their_state, NAMED).unwrap_or_default();
    Divergence { tick: ours.run.tick(), inputs, differences }
}
