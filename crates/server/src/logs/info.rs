//! `sametick log info`: a summary of a log.

use std::fmt;

use sametick_sim::record::Record;
use sametick_sim::{Row, Seat, Tick};
use sametick_store::log::export::hex;
use serde::Serialize;
use serde_json::value::RawValue;

use super::lines::utc;
use super::{LogError, LogFile};
use crate::games::Games;

/// The summary of a log.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are the lines that `sametick log info` explains itself with")]
pub struct LogInfo {
    pub log: String,
    pub game: String,
    pub session: String,
    pub build: String,
    pub commit: String,
    /// Whether this program has the build, and can replay it.
    pub known: bool,
    pub schema: String,
    /// The setup in hexadecimal.
    pub setup: String,
    /// The setup as JSON, if the game is known.
    pub setup_fields: Option<Box<RawValue>>,
    pub seed: u64,
    pub rate_hz: u32,
    pub started_unix_ms: u64,
    pub first_tick: u32,
    pub last_tick: u32,
    /// The ticks that were not undone by a rewind.
    pub ticks: u64,
    pub void_ticks: u64,
    pub seconds: f64,
    pub players: Vec<PlayerInfo>,
    /// Inputs that were late.
    pub omissions: u64,
    pub checks: u64,
    pub dissents: u64,
    pub desyncs: u64,
    pub disputes: u64,
    pub snapshots: u64,
    pub rewinds: u64,
    pub bytes: u64,
    pub bytes_per_player_hour: Option<u64>,
    pub torn_bytes: u64,
    /// Whether the session was ended, rather than cut off or still running.
    pub ended: bool,
}

/// One stay of a player on a seat.
#[derive(Clone, Debug, Serialize)]
pub struct PlayerInfo {
    /// The seat.
    pub seat: u16,
    /// The player's name; `None` if the player joined before this file begins.
    pub name: Option<String>,
    /// The first tick.
    pub from_tick: u32,
    /// The last tick, if the player has left.
    pub to_tick: Option<u32>,
    /// How the player left: `left`, `kicked` or `timed_out`.
    pub gone: Option<&'static str>,
    /// Ticks in which the player had the seat.
    pub ticks: u64,
    /// Of those, ticks before the player's first input could arrive.
    pub arriving: u64,
    /// Of those, ticks after that in which the input was late.
    pub omissions: u64,
    #[serde(skip)]
    has_begun: bool,
}

/// Reads a log and summarises it.
pub fn info_of(log: &mut LogFile, games: &Games) -> Result<LogInfo, LogError> {
    let (header, tail) = (log.header().clone(), log.tail());
    let game = games.find(&header.game, header.build).ok();
    let setup_fields = game.and_then(|game| game.setup_to_json(&header.setup).ok());
    let mut info = LogInfo {
        log: log.path().display().to_string(),
        known: game.is_some(),
        setup: hex(&header.setup),
        setup_fields: setup_fields.and_then(|json| RawValue::from_string(json).ok()),
        build: header.build.to_string(),
        schema: header.schema.to_string(),
        game: header.game,
        session: header.session,
        commit: header.commit,
        seed: header.seed,
        rate_hz: header.rate.per_second(),
        started_unix_ms: header.started_unix_ms,
        first_tick: header.first_tick.0,
        last_tick: tail.last_tick.0,
        ticks: 0,
        void_ticks: 0,
        seconds: 0.0,
        players: Vec::new(),
        omissions: 0,
        checks: 0,
        dissents: 0,
        desyncs: 0,
        disputes: 0,
        snapshots: 0,
        rewinds: 0,
        bytes: tail.valid_bytes + tail.torn_bytes,
        bytes_per_player_hour: None,
        torn_bytes: tail.torn_bytes,
        ended: tail.ended,
    };
    info.read(log)?;
    Ok(info)
}

impl LogInfo {
    fn read(&mut self, log: &mut LogFile) -> Result<(), LogError> {
        let damage = log.damage();
        let mut holding = log.reader().holding();
        while let Some(record) = holding.next().map_err(&damage)? {
            self.count(record);
        }
        let mut records = log.reader().records();
        let mut all = 0;
        while let Some(record) = records.next().map_err(&damage)? {
            match record {
                Record::Inputs(_) => all += 1,
                Record::Rewind { .. } => self.rewinds += 1,
                _ => {}
            }
        }
        self.void_ticks = all - self.ticks;
        self.seconds = self.ticks as f64 / f64::from(self.rate_hz);
        let stays: u64 = self.players.iter().map(|player| player.ticks).sum();
        let hours = stays as f64 / f64::from(self.rate_hz) / 3_600.0;
        self.bytes_per_player_hour = (stays > 0).then(|| (self.bytes as f64 / hours) as u64);
        Ok(())
    }

    fn count(&mut self, record: &Record) {
        match record {
            Record::Joined { tick, seat, name, .. } => self.sit_down(*seat, *tick, Some(name.clone())),
            Record::Left { tick, seat, .. } => {
                let player = self.players.iter_mut().rev().find(|player| player.seat == seat.0);
                if let Some(player) = player {
                    (player.to_tick, player.gone) = (Some(tick.0), Some(record.kind()));
                }
            }
            Record::Inputs(inputs) => {
                self.ticks += 1;
                for row in inputs.iter() {
                    self.take_part(inputs.tick(), &row);
                }
            }
            Record::Check { .. } => self.checks += 1,
            Record::Dissent { .. } => self.dissents += 1,
            Record::Snapshot { .. } => self.snapshots += 1,
            Record::Desync { .. } => self.desyncs += 1,
            Record::Dispute { .. } => self.disputes += 1,
            Record::Rewind { .. } | Record::Resumed { .. } | Record::End => {}
        }
    }

    fn sit_down(&mut self, seat: Seat, tick: Tick, name: Option<String>) {
        self.players.push(PlayerInfo {
            seat: seat.0,
            // A player who joined before this file begins has had a first input.
            has_begun: name.is_none(),
            name,
            from_tick: tick.0,
            to_tick: None,
            gone: None,
            ticks: 0,
            arriving: 0,
            omissions: 0,
        });
    }

    fn take_part(&mut self, tick: Tick, row: &Row<&[u8]>) {
        let (seat, omitted) = (row.seat, row.is_omitted());
        let stays =
            |player: &PlayerInfo| player.seat == seat.0 && player.to_tick.is_none_or(|to| to >= tick.0);
        if !self.players.iter().any(stays) {
            // The player had the seat when the log before this one ended.
            self.sit_down(seat, tick, None);
        }
        if let Some(player) = self.players.iter_mut().rev().find(|player| player.seat == seat.0) {
            player.ticks += 1;
            player.has_begun |= row.input.is_some();
            let is_late = omitted && player.has_begun;
            player.arriving += u64::from(omitted && !is_late);
            player.omissions += u64::from(is_late);
            self.omissions += u64::from(is_late);
        }
    }
}

impl fmt::Display for LogInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.log)?;
        writeln!(f, "  game       {} at {} Hz", self.game, self.rate_hz)?;
        let started = match self.started_unix_ms {
            0 => "when it started is not recorded".into(),
            unix_ms => format!("started {}", utc(unix_ms)),
        };
        writeln!(f, "  session    {:?}, {started}", self.session)?;
        let known = if self.known { "which this program has" } else { "which this program does not have" };
        writeln!(f, "  build      {}, {known}", self.build)?;
        writeln!(f, "  commit     {}", if self.commit.is_empty() { "not recorded" } else { &self.commit })?;
        writeln!(f, "  schema     {}", self.schema)?;
        let setup = self.setup_fields.as_ref().map_or(format!("0x{}", self.setup), ToString::to_string);
        writeln!(f, "  setup      {setup}, seed {}", self.seed)?;
        let void = if self.void_ticks > 0 { format!(", {} void", self.void_ticks) } else { String::new() };
        let (first, last) = (self.first_tick, self.last_tick);
        writeln!(f, "  ticks      {first} to {last}{void}: {}", duration(self.seconds))?;
        for player in &self.players {
            writeln!(f, "  player     {player}")?;
        }
        writeln!(f, "  late       {} inputs", self.omissions)?;
        let LogInfo { checks, dissents, desyncs, disputes, snapshots, rewinds, .. } = self;
        writeln!(f, "  checks     {checks}, {dissents} dissents, {desyncs} desyncs, {disputes} disputes")?;
        writeln!(f, "  events     {snapshots} snapshots, {rewinds} rewinds")?;
        let per_hour =
            self.bytes_per_player_hour.map_or(String::new(), |per| format!(", {per} per player and hour"));
        writeln!(f, "  size       {} bytes{per_hour}", self.bytes)?;
        let end = match (self.torn_bytes, self.ended) {
            (0, true) => "the session was ended".into(),
            (0, false) => "the session was cut off, or still goes on".into(),
            (torn, _) => format!("torn: the last {torn} bytes are not whole, and were not read"),
        };
        write!(f, "  end        {end}")
    }
}

impl fmt::Display for PlayerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("a player");
        write!(f, "seat {} {name:?}, from tick {}", self.seat, self.from_tick)?;
        if let (Some(to), Some(gone)) = (self.to_tick, self.gone) {
            write!(f, " to {to} ({})", gone.replace('_', " "))?;
        }
        write!(f, ", {} late", self.omissions)
    }
}

/// `1 h 02 min 03 s`, without leading zero units.
fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min {:02} s", whole / 3_600, whole / 60 % 60, whole % 60),
    }
}
