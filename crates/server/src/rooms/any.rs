//! A game of any type that can be hosted, and a room of it.

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use sametick_room::Host;
use sametick_room::host::{HostConfig, HostStats, Input, Output, Participant};
use sametick_sim::canon::{DecodeError, from_canonical};
use sametick_sim::record::TickInputs;
use sametick_sim::replica::{Hosted, hosted_description_of, hosted_schema_of};
use sametick_sim::{SchemaHash, Tick, TickRate, Time};

/// A game that can be hosted, whatever its type.
pub trait AnyRoom: Send + Sync {
    /// The description of everything that its rooms say, line by line.
    fn description(&self) -> String;

    /// The hash of that description: both ends of a room have the same.
    fn schema(&self) -> SchemaHash;

    /// How many seats a room may have.
    fn seats(&self) -> RangeInclusive<u16>;

    /// How many times a second players are told.
    fn updates(&self) -> TickRate;

    /// A room that begins now, from the canonical bytes of a setup.
    fn open(&self, now: Time, setup: &[u8], config: HostConfig) -> Result<Box<dyn AnyHost>, DecodeError>;
}

/// A [`Host`] of any game.
pub trait AnyHost {
    /// [`Host::handle`].
    fn handle(&mut self, now: Time, input: Input<'_>);

    /// [`Host::poll_output`].
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output;

    /// [`Host::tick`].
    fn tick(&self) -> Tick;

    /// [`Host::inputs`].
    fn inputs(&self) -> &TickInputs;

    /// [`Host::participants`].
    fn participants(&self) -> Box<dyn Iterator<Item = Participant<'_>> + '_>;

    /// [`Host::is_empty`].
    fn is_empty(&self) -> bool;

    /// [`Host::stats`].
    fn stats(&self) -> HostStats;
}

impl<G: Hosted> AnyHost for Host<G> {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        Host::handle(self, now, input);
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        Host::poll_output(self, buf)
    }

    fn tick(&self) -> Tick {
        Host::tick(self)
    }

    fn inputs(&self) -> &TickInputs {
        Host::inputs(self)
    }

    fn participants(&self) -> Box<dyn Iterator<Item = Participant<'_>> + '_> {
        Box::new(Host::participants(self))
    }

    fn is_empty(&self) -> bool {
        Host::is_empty(self)
    }

    fn stats(&self) -> HostStats {
        Host::stats(self)
    }
}

/// A game of a known type that can be hosted.
pub struct Hosting<G: Hosted> {
    seats: (u16, u16),
    game: PhantomData<fn() -> G>,
}

impl<G: Hosted> Hosting<G> {
    /// In rooms of so many seats.
    pub fn new(seats: RangeInclusive<u16>) -> Hosting<G> {
        Hosting { seats: (*seats.start(), *seats.end()), game: PhantomData }
    }
}

impl<G: Hosted> AnyRoom for Hosting<G> {
    fn description(&self) -> String {
        hosted_description_of::<G>()
    }

    fn schema(&self) -> SchemaHash {
        hosted_schema_of::<G>()
    }

    fn seats(&self) -> RangeInclusive<u16> {
        self.seats.0..=self.seats.1
    }

    fn updates(&self) -> TickRate {
        G::UPDATES
    }

    fn open(&self, now: Time, setup: &[u8], config: HostConfig) -> Result<Box<dyn AnyHost>, DecodeError> {
        Ok(Box::new(Host::<G>::new(now, &from_canonical(setup)?, config)))
    }
}
