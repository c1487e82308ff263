//! A client joins a room, plays in it, and resumes its seat: the server is a host, the client is the same.

use sametick_arena::Arena;
use sametick_client::Status;
use sametick_room::host;
use sametick_room::view::View;
use sametick_sim::{Seat, Tick};
use sametick_wire::Member;
use sametick_wire::identity::Token;

use crate::hosted::{Room, SEATS};
use crate::world::{self, NETWORKS};

type World = world::World<Room>;

fn view(world: &World, number: usize) -> &View<Arena> {
    world.players[number].client.side().expect("it has been let in")
}

fn seat(world: &World, number: usize) -> Option<Seat> {
    view(world, number).seat()
}

/// Every client receives recent ticks of the room, and their inputs reach it.
#[track_caller]
fn assert_in_touch(world: &mut World) {
    let missing = |world: &World| -> u32 { world.server.host.participants().map(|who| who.omissions).sum() };
    let before = missing(world);
    world.run_millis(3_000);
    assert!(missing(world) - before < 30, "{} inputs of 3 s are missing", missing(world) - before);
    for player in &world.players {
        let view = player.client.side().unwrap();
        let behind = world.server.host.tick().ticks_since(view.newest_tick());
        assert!(behind <= 25, "the newest update is {behind} ticks old");
        assert!(view.seat().is_none() || view.tick() > view.newest_tick());
        assert!(view.newest_own().is_some() || view.seat().is_none());
    }
}

#[test]
fn two_play_in_a_room_on_every_network() {
    for (seed, network) in (0..).zip(NETWORKS) {
        let mut world = World::of_two(network, seed);
        world.run_millis(6_000);
        assert_in_touch(&mut world);
        assert_eq!((world.losses(0), world.losses(1)), (0, 0), "{network}");
        assert_ne!(seat(&world, 0), seat(&world, 1));
        let roster = |number| view(&world, number).roster();
        assert_eq!((roster(0).len(), roster(0)), (2, roster(1)));
        assert_eq!(roster(0)[0].seat, Seat(0));
    }
}

#[test]
fn after_a_silence_the_claim_resumes_the_seat() {
    for seed in 0..9 {
        let network = NETWORKS[seed as usize % 3];
        let mut world = World::of_two(network, seed);
        let mine = seat(&world, 0);
        world.swallow(0);
        world.run_until(4_500, "silence is noticed", |world| world.losses(0) == 1);
        world.run_until(3_000, "plays again", |world| world.plays(0));
        assert_eq!(seat(&world, 0), mine);
        world.run_millis(12_000);
        // The host had not given the old link up: the game saw no departure.
        assert_eq!((world.departures(), world.losses(0)), (0, 1), "{network}");
        assert_eq!(world.players[0].client.totals().restarts, 0);
        assert_in_touch(&mut world);
    }
}

#[test]
fn a_seat_that_was_given_up_is_taken_again_if_it_is_free() {
    for seed in 0..6 {
        let mut world = World::of_two(NETWORKS[seed as usize % 3], seed);
        let (mine, now) = (seat(&world, 0), world.now);
        world.players[0].client.drop_link(now, 5_000_000);
        world.drain_player(0);
        assert!(matches!(world.players[0].client.status(), Status::Lost { .. }));
        world.run_until(1_000, "the host has seen it go", |world| world.departures() == 1);
        world.run_until(8_000, "plays again", |world| world.plays(0));
        assert_eq!(seat(&world, 0), mine);
        assert_in_touch(&mut world);
    }
}

#[test]
fn a_client_presents_its_newest_token() {
    let mut world = World::new("rtt=40ms", 4);
    let [first, next] = [1, 2].map(|byte| Token::from_bytes([byte; 16]));
    world.add();
    world.players[0].client.come_as(first);
    world.run_until(2_000, "plays", |world| world.plays(0));
    assert_eq!(world.server.tokens, [Some(first)]);
    world.players[0].client.come_as(next);
    world.run_millis(500);
    assert!(world.plays(0), "who plays is not disturbed");
    world.players[0].client.drop_link(world.now, 100_000);
    world.drain_player(0);
    world.run_until(3_000, "plays again", |world| world.server.tokens.len() == 2 && world.plays(0));
    assert_eq!(world.server.tokens, [Some(first), Some(next)]);
}

#[test]
fn a_restarted_room_gives_new_seats_and_shows_its_first_tick() {
    for seed in 0..6 {
        let mut world = World::of_two(NETWORKS[seed as usize % 3], seed);
        world.run_millis(10_000);
        let before = world.server.host.tick();
        world.down = true;
        world.restart();
        world.run_millis(1_000);
        world.down = false;
        world.run_until(8_000, "both play again", |world| world.plays(0) && world.plays(1));
        assert!(world.server.host.tick() < before, "the new room is younger");
        assert!(world.players.iter().all(|player| player.client.totals().restarts == 1), "begun anew");
        assert_in_touch(&mut world);
        let now = world.now;
        for player in &mut world.players {
            let view = player.client.side_mut().unwrap();
            view.look(now);
            let shown = view.shown::<sametick_arena::Player>().count();
            assert!(shown >= 2, "{shown} players are shown");
        }
        assert_ne!(seat(&world, 0), seat(&world, 1));
    }
}

#[test]
fn a_room_that_has_run_for_an_hour_is_understood() {
    let mut world = World::new("rtt=40ms", 5);
    for _ in 0..60 * 60 * 30 {
        world.now = world.now.plus_micros(33_334);
        world.server.host.handle(world.now, host::Input::Timeout);
        while !matches!(world.server.host.poll_output(&mut vec![]), host::Output::WakeAt(_)) {}
    }
    assert!(world.server.host.tick() > Tick(1 << 16));
    world.add();
    world.run_until(2_000, "plays", |world| world.plays(0));
    assert_in_touch(&mut world);
}

#[test]
fn a_full_room_refuses_players_and_admits_spectators() {
    let mut world = World::of_two("rtt=40ms", 8);
    let third = world.add();
    world.run_until(2_000, "all play", |world| world.plays(third));
    let last = world.add();
    world.run_until(2_000, "refused", |world| {
        world.players[last].client.status() == Status::Refused("the room is full".into())
    });
    let mut plan = world.plan(9);
    plan.join.watch = true;
    let spectator = world.add_with(plan);
    let watches = |world: &World| world.players[spectator].client.status() == Status::Watching;
    world.run_until(2_000, "watches", watches);
    assert_eq!(view(&world, spectator).roster().len(), usize::from(SEATS));
    world.swallow(spectator);
    world.run_until(5_000, "lost", |world| world.losses(spectator) == 1);
    world.run_until(2_000, "watches again", watches);
}

#[test]
fn a_kicked_player_is_told_why_and_stays_out() {
    let mut world = World::of_two("rtt=40ms", 3);
    let now = world.now;
    world.server.host.handle(now, host::Input::Kick(Member(0), "enough of that"));
    world.run_until(1_000, "refused", |world| {
        world.players[0].client.status() == Status::Refused("enough of that".into())
    });
    world.run_millis(2_000);
    assert_eq!(world.players[0].dials, [0], "it does not come back");
    assert!(world.plays(1));
}

#[test]
fn a_player_who_leaves_is_seen_to_leave_at_once() {
    let mut world = World::of_two("rtt=40ms", 7);
    let now = world.now;
    world.players[0].client.leave(now);
    world.run_until(1_000, "left", |world| world.players[0].client.status() == Status::Left);
    world.run_until(200, "the seat is free", |world| world.departures() == 1);
    assert!(world.plays(1));
    world.run_millis(500);
    assert_eq!(view(&world, 1).roster().len(), 1);
}

#[test]
fn a_frozen_client_goes_on_where_the_room_is() {
    for (seed, ms) in [(0, 800), (1, 3_000), (2, 9_000), (3, 60_000)] {
        let mut world = World::of_two("rtt=40ms,jitter=5ms", seed);
        let mine = seat(&world, 0);
        world.freeze(0, ms);
        world.run_millis(ms);
        assert!(world.plays(1), "the other plays on");
        world.run_until(3_000, "it plays again", |world| world.plays(0));
        world.run_millis(2_000);
        assert!(world.losses(0) <= 1, "frozen for {ms} ms");
        assert_eq!(seat(&world, 0), mine, "frozen for {ms} ms");
        assert_in_touch(&mut world);
    }
}
