//! The event plan of a world: faults, their ends, and the phases of its life.

use sametick_lockstep::peer::Status;
use sametick_lockstep::relay::LINGER_US;
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::{Tick, Time};
use sametick_wire::netem::Profile;

use super::{SECOND_US, World};
use crate::client::{Client, Online};
use crate::faults::{Fault, draw_clean, draw_profile, draw_us};
use crate::games::Playable;
use crate::outcome::Checker;
use crate::plan::{MEASURE_US, SETTLE_US};
use crate::referee::Tampering;

/// The limit on the time to detect, locate and repair a flipped bit.
const MAX_MENDING_US: u64 = 60 * SECOND_US;

/// The least time for which all players leave: by then the relay has ended the session.
const RECESS_US: u64 = LINGER_US + 2 * SECOND_US;

/// A planned event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The next fault; plans the one after it.
    Mischief,
    /// A fault that had to wait.
    Postponed(Fault),
    /// A client's carrier ends.
    Roam(usize),
    /// A client's network carries packets again.
    Heal(usize),
    /// A client's process goes on.
    Wake(usize),
    /// The relay's process goes on.
    WakeRelay,
    /// The relay is started again.
    StartRelay,
    /// A client notices that a link is dead.
    Notice(usize, Member),
    /// The session must have gone on.
    Back(SessionId, Time),
    /// After the relay's start at this time, its clients must be back.
    Again(Time),
    /// The disk works again.
    MendDisk,
    /// A save is stored.
    Stored(SessionId, Tick),
    /// Bounds are checked.
    Second,
    /// Faults stop.
    Calm,
    /// From now on no input may be omitted.
    Measure,
    /// The end.
    End,
}

impl<G: Playable> World<G> {
    pub(super) fn plan_beginning(&mut self) {
        let faulty_us = self.plan.faulty_us;
        self.plan_in(SECOND_US, Event::Second);
        self.plan_mischief();
        self.plan_in(faulty_us, Event::Calm);
        self.plan_in(faulty_us + SETTLE_US, Event::Measure);
        self.plan_in(faulty_us + SETTLE_US + MEASURE_US, Event::End);
    }

    pub(super) fn plan_in(&mut self, us: u64, event: Event) {
        self.planned += 1;
        self.agenda.insert((self.now.plus_micros(us), self.planned), event);
    }

    fn plan_mischief(&mut self) {
        let gap_us = draw_us(&mut self.rng, SECOND_US, 4 * self.plan.gap_us);
        self.plan_in(gap_us, Event::Mischief);
    }

    pub(super) fn run_agenda(&mut self) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                Event::Mischief if !self.calm => {
                    if let Some(fault) = self.plan.draw_fault(&mut self.rng) {
                        self.do_or_postpone(fault);
                    }
                    self.plan_mischief();
                }
                Event::Postponed(fault) if !self.calm => self.do_or_postpone(fault),
                Event::Roam(client) if !self.calm && self.may_roam(client) => self.roam(client),
                Event::Mischief | Event::Postponed(_) | Event::Roam(_) => {}
                Event::Heal(client) => self.heal(client),
                Event::Wake(client) => self.wake(client),
                Event::WakeRelay => self.wake_relay(),
                Event::StartRelay => self.start_relay(),
                Event::Notice(client, member) => self.on_notice(client, member),
                Event::Back(id, found_at) => self.expect_back(id, found_at),
                Event::Again(started_at) => self.expect_again(started_at),
                Event::MendDisk => self.mend_disk(),
                Event::Stored(id, tick) => self.on_stored(id, tick),
                Event::Second => {
                    self.look_at_everything();
                    self.plan_in(SECOND_US, Event::Second);
                }
                Event::Calm => self.calm_down(),
                Event::Measure => self.begin_measuring(),
                Event::End => self.done = true,
            }
        }
    }

    /// Faults that could hide a flipped bit wait until it is repaired, and bits are flipped only when no fault hides
    /// them.
    fn do_or_postpone(&mut self, fault: Fault) {
        let is_looked_for = self.pending().is_some();
        let is_hidden = self.relay_stalled || self.relay_down || self.clients.iter().any(Client::is_silenced);
        let must_wait = fault.silences() && is_looked_for || fault == Fault::FlippedBit && is_hidden;
        if must_wait {
            self.plan_in(2 * SECOND_US, Event::Postponed(fault));
        } else {
            self.do_fault(fault);
        }
    }

    fn pending(&self) -> Option<&Tampering> {
        let tampered = self.referees.iter().filter(|referee| !referee.ended).flat_map(|it| &it.tampered);
        { tampered }.find(|it| it.mended_at.is_none())
    }

    fn do_fault(&mut self, fault: Fault) {
        let client = self.rng.below(self.clients.len() as u64) as usize;
        self.faults.note(fault);
        if fault.disturbs() {
            self.disturbed_at = self.now;
        }
        self.note(|| format!("fault: {} (client {client})", fault.name()));
        match fault {
            Fault::Network | Fault::Weather | Fault::Partition | Fault::Blackout => {
                self.break_network(fault, client);
            }
            Fault::Crash => {
                let us = draw_us(&mut self.rng, 0, 30 * SECOND_US);
                self.draw_role(client);
                self.disconnect(client, us, false);
                self.rest_client(client);
            }
            Fault::Roaming => self.begin_roaming(client),
            Fault::Leave => {
                let us = draw_us(&mut self.rng, 100_000, 30 * SECOND_US);
                self.leave(client, us);
            }
            Fault::Recess => {
                for client in 0..self.clients.len() {
                    let us = RECESS_US + self.rng.below(30 * SECOND_US);
                    self.leave(client, us);
                }
            }
            Fault::Stall => {
                let us = draw_us(&mut self.rng, 20_000, 15 * SECOND_US);
                self.clients[client].stalled = true;
                self.trouble(client);
                self.rest_client(client);
                self.plan_in(us, Event::Wake(client));
            }
            Fault::RelayStall => {
                let us = draw_us(&mut self.rng, 20_000, 12 * SECOND_US);
                self.relay_stalled = true;
                (0..self.clients.len()).for_each(|client| self.trouble(client));
                self.plan_in(us, Event::WakeRelay);
            }
            Fault::RelayCrash => self.crash_relay(),
            Fault::ClockJump => {
                let us = draw_us(&mut self.rng, 20_000, 5 * SECOND_US);
                self.clients[client].clock.jump(us);
                self.trouble(client);
                self.rest_client(client);
            }
            Fault::DiskFull | Fault::FailedSync | Fault::SlowDisk => self.break_disk(fault),
            Fault::PowerCut => self.cut_power(),
            Fault::FlippedBit => self.flip(client),
        }
    }

    fn break_network(&mut self, fault: Fault, client: usize) {
        match fault {
            Fault::Network => {
                let profile = self.draw_network();
                self.set_network(client, profile);
            }
            Fault::Weather => {
                for client in 0..self.clients.len() {
                    let profile = self.draw_network();
                    self.set_network(client, profile);
                }
            }
            Fault::Partition => {
                let us = draw_us(&mut self.rng, 50_000, 60 * SECOND_US);
                let cut = [[true, true], [true, false], [false, true]][self.rng.below(3) as usize];
                self.cut(client, cut);
                self.plan_in(us, Event::Heal(client));
            }
            _ => {
                let us = draw_us(&mut self.rng, 50_000, 60 * SECOND_US);
                for client in 0..self.clients.len() {
                    self.cut(client, [true, true]);
                    self.plan_in(us, Event::Heal(client));
                }
            }
        }
    }

    fn draw_network(&mut self) -> Profile {
        if self.rng.chance(1, 4) { draw_clean(&mut self.rng) } else { draw_profile(&mut self.rng) }
    }

    pub(super) fn set_network(&mut self, client: usize, profile: Profile) {
        self.note(|| format!("client {client} has the network {profile}"));
        self.clients[client].profile = profile;
        for cable in self.cables.iter_mut().flatten().filter(|cable| cable.client == client) {
            cable.up.set_profile(profile);
            cable.down.set_profile(profile);
        }
    }

    pub(super) fn cut(&mut self, client: usize, [up, down]: [bool; 2]) {
        self.clients[client].cut = [up, down];
        for cable in self.cables.iter_mut().flatten().filter(|cable| cable.client == client) {
            cable.up.set_down(up);
            cable.down.set_down(down);
        }
        self.trouble(client);
    }

    fn heal(&mut self, client: usize) {
        self.note(|| format!("client {client} can be reached again"));
        self.cut(client, [false, false]);
    }

    pub(super) fn wake(&mut self, client: usize) {
        self.clients[client].stalled = false;
        self.trouble(client);
        self.rest_client(client);
    }

    pub(super) fn wake_relay(&mut self) {
        self.note(|| "the relay goes on".into());
        self.relay_stalled = false;
        (0..self.clients.len()).for_each(|client| self.trouble(client));
    }

    /// Notes an event that explains silence.
    fn trouble(&mut self, client: usize) {
        let now = self.now;
        self.disturbed_at = now;
        let cables = self.cables.iter_mut().flatten().filter(|cable| cable.client == client);
        cables.for_each(|cable| cable.troubled_at = now);
    }

    /// Draws whether a client joins as player or spectator. Two always play, so that spectators have something to
    /// watch.
    fn draw_role(&mut self, client: usize) {
        self.clients[client].watch = client > 1 && self.rng.chance(1, 6);
    }

    fn begin_roaming(&mut self, client: usize) {
        self.roam(client);
        for _ in 0..self.rng.below(4) {
            let us = draw_us(&mut self.rng, 50_000, 3 * SECOND_US);
            self.plan_in(us, Event::Roam(client));
        }
    }

    /// A client with a wrong state may roam; the others have to stay and report their hashes.
    fn may_roam(&self, client: usize) -> bool {
        let has_wrong = |online: &Online<G>| online.tampered.is_some();
        let online = self.clients[client].online.as_ref();
        online.is_some_and(|online| has_wrong(online) || self.pending().is_none())
    }

    fn roam(&mut self, client: usize) {
        if self.clients[client].online.is_none() {
            return;
        }
        let us = draw_us(&mut self.rng, 0, 2 * SECOND_US);
        self.disturbed_at = self.now;
        self.disconnect(client, us, true);
        self.rest_client(client);
    }

    fn leave(&mut self, client: usize, us: u64) {
        let watched = self.clients[client].watch;
        self.draw_role(client);
        let is_same = self.clients[client].watch == watched;
        self.clients[client].kept.take_if(|_| !is_same);
        let World { now, cables, clients, bufs, .. } = self;
        let Some(online) = &clients[client].online else {
            clients[client].dial_at = clients[client].dial_at.max(now.plus_micros(us));
            return self.rest_client(client);
        };
        if let Some(cable) = &mut cables[online.cable]
            && let Some(here) = &mut cable.here
        {
            let local = clients[client].clock.local(*now);
            here.link().close(local, 0, "until later");
            here.drain(*now, &mut cable.up, bufs, &mut |_| {});
        }
        self.disconnect(client, us, is_same);
        self.rest_client(client);
    }

    fn break_disk(&mut self, fault: Fault) {
        let us = draw_us(&mut self.rng, 100_000, 60 * SECOND_US);
        let (room, count) = (self.rng.below(200) as usize, 1 + self.rng.below(5) as u32);
        for referee in self.referees.iter_mut().filter(|referee| !referee.ended) {
            match fault {
                Fault::DiskFull => referee.journal.set_room(Some(room)),
                Fault::FailedSync => referee.journal.fail_syncs(count),
                _ => referee.journal.set_slow(true),
            }
        }
        self.plan_in(us, Event::MendDisk);
    }

    pub(super) fn mend_disk(&mut self) {
        for referee in &mut self.referees {
            referee.journal.set_room(None);
            referee.journal.set_slow(false);
        }
    }

    fn cut_power(&mut self) {
        let World { referees, rng, .. } = self;
        let referees = referees.iter().filter(|referee| !referee.ended);
        let results = referees.map(|referee| referee.journal.cut_power::<G>(rng, &referee.closed));
        match results.collect::<Result<Vec<u64>, String>>() {
            Ok(ticks) => self.figures.logged += ticks.iter().sum::<u64>(),
            Err(what) => self.fail(Checker::Log, what),
        }
    }

    /// How many other players can report their state hash.
    pub(super) fn players_but(&self, client: usize) -> usize {
        let plays = |it: &Online<G>| *it.peer.status() == Status::Playing && it.peer.seat().is_some();
        let can_say = |it: &Online<G>| {
            let cable = self.cables[it.cable].as_ref().filter(|cable| cable.there.is_some());
            cable.is_some_and(|cable| self.has_say(cable))
        };
        let others = self.clients.iter().enumerate().filter(|(other, _)| *other != client);
        others.filter_map(|(_, it)| it.online.as_ref()).filter(|it| plays(it) && can_say(it)).count()
    }

    /// Flips a bit of a client's state, if other peers can tell that it is wrong.
    fn flip(&mut self, client: usize) {
        let others = self.players_but(client);
        let now = self.now;
        let World { clients, cables, referees, rng, .. } = self;
        let Some(online) = &mut clients[client].online else { return };
        let cable = cables[online.cable].as_ref();
        let referee = referees.iter_mut().rfind(|it| Some(it.id) == cable.and_then(|cable| cable.session));
        let (Some(cable), Some(referee), Some((tick, _))) = (cable, referee, online.peer.confirmed()) else {
            return;
        };
        if others == 0 || *online.peer.status() != Status::Playing || cable.there.is_none() {
            return;
        }
        online.peer.tamper(|state| state.flip(rng));
        online.tampered = online.tampered.or(Some(tick.next()));
        let (member, seat) = (cable.member, online.peer.seat());
        let tampering = Tampering { member, seat, tick: tick.next(), at: now, mended_at: None };
        referee.tampered.push(tampering.clone());
        if self.rng.chance(1, 6) {
            let us = draw_us(&mut self.rng, 50_000, 3 * SECOND_US);
            self.plan_in(us, Event::Roam(client));
        }
        self.note(|| format!("{tampering:?}"));
    }

    /// Checks that no flipped bit is undetected for too long.
    pub(super) fn look_for_tampering(&mut self) {
        let Some(tampering) = self.pending().cloned() else { return };
        if self.now.micros_since(tampering.at) > MAX_MENDING_US {
            self.fail(Checker::Desync, format!("a flipped bit was not found and mended: {tampering:?}"));
        }
    }
}
