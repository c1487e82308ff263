//! Progress bar for long work at a terminal. In a pipe, and for short work, nothing is shown.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Work that takes no longer than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often to look at the clock, in units of work: a tick may take a tenth of a microsecond.
const EVERY: u64 = 1024;

/// The progress of some work. The bar disappears when this is dropped.
pub struct Progress {
    what: &'static str,
    length: u64,
    /// When the work began; `None` if there is no terminal.
    since: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Work of some length, in any unit.
    pub fn new(what: &'static str, length: u64) -> Progress {
        let since = io::stderr().is_terminal().then(Instant::now);
        Progress { what, length, since, bar: None }
    }

    /// Reports that so much is done, for work in small units.
    pub fn at(&mut self, done: u64) {
        if done.is_multiple_of(EVERY) {
            self.show(done);
        }
    }

    /// Reports that so much is done.
    pub fn show(&mut self, done: u64) {
        let Some(since) = self.since else { return };
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        } else if since.elapsed() > PATIENCE {
            let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} {eta} left");
            let bar = ProgressBar::new(self.length).with_message(self.what);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.bar = Some(bar);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
