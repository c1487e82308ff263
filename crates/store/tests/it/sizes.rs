//! How long a log is, and how little of it has to be read.

use crate::sessions::{Play, played};

const HOUR: u32 = 60 * 60 * 60;

/// Bytes per player and hour.
fn bytes(how: Play, players: u8) -> usize {
    played(how, players, HOUR).len() / usize::from(players)
}

#[test]
fn an_hour_takes_less_than_100_kb_per_player() {
    let four = bytes(Play::Buttons, 4);
    let two = bytes(Play::Buttons, 2);
    let idle = bytes(Play::Idle, 4);
    let sticks = bytes(Play::Sticks, 4);
    println!("four {four}, two {two}, idle {idle}, sticks {sticks} bytes per player-hour");
    assert!(four <= 45_000 && two <= 70_000, "four players {four}, two players {two}");
    assert!(idle <= 25_000 && sticks <= 500_000, "idle {idle}, sticks {sticks}");
}
