//! What worlds have shown to be wrong, each as a small world of its own.

use sametick_sim::Rng;
use sametick_simulator::faults::Fault;
use sametick_simulator::outcome::Figures;
use sametick_simulator::plan::{Plan, SELDOM_US, Title};
use sametick_simulator::world::play_plan;

const SECOND_US: u64 = 1_000_000;

/// Plays a few worlds in which only these faults happen, every few seconds. Returns what was done in them.
fn play(
    title: Title,
    faults: &'static [Fault],
    seconds: u64,
    seeds: u64,
    change: impl Fn(&mut Plan),
) -> Figures {
    let mut figures = Figures::default();
    for seed in 0..seeds {
        let mut plan = Plan {
            seed,
            title,
            clients: 4,
            seats: 4,
            wait_for: 1,
            ticks_per_packet: None,
            save_every_us: 20 * SECOND_US,
            has_store: seed % 2 == 1,
            faulty_us: seconds * SECOND_US,
            gap_us: 8 * SECOND_US,
            bad_networks: false,
            only: Some(faults),
            drifts_ppm: vec![-300, 0, 150, 450],
        };
        change(&mut plan);
        let outcome = play_plan(plan, Rng::new(seed), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        figures.add(&outcome.figures);
    }
    figures
}

/// At ten ticks a second the state on screen is level with the confirmed one most of the time. That was taken for being
/// overtaken, and ticks were skipped.
#[test]
fn a_low_rate_loses_no_inputs() {
    play(Title::Sum(10), &[], 30, 4, |_| ());
}

/// Only the last bits of a tick's number travel. A peer that had nothing yet took tick 8,193 for tick 1.
#[test]
fn somebody_who_comes_after_eight_thousand_ticks_reads_their_numbers_right() {
    play(Title::Sum(60), &[Fault::Crash], 90, 4, |plan| {
        (plan.bad_networks, plan.save_every_us) = (true, SELDOM_US);
    });
}

/// A relay that had stood still blamed its players for being late, by all the time it had lost: they then ran as far ahead
/// as they may, for minutes.
#[test]
fn players_find_back_after_the_relay_stood_still() {
    play(Title::Sum(30), &[Fault::RelayStall], 60, 6, |_| ());
    play(Title::Sum(10), &[Fault::RelayStall], 60, 6, |_| ());
}

/// What a mended peer had said of its wrong state was held against it again; and two states of different ticks were
/// compared with one replay.
#[test]
fn a_mended_state_is_not_called_wrong_again() {
    play(Title::Sum(20), &[Fault::FlippedBit], 120, 6, |_| ());
    play(Title::Sum(20), &[Fault::FlippedBit, Fault::FlippedBit, Fault::Crash], 120, 6, |plan| {
        (plan.clients, plan.seats) = (3, 3);
        plan.drifts_ppm.pop();
    });
    play(Title::Sum(10), &[Fault::FlippedBit], 120, 6, |plan| {
        (plan.clients, plan.seats) = (2, 2);
        plan.drifts_ppm.truncate(2);
    });
}

/// Somebody who came back to a session without a free seat was turned down and played on, alone; and somebody who came back
/// before its first tick was closed was said to sit down twice.
#[test]
fn those_who_come_back_have_their_seat_or_wait_for_one() {
    play(Title::Sum(20), &[Fault::Roaming, Fault::Leave, Fault::Crash], 120, 6, |_| ());
    play(Title::Sum(10), &[Fault::Roaming], 120, 6, |plan| plan.gap_us = 2 * SECOND_US);
}

/// The relay is killed again and again on good networks: everybody plays again within five seconds of each restart.
#[test]
fn play_is_back_within_five_seconds_of_a_restart() {
    let faults = &[Fault::RelayCrash, Fault::RelayCrash, Fault::SlowDisk, Fault::DiskFull, Fault::FailedSync];
    let figures = play(Title::Sum(20), faults, 300, 6, |plan| plan.gap_us = 10 * SECOND_US);
    assert!(figures.restarts > 50 && figures.in_time > 100 && figures.given > 100, "{figures:?}");
}

/// Everybody leaves, and the session goes on when somebody comes back: with its log and a save, with its log, with a save.
#[test]
fn sessions_that_have_ended_go_on() {
    let faults = &[Fault::Recess, Fault::Recess, Fault::Crash, Fault::RelayCrash];
    let figures = play(Title::Sum(10), faults, 600, 8, |plan| plan.gap_us = 15 * SECOND_US);
    assert!(figures.resumed.iter().all(|count| *count > 3), "{figures:?}");
}

/// Those for whom the relay had found a session left before it went on: the relay looked at it for ever. And a session that
/// had not gone on yet ended as if it had lost nothing.
#[test]
fn nobody_stays_until_a_session_goes_on() {
    let faults = &[Fault::RelayCrash, Fault::RelayCrash, Fault::Blackout, Fault::Recess, Fault::Roaming];
    let figures = play(Title::Sum(10), faults, 300, 8, |plan| plan.gap_us = 3 * SECOND_US);
    assert!(figures.restarts > 50, "{figures:?}");
}

/// A peer whose wrong state had just been replaced read what followed as if it had not been, when the relay was killed then. A
/// wrong state is also gone when the session goes on from before it.
#[test]
fn mended_states_survive_a_restart() {
    let faults = &[Fault::FlippedBit, Fault::FlippedBit, Fault::RelayCrash];
    play(Title::Sum(20), faults, 180, 8, |plan| plan.gap_us = 3 * SECOND_US);
}
