//! A game of a known type, behind the type-erased interface.

use std::any::Any;
use std::ops::RangeInclusive;

use sametick_lockstep::rows::MAX_SEATS;
use sametick_sim::canon::{self, DecodeError, from_canonical};
use sametick_sim::contest::Contest;
use sametick_sim::diff::{self, Difference};
use sametick_sim::hash::{self, Part};
use sametick_sim::record::TickInputs;
use sametick_sim::replica::Hosted;
use sametick_sim::sync_test::{Desync, sync_test};
use sametick_sim::{
    BuildId, Game, Inputs, SchemaHash, Seat, StateHash, Tick, TickRate, description_of, schema_hash_of,
};

use super::contest::Contested;
use super::rehearsal::{self, Rehearsal};
use super::{AnyContest, AnyGame, Layout, Run, ShowError};
use crate::rooms::{AnyRoom, Hosting};

/// A game of a known type.
pub struct Known<G: Game> {
    autopilot: Option<fn(&G, Seat) -> G::Input>,
    setup: Option<fn(u64) -> G::Setup>,
    seats: (u16, u16),
    room: Option<Box<dyn AnyRoom>>,
    contest: Option<Box<dyn AnyContest>>,
}

impl<G: Game> Known<G> {
    /// The game with random inputs and setups in rehearsals.
    pub const fn new() -> Known<G> {
        Known { autopilot: None, setup: None, seats: (1, MAX_SEATS as u16), room: None, contest: None }
    }

    /// Sets the autopilot that plays most of the time in rehearsals: it gets further into a game than random inputs do.
    #[must_use]
    pub fn with_autopilot(self, autopilot: fn(&G, Seat) -> G::Input) -> Known<G> {
        Known { autopilot: Some(autopilot), ..self }
    }

    /// Sets how many players it takes.
    #[must_use]
    pub fn with_seats(self, seats: RangeInclusive<u16>) -> Known<G> {
        Known { seats: (*seats.start(), *seats.end()), ..self }
    }

    /// Sets the setups of rehearsals, each from a seed.
    #[must_use]
    pub fn with_setup(self, setup: fn(u64) -> G::Setup) -> Known<G> {
        Known { setup: Some(setup), ..self }
    }

    /// Allows it to be hosted, in rooms of so many seats. A room that a script begins has the default setup, and a
    /// script that has sent no input yet sends the default one.
    #[must_use]
    pub fn with_rooms(self, seats: RangeInclusive<u16>) -> Known<G>
    where
        G: Hosted,
        G::Setup: Default,
        G::Input: Default,
    {
        Known { room: Some(Box::new(Hosting::<G>::new(seats))), ..self }
    }

    /// Allows sessions to be made of it.
    #[must_use]
    pub fn with_sessions(self) -> Known<G>
    where
        G: Contest,
    {
        Known { contest: Some(Box::new(Contested::<G>::NEW)), ..self }
    }
}

impl<G: Game> Default for Known<G> {
    fn default() -> Known<G> {
        Known::new()
    }
}

impl<G: Game> AnyGame for Known<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn build(&self) -> BuildId {
        G::BUILD
    }

    fn description(&self) -> String {
        description_of::<G>()
    }

    fn schema(&self) -> SchemaHash {
        schema_hash_of::<G>()
    }

    fn rate(&self) -> TickRate {
        G::RATE
    }

    fn seats(&self) -> RangeInclusive<u16> {
        self.seats.0..=self.seats.1
    }

    fn begin(&self, setup: &[u8]) -> Result<Box<dyn Run>, DecodeError> {
        let state = G::new(&from_canonical(setup)?);
        Ok(Box::new(Running { tick: Tick::ZERO, state, inputs: Inputs::new() }))
    }

    fn resume(&self, tick: Tick, state: &[u8]) -> Result<Box<dyn Run>, DecodeError> {
        let state: G = from_canonical(state)?;
        Ok(Box::new(Running { tick, state, inputs: Inputs::new() }))
    }

    fn differences(&self, ours: &[u8], theirs: &[u8], limit: usize) -> Result<Vec<Difference>, DecodeError> {
        let [ours, theirs] = [ours, theirs].map(from_canonical::<G>);
        Ok(diff::differences(&ours?, &theirs?, limit))
    }

    fn setup_to_json(&self, setup: &[u8]) -> Result<String, ShowError> {
        Ok(serde_json::to_string(&from_canonical::<G::Setup>(setup)?)?)
    }

    fn input_to_json(&self, input: &[u8]) -> Result<String, ShowError> {
        Ok(serde_json::to_string(&from_canonical::<G::Input>(input)?)?)
    }

    fn rehearse(&self, seed: u64, ticks: u32) -> Option<Rehearsal> {
        rehearsal::rehearse::<G>(self.autopilot, self.setup, seed, ticks)
    }

    fn room(&self) -> Option<&dyn AnyRoom> {
        self.room.as_deref()
    }

    fn contest(&self) -> Option<&dyn AnyContest> {
        self.contest.as_deref()
    }

    fn sync_test(&self, rehearsal: &Rehearsal, max_depth: u32) -> Result<StateHash, Desync> {
        let setup = from_canonical(&rehearsal.setup).expect("a rehearsal is made of what the game can read");
        let mut ticks = rehearsal.ticks.iter();
        let count = u32::try_from(rehearsal.ticks.len()).unwrap_or(u32::MAX);
        sync_test::<G>(&setup, count, max_depth, |_, inputs| {
            ticks.next().into_iter().for_each(|tick| tick.decode(inputs));
        })
    }
}

/// A running game.
struct Running<G: Game> {
    tick: Tick,
    state: G,
    /// Kept, so that a tick allocates nothing.
    inputs: Inputs<G::Input>,
}

impl<G: Game> Run for Running<G> {
    fn tick(&self) -> Tick {
        self.tick
    }

    fn step(&mut self, inputs: &TickInputs) {
        assert_eq!(inputs.tick(), self.tick.next(), "ticks are played in order");
        inputs.decode(&mut self.inputs);
        self.state.step(&self.inputs);
        self.tick = inputs.tick();
    }

    fn hash(&self) -> StateHash {
        StateHash::of(&self.state)
    }

    fn state(&self) -> &dyn Any {
        &self.state
    }

    fn save(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        canon::encode(&self.state, bytes).expect("a state whose hash can be taken has canonical bytes");
    }

    fn load(&mut self, tick: Tick, state: &[u8]) -> Result<(), DecodeError> {
        self.state = from_canonical(state)?;
        self.tick = tick;
        Ok(())
    }

    fn parts(&self, path: &str, depth: usize) -> Vec<Part> {
        hash::parts_under(&self.state, path, depth)
    }

    fn to_json(&self, layout: Layout) -> Result<String, ShowError> {
        // Written directly, because a tree of JSON values has no place for 128 bits.
        Ok(match layout {
            Layout::Line => serde_json::to_string(&self.state)?,
            Layout::Page => serde_json::to_string_pretty(&self.state)?,
        })
    }
}
