//! The message trace in a file (`--trace`, L7): every message of either end, one JSON object per line. Off by default;
//! a thread writes it, and senders of messages never block.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sametick_client::{Client, Side};
use sametick_lockstep::message::{Way, describe};
use sametick_wire::Time;
use sametick_wire::message_log::{Logged, MessageLine};
use serde::Serialize;

/// The most queued lines: some seconds of a busy relay. Beyond it lines are dropped and counted.
const MAX_WAITING: usize = 65_536;

/// The longest time until written lines are flushed.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// An open trace. Dropping it waits until it is written.
#[derive(Debug)]
pub struct Trace {
    lines: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    dropped: u64,
}

/// A relay's line about a closed tick.
#[derive(Debug, Default, Serialize)]
pub struct ClosedLine<'a> {
    /// The time.
    pub unix_us: u64,
    /// The session's name.
    pub session: &'a str,
    /// Always `closed`.
    pub kind: &'static str,
    /// The tick.
    pub tick: u32,
    /// The inputs that were present, and how long each had waited.
    pub present: Vec<Present>,
    /// The seats whose inputs were missing.
    pub omitted: Vec<u16>,
}

/// An input that was present when its tick closed.
#[derive(Debug, Serialize)]
pub struct Present {
    /// The seat.
    pub seat: u16,
    /// The time from its arrival until it was sent to all peers.
    pub waited_us: Option<u64>,
}

/// Microseconds of Unix time.
pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Trace {
    /// Creates or overwrites this file.
    pub fn create(path: &Path) -> io::Result<Trace> {
        let file = BufWriter::new(File::create(path)?);
        let (lines, from_owner) = sync_channel(MAX_WAITING);
        let thread = thread::spawn(move || {
            if let Err(error) = write(file, &from_owner) {
                tracing::error!(%error, "the message log ends here");
            }
        });
        Ok(Trace { lines: Some(lines), thread: Some(thread), dropped: 0 })
    }

    /// A message of a session, sent or received by this relay.
    pub fn message(&mut self, session: &str, logged: &Logged, bytes: &[u8]) {
        let way = if logged.sent { Way::ToPeer } else { Way::ToRelay };
        let about = describe(way, logged.channel, bytes, logged.near);
        self.write(&MessageLine::new(unix_us(), session, logged, about, bytes));
    }

    /// Writes the messages that a client has logged since the last call.
    pub fn take_messages<S: Side>(&mut self, now: Time, client: &mut Client<S>) {
        let unix_us = unix_us();
        let mut on_message = |line: &MessageLine<'_>| self.write(line);
        client.message_lines(|at| unix_us.saturating_sub(now.micros_since(at)), |_| (), &mut on_message);
        client.forget_messages();
    }

    /// Writes a line of any kind.
    pub fn write(&mut self, line: &impl Serialize) {
        let Some(lines) = &self.lines else { return };
        let text = serde_json::to_string(line).unwrap_or_default();
        match lines.try_send(text) {
            Ok(()) if self.dropped > 0 => {
                let dropped = std::mem::take(&mut self.dropped);
                tracing::warn!(dropped, "the disk did not keep up with the message log");
            }
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.dropped += 1,
            // The thread has logged why it ended.
            Err(TrySendError::Disconnected(_)) => self.lines = None,
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread already.
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
