//! Limits per address and shares of processor time: counts rooms and bots of each founder, charges steps, and tells
//! players when their room is slowed.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use sametick_room::message::ToView;
use sametick_sim::Time;
use sametick_wire::Member;

use super::budget::Payer;
use super::reopening::Past;
use super::{Door, RoomId, Rooms, Turned};

/// The most open rooms that one address may have begun: enough for a household or a classroom, but not the whole
/// server.
pub const ROOMS_PER_ADDRESS: usize = 16;

/// The most bots in all rooms of one address: one room with as many as a game allows, or many with a few.
pub const BOTS_PER_ADDRESS: u64 = 256;

/// The least change of speed that players are told, and the least time between two such messages.
const TELL_STEP_PERCENT: u8 = 10;
const TELL_EVERY_US: u64 = 1_000_000;

/// How often players of a slowed room are told again: there may be new ones.
const TELL_AGAIN_US: u64 = 5_000_000;

/// The least time between log lines about slowed rooms.
const LOG_EVERY_US: u64 = 10_000_000;

const TOO_MANY_ROOMS: &str =
    "your address has begun as many rooms here as one may have: go to one of them, or wait until one is over";
const TOO_MANY_BOTS: &str =
    "the rooms of your address have as many bots as they may have together: begin this one with fewer";
const TOO_SLOW: &str = "the rooms of your address use more of this server's time than their share: wait until one of them is over";

/// Limits per address. Loopback addresses are exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomLimits {
    /// Open rooms that the address has begun.
    pub rooms_per_address: usize,
    /// Bots in all of these.
    pub bots_per_address: u64,
}

impl Default for RoomLimits {
    fn default() -> RoomLimits {
        RoomLimits { rooms_per_address: ROOMS_PER_ADDRESS, bots_per_address: BOTS_PER_ADDRESS }
    }
}

/// A clock in microseconds, from any origin.
pub(super) type Clock = Box<dyn Fn() -> u64>;

/// This machine's clock.
pub(super) fn machine_clock() -> Clock {
    let began = Instant::now();
    Box::new(move || u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
}

/// The founder of a room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Founder {
    /// The founder's address; none if the driver decided that the room exists.
    source: Option<IpAddr>,
    bots: u64,
}

impl Founder {
    /// The payer of the room.
    pub fn payer(&self, id: RoomId) -> Payer {
        self.source.map_or(Payer::Itself(id), Payer::Address)
    }
}

/// State of log lines and messages about slowed rooms.
#[derive(Default)]
pub(super) struct Sharing {
    was_slowed: bool,
    logged_at: Option<Time>,
}

impl Rooms {
    /// Sets the limits per address.
    pub fn set_limits(&mut self, limits: RoomLimits) {
        self.limits = limits;
    }

    /// Replaces this machine's clock for measuring steps, in microseconds: for tests in virtual time.
    pub fn set_clock(&mut self, clock: impl Fn() -> u64 + 'static) {
        self.clock = Box::new(clock);
    }

    /// The founder of a new room with this many bots.
    pub(super) fn founder(&self, door: &Door, bots: u64) -> Founder {
        Founder { source: door.source.filter(|_| door.assignment.is_none()), bots }
    }

    /// The number of bots of a stored room.
    pub(super) fn bots_of(&self, past: &Past) -> u64 {
        let Past::Kept(kept) = past else { return 0 };
        let game = self.games.find(&kept.facts.game, kept.facts.build).ok();
        game.and_then(|game| game.room()).map_or(0, |hosting| hosting.bots(&kept.facts.setup))
    }

    /// Checks the founder's limits.
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

    /// The time before work for a room.
    pub(super) fn clock_us(&self) -> u64 {
        (self.clock)()
    }

    /// Charges the member's room for work since then.
    pub(super) fn charge_member(&mut self, member: Member, began_us: u64) {
        let took_us = (self.clock)().saturating_sub(began_us);
        if let Some(id) = self.doors.get(&member).and_then(|door| door.room) {
            self.budget.spend(self.now, id, took_us, 0);
        }
    }

    /// Charges a room for a step since then.
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

    /// Tells players the speed of their room, if it has changed.
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
