//! On a calm network.

use std::collections::BTreeMap;

use sametick_room::HostConfig;
use sametick_sim::record::{Record, decode_inputs};
use sametick_sim::{Game, Inputs, Seat, StateHash, from_canonical};

use crate::field::{Field, Happening, Score, Setup, Step, Walker};
use crate::world::{World, truth};

fn world(seed: u64, profile: &str) -> World {
    World::new(seed, profile, &Setup { seed, stones: 60, drifters: 40 }, HostConfig::default())
}

#[test]
fn what_is_foreseen_is_what_the_host_comes_to() {
    for (seed, profile) in [(2, "rtt=80ms"), (4, "rtt=5ms"), (5, "rtt=250ms")] {
        let mut world = world(seed, profile);
        (0..3).for_each(|_| {
            world.join();
        });
        world.run_millis(3_000);
        let before: Vec<_> = world.players.iter().map(|player| player.view.stats()).collect();
        world.run_millis(20_000);
        for (player, before) in world.players.iter().zip(before) {
            let stats = player.view.stats();
            assert!(stats.errors.compared > before.errors.compared + 100);
            assert_eq!(stats.errors.corrections, before.errors.corrections, "seed {seed}");
            assert_eq!((stats.omissions, stats.lost), (before.omissions, before.lost), "seed {seed}");
        }
    }
}

#[test]
fn secrets_stay_with_their_owners() {
    let mut world = world(4, "rtt=20ms");
    (0..4).for_each(|_| {
        world.join();
    });
    world.run_millis(15_000);
    let purses = truth::<Walker>(world.host.state());
    assert!(purses.values().any(|walker| walker.purse > 0));
    for player in &world.players {
        let seat = player.view.seat().unwrap();
        for (id, walker) in player.view.newest().iter::<Walker>() {
            assert!(u32::from(seat.0) == id || walker.purse == 0, "{seat} sees the purse of {id}");
        }
        assert_eq!(
            player.view.newest().iter::<Score>().count(),
            4,
            "what is nowhere is seen from everywhere"
        );
    }
}

#[test]
fn shouts_arrive_once_and_in_order() {
    let mut world = world(5, "rtt=50ms,loss=10%");
    (0..3).for_each(|_| {
        world.join();
    });
    world.run_millis(4_000);
    world.checks.heard.clear();
    let from = world.host.tick();
    world.run_millis(20_000);
    world.stand_still();
    let to = world.host.tick();
    world.run_millis(4_000);
    let shouts = |index: usize| -> Vec<_> {
        let heard = world.checks.heard[&index].iter();
        heard
            .filter(|(tick, what)| {
                *tick > from + 30 && *tick <= to - 30 && matches!(what, Happening::Shout(_))
            })
            .cloned()
            .collect()
    };
    assert!(shouts(0).len() > 20);
    assert_eq!(shouts(0), shouts(1));
    assert_eq!(shouts(0), shouts(2));
}

/// By the time at which they were made, not by when they came or who sits where (B10).
#[test]
fn inputs_of_a_tick_have_their_order() {
    let mut world = world(4, "rtt=20ms");
    (0..3).for_each(|_| {
        world.join();
    });
    // Whoever is farther away acts earlier for the same tick.
    world.players[1].pair.set_profile("rtt=240ms".parse().unwrap());
    world.players[2].pair.set_profile("rtt=120ms".parse().unwrap());
    world.run_millis(15_000);
    let seats: Vec<Seat> = world.players.iter().map(|player| player.view.seat().unwrap()).collect();
    let mut orders = BTreeMap::new();
    for record in &world.records[world.records.len() - 200..] {
        let Record::Inputs(rows) = record else { continue };
        let place = |seat: &Seat| {
            let row = rows.get(*seat)?;
            from_canonical::<Step>(row.input?).ok().map(|step| step.place)
        };
        if let [Some(near), Some(far), Some(middle)] = [0, 1, 2].map(|player| place(&seats[player])) {
            *orders.entry((far, middle, near)).or_insert(0) += 1;
        }
    }
    let all: u32 = orders.values().sum();
    assert!(all > 150, "{orders:?}");
    assert!(orders[&(0, 1, 2)] * 10 > all * 9, "{orders:?}");
}

#[test]
fn the_log_of_a_room_replays_to_the_same_states() {
    let mut world = world(6, "rtt=100ms,loss=5%,jitter=20ms");
    (0..4).for_each(|_| {
        world.join();
    });
    world.run_millis(5_000);
    world.leave(1, true);
    world.run_millis(5_000);
    world.join();
    world.run_millis(5_000);
    let mut state = Field::new(&Setup { seed: 6, stones: 60, drifters: 40 });
    let (mut inputs, mut checks) = (Inputs::new(), 0);
    for record in &world.records {
        match record {
            Record::Inputs(tick) => {
                decode_inputs(tick.iter(), &mut inputs);
                state.step(&inputs);
            }
            Record::Check { tick, hash } => {
                assert_eq!(StateHash::of(&state), *hash, "after {tick}");
                checks += 1;
            }
            _ => {}
        }
    }
    assert!(checks >= 14);
    assert_eq!(StateHash::of(&state), StateHash::of(world.host.state()));
}

#[test]
fn who_leaves_and_comes_back_within_a_tick_sits_where_they_sat() {
    let mut world = world(6, "rtt=0ms");
    let [_, ada, _] = [world.join(), world.join(), world.join()];
    world.run_millis(1_000);
    let (seat, claim) = (world.players[ada].view.seat(), world.players[ada].view.claim());
    assert!(seat.is_some() && claim.is_some());
    for pause_ms in [0, 1, 500] {
        world.leave(ada, true);
        world.run_millis(pause_ms);
        world.rejoin(ada);
        world.run_millis(300);
        assert_eq!(world.players[ada].view.seat(), seat, "after {pause_ms} ms");
    }
    assert_eq!(world.host.participants().count(), 3);
}
