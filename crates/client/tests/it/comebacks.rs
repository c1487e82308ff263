//! Joining, staying and reconnecting: on good and bad networks, whatever happens to the connection.

use sametick_client::{Plan, Side, Status};
use sametick_lockstep::peer::Peer;
use sametick_lockstep::session::CAME_BACK;
use sametick_sim::{Seat, Tick};

use crate::relayed::Relayed;
use crate::world::{self, NETWORKS};

type World = world::World<Relayed>;

fn seat(world: &World, number: usize) -> Option<Seat> {
    world.players[number].client.side().and_then(Peer::seat)
}

/// All clients have the same states, and have reported their hashes to the relay.
#[track_caller]
fn assert_agreement(world: &World) {
    world.assert_agreement();
    assert_eq!(world.server.session().agreement().mismatches(), 0);
}

#[test]
fn two_players_agree_on_every_network() {
    for (seed, network) in (0..).zip(NETWORKS) {
        let mut world = World::of_two(network, seed);
        world.run_millis(10_000);
        assert_agreement(&world);
        assert_eq!((world.losses(0), world.losses(1)), (0, 0), "{network}");
        assert_eq!(world.players[0].dials, [0], "the first route works");
        assert!(world.server.session().history().last() > Tick(600));
    }
}

#[test]
fn a_swallowed_connection_is_detected_and_the_seat_kept() {
    for (seed, network) in (0..20).map(|seed| (seed, NETWORKS[seed as usize % 3])) {
        let mut world = World::of_two(network, seed);
        let mine = seat(&world, 0);
        world.swallow(0);
        // Another connection is dialled beside it after a second (L12).
        world.run_until(1_700, "silence is noticed", |world| world.losses(0) == 1);
        let patience_ms = [1_500, 1_500, 2_500][seed as usize % 3];
        world.run_until(patience_ms, "plays again", |world| world.plays(0));
        assert_eq!(seat(&world, 0), mine);
        // The relay had not given the old link up: the game saw no departure.
        assert_eq!(world.departures(), 0, "{network}");
        world.run_millis(12_000);
        assert_eq!(world.departures(), 0, "{network}");
        assert_eq!(world.losses(0), 1, "{network}");
        assert_agreement(&world);
    }
}

#[test]
fn a_connection_that_is_heard_again_is_kept() {
    for seed in 0..10 {
        let mut world = World::of_two(NETWORKS[seed as usize % 3], seed);
        // Nothing passes for a while, not even on a second connection.
        world.players[0].blocked = [true; 2];
        world.swallow(0);
        world.run_millis(1_600);
        assert!(matches!(world.players[0].client.status(), Status::Stalled { .. }));
        let dialled = world.players[0].dials.len();
        assert!(dialled > 1, "another one is dialled beside it");
        world.relent(0);
        world.run_until(1_500, "plays on", |world| world.plays(0));
        world.run_millis(3_000);
        assert_eq!((world.losses(0), world.departures()), (0, 0));
        assert_eq!(world.players[0].dials.len(), dialled, "and nothing more once it is heard");
        assert_agreement(&world);
    }
}

#[test]
fn a_connection_cut_on_purpose_is_dialled_after_its_pause() {
    for seed in 0..10 {
        let mut world = World::of_two(NETWORKS[seed as usize % 3], seed);
        let (mine, now) = (seat(&world, 1), world.now);
        world.players[1].client.drop_link(now, 3_000_000);
        world.drain_player(1);
        assert!(matches!(world.players[1].client.status(), Status::Lost { .. }));
        world.run_until(6_000, "plays again", |world| world.plays(1));
        assert!(world.now.micros_since(now) >= 3_000_000);
        assert_eq!(seat(&world, 1), mine);
        world.run_millis(2_000);
        assert_agreement(&world);
    }
}

#[test]
fn a_frozen_client_catches_up_and_does_not_disturb_others() {
    for (seed, ms) in [(0, 800), (1, 3_000), (2, 9_000), (3, 30_000), (4, 300_000)] {
        let mut world = World::of_two("rtt=40ms,jitter=5ms", seed);
        let omissions = |world: &World| world.players[1].client.side().unwrap().stats().omissions;
        let (before, mine) = (omissions(&world), seat(&world, 0));
        world.freeze(0, ms);
        world.run_millis(ms);
        assert!(world.plays(1), "the other plays on");
        world.run_until(3_000, "it plays again", |world| world.plays(0));
        world.run_millis(3_000);
        assert_eq!(omissions(&world), before, "frozen for {ms} ms: the other lost nothing");
        assert!(world.losses(0) <= 1, "frozen for {ms} ms");
        assert_agreement(&world);
        assert_eq!(seat(&world, 0), mine, "frozen for {ms} ms");
    }
}

#[test]
fn a_blocked_route_is_replaced_and_the_working_one_is_first() {
    let mut world = World::new("rtt=10ms", 1);
    world.add();
    world.players[0].blocked = [true, false];
    world.run_until(3_500, "plays over the second route", |world| world.plays(0));
    assert_eq!(world.players[0].dials, [0, 1]);
    world.swallow(0);
    world.run_until(6_000, "lost", |world| world.losses(0) == 1);
    world.run_until(1_500, "plays again", |world| world.plays(0));
    assert_eq!(world.players[0].dials, [0, 1, 1]);
    // Then the second route is blocked: the client goes back to the first.
    world.players[0].blocked = [false, true];
    world.swallow(0);
    world.run_until(6_000, "lost again", |world| world.losses(0) == 2);
    world.run_until(4_000, "plays once more", |world| world.plays(0));
    assert_eq!(world.players[0].dials, [0, 1, 1, 1, 0]);
}

#[test]
fn a_restarted_server_is_found_within_about_a_second() {
    for seed in 0..10 {
        let mut world = World::of_two(NETWORKS[seed as usize % 3], seed);
        world.down = true;
        world.restart();
        world.run_millis(15_000);
        assert!(matches!(world.players[0].client.status(), Status::Lost { .. } | Status::Connecting));
        world.down = false;
        world.run_until(3_500, "both play again", |world| world.plays(0) && world.plays(1));
        assert!(world.players.iter().all(|player| player.client.totals().restarts == 1), "begun anew");
        world.run_millis(3_000);
        assert_agreement(&world);
        assert_ne!(seat(&world, 0), seat(&world, 1));
    }
}

#[test]
fn a_player_who_leaves_is_seen_to_leave_at_once() {
    let mut world = World::of_two("rtt=40ms", 7);
    let now = world.now;
    world.players[0].client.leave(now);
    world.run_until(1_000, "left", |world| world.players[0].client.status() == Status::Left);
    world.run_until(200, "the seat is free", |world| world.departures() == 1);
    world.run_millis(2_000);
    assert_eq!(world.players[0].dials, [0], "it does not come back");
    assert!(world.plays(1));
}

/// A page is reloaded: the client goes with or without a goodbye, and another one comes with its claim.
fn reload(world: &mut World, says_goodbye: bool) -> usize {
    let (now, claim) = (world.now, world.players[0].client.side().and_then(Side::claim).unwrap());
    if says_goodbye {
        world.players[0].client.leave(now);
        world.run_until(1_000, "the seat is free", |world| world.departures() == 1);
    } else {
        world.freeze(0, 60_000);
    }
    let again = world.add();
    world.players[again].client.come_back(claim);
    world.run_until(5_000, "plays again", |world| world.plays(again));
    again
}

#[test]
fn a_restarted_program_resumes_its_own_seat() {
    for (seed, says_goodbye) in (0..6).zip([true, false].into_iter().cycle()) {
        let mut world = World::new(NETWORKS[seed as usize % 3], seed);
        world.add();
        world.run_until(5_000, "plays", |world| world.plays(0));
        world.run_millis(10_000);
        let mine = seat(&world, 0);
        let again = reload(&mut world, says_goodbye);
        assert_eq!(seat(&world, again), mine, "seed {seed}");
        assert_eq!(world.departures(), usize::from(says_goodbye), "without a goodbye nobody was away");
        // A client without the claim, such as another tab, gets the free seat.
        let other = world.add();
        world.run_until(5_000, "the other one plays", |world| world.plays(other));
        assert_ne!(seat(&world, other), mine);
        world.run_millis(2_000);
        assert!(world.plays(again) && world.plays(other));
        assert_agreement(&world);
    }
}

#[test]
fn an_invalid_or_foreign_claim_counts_as_none() {
    let mut world = World::of_two("rtt=40ms", 3);
    let claim = world.players[0].client.side().and_then(Side::claim).unwrap();
    world.restart();
    world.run_until(8_000, "both play again", |world| world.plays(0) && world.plays(1));
    let now = world.now;
    world.players[1].client.leave(now);
    world.run_millis(500);
    for claim in [vec![], vec![7; 40], claim] {
        let other = world.add();
        world.players[other].client.come_back(claim);
        world.run_until(5_000, "plays", |world| world.plays(other));
        assert!(world.plays(0) && seat(&world, other) != seat(&world, 0));
        let now = world.now;
        world.players[other].client.leave(now);
        world.run_millis(500);
    }
}

#[test]
fn a_full_session_refuses_players_and_admits_spectators() {
    let mut world = World::of_two("rtt=40ms", 8);
    let third = world.add();
    world.run_until(2_000, "refused", |world| {
        world.players[third].client.status() == Status::Refused("the session is full".into())
    });
    let mut plan = world.plan(3);
    plan.join.watch = true;
    let spectator = world.add_with(plan);
    world.run_until(2_000, "watches", |world| world.players[spectator].client.status() == Status::Watching);
    world.run_millis(2_000);
    assert_eq!(world.players[spectator].client.side().unwrap().roster().len(), 2);
    // Also after its connection was lost.
    world.swallow(spectator);
    world.run_until(5_000, "lost", |world| world.losses(spectator) == 1);
    world.run_until(2_000, "watches again", |world| {
        world.players[spectator].client.status() == Status::Watching
    });
    assert_agreement(&world);
}

#[test]
fn a_simulated_bad_network_slows_a_client_until_removed() {
    let mut world = World::of_two("rtt=10ms", 9);
    let depth = |world: &World| {
        let peer = world.players[0].client.side().unwrap();
        peer.shown().unwrap().0.ticks_since(peer.confirmed().unwrap().0)
    };
    let before = depth(&world);
    let profile = "rtt=200ms,jitter=20ms,loss=5%".parse().unwrap();
    world.players[0].client.set_netem(Some(profile), 1);
    world.run_millis(8_000);
    assert!(world.plays(0) && depth(&world) >= before + 8, "{} then {}", before, depth(&world));
    world.players[0].client.set_netem(None, 1);
    world.run_millis(40_000);
    assert!(depth(&world) < before + 8, "{} then {}", before, depth(&world));
    assert_eq!(world.losses(0), 0);
    assert_agreement(&world);
}

#[test]
fn a_pass_identifies_the_player_on_every_connection() {
    for seed in 0..6 {
        let mut world = World::new(NETWORKS[seed as usize % 3], seed);
        for pass in [[1, 3], [2, 0]] {
            let plan = world.plan(world.players.len());
            world.add_with(Plan { pass: Some(pass.to_vec()), ..plan });
        }
        world.run_until(5_000, "both play", |world| world.plays(0) && world.plays(1));
        assert_eq!((seat(&world, 0), seat(&world, 1)), (Some(Seat(3)), Some(Seat(0))));
        world.run_millis(2_000);
        world.swallow(0);
        world.run_until(1_700, "silence is noticed", |world| world.losses(0) == 1);
        world.run_until(2_500, "plays again", |world| world.plays(0));
        // The same player in another window: it has no state of its own, and the game sees no departure.
        let plan = world.plan(2);
        let other = world.add_with(Plan { pass: Some(vec![1, 3]), ..plan });
        world.run_until(5_000, "the other one plays", |world| world.plays(other));
        world.run_until(
            5_000,
            "the first one is told",
            |world| matches!(world.players[0].client.status(), Status::Refused(why) if why == CAME_BACK),
        );
        assert_eq!((seat(&world, other), world.departures()), (Some(Seat(3)), 0));
        world.run_millis(5_000);
        assert_eq!((world.losses(1), world.losses(other), world.departures()), (0, 0, 0));
        let names: Vec<_> = world.server.session().participants().map(|it| it.name.to_owned()).collect();
        assert_eq!(names, ["player 2", "player 1"]);
        assert_agreement(&world);
    }
}
