//! The host processes that a machine runs.

use std::collections::{BTreeMap, BTreeSet};

use sametick_session::fleet::{Fleet, FleetConfig, HUNG_US, IDLE_US, Input, Output, START_US, STOP_US};
use sametick_sim::{Rng, Time};

const MS: u64 = 1_000;

fn fleet(ports: u16) -> Fleet {
    Fleet::new(Time::ZERO, FleetConfig { ports: 1..=ports, spare: 2 })
}

fn drain(fleet: &mut Fleet) -> Vec<Output> {
    let mut all = Vec::new();
    loop {
        match fleet.poll_output() {
            Output::WakeAt(_) => return all,
            output => all.push(output),
        }
    }
}

/// The outputs for the time before an input and for the input.
fn told(fleet: &mut Fleet, at_ms: u64, input: Input) -> Vec<Output> {
    let (at, mut all) = (Time::from_millis(at_ms), drain(fleet));
    while let Output::WakeAt(Some(due)) = fleet.poll_output()
        && due < at
    {
        fleet.handle(due, Input::Timeout);
        all.extend(drain(fleet));
    }
    fleet.handle(at, input);
    all.extend(drain(fleet));
    all
}

fn heard(port: u16, sessions: usize) -> Input {
    Input::Heard { port, sessions, is_draining: false }
}

#[test]
fn a_few_hosts_are_kept_ready_and_more_start_on_demand() {
    let mut fleet = fleet(9);
    assert_eq!(told(&mut fleet, 0, Input::Timeout), [Output::Start(1), Output::Start(2)]);
    assert_eq!(told(&mut fleet, 1, heard(1, 0)), []);
    assert_eq!(told(&mut fleet, 2, heard(2, 0)), []);
    assert_eq!(told(&mut fleet, 3, heard(1, 1)), [Output::Start(3)], "one has a session now");
    let more = told(&mut fleet, 4, Input::Wanted(20));
    assert_eq!(more, [Output::Start(4), Output::Start(5), Output::Start(6)], "four start at once");
    assert_eq!(told(&mut fleet, 5, heard(3, 0)), [Output::Start(7)]);
    assert_eq!(fleet.ports().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn idle_hosts_are_stopped_after_a_while() {
    let mut fleet = fleet(9);
    told(&mut fleet, 0, Input::Wanted(2));
    for port in 1..=4 {
        told(&mut fleet, 1, heard(port, 0));
    }
    assert_eq!(told(&mut fleet, 2, Input::Wanted(0)), []);
    let late = 1 + IDLE_US / MS;
    assert_eq!(told(&mut fleet, late, Input::Timeout), [Output::Stop(4), Output::Stop(3)]);
    assert_eq!(told(&mut fleet, late + 1, Input::Exited { port: 4, has_sessions: false }), []);
    assert_eq!(fleet.ports().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_host_that_gets_a_session_before_it_stops_stays() {
    let mut fleet = fleet(9);
    told(&mut fleet, 0, Input::Wanted(1));
    for port in 1..=3 {
        told(&mut fleet, 1, heard(port, 0));
    }
    told(&mut fleet, 2, Input::Wanted(0));
    let late = 1 + IDLE_US / MS;
    assert_eq!(told(&mut fleet, late, Input::Timeout), [Output::Stop(3)]);
    assert_eq!(told(&mut fleet, late + 1, heard(3, 1)), []);
    let again = late + 2 + STOP_US / MS;
    for port in 1..=3 {
        told(&mut fleet, again - 1, heard(port, usize::from(port == 3)));
    }
    assert!(!told(&mut fleet, again, Input::Timeout).contains(&Output::Kill(3)));
}

#[test]
fn a_host_that_dies_with_sessions_is_restarted_on_its_port() {
    let mut fleet = fleet(9);
    told(&mut fleet, 0, Input::Timeout);
    told(&mut fleet, 1, heard(1, 1));
    let died = Input::Exited { port: 1, has_sessions: true };
    assert_eq!(told(&mut fleet, 2, died), [Output::Start(1)]);
    // It cannot be started: it is retried with a growing back-off.
    let mut starts = Vec::new();
    let mut at_ms = 3;
    while starts.len() < 5 {
        if told(&mut fleet, at_ms, died).contains(&Output::Start(1)) {
            starts.push(at_ms);
        }
        while let Output::WakeAt(at) = fleet.poll_output() {
            at_ms = (at.unwrap().as_micros() / MS).max(at_ms + 1);
            fleet.handle(Time::from_millis(at_ms), Input::Timeout);
            if drain(&mut fleet).contains(&Output::Start(1)) {
                starts.push(at_ms);
                break;
            }
        }
    }
    assert!(starts.windows(3).all(|w| w[2] - w[1] > w[1] - w[0]), "{starts:?}");
}

#[test]
fn a_host_that_hangs_or_never_beats_is_killed() {
    let mut fleet = fleet(2);
    told(&mut fleet, 0, Input::Timeout);
    told(&mut fleet, 1, heard(1, 1));
    assert_eq!(told(&mut fleet, START_US / MS, Input::Timeout), [Output::Kill(2)]);
    assert_eq!(told(&mut fleet, 1 + HUNG_US / MS, Input::Timeout), [Output::Kill(1)]);
    assert_eq!(told(&mut fleet, 2 + HUNG_US / MS, heard(1, 1)), [], "too late");
}

#[test]
fn a_restarted_gateway_finds_the_hosts_it_had_started() {
    let mut fleet = fleet(9);
    let is_up = |port, is_up| Input::Found { port, is_up, has_sessions: true };
    fleet.handle(Time::ZERO, is_up(1, true));
    fleet.handle(Time::ZERO, is_up(5, false));
    let starts = [Output::Start(2), Output::Start(3), Output::Start(5)];
    assert_eq!(drain(&mut fleet), starts, "1 is there, and 5 has sessions");
    assert_eq!(told(&mut fleet, 1, heard(1, 1)), []);
    assert!(told(&mut fleet, 1 + HUNG_US / MS, Input::Timeout).contains(&Output::Kill(1)));
}

#[test]
fn a_host_of_another_process_is_left_alone() {
    let mut fleet = Fleet::new(Time::ZERO, FleetConfig { ports: 1..=1, spare: 1 });
    let found = Input::Found { port: 1, is_up: true, has_sessions: true };
    assert_eq!(told(&mut fleet, 0, found), []);
    assert_eq!(told(&mut fleet, 10 * HUNG_US / MS, Input::Timeout), [], "neither killed nor in the way");
    assert_eq!(fleet.ports().collect::<Vec<_>>(), [1], "and its port is not used");
    let at_ms = 10 * HUNG_US / MS + 1;
    assert_eq!(told(&mut fleet, at_ms, Input::Exited { port: 1, has_sessions: false }), [Output::Start(1)]);
    let mut fleet = Fleet::new(Time::ZERO, FleetConfig { ports: 1..=1, spare: 1 });
    told(&mut fleet, 0, found);
    assert_eq!(told(&mut fleet, 1, Input::Drain), [Output::Done], "nobody waits for it");
}

#[test]
fn a_host_that_has_not_heard_of_its_stop_is_told_again() {
    let mut fleet = fleet(9);
    let draining = |port| Input::Heard { port, sessions: 1, is_draining: true };
    told(&mut fleet, 0, Input::Timeout);
    told(&mut fleet, 1, heard(1, 1));
    assert_eq!(told(&mut fleet, 2, Input::Drain)[..2], [Output::Stop(1), Output::Stop(2)]);
    drain(&mut fleet);
    assert_eq!(told(&mut fleet, 3, heard(1, 1)), [Output::Stop(1)], "it had no connection");
    assert_eq!(told(&mut fleet, 4, draining(1)), []);
    let again = told(&mut fleet, 5, Input::Drain);
    assert_eq!(&again[..2], [Output::Stop(1), Output::Stop(2)], "there is less time now");
    let mut fleet = Fleet::new(Time::ZERO, FleetConfig { ports: 1..=1, spare: 0 });
    told(&mut fleet, 0, Input::Wanted(1));
    told(&mut fleet, 1, heard(1, 0));
    for at_ms in (2..IDLE_US / MS).step_by(2_000) {
        assert_eq!(told(&mut fleet, at_ms, Input::Wanted(0)), []);
    }
    assert_eq!(told(&mut fleet, 1 + IDLE_US / MS, heard(1, 0)), [Output::Stop(1)]);
    assert_eq!(told(&mut fleet, 2 + IDLE_US / MS, heard(1, 0)), [Output::Stop(1)]);
}

#[test]
fn a_suspended_gateway_kills_no_host_for_it() {
    let mut fleet = fleet(9);
    told(&mut fleet, 0, Input::Timeout);
    told(&mut fleet, 1, heard(1, 1));
    told(&mut fleet, 1, heard(2, 0));
    told(&mut fleet, 1, heard(3, 0));
    let awake_ms = 10 * HUNG_US / MS;
    fleet.handle(Time::from_millis(awake_ms), Input::Timeout);
    assert_eq!(drain(&mut fleet), []);
    assert_eq!(told(&mut fleet, awake_ms + 1, heard(1, 1)), []);
    let outputs = told(&mut fleet, awake_ms + 2 + HUNG_US / MS, Input::Timeout);
    assert!(outputs.contains(&Output::Kill(1)), "who is silent from then on hangs: {outputs:?}");
}

#[test]
fn starts_at_once_are_limited_however_many_have_sessions() {
    let mut fleet = Fleet::new(Time::ZERO, FleetConfig { ports: 1..=50, spare: 2 });
    let mut starting = BTreeSet::new();
    for port in 1..=40 {
        fleet.handle(Time::ZERO, Input::Found { port, is_up: false, has_sessions: true });
    }
    for at_ms in 1..100 {
        starting.extend(drain(&mut fleet).into_iter().filter_map(|output| match output {
            Output::Start(port) => Some(port),
            _ => None,
        }));
        assert!(starting.len() <= 4, "{starting:?}");
        if let Some(port) = starting.pop_first() {
            fleet.handle(Time::from_millis(at_ms), heard(port, usize::from(port <= 40)));
        }
    }
    assert_eq!(fleet.ports().count(), 42, "all that have sessions, and two more");
}

#[test]
fn a_drain_stops_all_hosts_and_kills_those_that_stay() {
    let mut fleet = fleet(9);
    told(&mut fleet, 0, Input::Timeout);
    told(&mut fleet, 1, heard(1, 0));
    assert_eq!(told(&mut fleet, 2, Input::Drain), [Output::Stop(1), Output::Stop(2)]);
    assert_eq!(told(&mut fleet, 3, Input::Exited { port: 1, has_sessions: true }), [], "in its next life");
    assert_eq!(told(&mut fleet, 2 + STOP_US / MS, Input::Timeout), [Output::Kill(2)]);
    let gone = Input::Exited { port: 2, has_sessions: false };
    assert_eq!(told(&mut fleet, 3 + STOP_US / MS, gone), [Output::Done]);
    assert_eq!(fleet.poll_output(), Output::WakeAt(None));
}

/// A machine with processes that start, hang, crash and end at random.
#[test]
fn a_port_never_has_two_processes_and_none_in_the_end() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut fleet = fleet(6);
        let (mut alive, mut at_ms) = (BTreeMap::<u16, usize>::new(), 0);
        let mut stored = BTreeSet::new();
        // A host of another process, which sends nothing.
        let mut foreign = rng.chance(1, 2).then_some(3);
        if let Some(port) = foreign {
            alive.insert(port, 0);
            fleet.handle(Time::ZERO, Input::Found { port, is_up: true, has_sessions: false });
            alive.extend(drain(&mut fleet).into_iter().filter_map(|output| match output {
                Output::Start(port) => Some((port, 0)),
                _ => None,
            }));
        }
        for step in 0..400 {
            at_ms += rng.below(3_000);
            let port = 1 + rng.below(6) as u16;
            let input = match rng.below(5) {
                0 if alive.remove(&port).is_some() => {
                    foreign = foreign.filter(|foreign| *foreign != port);
                    Input::Exited { port, has_sessions: stored.contains(&port) }
                }
                1 => Input::Wanted(rng.below(4) as usize),
                _ if step == 350 => Input::Drain,
                2 | 3 if alive.contains_key(&port) && foreign != Some(port) => {
                    let sessions = rng.below(2) as usize;
                    stored.remove(&port);
                    stored.extend((sessions > 0).then_some(port));
                    heard(port, sessions)
                }
                _ => Input::Timeout,
            };
            fleet.handle(Time::from_millis(at_ms), input);
            for output in drain(&mut fleet) {
                match output {
                    Output::Start(port) => {
                        assert!(alive.insert(port, 0).is_none(), "seed {seed}: {port} twice");
                    }
                    Output::Kill(port) => {
                        assert_ne!(foreign, Some(port), "seed {seed}");
                        assert!(alive.remove(&port).is_some(), "seed {seed}: nobody to kill at {port}");
                        fleet.handle(Time::from_millis(at_ms), Input::Exited { port, has_sessions: false });
                        stored.remove(&port);
                    }
                    Output::Stop(port) => {
                        assert!(alive.contains_key(&port) && foreign != Some(port), "seed {seed}");
                    }
                    Output::Done | Output::WakeAt(_) => {}
                }
            }
            for output in drain(&mut fleet) {
                if let Output::Start(port) = output {
                    assert!(alive.insert(port, 0).is_none(), "seed {seed}: {port} twice");
                }
            }
            assert_eq!(
                fleet.ports().collect::<Vec<_>>(),
                alive.keys().copied().collect::<Vec<_>>(),
                "seed {seed}"
            );
        }
        fleet.handle(Time::from_millis(at_ms), Input::Drain);
        told(&mut fleet, at_ms + STOP_US / MS, Input::Timeout);
        let mut last = Vec::new();
        for port in alive.into_keys() {
            last = told(&mut fleet, at_ms + STOP_US / MS, Input::Exited { port, has_sessions: true });
        }
        assert!(last.is_empty() || last == [Output::Done], "seed {seed}");
        assert_eq!(fleet.ports().count(), 0, "seed {seed}");
    }
}
