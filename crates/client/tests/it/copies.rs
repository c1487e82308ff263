//! Session copies: a client keeps one, and offers it to a server that has lost the session.

use sametick_client::{Brought, SessionCopy, Side};
use sametick_pong::Pong;
use sametick_sim::StateHash;

use crate::hosted::Room;
use crate::relayed::Relayed;
use crate::world::{self, NETWORKS};

type World = world::World<Relayed>;

/// The copy that a player has after two seconds.
fn copy_of(network: &str, seed: u64) -> SessionCopy {
    let world = World::of_two(network, seed);
    let client = &world.players[1].client;
    let copy = client.copy().expect("it plays");
    let (tick, state) = client.side().and_then(|peer| peer.confirmed()).unwrap();
    assert_eq!((copy.save.tick, copy.save.hash), (tick, StateHash::of(state)), "what is confirmed");
    assert_eq!(copy.check::<Pong>("den"), Ok(()));
    copy
}

fn brought(world: &World, number: usize) -> Option<Brought> {
    world.players[number].client.side().and_then(Side::brought)
}

#[test]
fn a_copy_is_accepted_on_every_network_and_others_join_late() {
    for (seed, network) in (0..).zip(NETWORKS) {
        let copy = copy_of(network, seed);
        let mut world = World::new(network, seed + 50);
        let first = world.add();
        world.players[first].client.bring(copy.clone());
        world.run_until(8_000, "plays", |world| world.plays(first));
        assert_eq!(brought(&world, first), Some(Brought::Taken { tick: copy.save.tick }), "{network}");
        let late = world.add();
        world.run_until(5_000, "plays as well", |world| world.plays(late));
        world.run_millis(3_000);
        assert_eq!(brought(&world, late), None);
        assert!(world.server.session().history().last().0 > copy.save.tick.0 + 120);
        world.assert_agreement();
        assert_eq!(world.server.session().agreement().mismatches(), 0);
    }
}

#[test]
fn a_copy_is_offered_again_if_the_first_link_goes_silent() {
    for seed in 0..6 {
        let copy = copy_of(NETWORKS[0], seed);
        let mut world = World::new("rtt=200ms", seed + 50);
        let first = world.add();
        world.players[first].client.bring(copy.clone());
        // By then the answer to the hello has arrived, and perhaps the join has too.
        world.run_millis(210 + seed * 60);
        world.swallow(first);
        world.run_until(20_000, "plays", |world| world.plays(first));
        // The copy may have been complete before: then the session that is found was started from it.
        assert!(brought(&world, first).is_some(), "seed {seed}");
        let save = world.server.session().save().expect("it began with the copy");
        assert_eq!((save.tick, save.hash), (copy.save.tick, copy.save.hash), "seed {seed}");
    }
}

#[test]
fn a_room_has_no_copy() {
    let world = world::World::<Room>::of_two(NETWORKS[0], 1);
    assert!(world.players[0].client.copy().is_none());
}
