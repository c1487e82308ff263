//! Moves data between carrier, simulated network, link and side until there is nothing to do.

use alloc::format;
use alloc::vec::Vec;

use sametick_sim::Time;
use sametick_wire::access::NO_ANSWER;
use sametick_wire::closing::THROWN_OUT;
use sametick_wire::netem_carrier::{NetemCarrier, Way};
use sametick_wire::{Carrier, Closed, link, side};

use super::{Carried, Client, Output, SILENCE_US, STALL_US, Stage};
use crate::side::{Side, Standing};

/// The stall limit while the server has not answered the join: it may have to look for the session first, and sends
/// only keep-alives meanwhile. A second link would ask for a second seat.
const UNANSWERED_US: u64 = 2 * link::KEEP_ALIVE_US + 500_000;

impl<S: Side> Client<S> {
    /// Handles an event of a carrier.
    pub(super) fn on_carried(&mut self, carried: Carried<'_>) {
        let (now, way) = (self.now, self.way_of_datagrams());
        match (carried, &mut self.trouble) {
            (Carried::Answer(bytes), _) if matches!(self.stage, Stage::Dialling(_)) => self.on_answer(bytes),
            (Carried::Gone(why), _) => self.on_gone(why),
            (Carried::Datagrams(carried), _) => {
                if let Stage::Open { link, .. } = &mut self.stage {
                    // This input is never malformed.
                    let _ = link.handle(now, link::Input::Datagrams(carried));
                }
            }
            (Carried::Datagram(bytes), Some(trouble)) => trouble.incoming(now, (), way, bytes),
            (Carried::Stream(lane, bytes), Some(trouble)) => {
                trouble.incoming(now, (), Way::Stream(lane), bytes);
            }
            (Carried::Datagram(bytes), None) => self.hear(link::Input::Datagram(bytes)),
            (Carried::Stream(lane, bytes), None) => self.hear(link::Input::Stream(lane, bytes)),
            (Carried::Answer(_), _) => {}
        }
    }

    fn hear(&mut self, input: link::Input<'_>) {
        if let Stage::Open { link, heard_at, .. } = &mut self.stage {
            *heard_at = self.now;
            // An error also comes out as `Closed`.
            let _ = link.handle(self.now, input);
            self.hang_up_beside();
        }
    }

    pub(super) fn carrier(&self) -> Carrier {
        self.plan.routes[self.routes.current()]
    }

    fn way_of_datagrams(&self) -> Way {
        Way::of_datagram(self.carrier())
    }

    /// The next output.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        loop {
            if let Some(call) = self.calls.pop_front() {
                if let Output::Dial(attempt, _) = call {
                    self.put_hello(attempt, buf);
                }
                return call;
            }
            match &self.stage {
                Stage::Dialling(since) => {
                    let end = since.plus_micros(self.routes.patience_us());
                    if end > self.now {
                        return self.wait_until(end);
                    }
                    self.on_unanswered(NO_ANSWER);
                }
                Stage::Pausing(retry_at, _) if *retry_at > self.now => return self.wait_until(*retry_at),
                Stage::Pausing(..) => self.dial(),
                Stage::Open { .. } => {
                    if let Some(output) = self.poll_open(buf) {
                        return output;
                    }
                }
                Stage::Refused(_) | Stage::Left => return Output::Done,
            }
        }
    }

    /// Moves data between carrier, link and side; none if that changed the stage of the client.
    fn poll_open(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        loop {
            self.poll_trouble(buf);
            if let Some((_, way)) = self.trouble.as_mut().and_then(|it| it.poll_outgoing(self.now, buf)) {
                return Some(self.carry(way));
            }
            let Stage::Open { link, .. } = &mut self.stage else { return None };
            let link_at = match link.poll_output(buf) {
                link::Output::Datagram => match self.send(self.way_of_datagrams(), buf) {
                    Some(output) => return Some(output),
                    None => continue,
                },
                link::Output::Stream(lane) => match self.send(Way::Stream(lane), buf) {
                    Some(output) => return Some(output),
                    None => continue,
                },
                link::Output::Message(channel) => {
                    self.log_message(false, channel, buf);
                    self.on_message(side::Input::Message(channel, buf));
                    continue;
                }
                link::Output::Closed(why) => {
                    self.on_closed(&why);
                    return None;
                }
                link::Output::WakeAt(at) => at,
                link::Output::Done => return None,
            };
            match self.poll_side(buf) {
                Polled::Again => {}
                Polled::Out(output) => return Some(output),
                Polled::WakeAt(side_at) => return self.sleep(link_at, side_at),
            }
        }
    }

    fn poll_trouble(&mut self, buf: &mut Vec<u8>) {
        while let Some((_, way)) = self.trouble.as_mut().and_then(|it| it.poll_incoming(self.now, buf)) {
            self.hear(match way {
                Way::Datagram | Way::Socket => link::Input::Datagram(buf),
                Way::Stream(lane) => link::Input::Stream(lane, buf),
            });
        }
    }

    fn send(&mut self, way: Way, bytes: &[u8]) -> Option<Output> {
        match &mut self.trouble {
            Some(trouble) => {
                trouble.outgoing(self.now, (), way, bytes);
                None
            }
            None => Some(self.carry(way)),
        }
    }

    fn carry(&self, way: Way) -> Output {
        match way {
            Way::Datagram | Way::Socket => Output::Datagram(self.attempt),
            Way::Stream(lane) => Output::Stream(self.attempt, lane),
        }
    }

    fn on_message(&mut self, message: side::Input<'_, S::Input>) {
        let Some(side) = &mut self.side else { return };
        let handled = side.handle(self.now, message);
        let (reached, run) = (side.reached(), side.run());
        let is_another = match (run, self.run) {
            (Some(run), Some(before)) => run != before,
            _ => reached < self.reached,
        };
        self.totals.restarts += u32::from(is_another);
        (self.reached, self.run) = (reached, run.or(self.run));
        match side.standing() {
            Standing::Refused(why) => self.end(Stage::Refused(why)),
            Standing::Playing | Standing::CatchingUp => self.routes.on_joined(),
            _ => {}
        }
        if handled.is_err() {
            self.end(Stage::Refused(S::NONSENSE.into()));
        }
    }

    fn on_closed(&mut self, why: &Closed) {
        match why {
            Closed::Here => self.end(Stage::Left),
            Closed::There(reason) if reason.code == THROWN_OUT => {
                self.end(Stage::Refused(reason.text.clone()));
            }
            Closed::There(reason) => self.lose(reason.text.clone()),
            Closed::TimedOut => self.lose("nothing was heard for too long".into()),
            Closed::Violation(error) => self.lose(format!("the server broke the protocol: {error}")),
        }
    }

    fn poll_side(&mut self, buf: &mut Vec<u8>) -> Polled {
        let (Some(side), Stage::Open { link, leave_by: None, .. }) = (&mut self.side, &mut self.stage) else {
            return Polled::WakeAt(None);
        };
        match side.poll_output(buf) {
            side::Output::Send(channel) => {
                // It fails on too much backlog, which needs a silent link; the silence is detected separately.
                let _ = link.send(self.now, channel, buf);
                self.log_message(true, channel, buf);
                Polled::Again
            }
            side::Output::WantInput(tick) => Polled::Out(Output::WantInput(tick)),
            side::Output::WantPath => {
                // Input from the client itself is never malformed.
                let _ = side.handle(self.now, side::Input::Path(link.stats().into()));
                Polled::Again
            }
            side::Output::WakeAt(at) => Polled::WakeAt(Some(at)),
            side::Output::Wait => Polled::WakeAt(None),
        }
    }

    /// When the client has to be called next; none if it is time to give the connection up.
    fn sleep(&mut self, link_at: Time, side_at: Option<Time>) -> Option<Output> {
        let Stage::Open { heard_at, leave_by, .. } = &self.stage else { return None };
        let silence_at = heard_at.plus_micros(SILENCE_US);
        let stall_at = heard_at.plus_micros(self.stall_us());
        let beside_at = stall_at.max(self.beside_at);
        let leave_by = *leave_by;
        match leave_by {
            Some(by) if by <= self.now => {
                self.end(Stage::Left);
                return None;
            }
            None if silence_at <= self.now => {
                self.lose("the connection went silent".into());
                return None;
            }
            None if beside_at <= self.now && self.beside.is_none() => {
                self.dial_beside();
                return None;
            }
            _ => {}
        }
        let trouble_at = self.trouble.as_ref().and_then(NetemCarrier::next_at);
        let own = [Some(silence_at), Some(beside_at).filter(|at| *at > self.now), leave_by];
        let all = own.into_iter().flatten().chain([link_at]).chain(side_at).chain(trouble_at);
        all.min().map(|at| self.wait_until(at))
    }

    /// The silence after which the link counts as stalled.
    pub(super) fn stall_us(&self) -> u64 {
        match self.side.as_ref().map(S::standing) {
            Some(Standing::Joining) => UNANSWERED_US,
            _ => STALL_US,
        }
    }

    /// Remembers this time: a call much later than that means that the process was suspended.
    fn wait_until(&mut self, at: Time) -> Output {
        self.wake_at = at;
        Output::WakeAt(at)
    }
}

/// The result of polling the player's side.
enum Polled {
    /// Poll the link again.
    Again,
    Out(Output),
    WakeAt(Option<Time>),
}
