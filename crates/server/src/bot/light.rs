//! Light bots, which cost next to nothing: they acknowledge updates without decoding them, and walk blindly. A host
//! cannot tell them from other players, so one machine can fill its rooms.

use sametick_client::{Progress, Side, Standing};
use sametick_room::View;
use sametick_room::message::{Join, MASK_BITS, RTT_UNIT_US, Report, ToHost, ToView, Update, read_update};
use sametick_sim::replica::Hosted;
use sametick_sim::{Seat, Tick};
use sametick_wire::hello::{Identity, Intent};
use sametick_wire::identity::Token;
use sametick_wire::inputs::{Opaque, put_inputs};
use sametick_wire::message_log::Described;
use sametick_wire::outbox::Outbox;
use sametick_wire::pacer::Path;
use sametick_wire::side::{Input, Output};
use sametick_wire::{Channel, Malformed, Time, control};

use super::room::Seen;

/// How many ticks ahead of their tick inputs are sent, besides half a round trip.
const LEAD_TICKS: u32 = 2;

/// Chooses the input of a light bot.
pub type Wander<G> = fn(Seat, Tick) -> <G as sametick_sim::Game>::Input;

/// A player who decodes no update.
pub struct Light<G: Hosted> {
    join: Join,
    wander: Wander<G>,
    now: Time,
    seat: Option<Seat>,
    refused: Option<String>,
    /// The newest update, and when it arrived.
    newest: Option<(Tick, Time)>,
    mask: u64,
    path: Path,
    tick: Tick,
    acted_at: Time,
    outbox: Outbox<Channel>,
    seen: Seen,
}

impl<G: Hosted> Light<G> {
    fn ask(&mut self) {
        let join = ToHost::Join(self.join.clone());
        self.outbox.push(Channel::Control, |out| control::put(out, &join));
    }

    fn on_control(&mut self, message: ToView) {
        match message {
            ToView::Welcome(welcome) => {
                self.seat = welcome.seat;
                self.join.resume = Some(welcome.claim);
            }
            ToView::Token(token) => self.join.token = Some(token),
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

    /// Sends one input for a tick that it reaches with some margin.
    fn act(&mut self, now: Time, seat: Seat, (newest, came_at): (Tick, Time)) {
        let passed_us = now.micros_since(came_at) + self.path.rtt_us;
        let present = newest + (passed_us / G::RATE.tick_micros()) as u32;
        self.tick = (present + LEAD_TICKS).max(self.tick.next());
        // A wake-up that is late by less than a tick must not delay the next one.
        let on_time = now.micros_since(self.next_at()) < G::RATE.tick_micros();
        self.acted_at = if on_time { self.next_at() } else { now };
        let input = Opaque::of(&(self.wander)(seat, self.tick));
        let tick = self.tick;
        self.outbox.push(Channel::Input, |out| put_inputs(out, tick, [input].iter()));
    }
}

impl<G: Hosted> Side for Light<G> {
    type Input = G::Input;
    type JoinAs = (Join, Wander<G>);
    const NONSENSE: &'static str = View::<G>::NONSENSE;

    fn identity() -> Identity {
        View::<G>::identity()
    }

    fn intent(room: String) -> Intent {
        View::<G>::intent(room)
    }

    fn who((join, _): &(Join, Wander<G>)) -> (&str, bool) {
        (&join.name, join.watch)
    }

    fn new(now: Time, (join, wander): &(Join, Wander<G>), path: Path) -> Light<G> {
        let mut light = Light {
            join: join.clone(),
            wander: *wander,
            now,
            seat: None,
            refused: None,
            newest: None,
            mask: 0,
            path,
            tick: Tick::ZERO,
            acted_at: now,
            outbox: Outbox::default(),
            seen: Seen::default(),
        };
        light.ask();
        light
    }

    fn rejoin(&mut self, now: Time, path: Path) {
        (self.now, self.path) = (now, path);
        (self.newest, self.mask) = (None, 0);
        self.outbox = Outbox::default();
        self.ask();
    }

    fn take_token(&mut self, token: Token) {
        self.join.token = Some(token);
    }

    fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.now = now;
        match input {
            Input::Message(Channel::Control, bytes) => self.on_control(control::from_bytes(bytes)?),
            Input::Message(_, bytes) => self.on_update(now, bytes)?,
            Input::Path(path) => self.path = path,
            Input::Local(_) | Input::Timeout => {}
        }
        Ok(())
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        if let (Some(seat), Some(newest)) = (self.seat, self.newest)
            && self.next_at() <= self.now
        {
            self.act(self.now, seat, newest);
        }
        match self.outbox.pop(buf) {
            Some(channel) => Output::Send(channel),
            None if self.newest.is_some() => Output::WakeAt(self.next_at()),
            None => Output::Wait,
        }
    }

    fn standing(&self) -> Standing {
        match &self.refused {
            Some(why) => Standing::Refused(why.clone()),
            None if self.newest.is_some() => Standing::Playing,
            None => Standing::Joining,
        }
    }

    fn catching_up(&self) -> Progress {
        Progress::default()
    }

    fn reached(&self) -> Tick {
        self.newest.map_or(Tick::ZERO, |(tick, _)| tick)
    }

    fn seat(&self) -> Option<Seat> {
        self.seat
    }

    fn describe(sent: bool, channel: Channel, bytes: &[u8], near: Tick) -> Described {
        View::<G>::describe(sent, channel, bytes, near)
    }
}

impl<G: Hosted> super::room::Told for Light<G> {
    fn seen(&self) -> Seen {
        let tick = self.newest.map_or(Tick::ZERO, |(tick, _)| tick);
        Seen { seat: self.seat, tick, ..self.seen }
    }
}
