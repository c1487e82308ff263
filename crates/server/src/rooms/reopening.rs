//! Resumes a stored room: its log is replayed to the last tick and verified on the way.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_lockstep::relay::SessionKey;
use sametick_lockstep::session::Facts;
use sametick_room::message::Join;
use sametick_sim::record::Record;
use sametick_sim::{Seat, Tick, Time, from_canonical, to_canonical};
use sametick_store::log::LogReader;
use sametick_wire::Member;

use super::{Output, Rooms};
use crate::finder::Sought;
use crate::games::{AnyGame, Games, Run};
use crate::recovered::RecoveredSession;

/// How long a search result is valid: the member it was made for joins much sooner.
const PAST_US: u64 = 10_000_000;

/// The result of a search for a stored room.
pub enum Past {
    /// The room begins anew, with this start time in milliseconds of Unix time.
    None(u64),
    /// The room is resumed.
    Kept(Box<Reopening>),
}

/// A restored room.
pub struct Reopening {
    pub(crate) facts: Facts,
    pub(crate) started_unix_ms: u64,
    pub(crate) tick: Tick,
    /// The canonical bytes of the state after that tick.
    pub(crate) state: Vec<u8>,
    /// The taken seats.
    pub(crate) seats: Vec<Seat>,
    /// The stored data that its log continues from.
    pub(crate) recovered: RecoveredSession,
}

impl Past {
    /// Replays what was found of a room. If that fails, a new room begins.
    pub(crate) fn of(sought: Sought, name: &str, games: &Games) -> Past {
        let recovered = match sought {
            Sought::New(started_unix_ms) | Sought::Spoilt(started_unix_ms) => {
                return Past::None(started_unix_ms);
            }
            Sought::Kept(recovered) => recovered,
        };
        let next_unix_ms = recovered.header.started_unix_ms + 1;
        let replayed = catch_unwind(AssertUnwindSafe(|| Reopening::of(*recovered, games)));
        match replayed.unwrap_or_else(|_| Err("its game panics".into())) {
            Ok(reopening) => Past::Kept(Box::new(reopening)),
            Err(why) => {
                tracing::error!(
                    room = name,
                    why,
                    "a room cannot go on as it was; it begins from what is kept of it"
                );
                Past::None(next_unix_ms.max(sametick_transport::clock::unix_ms()))
            }
        }
    }
}

impl Rooms {
    /// Handles the result of a search. The members that wait for it are looked up or joined next.
    pub fn sought(&mut self, now: Time, key: &SessionKey, past: Past) {
        self.now = self.now.max(now);
        let Some(waiting) = self.looked_for.remove(key) else { return };
        let is_late = |at: Time| now.micros_since(at) > PAST_US;
        self.pasts.retain(|_, (at, _)| !is_late(*at));
        self.pasts.insert(key.clone(), (now, past));
        for member in waiting {
            let Some(door) = self.doors.get_mut(&member) else { continue };
            let Some((join, _)) = door.asking.take() else { continue };
            match self.keeping.filter(|_| door.assignment.is_none()) {
                Some(keeping) => self.inquire(&keeping, member, join),
                None => {
                    if let Err(turned) = self.come_in(member, join) {
                        self.turn_away(member, &turned);
                    }
                }
            }
        }
    }

    /// Searches for a room that is not open, unless that was done a moment ago. Returns whether the member has to wait.
    pub(super) fn look_for(&mut self, member: Member, join: &Join) -> bool {
        let Some(door) = self.doors.get_mut(&member) else { return false };
        let is_known = self.pasts.get(&door.key).is_some_and(|(at, _)| self.now.micros_since(*at) <= PAST_US);
        if !self.finds || is_known || self.names.contains_key(&door.key) {
            return false;
        }
        // A second request of a member replaces the first; the member waits once.
        if door.asking.replace((join.clone(), true)).is_none() {
            let waiting = self.looked_for.entry(door.key.clone()).or_default();
            if waiting.is_empty() {
                self.outbox.push_bare(Output::Find(door.key.clone()));
            }
            waiting.push(member);
        }
        true
    }
}

/// The seat table in a room's save.
pub(crate) fn table_of(seats: &[Seat]) -> Vec<u8> {
    to_canonical(&seats).expect("numbers have canonical bytes")
}

impl Reopening {
    fn of(recovered: RecoveredSession, games: &Games) -> Result<Reopening, String> {
        let facts = recovered.facts();
        let game = games.find(&facts.game, facts.build).map_err(|unknown| unknown.to_string())?;
        let run = replay(&recovered, game)?;
        let seats = match (&recovered.log, &recovered.save) {
            (Some(log), _) => log.position.seats().collect(),
            (None, Some(save)) => {
                from_canonical(&save.table).map_err(|error| format!("the table: {error:?}"))?
            }
            (None, None) => Vec::new(),
        };
        let (tick, mut state) = (run.tick(), Vec::new());
        run.save(&mut state);
        let started_unix_ms = recovered.header.started_unix_ms;
        Ok(Reopening { facts, started_unix_ms, tick, state, seats, recovered })
    }
}

/// Replays the stored log of a room from its save, or from its beginning.
fn replay(recovered: &RecoveredSession, game: &dyn AnyGame) -> Result<Box<dyn Run>, String> {
    let run = match &recovered.save {
        Some(save) => game.resume(save.info.tick, &save.state),
        None => game.begin(&recovered.header.setup),
    };
    let mut run = run.map_err(|error| format!("{error:?}"))?;
    let Some(log) = &recovered.log else { return Ok(run) };
    let mut reader = LogReader::open(&log.bytes[..]).map_err(|error| error.to_string())?;
    let mut records = reader.holding();
    while let Some(record) = records.next().map_err(|error| error.to_string())? {
        match record {
            Record::Inputs(inputs) if inputs.tick() > run.tick() => run.step(inputs),
            Record::Check { tick, hash } if *tick == run.tick() && *hash != run.hash() => {
                return Err(format!("after tick {tick} it was in another state"));
            }
            _ => {}
        }
    }
    Ok(run)
}
