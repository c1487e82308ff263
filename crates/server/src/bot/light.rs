//! Players who cost next to nothing: they say what has arrived without reading it, and walk blindly. A host cannot tell them
//! from others, so that one machine can fill its rooms.

use sametick_room::message::{MASK_BITS, RTT_UNIT_US, Report, ToHost, ToView, Update, read_update};
use sametick_sim::replica::Hosted;
use sametick_sim::{Seat, Tick};
use sametick_wire::inputs::{Opaque, put_inputs};
use sametick_wire::outbox::Outbox;
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, Malformed, Time, control};

use super::room::Seen;
use super::{Mind, Want};

/// How many ticks before theirs inputs are sent, besides half a round trip.
const LEAD_TICKS: u32 = 2;

/// What such a player does.
pub type Wander<G> = fn(Seat, Tick) -> <G as sametick_sim::Game>::Input;

/// A player who reads nothing.
pub struct Light<G: Hosted> {
    wander: Wander<G>,
    seat: Option<Seat>,
    refused: Option<String>,
    /// The newest update, and when it came.
    newest: Option<(Tick, Time)>,
    mask: u64,
    path: Path,
    tick: Tick,
    acted_at: Time,
    outbox: Outbox<Channel>,
    seen: Seen,
}

impl<G: Hosted> Light<G> {
    /// Asks to take part, over a link that has just opened.
    pub fn new(now: Time, join: &ToHost, path: Path, wander: Wander<G>) -> Light<G> {
        let mut outbox = Outbox::default();
        outbox.push(Channel::Control, |out| control::put(out, join));
        Light {
            wander,
            seat: None,
            refused: None,
            newest: None,
            mask: 0,
            path,
            tick: Tick::ZERO,
            acted_at: now,
            outbox,
            seen: Seen::default(),
        }
    }

    fn on_control(&mut self, message: ToView) {
        match message {
            ToView::Welcome(welcome) => self.seat = welcome.seat,
            ToView::Refused { why, .. } => self.refused = Some(why),
            ToView::Roster { seated } => self.seen.players = seated.len(),
            ToView::Came(_) => self.seen.players += 1,
            _ => {}
        }
    }

    fn on_update(&mut self, now: Time, bytes: &[u8]) -> Result<(), Malformed> {
        let near = self.newest.map_or(self.tick, |(tick, _)| tick);
        let Update { head, pace, .. } = read_update(bytes, near)?;
        self.seen.omissions = pace.map_or(self.seen.omissions, |pace| pace.omissions);
        if self.newest.is_some_and(|(newest, _)| head.tick <= newest) {
            return Ok(());
        }
        if let Some((newest, _)) = self.newest {
            let ahead = head.tick.ticks_since(newest);
            let every = G::RATE.per_second() / G::UPDATES.per_second();
            self.seen.lost += u64::from((ahead / every).saturating_sub(1));
            let moved = self.mask.checked_shl(ahead).unwrap_or(0);
            self.mask = if ahead <= MASK_BITS { moved | 1 << (ahead - 1) } else { 0 };
        }
        self.newest = Some((head.tick, now));
        self.seen.updates += 1;
        self.seen.bytes += bytes.len() as u64;
        self.report(now, head.tick);
        Ok(())
    }

    fn report(&mut self, now: Time, newest: Tick) {
        let report = Report {
            newest: Some(newest.0 as u16),
            mask: self.mask,
            clock_us: now.as_micros() as u32,
            tick: self.tick,
            ago_us: u16::try_from(now.micros_since(self.acted_at)).unwrap_or(u16::MAX),
            rtt: u16::try_from(self.path.rtt_us / RTT_UNIT_US).unwrap_or(u16::MAX),
        };
        self.outbox.push(Channel::State, |out| report.put(out));
    }

    /// When the next input is due.
    fn next_at(&self) -> Time {
        self.acted_at.plus_micros(G::RATE.tick_micros())
    }

    /// One input, for the tick in which it arrives with some time to spare.
    fn act(&mut self, now: Time, seat: Seat, (newest, came_at): (Tick, Time)) {
        let passed_us = now.micros_since(came_at) + self.path.rtt_us;
        let present = newest + (passed_us / G::RATE.tick_micros()) as u32;
        self.tick = (present + LEAD_TICKS).max(self.tick.next());
        // Late by a moment is not late the next time.
        let on_time = now.micros_since(self.next_at()) < G::RATE.tick_micros();
        self.acted_at = if on_time { self.next_at() } else { now };
        let input = Opaque::of(&(self.wander)(seat, self.tick));
        let tick = self.tick;
        self.outbox.push(Channel::Input, |out| put_inputs(out, tick, [input].iter()));
    }
}

impl<G: Hosted> Mind for Light<G> {
    fn hear(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), Malformed> {
        match channel {
            Channel::Control => self.on_control(control::from_bytes(bytes)?),
            _ => self.on_update(now, bytes)?,
        }
        Ok(())
    }

    fn on_path(&mut self, _: Time, path: Path) {
        self.path = path;
    }

    fn on_time(&mut self, _: Time) {}

    fn poll(&mut self, now: Time, buf: &mut Vec<u8>) -> Want {
        if let (Some(seat), Some(newest)) = (self.seat, self.newest)
            && self.next_at() <= now
        {
            self.act(now, seat, newest);
        }
        match self.outbox.pop(buf) {
            Some(channel) => Want::Send(channel),
            None if self.newest.is_some() => Want::WakeAt(self.next_at()),
            None => Want::Nothing,
        }
    }

    fn refused(&self) -> Option<String> {
        self.refused.clone()
    }
}

impl<G: Hosted> super::room::Told for Light<G> {
    fn seen(&self) -> Seen {
        let tick = self.newest.map_or(Tick::ZERO, |(tick, _)| tick);
        Seen { seat: self.seat, tick, ..self.seen }
    }
}
