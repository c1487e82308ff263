//! Counters of the database threads, and the statistics for an operator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Statistics of the players database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayersStats {
    /// Writes in the queue.
    pub queue_depth: usize,
    /// The capacity of the queue.
    pub queue_capacity: usize,
    /// Writes that wait on the tick thread because the queue was full.
    pub overflowing: usize,
    /// How many writes found the queue full. None of them was lost.
    pub overflows: u64,
    /// How many writes replaced an older one of the same key before it was written.
    pub coalesced: u64,
    /// How many transactions were written.
    pub flushes: u64,
    /// How long the last transaction took.
    pub last_flush_us: u64,
    /// How long the longest transaction took.
    pub max_flush_us: u64,
    /// Rows in the last transaction.
    pub last_rows: u64,
    /// Rows in all transactions; [`mean_rows`](PlayersStats::mean_rows) is per transaction.
    pub rows: u64,
    /// How often the database failed.
    pub errors: u64,
    /// How often one of the threads had to be restarted.
    pub restarts: u64,
    /// Senseless rows that were replaced.
    pub mended: u64,
    /// How many backups were made.
    pub backups: u64,
    /// When the last backup was made, in seconds of Unix time (0: none).
    pub last_backup_unix_s: u64,
}

impl PlayersStats {
    /// Rows per transaction, on average.
    pub fn mean_rows(&self) -> u64 {
        self.rows.checked_div(self.flushes).unwrap_or(0)
    }

    /// A warning for the operator; `None` if all is well.
    pub fn warning(&self) -> Option<String> {
        if self.overflowing > 0 {
            let PlayersStats { overflowing, .. } = self;
            Some(format!(
                "the database of players does not keep up: the newest state of {overflowing} things waits in memory"
            ))
        } else if self.queue_depth * 2 > self.queue_capacity {
            Some("the queue to the database of players is more than half full".to_owned())
        } else {
            None
        }
    }
}

/// The counters that the threads share.
#[derive(Debug, Default)]
pub struct Counters {
    pub coalesced: AtomicU64,
    pub flushes: AtomicU64,
    pub last_flush_us: AtomicU64,
    pub max_flush_us: AtomicU64,
    pub last_rows: AtomicU64,
    pub rows: AtomicU64,
    pub errors: AtomicU64,
    pub restarts: AtomicU64,
    pub mended: AtomicU64,
    pub backups: AtomicU64,
    pub last_backup_unix_s: AtomicU64,
}

impl Counters {
    pub fn note_flush(&self, rows: usize, took: Duration) {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.last_flush_us.store(took_us, Ordering::Relaxed);
        self.max_flush_us.fetch_max(took_us, Ordering::Relaxed);
        self.last_rows.store(rows as u64, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    /// The threads' part of the statistics; the tick thread adds the rest.
    pub fn stats(&self) -> PlayersStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PlayersStats {
            coalesced: read(&self.coalesced),
            flushes: read(&self.flushes),
            last_flush_us: read(&self.last_flush_us),
            max_flush_us: read(&self.max_flush_us),
            last_rows: read(&self.last_rows),
            rows: read(&self.rows),
            errors: read(&self.errors),
            restarts: read(&self.restarts),
            mended: read(&self.mended),
            backups: read(&self.backups),
            last_backup_unix_s: read(&self.last_backup_unix_s),
            ..PlayersStats::default()
        }
    }
}
