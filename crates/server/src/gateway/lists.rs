//! The lists of sessions and hosts for HTTP: a snapshot that is written on changes and read without waiting.

use std::sync::{Arc, Mutex, PoisonError};

use sametick_session::catalog::{Catalog, Health};
use sametick_session::lobby::{Filter, Listed};
use sametick_sim::Time;
use serde_json::{Value, json};

use crate::strict_json;

/// The least time between two snapshots.
const EVERY_US: u64 = 500_000;

/// The most sessions in one answer.
const MAX_TOLD: usize = 1_000;

/// The last snapshot. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Lists(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    at: Time,
    version: Option<u64>,
    counts: Counts,
    sessions: Arc<Vec<Listed>>,
}

/// Totals, of listed and unlisted sessions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub hosts: usize,
    pub sessions: usize,
    pub players: usize,
}

impl Lists {
    /// Takes a snapshot. If the last one is too recent, returns when the next is due.
    pub fn show(&self, now: Time, catalog: &impl Catalog) -> Option<Time> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.version.is_some() && now.micros_since(seen.at) < EVERY_US {
            return Some(seen.at.plus_micros(EVERY_US));
        }
        seen.at = now;
        seen.counts = Counts::of(now, catalog);
        let version = Some(catalog.version());
        if seen.version != version {
            seen.version = version;
            seen.sessions = Arc::new(catalog.list(now, &Filter::default(), MAX_TOLD).0);
        }
        None
    }

    /// The numbers of hosts, sessions and people.
    pub fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts
    }

    /// The sessions that match a query string. The error says what is wrong with the query.
    pub fn answer(&self, query: &str) -> Result<Value, String> {
        let filter = filter_of(query)?;
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner).sessions.clone();
        let wanted: Vec<&Listed> = sessions.iter().filter(|listed| filter.wants(&listed.summary)).collect();
        Ok(json!({ "sessions": wanted, "more": sessions.len() >= MAX_TOLD }))
    }
}

impl Counts {
    fn of(now: Time, catalog: &impl Catalog) -> Counts {
        let hosts = catalog.hosts().into_iter().filter_map(|host| catalog.host(now, host));
        let there = hosts.filter(|host| !host.has_ended && host.health != Health::Lost);
        there.fold(Counts::default(), |all, host| Counts {
            hosts: all.hosts + 1,
            sessions: all.sessions + host.sessions,
            players: all.players + host.players,
        })
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
            // The query may also contain the proof of the passphrase.
            _ => None,
        };
    }
    strict_json::read(filter.into()).map_err(|why| why.to_string())
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
