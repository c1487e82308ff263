//! Fixed seeds, and that a world depends on its seed alone.

use sametick_simulator::faults::Fault;
use sametick_simulator::run::{self, Until};
use sametick_simulator::{report, world};

/// Few enough for every commit; `cargo xtask long simulator` runs any number.
const SEEDS: u64 = 16;

#[test]
fn nothing_is_violated_in_a_bounded_set_of_worlds() {
    let total = run::run(0, Until::Seeds(SEEDS), 2, |_| true);
    println!("{}", report::text(&total));
    assert!(total.failed.is_empty(), "{}", report::text(&total));
    assert_eq!(total.figures.worlds, SEEDS);
    let minutes = total.figures.simulated_us / 60_000_000;
    assert!(total.faults.total() >= minutes, "at least one fault a minute");
    assert!(Fault::all().all(|fault| total.faults.of(fault) > 0), "every kind of fault happens");
    assert!(total.figures.client_us >= 4 * total.figures.simulated_us, "four clients on average");
    assert!(total.figures.takeovers > 0 && total.figures.back > total.figures.takeovers);
    assert!(total.figures.restarts > 0 && total.figures.rewinds > 0 && total.figures.given > 0);
    assert!(total.figures.resumed.iter().sum::<u64>() > 0 && total.figures.in_time > 0);
    assert!(total.figures.mended > 0 && total.figures.time_outs > 0 && total.figures.logged > 0);
}

#[test]
fn one_seed_is_one_world() {
    let (once, again) = (world::play(3, true), world::play(3, false));
    assert_eq!((once.digest, once.figures, once.faults), (again.digest, again.figures, again.faults));
    assert_ne!(once.digest, world::play(4, false).digest);
    assert!(!once.trace.is_empty() && again.trace.is_empty());
}
