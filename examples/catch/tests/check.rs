//! Runs `catch check catch` as a test.

use catch::{Catch, autopilot};
use sametick::check::{CheckPlan, check_game};
use sametick::games;

#[test]
fn catch_is_deterministic() {
    let games = games![Catch[1..=8] => autopilot; rooms[1..=64]];
    let plan = CheckPlan { ticks: 600, sessions: 2, seed: 1, depth: 4 };
    let failure = check_game(games.named("catch").unwrap(), plan).unwrap();
    assert!(failure.is_none(), "{failure:?}");
}
