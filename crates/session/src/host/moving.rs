//! Shutdown of a host: its sessions move to another host, or wait for its next incarnation.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sametick_sim::Time;

use super::{GatewayId, Host, Output, Rest};
use crate::id::{Incarnation, Key, SessionId};
use crate::message::{Forward, Phase, Refusal};
use crate::placing::{Adopted, FromHost};
use crate::session::{self, Session};
use crate::ticket::{Admission, Ticket};

/// How long sessions are offered to other hosts.
pub const MOVE_US: u64 = 6_000_000;

/// The interval of offers.
const OFFER_EVERY_US: u64 = 1_000_000;

/// If the disk has not stored everything after this time, the process exits without it.
const DISK_US: u64 = 2_000_000;

impl Host {
    pub(super) fn draining_wakes_at(&self) -> Option<Time> {
        let drain_at = self.drain_at?;
        let has_offers = self.running.values().any(|running| running.rest == Rest::Offered);
        let ends = [0, MOVE_US, MOVE_US + DISK_US].map(|us| Some(drain_at.plus_micros(us)));
        ends.into_iter()
            .chain([has_offers.then_some(self.offer_at)])
            .flatten()
            .filter(|at| *at > self.now)
            .min()
    }

    pub(super) fn go_on_draining(&mut self) {
        let Some(drain_at) = self.drain_at.filter(|_| !self.is_done) else { return };
        if drain_at <= self.now {
            let is_over = drain_at.plus_micros(MOVE_US) <= self.now;
            for id in self.running.keys().copied().collect::<Vec<_>>() {
                self.pass_to(id, if is_over { session::Input::Suspend } else { session::Input::Freeze });
            }
        }
        self.offer();
        let is_stored = self.running.values().all(|running| running.rest == Rest::Suspended);
        if is_stored || drain_at.plus_micros(MOVE_US + DISK_US) <= self.now {
            self.is_done = true;
            self.outputs.push_back(Output::Gateways(FromHost::Bye(self.config.life)));
            self.outputs.push_back(Output::Done);
        }
    }

    /// Offers the frozen sessions to any host with room.
    fn offer(&mut self) {
        if self.offer_at > self.now {
            return;
        }
        for (id, running) in self.running.iter().filter(|(_, running)| running.rest == Rest::Offered) {
            let settings = running.session.summary().settings;
            let offer = FromHost::Offer {
                session: *id,
                life: self.config.life,
                settings,
                stored: running.session.snapshot(),
            };
            self.outputs.push_back(Output::Gateways(offer));
            self.offer_at = self.now.plus_micros(OFFER_EVERY_US);
        }
    }

    pub(super) fn saved(&mut self, id: SessionId) {
        if let Some(running) = self.running.get_mut(&id).filter(|running| running.rest == Rest::Frozen) {
            running.rest = Rest::Offered;
            self.offer_at = self.now;
        }
    }

    pub(super) fn moved(
        &mut self,
        from: SessionId,
        life: Incarnation,
        to: Forward,
        admissions: Vec<Admission>,
    ) {
        // Another incarnation offered another state.
        if self.is_offered(from) && life == self.config.life {
            self.pass_to(from, session::Input::Moved(to, admissions));
        }
    }

    pub(super) fn stay(&mut self, id: SessionId) {
        if self.is_offered(id) {
            self.pass_to(id, session::Input::Suspend);
        }
    }

    fn is_offered(&self, id: SessionId) -> bool {
        self.running.get(&id).is_some_and(|running| running.rest == Rest::Offered)
    }

    pub(super) fn adopt(&mut self, gateway: GatewayId, from: SessionId, life: Incarnation, stored: &[u8]) {
        let key = Key::of_move(from, life);
        if let Some(id) = self.keys.get(&key).copied() {
            if !self.running.contains_key(&id) {
                return self.refuse_adoption(gateway, from, life, Refusal::Over);
            }
            self.note_adoption(id, gateway, life);
            return self.pass_to(id, session::Input::Again);
        }
        let id = self.next_id();
        let session = Session::adopt(self.now, &self.config.secret, stored, id, key);
        let refusal = match session {
            Ok(session) => match self.check_place(&session.summary().settings, None) {
                Ok(()) => {
                    self.note_adoption(id, gateway, life);
                    return self.run(session);
                }
                Err(refusal) => refusal,
            },
            Err(_) => Refusal::BadSettings,
        };
        self.refuse_adoption(gateway, from, life, refusal);
    }

    fn note_adoption(&mut self, id: SessionId, gateway: GatewayId, life: Incarnation) {
        self.adoptions.entry(id).or_insert_with(|| (life, BTreeSet::new())).1.insert(gateway);
    }

    fn refuse_adoption(&mut self, gateway: GatewayId, from: SessionId, life: Incarnation, refusal: Refusal) {
        let said = FromHost::Adopted { from, life, answer: Err(refusal) };
        self.outputs.push_back(Output::Gateway(gateway, said));
    }

    /// A session that was adopted is stored.
    pub(super) fn adopted(&mut self, id: SessionId, tickets: &[Ticket]) {
        let Some((life, gateways)) = self.adoptions.remove(&id) else { return };
        let Some(session) = self.session(id).filter(|session| session.phase() != Phase::Closed) else {
            return;
        };
        let Some(from) = session.was() else { return };
        let admission = |ticket: &Ticket| Admission { player: ticket.player, ticket: self.seal.seal(ticket) };
        let adopted = Adopted { session: id, admissions: tickets.iter().map(admission).collect() };
        let said = FromHost::Adopted { from, life, answer: Ok(adopted) };
        self.outputs.extend(gateways.into_iter().map(|gateway| Output::Gateway(gateway, said.clone())));
    }
}
