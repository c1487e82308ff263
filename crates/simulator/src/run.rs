//! Runs many worlds on several threads, and sums up their results.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "worlds run on threads, and wall time is measured"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sametick_sim::Time;

use crate::faults::FaultCounts;
use crate::outcome::{Checker, Figures, Outcome, Violation};
use crate::world;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many seeds.
    Seeds(u64),
    /// After so many simulated hours in worlds with at least four clients.
    Hours(f64),
}

/// The results of many worlds.
#[derive(Debug, Default)]
pub struct Total {
    /// The sum of their counters.
    pub figures: Figures,
    /// The sum of their faults.
    pub faults: FaultCounts,
    /// The failed ones, lowest seed first.
    pub failed: Vec<Outcome>,
    /// The wall time.
    pub took: Duration,
}

impl Total {
    /// Simulated hours, of all worlds.
    pub fn hours(&self) -> f64 {
        self.figures.simulated_us as f64 / 3.6e9
    }
}

const MICROS_PER_HOUR: f64 = 3.6e9;

/// Runs one seed; a failed assertion is a violation as well.
pub fn seed(seed: u64, tracing: bool) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| world::play(seed, tracing))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let what = text.unwrap_or_else(|| "something panicked".to_owned());
        Outcome {
            seed,
            figures: Figures::default(),
            faults: FaultCounts::default(),
            digest: 0,
            violation: Some(Violation { checker: Checker::Panic, at: Time::ZERO, what }),
            trace: Vec::new(),
        }
    })
}

/// Runs seeds from `first` on. `see` gets regular progress, and stops everything by returning false.
pub fn run(first: u64, until: Until, jobs: usize, see: impl Fn(&Total) -> bool + Sync) -> Total {
    let begin = Instant::now();
    let (next, stop, total) = (AtomicU64::new(first), AtomicBool::new(false), Mutex::new(Total::default()));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if matches!(until, Until::Seeds(count) if number - first >= count) {
                return;
            }
            let outcome = seed(number, false);
            let Ok(mut total) = total.lock() else { return };
            total.figures.add(&outcome.figures);
            total.faults.add(&outcome.faults);
            total.took = begin.elapsed();
            if outcome.violation.is_some() {
                total.failed.push(outcome);
            }
            let enough = match until {
                Until::Seeds(_) => false,
                Until::Hours(hours) => total.figures.crowded_us as f64 >= hours * MICROS_PER_HOUR,
            };
            if enough || !see(&total) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        (1..jobs).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    let mut total = total.into_inner().unwrap_or_default();
    total.took = begin.elapsed();
    total.failed.sort_by_key(|outcome| outcome.seed);
    total
}
