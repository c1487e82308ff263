//! What is left of a session that is not running, and what holds of it: its save, and its log from there on.

use sametick_lockstep::relay::Kept;
use sametick_lockstep::rows::{Table, opaque_rows};
use sametick_lockstep::session::{self, Facts};
use sametick_sim::record::Record;
use sametick_sim::{StateHash, Tick};
use sametick_store::log::{Header, LogReader, OpenError, Position, ReadError};
use sametick_store::saves::Save;
use sametick_transport::clock::unix_ms;

/// What is left of a session, and fits together: it can go on from here.
#[derive(Debug)]
pub(crate) struct RecoveredSession {
    /// What was said when it began.
    pub header: Header,
    /// Its newest save, if there is one that the log agrees with.
    pub save: Option<Save>,
    /// Its log, if it leads on from the save or from the beginning.
    pub log: Option<RecoveredLog>,
    /// Why something of it is of no use.
    pub flaw: Option<String>,
}

/// A log that was read.
#[derive(Debug)]
pub(crate) struct RecoveredLog {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Where it ends.
    pub position: Position,
    /// How often the session has been taken up again.
    pub restarts: u32,
}

impl RecoveredLog {
    /// Reads all of a log. Also says to what the state after a tick was saved, if the log knows.
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

    /// The last tick that holds.
    pub fn last(&self) -> Tick {
        Tick(self.position.next_tick().0.saturating_sub(1))
    }
}

impl RecoveredSession {
    /// What can be used of a log and a save. Nothing if nothing can, or none of it is of a session of this name; the error
    /// says why.
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

    /// The last tick there is.
    pub fn last(&self) -> Tick {
        let saved = self.save.as_ref().map(|save| save.info.tick);
        self.log.as_ref().map(RecoveredLog::last).or(saved).unwrap_or_default()
    }

    /// What was said when it began.
    pub fn facts(&self) -> Facts {
        facts_of(self.header.clone())
    }

    /// The same as a relay goes on with it.
    pub fn kept(&self) -> Result<Kept, String> {
        let save = self.save.as_ref().map(|save| {
            let table = Table::from_bytes(&save.table).map_err(|error| format!("the table: {error:?}"))?;
            let (tick, hash, state) = (save.info.tick, save.info.hash, save.state.clone());
            Ok::<_, String>(session::Save { tick, hash, state, table })
        });
        let save = save.transpose()?;
        let from = save.as_ref().map_or(Tick(1), |save| save.tick.next());
        let restarts = self.log.as_ref().map_or(0, |log| log.restarts);
        // Without its log nobody can tell any more which claims are from before it was last taken up: none is good.
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

/// What a log says once about its session.
pub(crate) fn facts_of(header: Header) -> Facts {
    let Header { game, build, commit, schema, setup, seed, rate, seats, session, listed, .. } = header;
    Facts { name: session, game, build, commit, schema, setup, seed, rate, seats, listed }
}
