//! What rooms share: places, bots and the processor's time. Who has begun a room, how many more they may begin, what its steps cost,
//! and what its players are told when it is slowed.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use sametick_room::message::ToView;
use sametick_sim::Time;
use sametick_wire::Member;

use super::budget::Payer;
use super::reopening::Past;
use super::{Door, RoomId, Rooms, Turned};

/// Rooms that one address may have begun, of those that are open: a household or a classroom, but not the server.
pub const ROOMS_PER_ADDRESS: usize = 16;

/// Bots that the rooms of one address may have together: one room with as many as a game takes, or many with a few.
pub const BOTS_PER_ADDRESS: u64 = 256;

/// Players of a room are told when its speed has changed by so much, and no more often than this.
const TELL_STEP_PERCENT: u8 = 10;
const TELL_EVERY_US: u64 = 1_000_000;

/// While it is slowed they are told again: there may be new ones.
const TELL_AGAIN_US: u64 = 5_000_000;

/// That rooms are slowed is logged no more often than this.
const LOG_EVERY_US: u64 = 10_000_000;

const TOO_MANY_ROOMS: &str =
    "your address has begun as many rooms here as one may have: go to one of them, or wait until one is over";
const TOO_MANY_BOTS: &str =
    "the rooms of your address have as many bots as they may have together: begin this one with fewer";
const TOO_SLOW: &str = "the rooms of your address use more of this server's time than their share: wait until one of them is over";

/// How much one address may have. Those of this machine itself may have more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomLimits {
    /// Rooms that it has begun.
    pub rooms_per_address: usize,
    /// Bots in these together.
    pub bots_per_address: u64,
}

impl Default for RoomLimits {
    fn default() -> RoomLimits {
        RoomLimits { rooms_per_address: ROOMS_PER_ADDRESS, bots_per_address: BOTS_PER_ADDRESS }
    }
}

/// Microseconds, from whenever.
pub(super) type Clock = Box<dyn Fn() -> u64>;

/// That of this machine.
pub(super) fn machine_clock() -> Clock {
    let began = Instant::now();
    Box::new(move || u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
}

/// Who has begun a room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Founder {
    /// Where they came from; nobody if it was decided elsewhere that there is this room.
    source: Option<IpAddr>,
    bots: u64,
}

impl Founder {
    /// Who pays for the room.
    pub fn payer(&self, id: RoomId) -> Payer {
        self.source.map_or(Payer::Itself(id), Payer::Address)
    }
}

/// What was logged of rooms that are slowed.
#[derive(Default)]
pub(super) struct Sharing {
    was_slowed: bool,
    logged_at: Option<Time>,
}

impl Rooms {
    /// How much one address may have, from now on.
    pub fn set_limits(&mut self, limits: RoomLimits) {
        self.limits = limits;
    }

    /// What tells how long a step has taken, in microseconds, in place of this machine's clock: for tests in virtual time.
    pub fn set_clock(&mut self, clock: impl Fn() -> u64 + 'static) {
        self.clock = Box::new(clock);
    }

    /// Somebody as the one who begins a room with so many bots.
    pub(super) fn founder(&self, door: &Door, bots: u64) -> Founder {
        Founder { source: door.source.filter(|_| door.assignment.is_none()), bots }
    }

    /// How many bots a room has that may go on.
    pub(super) fn bots_of(&self, past: &Past) -> u64 {
        let Past::Kept(kept) = past else { return 0 };
        let game = self.games.find(&kept.facts.game, kept.facts.build).ok();
        game.and_then(|game| game.room()).map_or(0, |hosting| hosting.bots(&kept.facts.setup))
    }

    /// Whether they may.
    pub(super) fn check_limits(&self, founder: &Founder) -> Result<(), Turned> {
        let Some(source) = founder.source else { return Ok(()) };
        if self.budget.refuses(Payer::Address(source)) {
            return Err(Turned::Limited(TOO_SLOW));
        }
        if source.is_loopback() {
            return Ok(());
        }
        let own = || self.rooms.values().filter(|room| room.founder.source == Some(source));
        if own().count() >= self.limits.rooms_per_address {
            return Err(Turned::Limited(TOO_MANY_ROOMS));
        }
        let bots: u64 = own().map(|room| room.founder.bots).sum();
        if founder.bots > 0 && bots.saturating_add(founder.bots) > self.limits.bots_per_address {
            return Err(Turned::Limited(TOO_MANY_BOTS));
        }
        Ok(())
    }

    /// What the clock says before something is done for a room.
    pub(super) fn clock_us(&self) -> u64 {
        (self.clock)()
    }

    /// Something was done since then for a member: their room pays for it.
    pub(super) fn charge_member(&mut self, member: Member, began_us: u64) {
        let took_us = (self.clock)().saturating_sub(began_us);
        if let Some(id) = self.doors.get(&member).and_then(|door| door.room) {
            self.budget.spend(self.now, id, took_us, 0);
        }
    }

    /// A room has been stepped since then.
    pub(super) fn charge(&mut self, id: RoomId, began_us: u64) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let took_us = (self.clock)().saturating_sub(began_us);
        room.times.add(self.now, Duration::from_micros(took_us));
        let ticks = std::mem::take(&mut room.pace.ticks);
        if self.budget.spend(self.now, id, took_us, ticks) {
            self.tell_paces();
            self.log_slowed();
        }
    }

    /// Tells players at what speed their room runs, if that has changed.
    fn tell_paces(&mut self) {
        let mut told: Vec<(Member, u8)> = Vec::new();
        for (id, room) in &mut self.rooms {
            let percent = u8::try_from(self.budget.speed_percent(*id)).unwrap_or(100);
            let since_us = self.now.micros_since(room.pace.told_at);
            let pace = &mut room.pace;
            pace.percent = percent;
            let is_news =
                percent.abs_diff(pace.told) >= TELL_STEP_PERCENT || percent == 100 && pace.told != 100;
            if is_news && since_us >= TELL_EVERY_US || percent < 100 && since_us >= TELL_AGAIN_US {
                (pace.told, pace.told_at) = (percent, self.now);
                told.extend(room.host.participants().map(|who| (who.member, percent)));
            }
        }
        told.into_iter().for_each(|(member, percent)| self.say(member, &ToView::Pace(percent)));
    }

    fn log_slowed(&mut self) {
        let slowed = self.budget.slowed();
        let is_early = |at: Time| self.now.micros_since(at) < LOG_EVERY_US;
        if self.sharing.was_slowed == (slowed > 0) || self.sharing.logged_at.is_some_and(is_early) {
            return;
        }
        self.sharing = Sharing { was_slowed: slowed > 0, logged_at: Some(self.now) };
        let rooms = self.rooms.len();
        match slowed {
            0 => tracing::info!(rooms, "no room is slowed any more"),
            _ => tracing::warn!(
                slowed,
                rooms,
                "rooms want more of the processor than their share, and are slowed"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
