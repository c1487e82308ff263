//! Lists of sessions for clients that follow them, and the lookup of one session by its id.

use alloc::vec;

use super::{ClientId, Gateway, HEARING_US, MAX_FOLLOWERS, MAX_LISTED, Output, TELL_EVERY_US};
use crate::catalog::{Catalog, Health};
use crate::id::SessionId;
use crate::lobby::{Filter, Reply};
use crate::message::Refusal;

/// A client that follows a list, and its filter.
pub(super) struct ListSubscriber {
    filter: Filter,
    told: u64,
}

impl<C: Catalog> Gateway<C> {
    pub(super) fn list(&mut self, client: ClientId, seq: u64, filter: Filter, follow: bool) {
        let (sessions, more) = self.catalog.list(self.now, &filter, MAX_LISTED);
        self.outputs.push_back(Output::Reply(client, Some(seq), Reply::Sessions { sessions, more }));
        self.followers.remove(&client);
        if follow && self.followers.len() < MAX_FOLLOWERS {
            self.followers.insert(client, ListSubscriber { filter, told: self.catalog.version() });
        }
    }

    /// Looks up a session. A session that may not be found is answered like one that does not exist.
    pub(super) fn find(&mut self, client: ClientId, seq: u64, session: SessionId) {
        let found = self.catalog.find(session).filter(|listed| listed.summary.may_be_found());
        let host = self.catalog.host(self.now, session.host);
        let reply = match (found, host) {
            (Some(_), Some(host)) if host.health == Health::Lost => Reply::Refused(Refusal::Lost),
            (Some(_), Some(host)) if host.has_ended => Reply::Refused(Refusal::Unavailable),
            (Some(listed), _) => Reply::Sessions { sessions: vec![listed], more: false },
            (None, _) if self.is_hearing() => Reply::Refused(Refusal::Unavailable),
            (None, _) => Reply::Refused(Refusal::NotFound),
        };
        self.outputs.push_back(Output::Reply(client, Some(seq), reply));
    }

    /// Whether there may be hosts, and sessions of theirs, that the gateway has not heard of yet.
    pub(super) fn is_hearing(&self) -> bool {
        self.now.micros_since(self.born_at) < HEARING_US
    }

    pub(super) fn has_news(&self) -> bool {
        let version = self.catalog.version();
        self.followers.values().any(|follower| follower.told != version)
    }

    pub(super) fn tell_followers(&mut self) {
        self.tell_at = self.now.plus_micros(TELL_EVERY_US);
        let version = self.catalog.version();
        for (client, follower) in &mut self.followers {
            if core::mem::replace(&mut follower.told, version) != version {
                let (sessions, more) = self.catalog.list(self.now, &follower.filter, MAX_LISTED);
                self.outputs.push_back(Output::Reply(*client, None, Reply::Sessions { sessions, more }));
            }
        }
    }
}
