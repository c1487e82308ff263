//! The failure message of a trial names the players, the tick and the field that differs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use postcard_schema::Schema;
use sametick_lockstep::pair::Trial;
use sametick_sim::{BuildId, Game, Inputs, TickRate};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Race {
    ticks: u32,
    cars: Vec<Car>,
}

#[derive(Clone, Default, Serialize, Deserialize, Schema)]
struct Car {
    distance: u32,
    fuel: u32,
}

impl Game for Race {
    const NAME: &'static str = "race";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([3; 16]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Race {
        Race { ticks: 0, cars: vec![Car { distance: 0, fuel: 1_000 }; 3] }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        self.ticks += 1;
        for row in inputs {
            self.cars[row.seat.index()].distance += u32::from(row.input.unwrap_or(1));
        }
    }
}

fn trial(players: usize) -> Trial<Race> {
    let mut trial: Trial<Race> = Trial::new(5, "rtt=60ms".parse().unwrap());
    for _ in 0..players {
        trial.join(3, &(), |_, _| 2);
    }
    trial
}

/// The message of a trial that fails within so many milliseconds.
fn failure(trial: &mut Trial<Race>, ms: u64) -> String {
    let result = catch_unwind(AssertUnwindSafe(|| trial.run_millis(ms)));
    *result.expect_err("they disagree").downcast::<String>().unwrap()
}

/// The tick in a failure message.
fn tick_of(failure: &str) -> u32 {
    let (_, rest) = failure.split_once("after tick ").unwrap();
    rest.split_once(' ').unwrap().0.parse().unwrap()
}

#[test]
fn a_disagreement_names_players_tick_and_both_field_values() {
    let mut trial = trial(3);
    trial.run_millis(2_000);
    assert!(trial.agreed() > 60);
    trial.players[1].peer.tamper(|race| race.cars[2].fuel -= 1);
    let (tampered, _) = trial.players[1].peer.confirmed().unwrap();
    let failure = failure(&mut trial, 1_000);
    let lines: Vec<&str> = failure.lines().collect();
    assert!(lines[0].starts_with("player ") && lines[0].contains("player 1"), "{failure}");
    assert!(lines[0].contains("have different states after tick "), "{failure}");
    // Peers that are ahead of the tick are compared as soon as the flipped peer gets there.
    assert!((tampered.0..tampered.0 + 10).contains(&tick_of(&failure)), "{tampered}: {failure}");
    let ahead = lines[0].ends_with("!= player 1):");
    let values = if ahead { "1000 != 999" } else { "999 != 1000" };
    assert_eq!(lines[1..], [format!("  cars[2].fuel: {values}")], "{failure}");
}

#[test]
fn a_late_joiner_with_a_wrong_state_is_compared_to_the_log() {
    let mut trial = trial(2);
    trial.run_millis(10_000);
    let late = trial.join(3, &(), |_, _| 2);
    // It is sent all ticks. As soon as it has a state, that state is corrupted.
    while trial.players[late].peer.confirmed().is_none_or(|(tick, _)| tick.0 == 0) {
        trial.run_millis(1);
    }
    let (at, _) = trial.players[late].peer.confirmed().unwrap();
    trial.players[late].peer.tamper(|race| race.cars[0].fuel = 7);
    let failure = failure(&mut trial, 5_000);
    assert!(failure.contains(&format!("and player {late} have different states")), "{at}: {failure}");
    assert!(failure.ends_with("\n  cars[0].fuel: 1000 != 7"), "{at}: {failure}");
}
