//! The message trace: every message on either end, a line of JSON each, in a file of its own (L7). Off unless asked for; a
//! thread writes it, and whoever sends messages never waits.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sametick_lockstep::message::{Way, describe};
use sametick_sim::{Seat, Tick};
use sametick_wire::Channel;
use serde::Serialize;

/// Lines that wait for the disk: some seconds of a busy relay. Beyond it lines are dropped and counted.
const MAX_WAITING: usize = 65_536;

/// What is written is on its way to the disk after this long at most.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// A trace that is being written. Dropping it waits until it is.
#[derive(Debug)]
pub struct Trace {
    lines: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    dropped: u64,
}

/// Whose message it is.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    /// The session's name.
    pub session: &'a str,
    /// Where the player sits, if that is known.
    pub seat: Option<Seat>,
    /// A tick near those of the message.
    pub near: Tick,
}

#[derive(Serialize)]
struct Line<'a> {
    unix_us: u64,
    session: &'a str,
    seat: Option<u16>,
    direction: &'static str,
    kind: &'static str,
    tick: Option<u32>,
    bytes: usize,
    payload: String,
}

/// What a relay says about a tick it has closed.
#[derive(Debug, Default, Serialize)]
pub struct ClosedLine<'a> {
    /// When.
    pub unix_us: u64,
    /// The session's name.
    pub session: &'a str,
    /// Always `closed`.
    pub kind: &'static str,
    /// Which tick.
    pub tick: u32,
    /// Whose input was there, and for how long it had waited.
    pub present: Vec<Present>,
    /// Whose was not.
    pub omitted: Vec<u16>,
}

/// An input that was there when its tick closed.
#[derive(Debug, Serialize)]
pub struct Present {
    /// Whose.
    pub seat: u16,
    /// From its arrival to its being sent to everybody.
    pub waited_us: Option<u64>,
}

/// Microseconds of Unix time.
pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Trace {
    /// Writes to this file, in place of what is there.
    pub fn create(path: &Path) -> io::Result<Trace> {
        let file = BufWriter::new(File::create(path)?);
        let (lines, from_owner) = sync_channel(MAX_WAITING);
        let thread = thread::spawn(move || {
            if let Err(error) = write(file, &from_owner) {
                tracing::error!(%error, "the message trace ends here");
            }
        });
        Ok(Trace { lines: Some(lines), thread: Some(thread), dropped: 0 })
    }

    /// A message, sent or received on this end.
    pub fn message(&mut self, whose: Whose<'_>, way: Way, sent: bool, channel: Channel, bytes: &[u8]) {
        let (kind, tick) = describe(way, channel, bytes, whose.near);
        self.write(&Line {
            unix_us: unix_us(),
            session: whose.session,
            seat: whose.seat.map(|seat| seat.0),
            direction: if sent { "send" } else { "recv" },
            kind,
            tick: tick.map(|tick| tick.0),
            bytes: bytes.len(),
            payload: sametick_store::log::export::hex(bytes),
        });
    }

    /// A line of any kind.
    pub fn write(&mut self, line: &impl Serialize) {
        let Some(lines) = &self.lines else { return };
        let text = serde_json::to_string(line).unwrap_or_default();
        match lines.try_send(text) {
            Ok(()) if self.dropped > 0 => {
                let dropped = std::mem::take(&mut self.dropped);
                tracing::warn!(dropped, "the disk did not keep up with the message trace");
            }
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.dropped += 1,
            // The thread has said why it ended.
            Err(TrySendError::Disconnected(_)) => self.lines = None,
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by the panic itself.
            let _ = thread.join();
        }
    }
}

fn write(mut file: BufWriter<File>, lines: &Receiver<String>) -> io::Result<()> {
    loop {
        match lines.recv_timeout(FLUSH_EVERY) {
            Ok(line) => writeln!(file, "{line}")?,
            Err(RecvTimeoutError::Timeout) => file.flush()?,
            Err(RecvTimeoutError::Disconnected) => return file.flush(),
        }
    }
}
