//! The log of a session on a faulty disk, and its checks: it contains every closed tick, durable records survive, and
//! it replays to the same states.

use std::collections::BTreeMap;

use sametick_lockstep::planted::{self, Bug};
use sametick_lockstep::rows::{Opaque, opaque_rows, row_as_bytes};
use sametick_lockstep::session::{Facts, Save};
use sametick_sim::{Inputs, Rng, Row, StateHash, Tick, from_canonical};
use sametick_store::disk::{Disk, MemDisk};
use sametick_store::log::{Appender, Header, LogEncoder, LogReader, Position, Record, TickInputs};

use crate::games::Playable;

/// The most that waits for the disk: a minute without a disk, at any drawn rate and number of players.
pub const MAX_WAITING: usize = 1 << 20;

/// The closed ticks, to compare a log with: a hash of the rows of each tick, and one of the state after it.
#[derive(Default)]
pub struct Closed {
    /// The hashes of the rows, from tick 1 on.
    pub rows: Vec<u64>,
    /// The hashes of the states, from tick 1 on.
    pub states: Vec<u64>,
}

/// Hashes the rows of a tick.
pub fn rows_digest<'a>(rows: impl Iterator<Item = Row<&'a [u8]>>) -> u64 {
    let mut sum = 0u64;
    let mut add = |word: u64| sum = (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for row in rows {
        let flags = u64::from(row.joined) | u64::from(row.left) << 1 | u64::from(row.input.is_some()) << 2;
        add(u64::from(row.seat.0) << 8 | flags | 1 << 32);
        row.input.unwrap_or(&[]).iter().for_each(|byte| add(u64::from(*byte)));
    }
    sum
}

/// The log of a session, as the relay's machine writes it.
pub struct Journal {
    encoder: LogEncoder,
    appender: Appender<MemDisk>,
    inputs: TickInputs,
    slow: bool,
    header: Header,
    /// The save it begins with, if the log before it is lost.
    base: Option<Save>,
    /// The rewinds of the session, one for each resume.
    rewinds: Vec<Tick>,
    /// The last tick that was certainly on the disk when the relay was killed.
    durable_before: Tick,
    /// Rewinds that were lost when the relay was killed, and have not been written again.
    pub lost: Vec<Tick>,
}

/// The rest of a log after a crash.
pub struct Left {
    /// The valid ticks, from 1 on.
    pub ticks: Vec<Inputs<Opaque>>,
    /// The number of rewinds.
    pub rewinds: u32,
    /// Whether the session goes on with the last rewind.
    pub is_last: bool,
}

impl Journal {
    /// A new log.
    pub fn new(facts: &Facts) -> Result<Journal, String> {
        let header = Header {
            build: facts.build,
            commit: facts.commit.clone(),
            schema: facts.schema,
            setup: facts.setup.clone(),
            seed: facts.seed,
            rate: facts.rate,
            ..Header::new(facts.game.clone(), facts.name.clone())
        };
        let encoder = LogEncoder::new(&header).map_err(|error| error.to_string())?;
        Ok(Journal::with(encoder, header, None))
    }

    /// A log that begins after a save, because the one before it is lost.
    pub fn after(&self, save: Save) -> Result<Journal, String> {
        let position = Position::after(save.tick, save.table.taken());
        let header = Header { first_tick: position.next_tick(), ..self.header.clone() };
        let encoder = LogEncoder::continued(&header, position).map_err(|error| error.to_string())?;
        Ok(Journal::with(encoder, header, Some(save)))
    }

    fn with(encoder: LogEncoder, header: Header, base: Option<Save>) -> Journal {
        Journal {
            encoder,
            appender: Appender::new(MemDisk::new(), &[]),
            inputs: TickInputs::new(),
            slow: false,
            header,
            durable_before: base.as_ref().map_or(Tick::ZERO, |save| save.tick),
            base,
            rewinds: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// The tick before its first.
    pub fn begins_after(&self) -> Tick {
        self.header.first_tick - 1
    }

    /// Whether it begins with the first tick.
    pub fn is_whole(&self) -> bool {
        self.base.is_none()
    }

    /// Kills the machine: of the unsynced data only a part survives. `None` if not even the header does.
    pub fn crash(&mut self, rng: &mut Rng) -> Result<Option<Left>, String> {
        let mut disk = self.appender.disk().clone();
        disk.crash(rng.below(disk.bytes().len() as u64 + 1) as usize);
        if self.appender.durable_len() == 0 {
            return Ok(None);
        }
        self.reopen(disk.bytes()).map(Some)
    }

    /// Resumes a session that has ended, and returns its log.
    pub fn take_up(&mut self) -> Result<Left, String> {
        let disk = self.appender.disk().clone();
        self.reopen(disk.bytes())
    }

    /// Reads the log and resumes it: cuts the torn tail, and records the resume of a session that had ended.
    fn reopen(&mut self, bytes: &[u8]) -> Result<Left, String> {
        let mut reader = LogReader::open(bytes).map_err(|error| error.to_string())?;
        let (position, is_ended) =
            (reader.verify().map_err(|error| error.to_string())?.position, reader.tail().ended);
        let before = vec![Inputs::new(); self.header.first_tick.0 as usize - 1];
        let mut left = Left { ticks: before, rewinds: 0, is_last: false };
        let mut records = reader.records();
        while let Some(record) = records.next().map_err(|error| error.to_string())? {
            left.rewinds += u32::from(matches!(record, Record::Rewind { .. }));
        }
        let mut ticks = reader.ticks();
        while let Some(inputs) = ticks.next().map_err(|error| error.to_string())? {
            left.ticks.push(opaque_rows(inputs));
        }
        let valid = position.offset() as usize;
        let bytes = &bytes[..valid];
        let mut disk = MemDisk::new();
        disk.append(bytes).and_then(|()| disk.sync()).map_err(|error| error.to_string())?;
        self.encoder = LogEncoder::resume(&self.header, position);
        self.appender = Appender::new(disk, bytes);
        self.durable_before = Tick(left.ticks.len() as u32);
        let lost = self.rewinds.split_off((left.rewinds as usize).min(self.rewinds.len()));
        self.lost.splice(..0, lost);
        if is_ended {
            self.record(&Record::Resumed { unix_ms: 0 })?;
        }
        Ok(left)
    }

    /// Goes on after this tick. The rewind is written at once, before any client is told, if the disk works.
    pub fn rewind(&mut self, to: Tick) {
        self.durable_before = self.durable_before.min(to);
        self.rewinds.push(to);
        self.drive();
    }

    /// The last tick that survives a crash.
    pub fn durable_tick(&self) -> Tick {
        self.appender.durable_tick().unwrap_or(self.durable_before)
    }

    /// Appends a record.
    pub fn record(&mut self, record: &Record) -> Result<(), String> {
        self.encoder.push(record).map_err(|error| format!("{}: {error}", record.kind()))
    }

    /// Appends a closed tick, and writes all ready frames if the disk works.
    pub fn close(&mut self, tick: Tick, rows: &Inputs<Opaque>) -> Result<u64, String> {
        self.inputs.set(tick, rows.iter().map(row_as_bytes));
        self.encoder.push_inputs(&self.inputs).map_err(|error| error.to_string())?;
        self.drive();
        Ok(rows_digest(self.inputs.iter()))
    }

    fn drive(&mut self) {
        if !self.slow {
            self.appender.take_from(&mut self.encoder);
            // A failed disk is retried with the next tick.
            let _ = self.appender.drive();
        }
    }

    /// Stalls the disk, or lets it go on.
    pub fn set_slow(&mut self, slow: bool) {
        self.slow = slow;
    }

    /// Limits the free space of the disk; `None` removes the limit.
    pub fn set_room(&mut self, bytes: Option<usize>) {
        let disk = self.appender.disk_mut();
        let capacity = bytes.map(|bytes| disk.bytes().len() + bytes);
        disk.set_capacity(capacity);
    }

    /// Makes the next syncs fail.
    pub fn fail_syncs(&mut self, count: u32) {
        self.appender.disk_mut().fail_syncs(count);
    }

    /// Bytes that wait for the disk.
    pub fn waiting_bytes(&self) -> usize {
        self.appender.waiting_bytes()
    }

    /// Checks the log after a simulated power failure: at least the durable part, and no tick that was not closed.
    pub fn cut_power<G: Playable>(&self, rng: &mut Rng, closed: &Closed) -> Result<u64, String> {
        // The part that was durable before the last rewind may be void.
        let mut durable = self.appender.durable_tick().unwrap_or_default().min(self.durable_tick());
        if planted::has(Bug::AcknowledgedEarly) {
            durable = Tick(closed.rows.len() as u32);
        }
        let mut disk = self.appender.disk().clone();
        disk.crash(rng.below(disk.bytes().len() as u64 + 1) as usize);
        if self.appender.durable_len() == 0 {
            return Ok(0);
        }
        let ticks = self.verify::<G>(disk.bytes(), closed, &mut |_| {})?;
        if ticks < u64::from(durable.0) {
            return Err(format!("tick {durable} was durable, but after a power cut only {ticks} are there"));
        }
        Ok(ticks)
    }

    /// Checks the complete log on a working disk, unless the session had not been resumed yet.
    pub fn finish<G: Playable>(
        &mut self,
        closed: &Closed,
        is_cut: bool,
        see: &mut impl FnMut(&Record),
    ) -> Result<u64, String> {
        self.slow = false;
        self.set_room(None);
        self.fail_syncs(0);
        self.record(&Record::End)?;
        self.encoder.flush();
        self.appender.take_from(&mut self.encoder);
        self.appender.drive().map_err(|error| format!("a disk that works fails: {error}"))?;
        let ticks = self.verify::<G>(self.appender.disk().synced(), closed, see)?;
        if ticks != closed.rows.len() as u64 && !is_cut {
            return Err(format!("{} ticks were closed, {ticks} are in the log", closed.rows.len()));
        }
        Ok(ticks)
    }

    /// Reads and replays the valid records of a log, and compares every tick, check and snapshot with the truth.
    /// Returns the last tick. Of a log that lacks rewinds, the ticks that they void are not compared.
    fn verify<G: Playable>(
        &self,
        bytes: &[u8],
        closed: &Closed,
        see: &mut impl FnMut(&Record),
    ) -> Result<u64, String> {
        let mut reader = LogReader::open(bytes).map_err(|error| error.to_string())?;
        let mut seen = 0;
        let mut records = reader.records();
        let mut hashes = BTreeMap::new();
        while let Some(record) = records.next().map_err(|error| error.to_string())? {
            see(record);
            seen += usize::from(matches!(record, Record::Rewind { .. }));
            if let Record::Check { tick, .. } | Record::Snapshot { tick, .. } = record {
                hashes.insert(*tick, None);
            }
        }
        let missing = self.rewinds.get(seen..).unwrap_or_default();
        let holds_to = missing.iter().chain(&self.lost).min().copied().unwrap_or(Tick(u32::MAX));
        let (mut state, mut inputs) = (self.first_state::<G>()?, Inputs::new());
        let mut ticks = self.header.first_tick.0 as usize - 1;
        let mut records = reader.holding();
        while let Some(record) = records.next().map_err(|error| error.to_string())? {
            match record {
                Record::Inputs(rows) => {
                    rows.decode(&mut inputs);
                    state.step(&inputs);
                    if rows.tick().0 as usize != ticks + 1 {
                        return Err(format!("tick {} follows {ticks}", rows.tick()));
                    }
                    let is_held = rows.tick() <= holds_to;
                    if is_held && closed.rows.get(ticks) != Some(&rows_digest(rows.iter())) {
                        return Err(format!("tick {} holds other inputs than were closed", rows.tick()));
                    }
                    if is_held && closed.states.get(ticks) != Some(&state.digest()) {
                        return Err(format!("the log replays to another state after tick {}", rows.tick()));
                    }
                    ticks += 1;
                    if let Some(place) = hashes.get_mut(&rows.tick()) {
                        *place = Some(StateHash::of(&state));
                    }
                }
                Record::Check { tick, hash } | Record::Snapshot { tick, hash, .. }
                    if hashes.get(tick) != Some(&Some(*hash)) =>
                {
                    let kind = record.kind();
                    return Err(format!("the {kind} of tick {tick} is not what the log replays to"));
                }
                _ => {}
            }
        }
        Ok(ticks as u64)
    }

    /// The initial state of the log.
    fn first_state<G: Playable>(&self) -> Result<G, String> {
        match &self.base {
            Some(save) => from_canonical(&save.state).map_err(|error| format!("the save: {error:?}")),
            None => {
                let setup = from_canonical(&self.header.setup);
                Ok(G::new(&setup.map_err(|error| format!("the setup: {error:?}"))?))
            }
        }
    }
}
