//! Packets a second through our endpoints, against raw socket calls in the same run; handshakes; the cost of a
//! stranger's packet.
//!
//! `cargo bench -p sametick-transport --bench loopback`
//!
//! One way: both ends take turns on one thread, 64 packets each, so that a figure is the cost of sending and receiving
//! a packet. Request and answer: a server and a client on a core each, 64 requests in flight. Where a figure is of one
//! thread, its CPU time counts.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

#[path = "loopback/echo.rs"]
mod echo;
#[path = "loopback/oneway.rs"]
mod oneway;
#[path = "loopback/raw.rs"]
mod raw;
#[path = "loopback/strangers.rs"]
mod strangers;

use std::time::{Duration, Instant};

/// How long each figure is measured for.
const MEASURE: Duration = Duration::from_millis(1_500);

/// How many packets are in flight.
const FLYING: usize = 64;

/// The bytes of a message: a tick's worth of inputs.
const MESSAGE: usize = 64;

fn main() {
    println!("{MESSAGE}-byte messages, {FLYING} on their way, loopback");
    // `-- udp` measures the links of one transport only, for a profile.
    let only = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    if only.is_none() {
        oneway::report();
        strangers::report();
    }
    echo::report(only.as_deref());
}

/// Measures operations against the thread's CPU time, which other processes do not change; against the clock where the
/// system does not report it.
struct Stopwatch {
    start: Instant,
    cpu: Cpu,
    used: Duration,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        let cpu = Cpu::here();
        Stopwatch { start: Instant::now(), used: cpu.used(), cpu }
    }

    fn is_running(&self) -> bool {
        self.start.elapsed() < MEASURE
    }

    /// Operations a second.
    fn rate(&self, done: usize) -> f64 {
        let (took, used) = (self.start.elapsed(), self.cpu.used() - self.used);
        done as f64 / if used.is_zero() { took } else { used }.as_secs_f64()
    }
}

/// Runs `work`, which returns how many operations it did, until enough time has passed; returns operations a second.
fn rate(mut work: impl FnMut() -> usize) -> f64 {
    for _ in 0..100 {
        work();
    }
    let (watch, mut done) = (Stopwatch::start(), 0);
    while watch.is_running() {
        done += work();
    }
    watch.rate(done)
}

/// A line of a table: name, number a second, nanoseconds each, and the ratio to the reference.
fn line(what: &str, per_second: f64, reference: f64) {
    let ratio = per_second / reference;
    println!("| {what:44} | {per_second:>10.0} | {:>8.0} | {ratio:>5.2} |", 1e9 / per_second);
}

fn table(title: &str) {
    println!("\n| {title:44} | a second   | ns each  | ratio |");
    println!("|{:-<46}|-----------:|---------:|------:|", "");
}

/// The CPU time of a thread, where the system reports it.
struct Cpu(String);

impl Cpu {
    /// The calling thread's.
    fn here() -> Cpu {
        #[cfg(target_os = "linux")]
        return Cpu(format!("/proc/self/task/{}/schedstat", nix::unistd::gettid()));
        #[cfg(not(target_os = "linux"))]
        Cpu(String::new())
    }

    /// So far.
    fn used(&self) -> Duration {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
    }
}

/// Keeps a thread on one core, where the system can.
fn pin(core: usize) {
    #[cfg(target_os = "linux")]
    {
        let mut set = nix::sched::CpuSet::new();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let _ = set.set(core % cores);
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = core;
}
