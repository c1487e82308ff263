//! The gateway's catalog: in memory, and in a file so that a gateway that was killed has it at once after a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use sametick_session::catalog::{Catalog, HostRow, HostState, Remembered};
use sametick_session::id::{HostId, Incarnation, Key, SessionId};
use sametick_session::lobby::{Filter, Listed, Summary};
use sametick_session::name::Name;
use sametick_session::placing::{Beat, Standing};
use sametick_session::settings::{Mode, Settings};
use sametick_sim::Time;
use sametick_store::catalog::{CatalogFile, HostRow as KeptRow, OpenCatalog, SessionRow};
use sametick_wire::control;
use serde::Serialize;

/// The catalog's file name in the folder of hosts.
pub(crate) const FILE: &str = "catalog.sqlite";

/// The catalog and its file.
#[derive(Default)]
pub(crate) struct Kept {
    remembered: Remembered,
    /// The rows as last written, without their heartbeat numbers.
    written: BTreeMap<HostId, HostRow>,
    writer: Option<Writer>,
}

struct Writer {
    rows: Sender<(HostId, Option<HostRow>)>,
    thread: JoinHandle<()>,
}

impl Kept {
    /// Reads the catalog from a file. If the file cannot be written, the catalog is kept in memory only.
    pub fn open(now: Time, path: &Path) -> Kept {
        let OpenCatalog { file, hosts, damage } = match CatalogFile::open(path) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!(%error, "sessions are only remembered, not written down");
                return Kept::default();
            }
        };
        if let Some(why) = damage {
            let file = path.display();
            tracing::warn!(%file, why, "the catalog of sessions was damaged and begins anew; hosts tell again what they have");
        }
        let mut kept = Kept { writer: start(file), ..Kept::default() };
        for row in hosts.iter().filter_map(|bytes| control::from_bytes::<HostRow>(bytes).ok()) {
            kept.remembered.recall(now, &row);
            kept.written.insert(row.host, quiet(row));
        }
        kept
    }

    /// Writes the catalog, and waits until it is on disk.
    pub fn close(self) {
        if let Some(Writer { rows, thread }) = self.writer {
            drop(rows);
            let _ = thread.join();
        }
    }

    /// Queues the row of a host for writing if it has changed.
    fn keep(&mut self, host: HostId) {
        let Some(writer) = &self.writer else { return };
        let row = self.remembered.row(host);
        let now = row.clone().map(quiet);
        if now.as_ref() != self.written.get(&host) {
            // The writer thread may have ended; then the row is kept in memory only.
            let _ = writer.rows.send((host, row));
            match now {
                Some(now) => self.written.insert(host, now),
                None => self.written.remove(&host),
            };
        }
    }
}

/// The row without its heartbeat number: a heartbeat alone is not written.
fn quiet(row: HostRow) -> HostRow {
    HostRow { beat: Beat { number: 0, ..row.beat }, ..row }
}

fn start(mut file: CatalogFile) -> Option<Writer> {
    let (rows, to_write) = channel::<(HostId, Option<HostRow>)>();
    let write = move || {
        while let Ok(first) = to_write.recv() {
            let newest: BTreeMap<HostId, Option<HostRow>> =
                std::iter::once(first).chain(to_write.try_iter()).collect();
            let forgotten: Vec<u32> =
                newest.iter().filter(|(_, row)| row.is_none()).map(|(host, _)| host.0).collect();
            let rows: Vec<KeptRow> = newest.into_values().flatten().map(|row| kept_row(&row)).collect();
            if let Err(error) = file.write(&rows, &forgotten) {
                tracing::error!(%error, "what is known of sessions is not written down");
            }
        }
    };
    let thread = thread::Builder::new().name("catalog".into()).spawn(write).ok()?;
    Some(Writer { rows, thread })
}

fn kept_row(row: &HostRow) -> KeptRow {
    let session = |standing: &Standing| {
        let Summary { session, settings, phase, players, seats, locked } = &standing.summary;
        SessionRow {
            id: session.to_string(),
            name: settings.name.to_string(),
            game: settings.game.to_string(),
            mode: word(&settings.mode),
            phase: word(phase),
            players: *players,
            seats: *seats,
            locked: *locked,
        }
    };
    KeptRow {
        host: row.host.0,
        address: row.beat.address.clone(),
        life: row.beat.life.0,
        sessions: row.beat.sessions.iter().map(session).collect(),
        bytes: control::to_bytes(row),
    }
}

/// Its name in messages.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

impl Catalog for Kept {
    fn beat(&mut self, now: Time, host: HostId, beat: &Beat) {
        self.remembered.beat(now, host, beat);
        self.keep(host);
    }

    fn bye(&mut self, now: Time, host: HostId, life: Incarnation) {
        self.remembered.bye(now, host, life);
        self.keep(host);
    }

    fn note(&mut self, session: &Standing, life: Incarnation, beats: u64) {
        self.remembered.note(session, life, beats);
        self.keep(session.summary.session.host);
    }

    fn forget(&mut self, session: SessionId) {
        self.remembered.forget(session);
        self.keep(session.host);
    }

    fn stood_still(&mut self, us: u64) {
        self.remembered.stood_still(us);
    }

    fn pass_time(&mut self, now: Time) -> Vec<HostId> {
        let lost = self.remembered.pass_time(now);
        let forgotten: Vec<HostId> =
            self.written.keys().filter(|host| self.remembered.row(**host).is_none()).copied().collect();
        forgotten.into_iter().for_each(|host| self.keep(host));
        lost
    }

    fn wake_at(&self) -> Option<Time> {
        self.remembered.wake_at()
    }

    fn host(&self, now: Time, host: HostId) -> Option<HostState> {
        self.remembered.host(now, host)
    }

    fn hosts(&self) -> Vec<HostId> {
        self.remembered.hosts()
    }

    fn is_offered(&self, game: &Name, mode: Mode) -> bool {
        self.remembered.is_offered(game, mode)
    }

    fn candidates(&self, now: Time, settings: &Settings) -> Vec<HostId> {
        self.remembered.candidates(now, settings)
    }

    fn made_by(&self, key: Key) -> Option<SessionId> {
        self.remembered.made_by(key)
    }

    fn sessions_of(&self, host: HostId) -> Vec<SessionId> {
        self.remembered.sessions_of(host)
    }

    fn list(&self, now: Time, filter: &Filter, most: usize) -> (Vec<Listed>, bool) {
        self.remembered.list(now, filter, most)
    }

    fn find(&self, session: SessionId) -> Option<Listed> {
        self.remembered.find(session)
    }

    fn version(&self) -> u64 {
        self.remembered.version()
    }
}
