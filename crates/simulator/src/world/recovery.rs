//! The fault-free end of a world, in which all clients must recover, and the checks of every second before it.

use std::collections::BTreeMap;

use sametick_lockstep::history::MAX_HISTORY;
use sametick_lockstep::message::CHECK_EVERY;
use sametick_lockstep::peer::{MAX_PREDICTED, Status};
use sametick_lockstep::session::{Session, SessionId};
use sametick_wire::Channel;

use super::World;
use crate::client::Client;
use crate::faults::draw_clean;
use crate::games::Playable;
use crate::journal::MAX_WAITING;
use crate::outcome::Checker;
use crate::referee::Referee;

/// The longest round trip of a clean network, with the delay of a machine.
const MAX_LAG_US: u64 = 200_000;

/// The most that may wait at one end of a link: several histories of the longest session.
const MAX_QUEUED: usize = 4 << 20;

impl<G: Playable> World<G> {
    /// Stops the faults: everything works from now on.
    pub(super) fn calm_down(&mut self) {
        self.note(|| "faults stop".into());
        self.calm = true;
        for client in 0..self.clients.len() {
            let profile = draw_clean(&mut self.rng);
            self.set_network(client, profile);
            self.cut(client, [false, false]);
            self.wake(client);
            let soon = self.now.plus_micros(self.rng.below(1_000_000));
            let client = &mut self.clients[client];
            client.dial_at = client.dial_at.min(soon);
        }
        (0..self.clients.len()).for_each(|client| self.rest_client(client));
        self.wake_relay();
        self.start_relay();
        self.mend_disk();
    }

    /// From now on no input may be omitted.
    pub(super) fn begin_measuring(&mut self) {
        self.note(|| "nothing may be omitted from now on".into());
        self.omissions_before = Some(self.omissions());
    }

    fn omissions(&self) -> BTreeMap<(SessionId, u16), u32> {
        let of = |id: SessionId| {
            let seats = self.relay.session(id).into_iter().flat_map(Session::participants);
            seats.filter_map(move |it| Some(((id, it.seat?.0), it.arrivals?.omissions)))
        };
        self.relay.sessions().flat_map(|(id, _)| of(id)).collect()
    }

    /// Checks bounds that hold at all times.
    pub(super) fn look_at_everything(&mut self) {
        let mut found = None;
        if self.calm && self.trace.is_some() {
            self.note_depths();
        }
        for (index, client) in self.clients.iter().enumerate() {
            let Some(online) = &client.online else { continue };
            let ticks = online.peer.shown().zip(online.peer.confirmed());
            let depth = ticks.map_or(0, |(shown, confirmed)| shown.0.ticks_since(confirmed.0));
            // Ticks that are taken back with a wrong state are confirmed again before anything else happens.
            if depth > MAX_PREDICTED && *online.peer.status() != Status::CatchingUp {
                found = Some(format!("client {index} runs {depth} ticks ahead"));
            }
        }
        for (_, session) in self.relay.sessions() {
            if session.history().bytes() > MAX_HISTORY + (64 << 10) {
                found = Some(format!("a history of {} bytes", session.history().bytes()));
            }
        }
        for referee in &self.referees {
            if referee.journal.waiting_bytes() > MAX_WAITING {
                found = Some(format!("{} bytes wait for the disk", referee.journal.waiting_bytes()));
            }
        }
        for cable in self.cables.iter_mut().flatten() {
            let ends = [cable.here.as_mut(), cable.there.as_mut()];
            let queued = ends.into_iter().flatten().map(|end| {
                let link = end.link();
                link.queued(Channel::Control)
                    + link.queued(Channel::Chunks)
                    + link.queued(Channel::Diagnostics)
            });
            if let Some(bytes) = queued.max().filter(|bytes| *bytes > MAX_QUEUED) {
                found = Some(format!("{bytes} bytes wait on the link of {:?}", cable.member));
            }
        }
        if let Some(what) = found {
            self.fail(Checker::Bounds, what);
        }
        self.look_for_tampering();
    }

    fn note_depths(&mut self) {
        let depth = |client: &Client<G>| {
            let peer = &client.online.as_ref()?.peer;
            Some(peer.shown()?.0.ticks_since(peer.confirmed()?.0))
        };
        let depths: Vec<Option<u32>> = self.clients.iter().map(depth).collect();
        self.note(|| format!("ticks ahead: {depths:?}"));
    }

    /// The end of the world: all clients play and agree, nothing was omitted, and every log is whole.
    pub(super) fn finish(&mut self) {
        let lag_ticks = (MAX_LAG_US / G::RATE.tick_micros()) as u32 + 5;
        let closed = self.referees.last().map(Referee::last).unwrap_or_default();
        let agreed = self
            .relay
            .find(&self.key)
            .and_then(|id| self.relay.session(id))
            .map(|it| (it.agreement().agreed(), it.agreement().is_disputed()));
        let mut wrong = Vec::new();
        for (index, client) in self.clients.iter().enumerate() {
            let Some(online) = &client.online else {
                wrong.push(format!("client {index} is not connected"));
                continue;
            };
            let confirmed = online.peer.confirmed().map(|(tick, _)| tick).unwrap_or_default();
            let behind = closed.ticks_since(confirmed);
            if *online.peer.status() != Status::Playing || behind > lag_ticks {
                let status = online.peer.status();
                wrong.push(format!("client {index} is {status:?}, {behind} ticks behind {closed}"));
            }
        }
        match agreed {
            Some((agreed, false)) if closed.ticks_since(agreed) <= lag_ticks + 2 * CHECK_EVERY => {}
            other => wrong.push(format!("at tick {closed} the players agree on {other:?}")),
        }
        let after = self.omissions();
        for (key, before) in self.omissions_before.iter().flatten() {
            match after.get(key) {
                Some(count) if count == before => {}
                count => wrong.push(format!("omissions of {key:?} went from {before} to {count:?}")),
            }
        }
        if !wrong.is_empty() {
            self.fail(Checker::Recovery, wrong.join("; "));
        }
        let open: Vec<SessionId> = self.referees.iter().map(|referee| referee.id).collect();
        open.into_iter().for_each(|id| self.finish_log(id));
        (0..self.clients.len()).for_each(|client| self.disconnect(client, 0, false));
    }
}
