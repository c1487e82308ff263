//! Catch in lockstep: the same states on every machine, whatever the network does.

use catch::{Catch, Input, Setup, autopilot};
use sametick_lockstep::pair::Trial;
use sametick_lockstep::peer::Peer;
use sametick_sim::sync_test::sync_test;
use sametick_sim::{Game, Inputs, Rng, Seat, Tick};

const SETUP: Setup = Setup { seed: 7, coins: 40 };

#[test]
fn every_tick_comes_out_the_same_from_every_state_before_it() {
    let mut rng = Rng::new(1);
    let result = sync_test::<Catch>(&SETUP, 600, 8, |_tick, inputs| {
        for seat in (0..4).map(Seat) {
            match rng.below(50) {
                0 => inputs.leave(seat),
                1 => inputs.join(seat),
                2..10 => inputs.omit(seat),
                _ => inputs.set(seat, Input { x: rng.between(-1, 1) as i8, y: rng.between(-1, 1) as i8 }),
            }
        }
    });
    if let Err(desync) = result {
        panic!("{desync}");
    }
}

#[test]
fn a_player_who_walks_to_coins_catches_them() {
    let (mut game, mut inputs) = (Catch::new(&SETUP), Inputs::new());
    for _ in 0..30 * 60 {
        inputs.set(Seat(0), autopilot(&game, Seat(0)));
        inputs.set(Seat(1), Input::default());
        game.step(&inputs);
        assert_eq!(game.coins.len(), 40);
    }
    assert!(game.players[&Seat(0)].coins > 10);
    assert_eq!(game.players[&Seat(1)].coins, 0);
}

fn act(peer: &Peer<Catch>, _: Tick) -> Input {
    let known = peer.shown().zip(peer.seat());
    known.map_or(Input::default(), |((_, game), seat)| autopilot(game, seat))
}

#[test]
fn three_agree_over_a_bad_network() {
    let mut trial: Trial<Catch> = Trial::new(1, "rtt=100ms,jitter=20ms,loss=2%".parse().unwrap());
    for _ in 0..3 {
        trial.join(3, &SETUP, act);
    }
    // Two clients that confirm the same tick with different states would end this with a panic.
    trial.run_millis(20_000);
    assert!(trial.agreed() > 500, "{} states compared", trial.agreed());
    for player in &trial.players {
        let (_, game) = player.peer.confirmed().unwrap();
        assert!(game.players[&player.peer.seat().unwrap()].coins > 1);
    }
}
