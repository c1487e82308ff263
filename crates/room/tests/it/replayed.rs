//! A trial replays its own log, and names the field in which the host's state differs from the replayed one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_room::HostConfig;
use sametick_room::pair::Trial;
use sametick_sim::Tick;
use sametick_sim::record::Record;

use crate::field::{Field, Setup, Step};

#[test]
fn a_replay_names_the_first_differing_tick_and_field() {
    let setup = Setup { seed: 4, ..Setup::default() };
    let mut trial: Trial<Field> = Trial::new(4, "rtt=40ms".parse().unwrap(), &setup, HostConfig::default());
    trial.join(&setup, |_, _| Step { dx: 1, ..Step::default() });
    trial.run_millis(4_000, &mut ());
    assert!(trial.replay() >= 3);
    // In the changed log, no seat acts in tick 70: the walker is a step behind at the next check.
    for record in &mut trial.records {
        if let Record::Inputs(inputs) = record
            && inputs.tick() == Tick(70)
        {
            inputs.clear(Tick(70));
        }
    }
    let failure = catch_unwind(AssertUnwindSafe(|| trial.replay())).expect_err("the log is another one");
    let failure = failure.downcast::<String>().unwrap();
    let lines: Vec<&str> = failure.lines().collect();
    assert!(
        lines[0].starts_with("the host and the replay of its log have different states after tick 90 "),
        "{failure}"
    );
    assert!(lines[1].starts_with("  walkers[0]?.at[0]: ") && lines[1].contains(" != "), "{failure}");
}
