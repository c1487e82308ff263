//! Records the sessions of the relay and the rooms: a log for each session and room, and a folder for each desync. All
//! file work is done on another thread.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use sametick_lockstep::inquiry::Report;
use sametick_lockstep::relay::SessionKey as RelayKey;
use sametick_lockstep::rows::{Opaque, row_as_bytes};
use sametick_lockstep::session::{self, Facts, STORED_AS, SessionId};
use sametick_sim::record::{Record, TickInputs};
use sametick_sim::{Inputs, Seat, StateHash, Tick};
use sametick_store::log::{
    FileLog, Header, LogEncoder, LogEvent, LogThread, LogThreadOptions, MAX_BEGINNING_BYTES, Position,
};
use sametick_store::saves::{Mode, Save, SaveInfo, SessionKey};
use sametick_transport::clock::unix_ms;
use sametick_transport::hub_waker::HubWaker;

use crate::desync;
use crate::games::Games;
use crate::recovered::{RecoveredLog, RecoveredSession};
use crate::rooms::RoomId;
use crate::uploader::Uploader;

/// The name of the log in the folder of a session.
const LOG: &str = "log";

/// The place of a state that is stored at the beginning of the log itself.
const IN_LOG: &str = "log";

/// The source of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A session of the relay.
    Session(SessionId),
    /// An authoritative room.
    Room(RoomId),
}

struct Recording {
    log: FileLog,
    encoder: LogEncoder,
    key: SessionKey,
    /// The facts for its saves.
    info: SaveInfo,
    folder: PathBuf,
    /// The save that is being uploaded.
    saving: Option<(Tick, StateHash)>,
    /// Whether recording has stopped after an error.
    stopped: bool,
    /// A player has left: its last inputs must be written now, not with the next full block.
    flush: bool,
}

/// The recorder of a server.
pub struct Recorder {
    log_thread: LogThread,
    data: PathBuf,
    games: Games,
    recordings: HashMap<Place, Recording>,
    inputs: TickInputs,
    uploader: Option<Uploader>,
    ends: Option<Ends>,
}

/// The channel that reports fully stored logs.
struct Ends {
    sender: Sender<RelayKey>,
    ended: Receiver<RelayKey>,
    waker: HubWaker,
}

/// The log header of a session that starts at its first tick.
pub(crate) fn header_of(facts: &Facts, commit: &str, started_unix_ms: u64) -> Header {
    Header {
        game: facts.game.clone(),
        build: facts.build,
        commit: commit.into(),
        schema: facts.schema,
        setup: facts.setup.clone(),
        seed: facts.seed,
        rate: facts.rate,
        seats: facts.seats,
        session: facts.name.clone(),
        listed: facts.listed,
        started_unix_ms,
        first_tick: Tick(1),
    }
}

fn key_of(place: Place, header: &Header) -> SessionKey {
    let mode = match place {
        Place::Session(_) => Mode::Lockstep,
        Place::Room(_) => Mode::Room,
    };
    SessionKey::in_mode(header.build, mode, &header.session, header.started_unix_ms)
}

impl Recorder {
    /// Records below this folder. For the given games desyncs are explained.
    pub fn new(data: &Path, games: Games) -> Recorder {
        Recorder {
            log_thread: LogThread::start(LogThreadOptions::default()),
            data: data.to_owned(),
            games,
            recordings: HashMap::new(),
            inputs: TickInputs::new(),
            uploader: None,
            ends: None,
        }
    }

    /// Reports from now on when the log of an ended session is stored everywhere, and rings the waker.
    pub fn set_ends(&mut self, waker: HubWaker) {
        let (sender, ended) = channel();
        self.ends = Some(Ends { sender, ended, waker });
    }

    /// The next ended session whose log is stored everywhere, by its build and name.
    pub fn poll_ended(&self) -> Option<RelayKey> {
        self.ends.as_ref()?.ended.try_recv().ok()
    }

    /// Uploads saves and logs from now on.
    pub fn set_uploader(&mut self, uploader: Uploader) {
        uploader.tidy(self.running());
        self.uploader = Some(uploader);
    }

    /// Saves a session: its state, and which seats are taken. The upload starts once the log is written up to that
    /// tick: a save is never further than its log.
    pub fn save(&mut self, place: Place, (tick, hash): (Tick, StateHash), state: Vec<u8>, table: Vec<u8>) {
        let recording = self.recordings.get_mut(&place);
        if let (Some(uploader), Some(recording)) = (&self.uploader, recording) {
            let info = SaveInfo { tick, hash, saved_unix_ms: unix_ms(), ..recording.info.clone() };
            let save = Save { info, state, table };
            let bring = uploader.bring(place, recording.key.clone(), save);
            recording.saving = Some((tick, hash));
            self.when_written(place, bring);
        }
    }

    /// Runs a job on another thread once all records of a session so far are in its log, or have failed.
    pub fn when_written(&mut self, place: Place, job: impl FnOnce() + Send + 'static) {
        match self.recordings.get_mut(&place) {
            Some(recording) => {
                recording.encoder.flush();
                recording.hand_over(Ok(()));
                recording.log.after(job);
            }
            None => job(),
        }
    }

    /// The next save of a relay session that is on disk. Does not block.
    pub fn poll_saved(&mut self) -> Option<(SessionId, Tick)> {
        while let Some(saved) = self.uploader.as_ref()?.poll() {
            if let Some(saved) = self.note_saved(saved) {
                return Some(saved);
            }
        }
        None
    }

    /// Waits for the next save of a relay session that is on disk.
    pub fn wait_saved(&mut self, at_most: Duration) -> Option<(SessionId, Tick)> {
        let until = Instant::now() + at_most;
        loop {
            // A save of a room may come first.
            let saved = self.uploader.as_ref()?.wait(until.saturating_duration_since(Instant::now()))?;
            if let Some(saved) = self.note_saved(saved) {
                return Some(saved);
            }
        }
    }

    /// A save is on disk. It is recorded here in the log of a room; the relay records its own sessions' saves.
    fn note_saved(&mut self, (place, tick): (Place, Tick)) -> Option<(SessionId, Tick)> {
        if let Place::Session(id) = place {
            return Some((id, tick));
        }
        let saving = self.recordings.get_mut(&place).and_then(|recording| recording.saving.take());
        if let Some((tick, hash)) = saving.filter(|(saving, _)| *saving == tick) {
            self.record(place, &Record::Snapshot { tick, hash, place: STORED_AS.into() });
        }
        None
    }

    /// Whether saves are uploaded.
    pub fn keeps_saves(&self) -> bool {
        self.uploader.is_some()
    }

    /// A session has begun.
    pub fn begin(&mut self, place: Place, facts: &Facts, started_unix_ms: u64) {
        let header = header_of(facts, self.games.commit_of(facts), started_unix_ms);
        let key = key_of(place, &header);
        let path = self.data.join(key.log());
        match self.log_thread.create(&path, &header) {
            Ok((log, encoder)) => {
                tracing::info!(session = facts.name, log = %path.display(), "a session has begun");
                self.keep(place, key, &header, (log, encoder));
            }
            Err(error) => tracing::error!(session = facts.name, %error, "a session is not recorded"),
        }
    }

    /// A session begins from a peer's copy. Its log begins with that state, and the state is saved.
    pub fn begin_after(&mut self, id: SessionId, facts: &Facts, started_unix_ms: u64, save: &session::Save) {
        let place = Place::Session(id);
        let header = header_of(facts, self.games.commit_of(facts), started_unix_ms);
        let key = key_of(place, &header);
        let path = self.data.join(key.log());
        let position = Position::after(save.tick, save.table.taken());
        match self.log_thread.create_after(&path, &header, position, &save.state) {
            Ok(recording) => {
                let (session, tick, hash) = (&facts.name, save.tick.0, save.hash);
                tracing::info!(session, tick, log = %path.display(), "a session goes on from a copy that a player has brought");
                self.keep(place, key, &header, recording);
                self.record(place, &Record::Resumed { unix_ms: unix_ms() });
                self.record(place, &Record::Snapshot { tick: save.tick, hash, place: IN_LOG.into() });
                self.save(place, (save.tick, hash), save.state.clone(), save.table.to_bytes());
            }
            Err(error) => tracing::error!(session = facts.name, %error, "a session is not recorded"),
        }
    }

    /// A stored session is resumed, and so is its log; without one a new log begins after its save.
    pub fn resume(
        &mut self,
        place: Place,
        recovered: RecoveredSession,
        seats: impl IntoIterator<Item = Seat>,
    ) {
        let last = recovered.last();
        let RecoveredSession { header, log, save, .. } = recovered;
        let key = key_of(place, &header);
        let path = self.data.join(key.log());
        let resumed = match log {
            Some(RecoveredLog { bytes, position, .. }) => {
                Ok(self.log_thread.resume_at(&path, &header, position, &bytes))
            }
            None => {
                let (position, state) = (Position::after(last, seats), save.map(|save| save.state));
                let state = state.filter(|state| (1..=MAX_BEGINNING_BYTES).contains(&state.len()));
                match state {
                    Some(state) => self.log_thread.create_after(&path, &header, position, &state),
                    None => self.log_thread.create_at(&path, &header, position),
                }
            }
        };
        match resumed {
            Ok(recording) => {
                tracing::info!(session = header.session, log = %path.display(), "a session goes on");
                self.keep(place, key, &header, recording);
                self.record(place, &Record::Resumed { unix_ms: unix_ms() });
            }
            Err(error) => tracing::error!(session = header.session, %error, "a session is not recorded"),
        }
    }

    fn keep(&mut self, place: Place, key: SessionKey, header: &Header, recording: (FileLog, LogEncoder)) {
        let (log, encoder) = recording;
        let info = SaveInfo::of_log(header, key.id());
        let folder = self.data.join(key.prefix());
        let (saving, stopped, flush) = (None, false, false);
        self.recordings.insert(place, Recording { log, encoder, key, info, folder, saving, stopped, flush });
    }

    /// The sessions that are being recorded.
    fn running(&self) -> BTreeSet<SessionKey> {
        self.recordings.values().map(|recording| recording.key.clone()).collect()
    }

    /// Appends a record to a log.
    pub fn record(&mut self, place: Place, record: &Record) {
        if let Some(recording) = self.recordings.get_mut(&place) {
            recording.flush |= matches!(record, Record::Left { .. });
            let pushed = recording.encoder.push(record).map_err(|error| error.to_string());
            // A reader that misses the rewind would take void ticks for valid ones.
            if matches!(record, Record::Rewind { .. }) {
                recording.encoder.flush();
            }
            recording.hand_over(pushed);
        }
    }

    /// A tick was stepped, with these inputs.
    pub fn step(&mut self, place: Place, inputs: &TickInputs) {
        if let Some(recording) = self.recordings.get_mut(&place) {
            recording.push_inputs(inputs);
        }
    }

    /// A tick was closed.
    pub fn close_tick(&mut self, place: Place, tick: Tick, rows: &Inputs<Opaque>) {
        let Some(recording) = self.recordings.get_mut(&place) else { return };
        self.inputs.set(tick, rows.iter().map(row_as_bytes));
        recording.push_inputs(&self.inputs);
    }

    /// A session is over.
    pub fn end(&mut self, place: Place) {
        self.record(place, &Record::End);
        if let Some(mut recording) = self.recordings.remove(&place) {
            recording.encoder.flush();
            recording.hand_over(Ok(()));
            tracing::info!(folder = %recording.folder.display(), "a session is over");
            let key = RelayKey { build: recording.info.build, name: recording.info.session.clone() };
            let ends = self.ends.as_ref().map(|ends| (ends.sender.clone(), ends.waker.clone()));
            let done = move || {
                if let Some((sender, waker)) = ends {
                    // The server may have stopped in the meantime.
                    let _ = sender.send(key);
                    waker.ring();
                }
            };
            match &self.uploader {
                Some(uploader) => {
                    recording.log.after(uploader.when_ended(recording.key, done));
                    uploader.tidy(self.running());
                }
                None => recording.log.after(done),
            }
        }
    }

    /// Writes a desync report into a folder of its own.
    pub fn keep_report(&mut self, place: Place, facts: &Facts, report: Report) {
        let Some(recording) = self.recordings.get_mut(&place) else { return };
        recording.encoder.flush();
        recording.hand_over(Ok(()));
        let folder = recording.folder.join(desync::folder_name(&report));
        let (log, facts, games) = (recording.folder.join(LOG), facts.clone(), self.games.clone());
        recording.log.after(move || match desync::write(&folder, &log, &facts, &report, &games) {
            Ok(summary) => tracing::warn!(report = %folder.display(), "{summary}"),
            Err(error) => {
                tracing::error!(report = %folder.display(), %error, "a desync report was not written");
            }
        });
    }

    /// Ends all recordings and waits until they are written; for uploads at most this long. Returns whether everything
    /// is stored.
    pub fn close(mut self, patience: Duration) -> bool {
        let places: Vec<Place> = self.recordings.keys().copied().collect();
        places.into_iter().for_each(|place| self.end(place));
        let is_written = self.log_thread.close();
        self.uploader.is_none_or(|uploader| uploader.close(patience)) && is_written
    }
}

impl Recording {
    fn push_inputs(&mut self, inputs: &TickInputs) {
        let pushed = self.encoder.push_inputs(inputs).map_err(|error| error.to_string());
        if std::mem::take(&mut self.flush) {
            self.encoder.flush();
        }
        self.hand_over(pushed);
    }

    fn hand_over(&mut self, pushed: Result<(), String>) {
        while let Some(event) = self.log.poll_event() {
            let folder = self.folder.display();
            match event {
                LogEvent::Failing(error) => {
                    tracing::error!(%folder, %error, "the log cannot be written; the game goes on, and so do tries");
                }
                LogEvent::Recovered => tracing::info!(%folder, "the log is written again; nothing is lost"),
            }
        }
        if self.stopped {
            return;
        }
        let taken = self.log.take_from(&mut self.encoder).map_err(|error| error.to_string());
        if let Err(error) = pushed.and(taken) {
            self.stopped = true;
            tracing::error!(folder = %self.folder.display(), error, "the log of this session ends here");
        }
    }
}

#[cfg(test)]
mod tests;
