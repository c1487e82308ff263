//! What is known of sessions and hosts, for whoever asks over HTTP: written down when it changes, and read without waiting.

use std::sync::{Arc, Mutex, PoisonError};

use sametick_session::catalog::Catalog;
use sametick_session::lobby::{Filter, Listed};
use sametick_sim::Time;
use serde_json::{Value, json};

/// How often it is written down at most.
const EVERY_US: u64 = 500_000;

/// So many sessions are told of at once.
const MAX_TOLD: usize = 1_000;

/// What was written down last. A copy is the same.
#[derive(Clone, Default)]
pub(crate) struct Lists(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    at: Time,
    version: Option<u64>,
    hosts: usize,
    sessions: Arc<Vec<Listed>>,
}

impl Lists {
    /// Writes down what is known, if that is something else than before.
    pub fn show(&self, now: Time, catalog: &impl Catalog) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.hosts = catalog.hosts().len();
        let version = Some(catalog.version());
        if seen.version != version && (now.micros_since(seen.at) >= EVERY_US || seen.version.is_none()) {
            (seen.at, seen.version) = (now, version);
            seen.sessions = Arc::new(catalog.list(now, &Filter::default(), MAX_TOLD).0);
        }
    }

    /// How many hosts and sessions there are.
    pub fn counts(&self) -> (usize, usize) {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.hosts, seen.sessions.len())
    }

    /// The sessions that somebody wants to see, by the query of an address. What is wrong with it is said.
    pub fn answer(&self, query: &str) -> Result<Value, String> {
        let filter = filter_of(query)?;
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner).sessions.clone();
        let wanted: Vec<&Listed> = sessions.iter().filter(|listed| filter.wants(&listed.summary)).collect();
        Ok(json!({ "sessions": wanted, "more": sessions.len() >= MAX_TOLD }))
    }
}

fn filter_of(query: &str) -> Result<Filter, String> {
    let mut filter = serde_json::Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let flag = || match value {
            "" | "1" | "true" => Ok(true),
            "0" | "false" => Ok(false),
            _ => Err(format!("`{name}` is 0 or 1")),
        };
        match name {
            "game" | "mode" => filter.insert(name.into(), value.into()),
            "open" | "locked" => filter.insert(name.into(), flag()?.into()),
            "players" => {
                let players = value.parse::<u16>().map_err(|_| "`players` is a number".to_owned())?;
                filter.insert(name.into(), players.into())
            }
            // The passphrase's proof may stand here as well.
            _ => None,
        };
    }
    serde_json::from_value(filter.into()).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_a_filter() {
        let filter = filter_of("game=pong&mode=room&open&locked=0&players=2&proof=ab").unwrap();
        assert_eq!(filter.game.as_deref(), Some("pong"));
        assert_eq!((filter.open, filter.locked, filter.players), (Some(true), Some(false), 2));
        assert_eq!(filter_of("").unwrap(), Filter::default());
        for bad in ["mode=chess", "open=maybe", "players=many", "game="] {
            assert!(filter_of(bad).is_err(), "{bad}");
        }
    }
}
