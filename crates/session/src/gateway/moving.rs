//! Moving a session to another host: the gateway chooses the target and relays between the two hosts.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sametick_sim::Time;

use super::{Gateway, MAX_PENDING, Output};
use crate::catalog::Catalog;
use crate::id::{HostId, Incarnation, SessionId};
use crate::message::{Forward, Refusal};
use crate::placing::{Adopted, ToHost};
use crate::settings::Settings;

/// How long the gateway remembers which host was asked to adopt a session.
const MOVES_US: u64 = 60_000_000;

/// A session that is moving to another host.
pub(super) struct Move {
    /// The host that is asked to adopt it.
    target: Option<HostId>,
    refused: BTreeSet<HostId>,
    pub(super) until: Time,
}

impl<C: Catalog> Gateway<C> {
    /// A host offers a session: one other host is asked, the same one as before if there was one.
    pub(super) fn offered(
        &mut self,
        session: SessionId,
        life: Incarnation,
        settings: &Settings,
        stored: Vec<u8>,
    ) {
        if self.is_draining {
            // A gateway that is draining cannot see the move through; the session resumes in the host's next
            // incarnation.
            return self.outputs.push_back(Output::Host(session.host, ToHost::Stay(session)));
        }
        if !self.moves.contains_key(&(session, life)) && self.moves.len() >= MAX_PENDING {
            return;
        }
        let candidates = self.catalog.candidates(self.now, settings);
        let until = self.now.plus_micros(MOVES_US);
        let fresh = || Move { target: None, refused: BTreeSet::from([session.host]), until };
        let entry = self.moves.entry((session, life)).or_insert_with(fresh);
        entry.target =
            entry.target.or_else(|| candidates.into_iter().find(|host| !entry.refused.contains(host)));
        self.outputs.push_back(match entry.target {
            Some(target) => Output::Host(target, ToHost::Adopt { from: session, life, stored }),
            None => Output::Host(session.host, ToHost::Stay(session)),
        });
    }

    pub(super) fn adopted(
        &mut self,
        host: HostId,
        from: SessionId,
        life: Incarnation,
        answer: Result<Adopted, Refusal>,
    ) {
        let Some(entry) = self.moves.get_mut(&(from, life)).filter(|entry| entry.target == Some(host)) else {
            return;
        };
        let address = self.catalog.host(self.now, host).map(|state| state.address);
        match (answer, address) {
            (Ok(Adopted { session, admissions }), Some(address)) if session.host == host => {
                let to = Forward { session, address, ticket: None };
                self.outputs.push_back(Output::Host(from.host, ToHost::Moved { from, life, to, admissions }));
            }
            _ => {
                entry.refused.insert(host);
                entry.target = None;
            }
        }
    }
}
