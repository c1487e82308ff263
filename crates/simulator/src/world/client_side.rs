//! The clients' machines: connecting, playing, and the checks of a peer after each step.

use sametick_lockstep::peer::{Input, JoinAs, Output, Peer, Status};
use sametick_lockstep::relay;
use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::Member;
use sametick_sim::{Tick, Time, to_canonical};
use sametick_wire::Closed;

use super::{NEVER, World};
use crate::cable::{Cable, Heard, Resumed};
use crate::client::Online;
use crate::games::Playable;
use crate::outcome::Checker;
use crate::referee::Referee;

/// How long a client waits before it reconnects.
const RETRY_US: u64 = 1_000_000;

/// How recent an event must be to explain silence of the relay.
const EXCUSE_US: u64 = 13_000_000;

/// How long a machine takes for one slice of catching up.
const SLICE_US: u64 = 20_000;

/// Of four clients that lost a link, and were not told to forget, how many resume with their state.
const KEEPS_OF_4: u64 = 3;

impl<G: Playable> World<G> {
    pub(super) fn run_clients(&mut self) {
        for index in 0..self.clients.len() {
            if self.clients[index].next_at <= self.now {
                match self.clients[index].online {
                    Some(_) => self.run_client(index),
                    None => self.dial(index),
                }
                self.rest_client(index);
            }
        }
    }

    /// Updates the time of a client's next event.
    pub(super) fn rest_client(&mut self, index: usize) {
        let client = &self.clients[index];
        let next = match &client.online {
            _ if client.stalled => NEVER,
            None => client.dial_at,
            Some(online) => {
                let cable = self.cables[online.cable].as_ref();
                let here = cable.and_then(|cable| cable.here.as_ref()?.wake_at());
                let wakes = [here, online.wake_at].into_iter().flatten().min();
                let wake = wakes.map_or(NEVER, |at| client.clock.moment(at));
                cable.and_then(|cable| cable.down.next_delivery()).map_or(wake, |at| at.min(wake))
            }
        };
        self.clients[index].next_at = next.max(self.now);
    }

    fn dial(&mut self, index: usize) {
        let now = self.now;
        // Shortens the retry interval, as a client with a waiting player would.
        let retry_us = if self.relay_down { RETRY_US / 2 } else { RETRY_US };
        let wait_us = retry_us / 2 + self.rng.below(retry_us);
        let client = &mut self.clients[index];
        client.dial_at = now.plus_micros(wait_us);
        if client.is_silenced() || self.relay_stalled || self.relay_down {
            return;
        }
        let member = Member(self.next_member);
        self.next_member += 1;
        self.figures.joins += 1;
        let (local, profile, watch) = (client.clock.local(now), client.profile, client.watch);
        let mut cable = Cable::new(now, local, member, index, profile, self.rng.next_u64());
        let slot = self.cables.iter().position(Option::is_none).unwrap_or(self.cables.len());
        if slot == self.cables.len() {
            self.cables.push(None);
            self.cables_next.push(NEVER);
        }
        let online = match self.take_kept(index, member) {
            Some(mut online) => {
                let have = online.peer.confirmed().map_or(Tick::ZERO, |(tick, _)| tick);
                cable.resumed = online.welcome.map(|(session, member)| Resumed { session, member, have });
                online.peer.rejoin(local, Default::default());
                cable.handed = online.handed.take().unwrap_or_default();
                cable.carried = online.tampered;
                // It may have to go back.
                Online { cable: slot, wake_at: Some(local), confirmed: Tick::ZERO, ..online }
            }
            None => self.new_online(index, slot, local),
        };
        let resumed = cable.resumed;
        self.clients[index].online = Some(online);
        self.cables[slot] = Some(cable);
        self.cables_next[slot] = now;
        self.relay.handle(now, relay::Input::Opened(member, self.key.clone(), self.schema));
        self.note(|| {
            let how = if watch { " to watch" } else { "" };
            format!("client {index} connects as {member:?}{how}, with {resumed:?}")
        });
    }

    /// A client without earlier state.
    fn new_online(&self, index: usize, cable: usize, local: Time) -> Online<G> {
        let join = JoinAs {
            setup: G::setup(self.plan.seed, self.plan.seats),
            seed: self.plan.seed,
            seats: self.plan.seats,
            wait_for: self.plan.wait_for,
            name: index.to_string(),
            commit: String::new(),
            watch: self.clients[index].watch,
            listed: false,
        };
        Online {
            cable,
            peer: Peer::new(local, &join, Default::default()),
            wake_at: Some(local),
            welcome: None,
            confirmed: Default::default(),
            resyncs: 0,
            loads: 0,
            tampered: None,
            handed: None,
            held: None,
        }
    }

    fn run_client(&mut self, index: usize) {
        let World { now, cables, clients, bufs, .. } = self;
        let client = &mut clients[index];
        let local = client.clock.local(*now);
        let Some(online) = &mut client.online else { return };
        let Some(cable) = &mut cables[online.cable] else { return };
        let Cable { here: Some(here), up, down, .. } = cable else { return };
        let (mut closed, mut wrong) = (None, None);
        let peer = &mut online.peer;
        here.run((*now, local), (down, up), bufs, |heard| match heard {
            Heard::Message(channel, bytes) => {
                if let Err(error) = peer.handle(local, Input::Message(channel, bytes)) {
                    wrong = Some(format!(
                        "client {index} does not understand the relay on {channel:?}: {error:?}"
                    ));
                }
            }
            Heard::Closed(why) => closed = Some(why),
        });
        if online.wake_at.is_some_and(|at| at <= local) {
            let _ = peer.handle(local, Input::Timeout);
        }
        self.drain_peer(index, local);
        if let Some(what) = wrong {
            self.fail(Checker::Links, what);
        }
        self.check_peer(index);
        match closed {
            Some(why) => self.on_here_closed(index, &why),
            None => self.give_up_if_refused(index),
        }
    }

    /// Carries out the outputs of a peer.
    fn drain_peer(&mut self, index: usize, local: Time) {
        let World { now, cables, clients, bufs, message, .. } = self;
        let client = &mut clients[index];
        let Some(online) = &mut client.online else { return };
        let Some(cable) = &mut cables[online.cable] else { return };
        let Some(here) = &mut cable.here else { return };
        let mut wrong = None;
        loop {
            match online.peer.poll_output(message) {
                Output::Send(channel) => {
                    // A closed link reports that when it is drained.
                    let _ = here.link().send(local, channel, message);
                }
                Output::WantInput(tick) => {
                    let input = G::play(&mut client.rng, online.held.as_ref());
                    let bytes = to_canonical(&input).unwrap_or_default();
                    cable.handed.note(tick, Opaque::new(&bytes).unwrap_or(Opaque::EMPTY));
                    online.held = Some(input.clone());
                    let _ = online.peer.handle(local, Input::Local(input));
                }
                Output::WantPath => {
                    let path = here.link().stats().into();
                    let _ = online.peer.handle(local, Input::Path(path));
                }
                Output::WakeAt(at) => {
                    // A machine with much to catch up takes its time for each slice.
                    online.wake_at = Some(if at <= local { local.plus_micros(SLICE_US) } else { at });
                    break;
                }
                Output::Wait => {
                    online.wake_at = None;
                    break;
                }
            }
        }
        here.drain(*now, &mut cable.up, bufs, &mut |heard| {
            if let Heard::Closed(why) = heard {
                wrong = Some(why);
            }
        });
        let slot = online.cable;
        self.rest_cable(slot);
        if let Some(why) = wrong {
            self.check_peer(index);
            self.on_here_closed(index, &why);
        }
    }

    /// Checks that a peer's confirmed states are true, and that its shown state descends from them.
    fn check_peer(&mut self, index: usize) {
        let World { clients, cables, referees, figures, .. } = self;
        let Some(online) = &mut clients[index].online else { return };
        let Some(cable) = &mut cables[online.cable] else { return };
        online.note_welcome(cable.session, cable.member);
        // Late messages of a killed relay may be void by now, and so may the peer's state until it is welcomed.
        if cable.there.is_none() || !online.peer.status().takes_part() {
            return;
        }
        // A client that goes back, or starts anew, leaves its wrong state behind.
        if cable.take_left_behind() {
            online.tampered = None;
            mend(referees, cable.member, self.now);
        }
        let Some((tick, state)) = online.peer.confirmed() else { return };
        let (resyncs, loads) = (online.peer.stats().resyncs, online.peer.stats().loads);
        let session = online.welcome.map(|(session, _)| session);
        if tick == online.confirmed && resyncs == online.resyncs && loads == online.loads {
            return;
        }
        let referee = referees.iter_mut().rfind(|referee| Some(referee.id) == session);
        let Some(referee) = referee else { return };
        let mut found = None;
        if resyncs != online.resyncs || loads != online.loads {
            if online.tampered.is_none() && resyncs != online.resyncs {
                found = Some((
                    Checker::Desync,
                    format!("client {index} was given a state, and had the right one"),
                ));
            }
            let open =
                |it: &&mut crate::referee::Tampering| it.member == cable.member && it.mended_at.is_none();
            if let Some(tampering) = referee.tampered.iter_mut().find(open) {
                tampering.mended_at = Some(self.now);
                figures.mended += 1;
            }
            (online.tampered, online.resyncs, online.loads) = (None, resyncs, loads);
        } else if tick < online.confirmed {
            let what = format!("client {index} went back from tick {} to {tick}", online.confirmed);
            found = Some((Checker::Ticks, what));
        }
        online.confirmed = tick;
        figures.states += 1;
        let is_right = online.tampered.is_none();
        if is_right && tick.0 > 0 && referee.digest(tick) != Some(state.digest()) {
            let what = referee.disagreement(&format!("client {index}"), tick, state);
            found = Some((Checker::States, what));
        }
        let shown = online.peer.shown();
        let settled = *online.peer.status() == Status::Playing;
        if let Some((_, shown)) = shown.filter(|_| settled && is_right)
            && !state.is_past_of(shown, tick)
        {
            found = Some((
                Checker::Screen,
                format!("client {index} shows a state that tick {tick} did not lead to"),
            ));
        }
        self.judge(found.map_or(Ok(()), Err));
    }

    /// Handles the close of the client's end of its cable.
    fn on_here_closed(&mut self, index: usize, why: &Closed) {
        let Some(online) = &self.clients[index].online else { return };
        let troubled_at = self.cables[online.cable].as_ref().map_or(Time::ZERO, |cable| cable.troubled_at);
        let cable = self.cables[online.cable].as_ref();
        let gone = cable.is_none_or(|cable| cable.there.is_none() || cable.has_swallowed(false));
        let excused = gone
            || self.relay_stalled
            || self.clients[index].is_silenced()
            || self.now.micros_since(troubled_at) < EXCUSE_US;
        self.note(|| format!("client {index} lost its link: {why:?}"));
        match why {
            Closed::TimedOut if !excused => {
                self.fail(Checker::Links, format!("client {index} heard nothing, and nothing explains it"));
            }
            Closed::Violation(error) => self.fail(Checker::Links, format!("client {index} heard {error:?}")),
            _ => {}
        }
        let wait_us = self.rng.below(RETRY_US);
        self.disconnect(index, wait_us, true);
    }

    fn give_up_if_refused(&mut self, index: usize) {
        let Some(online) = &self.clients[index].online else { return };
        if let Status::Refused(why) = online.peer.status() {
            let why = why.clone();
            self.note(|| format!("client {index} is turned down: {why}"));
            let wait_us = RETRY_US + self.rng.below(RETRY_US);
            self.disconnect(index, wait_us, true);
        }
    }

    /// A client disappears silently, and reconnects after a while; perhaps with its state, if it may keep it.
    pub(super) fn disconnect(&mut self, index: usize, wait_us: u64, may_keep: bool) {
        let now = self.now;
        let client = &mut self.clients[index];
        client.dial_at = now.plus_micros(wait_us);
        let (online, kept) = (client.online.take(), client.kept.take());
        let slot = online.as_ref().map(|online| online.cable);
        if let Some(mut online) = online.or(kept) {
            if let Some(cable) = slot.and_then(|slot| self.cables[slot].as_ref()) {
                online.handed = Some(cable.handed.clone());
            }
            if may_keep && self.rng.chance(KEEPS_OF_4, 4) {
                self.clients[index].kept = Some(online);
            } else {
                self.forget(&online);
            }
        }
        let Some(slot) = slot else { return };
        if let Some(cable) = &mut self.cables[slot] {
            cable.here = None;
            let member = cable.member;
            self.close_tamperings(member);
        }
        self.rest_cable(slot);
    }
}

/// Marks the wrong state of a member as repaired.
pub(super) fn mend<G: Playable>(referees: &mut [Referee<G>], member: Member, now: Time) {
    let tampered = referees.iter_mut().flat_map(|referee| &mut referee.tampered);
    for tampering in tampered.filter(|it| it.member == member) {
        tampering.mended_at = tampering.mended_at.or(Some(now));
    }
}
