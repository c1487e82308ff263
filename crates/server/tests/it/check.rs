//! Tests of `sametick check`: deterministic games pass, others fail with the tick and the fields.

use sametick::check::{CheckError, CheckPlan, Failure, check_game};

use crate::log::{sametick, text};
use crate::process::Folder;
use crate::trial;

fn plan(seed: u64) -> CheckPlan {
    CheckPlan { ticks: 400, sessions: 3, seed, depth: 6 }
}

fn check(name: &str, seed: u64) -> Option<Box<Failure>> {
    check_game(trial::games().named(name).unwrap(), plan(seed)).unwrap()
}

#[test]
fn deterministic_games_pass() {
    for seed in 0..4 {
        for name in ["slow", "pong"] {
            let failure = check(name, seed);
            assert!(failure.is_none(), "{name} from seed {seed}: {failure:?}");
        }
    }
}

#[test]
fn an_unserialised_field_is_found_before_it_has_an_effect() {
    let failure = check("faulty", 1).unwrap();
    // The hidden field has an effect in the 50th step; that it is not serialised is found before the first.
    assert_eq!((failure.tick.0, failure.seed), (0, 1), "{failure:?}");
    assert!(failure.what.starts_with("the state has fields that are not serialised: hidden."), "{failure:?}");
}

#[test]
fn state_outside_the_state_is_found() {
    let failure = check("leaky", 2).unwrap();
    assert!(failure.what.contains("step() depends on something outside the state"), "{failure:?}");
    assert_eq!(failure.differences[0].path, "seen");
}

#[test]
fn a_difference_between_threads_is_found() {
    let failure = check("threaded", 3).unwrap();
    assert!(failure.tick.0 == 40 && failure.what.contains("two threads"), "{failure:?}");
}

#[test]
fn a_panic_is_a_failure_in_a_tick() {
    let failure = check("fragile", 4).unwrap();
    let played = failure.rehearsal.unwrap().ticks.len();
    assert_eq!((failure.tick.0 as usize, failure.what.as_str()), (played, "the game panics"));
}

#[test]
fn the_command_gives_a_verdict_and_keeps_a_session() {
    let folder = Folder::new();
    let kept = folder.path().join("kept.log");
    let args = [
        "check",
        "pong",
        "--ticks",
        "600",
        "--sessions",
        "2",
        "--seed",
        "9",
        "--keep",
        text(&kept),
        "--json",
    ];
    let (ok, out, err) = sametick(&args);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(ok && report["deterministic"] == true && report["game"] == "pong", "{report} {err}");
    let (ok, out, _) = sametick(&["log", "verify", text(&kept)]);
    assert!(ok && out.contains("20 checks compared, all match"), "{out}");
    let (ok, _, err) = sametick(&["check", "chess"]);
    assert!(!ok && err.contains("it has pong") && err.lines().count() == 1, "{err}");
}

#[test]
fn a_game_that_takes_no_setup_says_what_to_do() {
    let error = CheckError::NoSetup("chess").to_string();
    assert!(error.contains("with_setup"), "{error}");
}
