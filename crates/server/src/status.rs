//! Writes the status file for operators and their tools: a JSON file that is always complete and at most a few seconds
//! old, with the diagnostics of every player of a session (L5), and the tick times of rooms.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use sametick_lockstep::diagnostics::Diagnostics;
use sametick_lockstep::relay::Relay;
use sametick_lockstep::session::{Participant, Session};
use sametick_store::players::PlayersStats;
use sametick_wire::Time;
use serde_json::{Value, json};

use crate::rooms::{OpenRoom, Rooms, TickTimes};

/// How often the file is written.
const EVERY_US: u64 = 2_000_000;

/// Writes the status file, on a thread of its own.
pub struct Status {
    texts: SyncSender<String>,
    next_at: Time,
}

impl Status {
    /// Writes to this file from now on.
    pub fn create(path: &Path) -> io::Result<Status> {
        put(path, "{}\n")?;
        let (texts, from_relay) = sync_channel(1);
        let path = path.to_owned();
        thread::spawn(move || write_all(&path, &from_relay));
        Ok(Status { texts, next_at: Time::ZERO })
    }

    /// Reads the server's state if a write is due. Does not block: a slow disk gets fewer writes.
    pub fn look(
        &mut self,
        now: Time,
        relay: &Relay,
        rooms: Option<&Rooms>,
        players: Option<&PlayersStats>,
        turns: &TickTimes,
    ) {
        if now >= self.next_at {
            self.next_at = now.plus_micros(EVERY_US);
            let sessions: Vec<Value> =
                relay.sessions().map(|(_, session)| session_to_json(session)).collect();
            let rooms: Vec<Value> =
                rooms.into_iter().flat_map(Rooms::iter).map(|(_, room)| room_to_json(room)).collect();
            let mut status = json!({ "sessions": sessions, "rooms": rooms, "turns": turns.lately() });
            if let Some(players) = players {
                status["players"] = players_to_json(players);
            }
            // If the last status is still being written, this one is skipped.
            let _ = self.texts.try_send(format!("{status:#}\n"));
        }
    }
}

fn write_all(path: &Path, texts: &Receiver<String>) {
    let mut troubled = false;
    while let Ok(text) = texts.recv() {
        let result = put(path, &text);
        if let (Err(error), false) = (&result, troubled) {
            tracing::error!(%error, path = %path.display(), "the status file cannot be written");
        }
        troubled = result.is_err();
    }
}

/// Replaces the file's text atomically.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

fn session_to_json(session: &Session) -> Value {
    let (facts, agreement) = (session.facts(), session.agreement());
    json!({
        "name": facts.name,
        "game": facts.game,
        "build": facts.build.to_string(),
        "ticks_per_second": facts.rate.per_second(),
        "tick": session.history().last().0,
        "agreed_tick": agreement.agreed().0,
        "disputed": agreement.is_disputed(),
        "mismatches": agreement.mismatches(),
        "players": session.participants().map(|participant| player_to_json(&participant)).collect::<Vec<_>>(),
    })
}

/// Times of a room are from when a tick was due until all its outputs were handed to the links; `turns`, which are of
/// the whole server, until they were sent.
fn room_to_json(room: &OpenRoom) -> Value {
    let (facts, stats) = (room.facts(), room.stats());
    let players = room.participants().map(|participant| {
        json!({
            "seat": participant.seat.map(|seat| seat.0),
            "name": participant.name,
            "omissions": participant.omissions,
        })
    });
    json!({
        "name": facts.name,
        "game": facts.game,
        "build": facts.build.to_string(),
        "ticks_per_second": facts.rate.per_second(),
        "tick": room.tick().0,
        "tick_times": room.times(),
        "speed_percent": room.speed_percent(),
        "updates": stats.updates,
        "update_bytes": stats.update_bytes,
        "sent": stats.sent,
        "lost_us": stats.lost_us,
        "players": players.collect::<Vec<_>>(),
    })
}

/// The statistics of the player database (P6).
fn players_to_json(stats: &PlayersStats) -> Value {
    json!({
        "queue_depth": stats.queue_depth,
        "queue_capacity": stats.queue_capacity,
        "overflowing": stats.overflowing,
        "overflows": stats.overflows,
        "coalesced": stats.coalesced,
        "flushes": stats.flushes,
        "last_flush_us": stats.last_flush_us,
        "max_flush_us": stats.max_flush_us,
        "last_rows": stats.last_rows,
        "mean_rows": stats.mean_rows(),
        "errors": stats.errors,
        "restarts": stats.restarts,
        "mended": stats.mended,
        "backups": stats.backups,
        "last_backup_unix_s": stats.last_backup_unix_s,
        "warning": stats.warning(),
    })
}

fn player_to_json(participant: &Participant<'_>) -> Value {
    let arrivals = participant.arrivals;
    json!({
        "seat": participant.seat.map(|seat| seat.0),
        "name": participant.name,
        "omissions": arrivals.map(|arrivals| arrivals.omissions),
        "late": arrivals.map(|arrivals| arrivals.late),
        "least_slack_us": arrivals.and_then(|arrivals| arrivals.least_slack_us),
        "verdict": participant.diagnostics.map(Diagnostics::verdict),
        "readings": participant.diagnostics.map(Diagnostics::readings),
        "diagnostics": participant.diagnostics,
    })
}
