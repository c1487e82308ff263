//! Type-erased hosted games, and rooms of them.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use sametick_room::Host;
use sametick_room::host::{HostConfig, HostStats, Input, Output, Participant};
use sametick_room::view::JoinAs;
use sametick_sim::canon::{DecodeError, from_canonical, to_canonical};
use sametick_sim::record::TickInputs;
use sametick_sim::replica::{Hosted, hosted_description_of, hosted_schema_of};
use sametick_sim::{SchemaHash, Seat, StateHash, Tick, TickRate, Time};
use sametick_transport::clock::random;
use sametick_wire::claims::Claim;
use sametick_wire::identity::PlayerId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::entrance::Entrance;
use super::script::{AnyScript, Script};
use crate::strict_json;

/// A game that can be hosted, whatever its type.
pub trait AnyRoom: Send + Sync {
    /// The description of all messages of its rooms, line by line.
    fn description(&self) -> String;

    /// The hash of the description: client and server must have the same.
    fn schema(&self) -> SchemaHash;

    /// How many seats a room may have.
    fn seats(&self) -> RangeInclusive<u16>;

    /// How many updates a second players get.
    fn updates(&self) -> TickRate;

    /// The characters that a player may have.
    fn characters(&self) -> &'static [&'static str];

    /// The number of bots in a setup: its field `bots`, if the game has one.
    fn bots(&self, setup: &[u8]) -> u64;

    /// Begins a room from the canonical bytes of a setup.
    fn open(&self, now: Time, setup: &[u8], config: HostConfig) -> Result<Box<dyn AnyHost>, DecodeError>;

    /// Resumes a room after a tick, from the canonical bytes of its state, with these seats taken.
    fn reopen(
        &self,
        now: Time,
        config: HostConfig,
        state: (Tick, &[u8]),
        taken: &[Seat],
    ) -> Result<Box<dyn AnyHost>, DecodeError>;

    /// Creates a script that joins a room, for a program of this git commit. The error says in a sentence what is wrong
    /// with the request.
    fn script(&self, now: Time, entrance: &Entrance, commit: &str) -> Result<Box<dyn AnyScript>, String>;
}

/// A [`Host`] of any game.
pub trait AnyHost {
    /// [`Host::handle`].
    fn handle(&mut self, now: Time, input: Input<'_>);

    /// [`Host::lose_time`].
    fn lose_time(&mut self, now: Time);

    /// [`Host::poll_output`].
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output;

    /// [`Host::tick`].
    fn tick(&self) -> Tick;

    /// [`Host::inputs`].
    fn inputs(&self) -> &TickInputs;

    /// [`Host::state`], for a caller that knows the type.
    fn state(&self) -> &dyn Any;

    /// The canonical bytes of the state, and their hash.
    fn save(&self) -> (Vec<u8>, StateHash);

    /// [`Host::taken`].
    fn taken(&self) -> Vec<Seat>;

    /// [`Host::participants`].
    fn participants(&self) -> Box<dyn Iterator<Item = Participant<'_>> + '_>;

    /// [`Host::player_of`].
    fn player_of(&self, claim: &Claim) -> Option<PlayerId>;

    /// [`Host::is_empty`].
    fn is_empty(&self) -> bool;

    /// [`Host::stats`].
    fn stats(&self) -> HostStats;
}

impl<G: Hosted> AnyHost for Host<G> {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        Host::handle(self, now, input);
    }

    fn lose_time(&mut self, now: Time) {
        Host::lose_time(self, now);
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

    fn state(&self) -> &dyn Any {
        Host::<G>::state(self)
    }

    fn save(&self) -> (Vec<u8>, StateHash) {
        let state = to_canonical(self.state()).expect("a state has canonical bytes");
        let hash = StateHash::of_bytes(&state);
        (state, hash)
    }

    fn taken(&self) -> Vec<Seat> {
        Host::taken(self).collect()
    }

    fn participants(&self) -> Box<dyn Iterator<Item = Participant<'_>> + '_> {
        Box::new(Host::participants(self))
    }

    fn player_of(&self, claim: &Claim) -> Option<PlayerId> {
        Host::player_of(self, claim)
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
    /// For rooms with this many seats.
    pub fn new(seats: RangeInclusive<u16>) -> Hosting<G> {
        Hosting { seats: (*seats.start(), *seats.end()), game: PhantomData }
    }
}

impl<G: Hosted> AnyRoom for Hosting<G>
where
    G::Setup: Default,
    G::Input: Default,
{
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

    fn characters(&self) -> &'static [&'static str] {
        G::CHARACTERS
    }

    fn bots(&self, setup: &[u8]) -> u64 {
        let setup = from_canonical::<G::Setup>(setup).ok();
        let fields = setup.and_then(|setup| serde_json::to_value(setup).ok());
        fields.and_then(|fields| fields.get("bots")?.as_u64()).unwrap_or(0)
    }

    fn open(&self, now: Time, setup: &[u8], config: HostConfig) -> Result<Box<dyn AnyHost>, DecodeError> {
        Ok(Box::new(Host::<G>::new(now, &from_canonical(setup)?, config)))
    }

    fn reopen(
        &self,
        now: Time,
        config: HostConfig,
        (tick, state): (Tick, &[u8]),
        taken: &[Seat],
    ) -> Result<Box<dyn AnyHost>, DecodeError> {
        Ok(Box::new(Host::<G>::resume(now, config, (tick, from_canonical(state)?), taken)))
    }

    fn script(&self, now: Time, entrance: &Entrance, commit: &str) -> Result<Box<dyn AnyScript>, String> {
        let Beginning { setup, seed, seats } = begin(entrance, self.seats())?;
        let join = JoinAs {
            name: entrance.name.clone(),
            commit: commit.into(),
            setup,
            seed,
            seats,
            watch: entrance.watch,
            listed: entrance.listed,
        };
        Ok(Box::new(Script::<G>::new(now, entrance.room.clone(), &join, entrance.resume, entrance.token)))
    }
}

/// The initial values of a room that a script begins.
#[derive(Debug, PartialEq)]
struct Beginning<S> {
    setup: S,
    seed: u64,
    seats: u16,
}

/// The number of seats if neither the game nor the script sets it.
const USUAL_SEATS: u16 = 16;

/// The default setup of a game with a random seed and the script's own values.
fn begin<S: Default + Serialize + DeserializeOwned>(
    entrance: &Entrance,
    seats: RangeInclusive<u16>,
) -> Result<Beginning<S>, String> {
    let usual = serde_json::to_value(S::default()).map_err(|why| why.to_string())?;
    let mut fields = match usual {
        Value::Object(fields) => fields,
        _ if entrance.setup.is_empty() => Map::new(),
        _ => return Err("rooms of this game all begin alike: there is no `setup`".into()),
    };
    if let Some(unknown) = entrance.setup.keys().find(|name| !fields.contains_key(*name)) {
        let known: Vec<&str> = fields.keys().map(String::as_str).collect();
        return Err(format!("there is no {unknown:?} in `setup`; there are {}", known.join(", ")));
    }
    let number = |fields: &Map<String, Value>, name: &str| fields.get(name).and_then(Value::as_u64);
    let usual_seats = number(&fields, "seats").and_then(|seats| u16::try_from(seats).ok());
    let in_range = |wanted: u64| u16::try_from(wanted).ok().filter(|wanted| seats.contains(wanted));
    let out_of_range =
        |wanted| format!("a room of this game has {} to {} seats, not {wanted}", seats.start(), seats.end());
    let given =
        entrance.seats.map(|wanted| in_range(wanted).ok_or_else(|| out_of_range(wanted))).transpose()?;
    let usual = usual_seats.unwrap_or(USUAL_SEATS).clamp(*seats.start(), *seats.end());
    let seats = given.unwrap_or(usual);
    let chance = u64::from_le_bytes(random());
    for (name, value) in [("seed", chance), ("seats", seats.into())] {
        fields.entry(name).and_modify(|field| *field = value.into());
    }
    fields.extend(entrance.setup.clone());
    let seed = number(&fields, "seed").unwrap_or_default();
    if fields.is_empty() {
        return Ok(Beginning { setup: S::default(), seed, seats });
    }
    let setup = strict_json::read(Value::Object(fields)).map_err(|why| format!("`setup`: {why}"))?;
    Ok(Beginning { setup, seed, seats })
}

#[cfg(test)]
mod tests {
    use sametick_arena::Setup;

    use super::*;

    #[test]
    fn rooms_begin_with_the_default_or_a_given_setup() {
        let begin = |query: &str, seats| {
            begin::<Setup>(&Entrance::parse(&format!("/api/rooms/den/ws?{query}")).unwrap(), seats)
        };
        let usual = begin("", 1..=1000).unwrap();
        assert_eq!(usual.setup, Setup { seed: usual.seed, ..Setup::default() });
        assert_ne!(usual.seed, begin("", 1..=1000).unwrap().seed);
        let wanted = begin("seats=32&setup={\"seed\":7,\"bots\":0}", 1..=32).unwrap();
        let setup = Setup { seed: 7, bots: 0, seats: 32, ..Setup::default() };
        assert_eq!(wanted, Beginning { setup, seed: 7, seats: 32 });
        let unknown = begin("setup={\"gravity\":1}", 1..=32).unwrap_err();
        assert_eq!(
            unknown,
            "there is no \"gravity\" in `setup`; there are bots, points, rocks, rounds, seats, seed, size"
        );
        assert_eq!(
            begin("setup={\"bots\":-1}", 1..=32).unwrap_err(),
            "`setup`: `bots`: a whole number from 0 to 255 is expected, not -1"
        );
        for seats in ["0", "33", "65535"] {
            let why = begin(&format!("seats={seats}"), 1..=32).unwrap_err();
            assert_eq!(why, format!("a room of this game has 1 to 32 seats, not {seats}"));
        }
    }
}
