//! The stored data of a session that is not running, checked for consistency: its save, and its log from there on.

use sametick_lockstep::relay::Kept;
use sametick_lockstep::rows::{Table, opaque_rows};
use sametick_lockstep::session::{self, Facts};
use sametick_sim::record::Record;
use sametick_sim::{StateHash, Tick};
use sametick_store::log::{Header, LogReader, OpenError, Position, ReadError};
use sametick_store::saves::Save;
use sametick_transport::clock::unix_ms;

/// Consistent stored data of a session, from which it can be resumed.
#[derive(Debug)]
pub(crate) struct RecoveredSession {
    /// The facts from when it began.
    pub header: Header,
    /// Its newest save, if there is one and the log does not contradict it.
    pub save: Option<Save>,
    /// Its log, if it continues from the save or from the beginning.
    pub log: Option<RecoveredLog>,
    /// Why part of the data is unusable.
    pub flaw: Option<String>,
}

/// A log that has been read.
#[derive(Debug)]
pub(crate) struct RecoveredLog {
    /// The valid bytes.
    pub bytes: Vec<u8>,
    /// Where it ends.
    pub position: Position,
    /// How often the session has been resumed.
    pub restarts: u32,
}

impl RecoveredLog {
    /// Reads a whole log. Also returns the state hash of the save at that tick, if the log has it.
    fn read(
        bytes: Vec<u8>,
        saved: Option<Tick>,
    ) -> Result<(Header, RecoveredLog, Option<StateHash>), OpenError> {
        let mut reader = LogReader::open(&bytes[..])?;
        let header = reader.header().clone();
        let (mut restarts, mut marked) = (0, None);
        let mut records = reader.records();
        while let Some(record) = records.next()? {
            match record {
                Record::Rewind { .. } => restarts += 1,
                Record::Snapshot { tick, hash, .. } if Some(*tick) == saved => marked = Some(*hash),
                _ => {}
            }
        }
        let position = reader.verify()?.position;
        let valid = usize::try_from(position.offset()).unwrap_or(bytes.len());
        let mut bytes = bytes;
        bytes.truncate(valid);
        Ok((header, RecoveredLog { bytes, position, restarts }, marked))
    }

    /// The last valid tick.
    pub fn last(&self) -> Tick {
        Tick(self.position.next_tick().0.saturating_sub(1))
    }
}

impl RecoveredSession {
    /// Combines the usable parts of a log and a save. The error says why there are none for a session of this name.
    pub fn new(name: &str, log: Option<Vec<u8>>, save: Option<Save>) -> Result<RecoveredSession, String> {
        let save = save.filter(|save| save.info.session == name);
        let (mut save, mut flaw) = match save {
            Some(save) if save.is_true() => (Some(save), None),
            Some(_) => (None, Some("the save is not the state that it says it is".to_owned())),
            None => (None, None),
        };
        let saved = save.as_ref().map(|save| save.info.tick);
        let read = log.map(|log| RecoveredLog::read(log, saved)).transpose();
        let (header, log) = match read {
            Ok(Some((header, log, marked))) if header.session == name => {
                if marked.zip(save.as_ref()).is_some_and(|(hash, save)| hash != save.info.hash) {
                    save = None;
                    flaw = Some("the save is of another course of the session than the log".into());
                }
                let before = Tick(header.first_tick.0.saturating_sub(1));
                let saved = save.as_ref().map_or(Tick::ZERO, |save| save.info.tick);
                if before <= saved && saved <= log.last() {
                    (Some(header), Some(log))
                } else {
                    let last = log.last();
                    flaw = Some(format!(
                        "the log has ticks {} to {last}, the save is of tick {saved}",
                        before.next()
                    ));
                    (None, None)
                }
            }
            Ok(_) => (None, None),
            Err(error) => {
                flaw = Some(format!("the log: {error}"));
                (None, None)
            }
        };
        let header = header.or_else(|| save.as_ref().map(|save| save.info.header()));
        match header {
            Some(header) => Ok(RecoveredSession { header, save, log, flaw }),
            None => Err(flaw.unwrap_or_else(|| format!("nothing of it is of a session named {name:?}"))),
        }
    }

    /// The last tick that can be restored.
    pub fn last(&self) -> Tick {
        let saved = self.save.as_ref().map(|save| save.info.tick);
        self.log.as_ref().map(RecoveredLog::last).or(saved).unwrap_or_default()
    }

    /// The facts from when it began.
    pub fn facts(&self) -> Facts {
        facts_of(self.header.clone())
    }

    /// The data as the relay needs it to resume the session.
    pub fn kept(&self) -> Result<Kept, String> {
        let save = self.save.as_ref().map(|save| {
            let table = Table::from_bytes(&save.table).map_err(|error| format!("the table: {error:?}"))?;
            let (tick, hash, state) = (save.info.tick, save.info.hash, save.state.clone());
            Ok::<_, String>(session::Save { tick, hash, state, table })
        });
        let save = save.transpose()?;
        let from = save.as_ref().map_or(Tick(1), |save| save.tick.next());
        let restarts = self.log.as_ref().map_or(0, |log| log.restarts);
        // Without the log it is unknown which claims are older than the last resume, so a new uid makes all of them
        // invalid.
        let uid = if self.log.is_some() { self.header.started_unix_ms } else { unix_ms() };
        let mut kept = Kept::new(self.facts(), uid, restarts, save).started(self.header.started_unix_ms);
        let mut push = |log: &RecoveredLog| -> Result<(), ReadError> {
            let mut reader = LogReader::open(&log.bytes[..]).map_err(|_| ReadError::Damaged { offset: 0 })?;
            let mut ticks = reader.ticks_from(from);
            while let Some(inputs) = ticks.next()? {
                kept.push(&opaque_rows(inputs));
            }
            Ok(())
        };
        self.log.as_ref().map_or(Ok(()), &mut push).map_err(|error| error.to_string())?;
        Ok(kept)
    }
}

/// The facts in a log's header.
pub(crate) fn facts_of(header: Header) -> Facts {
    let Header { game, build, commit, schema, setup, seed, rate, seats, session, listed, .. } = header;
    Facts { name: session, game, build, commit, schema, setup, seed, rate, seats, listed }
}
