//! Begins and resumes rooms.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_lockstep::relay::SessionKey;
use sametick_lockstep::session::Facts;
use sametick_room::host::HostConfig;
use sametick_room::message::{Join, ToHost};
use sametick_store::players::PlaceId;
use sametick_transport::clock::{random, unix_ms};
use sametick_wire::claims::HOLD_US;
use sametick_wire::{Channel, Member, control};

use super::open::Pace;
use super::reopening::{Past, Reopening};
use super::sharing::Founder;
use super::{AnyHost, Door, MAX_ROOMS, OpenRoom, Output, Resumed, RoomId, Rooms, TickTimes, Turned};
use crate::games::AnyGame;

impl Rooms {
    /// Begins a room.
    pub(super) fn begin(
        &mut self,
        member: Member,
        join: &Join,
        with: &Beginning<'_>,
    ) -> Result<RoomId, Turned> {
        let door = self.doors.get(&member).ok_or(Turned::Out)?;
        if !self.has_place_for(door) {
            return Err(Turned::Away("the server has no place for another room"));
        }
        let game = self.games.find(&join.game, door.key.build).map_err(|_| Turned::Away(ANOTHER_GAME))?;
        let hosting = game.room().ok_or(Turned::Away(ANOTHER_GAME))?;
        let founder = self.founder(door, hosting.bots(with.setup));
        self.check_limits(&founder)?;
        let seats = with.seats.clamp(*hosting.seats().start(), *hosting.seats().end());
        let config = self.config(seats);
        let opened = catch_unwind(AssertUnwindSafe(|| hosting.open(self.now, with.setup, config)));
        let host = opened.ok().and_then(Result::ok).ok_or(Turned::Away(BAD_SETUP))?;
        let (key, facts) = (door.key.clone(), facts_of(game, &door.key, seats, join, with));
        let started_unix_ms = match self.pasts.remove(&key) {
            Some((_, Past::None(started_unix_ms))) => started_unix_ms,
            Some((_, Past::Kept(kept))) => kept.started_unix_ms + 1,
            None => unix_ms(),
        };
        let id = self.open(key, facts, host, started_unix_ms, founder);
        self.outbox.push_bare(Output::Begun(id));
        Ok(id)
    }

    /// Resumes a room, if it was found and can be.
    pub(super) fn reopen(&mut self, member: Member, join: &Join) -> Result<Option<RoomId>, Turned> {
        let limited = self.past_of(member, join).map_or(Ok(()), |founder| self.check_limits(&founder));
        limited.map(|()| self.reopen_now(member, join))
    }

    /// The founder for limits, if a stored room was found.
    fn past_of(&self, member: Member, join: &Join) -> Option<Founder> {
        let door = self.doors.get(&member)?;
        let (_, past) = self.pasts.get(&door.key)?;
        let is_kept = matches!(past, Past::Kept(kept) if kept.facts.game == join.game);
        is_kept.then(|| self.founder(door, self.bots_of(past)))
    }

    fn reopen_now(&mut self, member: Member, join: &Join) -> Option<RoomId> {
        let founder = self.past_of(member, join)?;
        let door = self.doors.get(&member).filter(|door| self.has_place_for(door))?;
        let key = door.key.clone();
        let Some((_, Past::Kept(kept))) = self.pasts.remove(&key) else { return None };
        let Reopening { facts, started_unix_ms, tick, state, seats, recovered } = *kept;
        let hosting = self.games.find(&facts.game, facts.build).ok()?.room()?;
        let config = self.config(facts.seats);
        let open = || hosting.reopen(self.now, config, (tick, &state), &seats);
        let Some(host) = catch_unwind(AssertUnwindSafe(open)).ok().and_then(Result::ok) else {
            tracing::error!(room = key.name, "a room cannot go on from its own state; another begins");
            self.pasts.insert(key, (self.now, Past::None(started_unix_ms + 1)));
            return None;
        };
        let id = self.open(key, facts, host, started_unix_ms, founder);
        self.outbox.push_bare(Output::Resumed(id, Box::new(Resumed { recovered, seats })));
        Some(id)
    }

    /// Whether there may be another room. For a session's game that was decided before.
    fn has_place_for(&self, door: &Door) -> bool {
        self.rooms.len() < MAX_ROOMS || door.assignment.is_some()
    }

    fn config(&self, seats: u16) -> HostConfig {
        let hold_us = self.keeping.map_or(HOLD_US, |keeping| keeping.hold_us);
        HostConfig { seats, secret: random(), hold_us, ..HostConfig::default() }
    }

    fn open(
        &mut self,
        key: SessionKey,
        facts: Facts,
        host: Box<dyn AnyHost>,
        started_unix_ms: u64,
        founder: Founder,
    ) -> RoomId {
        let id = RoomId(self.next_room);
        self.next_room += 1;
        let tick_us = 1_000_000 / u64::from(facts.rate.per_second());
        self.budget.open(self.now, id, founder.payer(id), tick_us);
        self.names.insert(key.clone(), id);
        let room = OpenRoom {
            place: PlaceId::of(&facts.game, &key.name),
            cast: BTreeMap::new(),
            recasts: VecDeque::new(),
            key,
            facts,
            host,
            started_unix_ms,
            is_save_due: false,
            stays: false,
            is_told: false,
            founder,
            pace: Pace::default(),
            empty_since: Some(self.now),
            wake_at: None,
            is_busy: false,
            ending: None,
            stepping: None,
            times: TickTimes::default(),
        };
        self.rooms.insert(id, Box::new(room));
        id
    }
}

const ANOTHER_GAME: &str = "this game is not played in rooms here";
const BAD_SETUP: &str = "a room of this game cannot be begun like that";

/// The initial values of a room.
pub(super) struct Beginning<'a> {
    pub setup: &'a [u8],
    pub seed: u64,
    pub seats: u16,
    pub listed: bool,
}

/// Parses the first message of a member.
pub(super) fn join_of(channel: Channel, bytes: &[u8]) -> Result<Join, Turned> {
    if channel != Channel::Control {
        return Err(Turned::Out);
    }
    match control::from_bytes(bytes) {
        Ok(ToHost::Join(join)) => join.check().map(|()| join).map_err(Turned::Broke),
        Ok(_) => Err(Turned::Out),
        Err(malformed) => Err(Turned::Broke(malformed)),
    }
}

fn facts_of(game: &dyn AnyGame, key: &SessionKey, seats: u16, join: &Join, with: &Beginning<'_>) -> Facts {
    Facts {
        name: key.name.clone(),
        game: join.game.clone(),
        build: key.build,
        commit: join.commit.clone(),
        // Logs hold states and inputs, which are the same in rooms and in lockstep, so this is the game's schema.
        schema: game.schema(),
        setup: with.setup.to_vec(),
        seed: with.seed,
        rate: game.rate(),
        seats,
        listed: with.listed,
    }
}
