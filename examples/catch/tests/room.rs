//! Catch in a room, on a bad network, in virtual time.

use std::collections::BTreeMap;

use catch::room::{Gold, Walker, pilot};
use catch::{Catch, Input, Setup};
use sametick_room::pair::{Player, Trial, Watch};
use sametick_room::{HostConfig, View};
use sametick_sim::record::{Record, decode_inputs};
use sametick_sim::{Game, Inputs, Seat, StateHash, Tick};

const SETUP: Setup = Setup { seed: 7, coins: 200 };

/// The bot of all tests.
fn act(view: &View<Catch>, tick: Tick) -> Input {
    view.predicted().map_or(Input::default(), |(_, own)| pilot(own, view.newest(), tick, SETUP.seed))
}

/// How often each seat heard a coin being caught.
#[derive(Debug, Default)]
struct Heard(BTreeMap<Seat, u32>);

impl Watch<Catch> for Heard {
    fn looked(&mut self, player: &mut Player<Catch>, _: usize) {
        while let Some((_tick, caught)) = player.view.poll_event() {
            *self.0.entry(caught.by).or_default() += u32::from(player.view.seat() == Some(caught.by));
        }
    }
}

#[test]
fn three_play_over_a_bad_network() {
    let network = "rtt=100ms,jitter=20ms,loss=2%".parse().unwrap();
    let mut trial: Trial<Catch> = Trial::new(1, network, &SETUP, HostConfig::default());
    for _ in 0..3 {
        trial.join(&SETUP, act);
    }
    let mut heard = Heard::default();
    trial.run_millis(60_000, &mut heard);

    let game = trial.host.state();
    for player in &trial.players {
        let (view, seat) = (&player.view, player.view.seat().unwrap());
        // A player hears every coin it catches.
        let caught = u32::from(game.players[&seat].coins);
        assert!(caught > 10 && heard.0[&seat] + 2 >= caught, "{seat} caught {caught} and heard {heard:?}");
        // Its position was predicted to within a few hundredths of a second.
        let errors = view.stats().errors;
        assert!(errors.compared > 300 && errors.mean_ms() < 10.0, "{errors:?}");
        // It knows its own total value and no other, and the coins around it.
        for (id, walker) in view.newest().iter::<Walker>() {
            assert_eq!(walker.worth > 0, id == u32::from(seat.0));
        }
        let coins = view.newest().iter::<Gold>().count();
        assert!(coins > 5 && coins < 150, "{coins} coins");
        // The traffic is small.
        let stats = view.stats();
        assert!(stats.bytes < stats.updates * 60, "{} bytes in {} updates", stats.bytes, stats.updates);
    }
}

#[test]
fn the_log_replays_to_the_same_states() {
    let network = "rtt=80ms,loss=5%".parse().unwrap();
    let mut trial: Trial<Catch> = Trial::new(2, network, &SETUP, HostConfig::default());
    let ada = trial.join(&SETUP, act);
    trial.join(&SETUP, act);
    trial.run_millis(10_000, &mut ());
    trial.leave(ada, true);
    trial.run_millis(5_000, &mut ());

    let (mut game, mut inputs) = (Catch::new(&SETUP), Inputs::new());
    for record in &trial.records {
        match record {
            Record::Inputs(tick) => {
                decode_inputs(tick.iter(), &mut inputs);
                game.step(&inputs);
            }
            Record::Check { hash, .. } => assert_eq!(StateHash::of(&game), *hash),
            _ => {}
        }
    }
    assert_eq!(&game, trial.host.state());
}
