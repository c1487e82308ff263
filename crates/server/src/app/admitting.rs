//! Admission of links, and the limit on relay sessions that one address may begin.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use sametick_lockstep::relay::{LINGER_US, SessionKey};
use sametick_session::name::is_printable;
use sametick_sim::Time;
use sametick_transport::hub::Key;
use sametick_transport::rate_limit::network;
use sametick_wire::hello::{Proven, Refusal};

use super::{Opening, ServerApp, Side};

/// Running relay sessions that one address may have begun. A session costs little, but there are 4,096 at most.
pub const SESSIONS_PER_ADDRESS: usize = 64;

const TOO_MANY_SESSIONS: &str = "your address has begun as many sessions here as one may have: join one of them, or wait until one is over";

/// The relay's sessions, by the address that began them.
pub(super) struct Begun<K = Key> {
    most: usize,
    sessions: BTreeMap<SessionKey, Beginner>,
    links: HashMap<K, SessionKey>,
}

struct Beginner {
    source: IpAddr,
    links: usize,
    /// Since when the session has no link.
    empty_since: Time,
}

impl<K: Eq + Hash> Begun<K> {
    pub fn new(most: usize) -> Begun<K> {
        Begun { most, sessions: BTreeMap::new(), links: HashMap::new() }
    }

    /// Counts a link that is about to open for a session. Returns whether it may.
    fn open(&mut self, now: Time, key: K, session: &SessionKey, from: IpAddr) -> bool {
        let source = network(from);
        if !self.sessions.contains_key(session) {
            self.sessions.retain(|_, it| it.links > 0 || now.micros_since(it.empty_since) < LINGER_US);
            let own = self.sessions.values().filter(|it| it.source == source).count();
            if own >= self.most && !from.to_canonical().is_loopback() {
                return false;
            }
        }
        let beginner = Beginner { source, links: 0, empty_since: now };
        self.sessions.entry(session.clone()).or_insert(beginner).links += 1;
        self.links.insert(key, session.clone());
        true
    }

    /// Counts the end of a link.
    pub fn close(&mut self, now: Time, key: &K) {
        let session = self.links.remove(key);
        if let Some(it) = session.and_then(|session| self.sessions.get_mut(&session)) {
            it.links = it.links.saturating_sub(1);
            it.empty_since = now;
        }
    }
}

impl ServerApp {
    /// Sets the limit on relay sessions per address.
    pub(crate) fn set_sessions_per_address(&mut self, most: usize) {
        self.begun.most = most;
    }

    /// Admits or refuses a link that is about to open.
    pub(super) fn let_in(
        &mut self,
        now: Time,
        key: Key,
        from: SocketAddr,
        proven: &Proven,
    ) -> Result<(), Refusal> {
        let opening = self.opening(now, from.ip(), proven)?;
        let Opening { side, place, guest, .. } = &opening;
        if !is_printable(&place.name) {
            return Err(Refusal::Other("a session is called by printable text".into()));
        }
        // The number of sessions of a host is limited before their games begin.
        if *side == Side::Relay && guest.is_none() && !self.begun.open(now, key, place, from.ip()) {
            return Err(Refusal::Other(TOO_MANY_SESSIONS.into()));
        }
        tracing::info!(%from, name = proven.hello.name, place = place.name, ?side, "a player has come");
        self.opening.insert(key, opening);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sametick_sim::BuildId;

    use super::*;

    #[test]
    fn an_address_may_begin_a_limited_number_of_sessions() {
        let mut begun = Begun::new(3);
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let session = |name: u32| SessionKey { build: BuildId::from_bytes([1; 16]), name: name.to_string() };
        let at = Time::from_micros;
        let mut links = 0u64;
        let mut open = |begun: &mut Begun<u64>, now, name, from| {
            links += 1;
            (begun.open(now, links, &session(name), from), links)
        };
        let first = open(&mut begun, at(0), 0, one).1;
        assert!((1..3).all(|name| open(&mut begun, at(0), name, one).0));
        assert!((3..2_000).all(|name| !open(&mut begun, at(0), name, one).0), "no other");
        assert!(open(&mut begun, at(0), 2, one).0, "but those there are");
        assert!(
            open(&mut begun, at(0), 9, other).0 && open(&mut begun, at(0), 9, one).0,
            "and those of others"
        );
        assert!((10..99).all(|name| open(&mut begun, at(0), name, IpAddr::from([127, 0, 0, 1])).0));
        begun.close(at(5), &first);
        assert!(!open(&mut begun, at(5 + LINGER_US - 1), 50_000, one).0, "it lingers");
        assert!(open(&mut begun, at(5 + LINGER_US), 50_000, one).0);
    }
}
