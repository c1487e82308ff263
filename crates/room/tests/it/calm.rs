//! Rooms on a network without faults.

use std::collections::BTreeMap;

use sametick_room::HostConfig;
use sametick_room::host::{self, Host, MAX_CATCH_UP, MAX_SPECTATORS};
use sametick_room::message::{Join, ToHost, ToView};
use sametick_room::view::Status;
use sametick_sim::record::Record;
use sametick_sim::replica::Hosted;
use sametick_sim::{Game, Inputs, Seat, StateHash, Tick, Time, from_canonical};
use sametick_wire::{Channel, Member, control};

use crate::field::{Drifter, Field, Happening, NEAR, Score, Setup, Step, Walker};
use crate::world::{World, distance, truth};

fn world(seed: u64, profile: &str) -> World {
    World::new(seed, profile, &Setup { seed, stones: 60, drifters: 40, gusts: false }, HostConfig::default())
}

#[test]
fn prediction_matches_the_host() {
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
            "an entity without a position is visible from everywhere"
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

/// By the time at which they were made, not by arrival or seat (B10).
#[test]
fn inputs_of_a_tick_have_their_order() {
    let mut world = world(4, "rtt=20ms");
    (0..3).for_each(|_| {
        world.join();
    });
    // A player with more latency acts earlier for the same tick.
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
    let mut state = Field::new(&Setup { seed: 6, stones: 60, drifters: 40, gusts: false });
    let (mut inputs, mut checks) = (Inputs::new(), 0);
    for record in &world.records {
        match record {
            Record::Inputs(tick) => {
                tick.decode(&mut inputs);
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
fn a_rejoin_within_a_tick_keeps_the_seat() {
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

#[test]
fn a_delayed_host_catches_up_a_few_ticks_and_drops_the_rest() {
    let mut world = world(7, "rtt=40ms");
    world.join();
    world.run_millis(3_000);
    let (tick, now) = (world.host.tick(), world.now);
    world.host.handle(now.plus_micros(150_000), host::Input::Timeout);
    assert!((4..=5).contains(&world.host.tick().ticks_since(tick)), "the whole delay is caught up with");
    assert_eq!(world.host.stats().lost_us, 0);
    let tick = world.host.tick();
    world.host.handle(now.plus_micros(3_000_000), host::Input::Timeout);
    assert_eq!(world.host.tick(), tick + MAX_CATCH_UP);
    assert!(world.host.stats().lost_us > 2_000_000);
    // The schedule continues from there, one tick after the other.
    let tick = world.host.tick();
    world.host.handle(now.plus_micros(3_034_000), host::Input::Timeout);
    assert_eq!(world.host.tick(), tick + 1);
}

/// B12: without updates everything stands still; nothing is extrapolated, and nothing moves back afterwards.
#[test]
fn without_updates_a_view_stands_still() {
    let mut world = world(8, "rtt=60ms");
    world.join();
    world.run_millis(4_000);
    let shown = |world: &World| -> BTreeMap<u32, Drifter> {
        let drifters = world.players[0].view.shown::<Drifter>();
        drifters.map(|(id, _, drifter)| (id, drifter)).collect()
    };
    assert_eq!(world.players[0].view.status(), Status::Playing);
    let moving = shown(&world);
    world.players[0].pair.set_down(true);
    world.run_millis(600);
    assert_eq!(world.players[0].view.status(), Status::Frozen);
    let dry = shown(&world);
    assert_ne!(moving, dry);
    world.run_millis(500);
    assert_eq!(shown(&world), dry);
    assert!(world.players[0].view.stats().frozen_us > 500_000);
    world.players[0].pair.set_down(false);
    world.run_millis(3_000);
    assert_eq!(world.players[0].view.status(), Status::Playing);
    let buffer_us = world.players[0].view.stats().buffer_us;
    assert!((0..250_000).contains(&buffer_us), "{buffer_us}");
}

/// B11: small corrections are blended in over a tenth of a second, without a visible jump.
#[test]
fn corrections_are_not_seen_as_jumps() {
    let setup = Setup { seed: 10, stones: 20, drifters: 10, gusts: true };
    let mut world = World::new(10, "rtt=120ms,jitter=20ms,loss=5%", &setup, HostConfig::default());
    (0..3).for_each(|_| {
        world.join();
    });
    world.run_millis(3_000);
    let (mut before, mut most, mut corrections) = (BTreeMap::new(), 0, 0);
    for _ in 0..2_500 {
        world.run_millis(8);
        let now = world.now;
        for (index, player) in world.players.iter_mut().enumerate() {
            player.view.look(now);
            let (own, errors) = (player.view.own().unwrap(), player.view.stats().errors);
            if let Some((at, snaps)) = before.insert(index, (own.at, errors.snaps))
                && snaps == errors.snaps
            {
                most = (0..2).map(|axis: usize| own.at[axis].abs_diff(at[axis])).max().unwrap().max(most);
            }
            corrections += errors.corrections;
        }
    }
    assert!(corrections > 10, "{corrections}");
    // A gust of 60 is never visible at once: 8 ms are two units of walking, and a twelfth of the blended distance.
    assert!((8..=20).contains(&most), "a jump of {most}");
}

#[test]
fn a_far_entity_is_soon_known_to_be_far() {
    let mut world = world(11, "rtt=40ms");
    (0..3).for_each(|_| {
        world.join();
    });
    world.run_millis(3_000);
    let mut far = 0;
    for _ in 0..200 {
        world.run_millis(100);
        for player in &world.players {
            let (view, newest) = (player.view.view_id().unwrap(), player.view.newest_tick());
            // Far entities may be older by one update period.
            let lately = world.checks.past.range(newest - 24..=newest);
            let away = |id: u32| {
                let far = |(_, state): (&Tick, &Field)| {
                    distance(state.eye(view), state.drifters[id as usize].at) > NEAR * 1.11
                };
                lately.clone().all(far)
            };
            let drifters = player.view.newest().iter::<Drifter>().map(|(id, _)| id);
            for (id, zone) in drifters.zip(player.view.newest_zones(1)) {
                if away(id) {
                    assert_eq!(zone, 1, "drifter {id} at {newest}");
                    far += 1;
                }
            }
        }
    }
    assert!(far > 1_000, "{far}");
}

/// A host that is always woken too late, as on a machine that is too slow for its load: it keeps its tick rate and
/// updates all views less often, each as often as the others.
#[test]
fn a_slow_host_updates_less_often() {
    for late in 1..=u64::from(MAX_CATCH_UP) {
        let mut host: Host<Field> = Host::new(Time::ZERO, &Setup::default(), HostConfig::default());
        let mut buf = Vec::new();
        for member in 0..6 {
            let bytes = control::to_bytes(&ToHost::Join(join(false)));
            host.handle(Time::ZERO, host::Input::Message(Member(member), Channel::Control, &bytes));
        }
        let mut told = BTreeMap::<Member, u64>::new();
        for wake in 1..=600 {
            let now = Time::from_micros(wake * late * Field::RATE.tick_micros() + 1_000);
            host.handle(now, host::Input::Timeout);
            loop {
                match host.poll_output(&mut buf) {
                    host::Output::Send(member, Channel::State) => *told.entry(member).or_default() += 1,
                    host::Output::WakeAt(_) => break,
                    _ => {}
                }
            }
        }
        assert_eq!((u64::from(host.tick().0), host.stats().lost_us), (600 * late, 0));
        let turns = 600 * u64::from(Field::UPDATES.per_second()) / u64::from(Field::RATE.per_second());
        assert!(told.values().all(|told| told.abs_diff(turns) <= 1), "{late}: {told:?}, not {turns}");
        assert_eq!(told.len(), 6);
    }
}

fn join(watch: bool) -> Join {
    Join {
        game: Field::NAME.into(),
        commit: String::new(),
        name: String::new(),
        setup: Vec::new(),
        seed: 0,
        seats: 6,
        watch,
        listed: false,
        resume: None,
        token: None,
        must_resume: false,
    }
}

#[test]
fn a_join_for_another_game_is_refused() {
    let mut host: Host<Field> = Host::new(Time::ZERO, &Setup::default(), HostConfig::default());
    let bytes = control::to_bytes(&ToHost::Join(Join { game: "chess".into(), ..join(false) }));
    host.handle(Time::ZERO, host::Input::Message(Member(1), Channel::Control, &bytes));
    let mut buf = Vec::new();
    let host::Output::Send(Member(1), Channel::Control) = host.poll_output(&mut buf) else {
        panic!("it is answered");
    };
    let refused = ToView::Refused { why: "another game is played in this room".into(), bad_token: false };
    assert_eq!(control::from_bytes::<ToView>(&buf), Ok(refused));
    assert_eq!(host.participants().count(), 0);
}

#[test]
fn spectators_share_one_view_and_are_limited() {
    let mut host: Host<Field> = Host::new(Time::ZERO, &Setup::default(), HostConfig::default());
    let (mut welcome, mut refused, mut buf) = (0, 0, Vec::new());
    for member in 0..MAX_SPECTATORS as u64 + 3 {
        let bytes = control::to_bytes(&ToHost::Join(join(true)));
        host.handle(Time::ZERO, host::Input::Message(Member(member), Channel::Control, &bytes));
        while let host::Output::Send(..) = host.poll_output(&mut buf) {
            match control::from_bytes(&buf).unwrap() {
                ToView::Welcome(_) => welcome += 1,
                ToView::Refused { .. } => refused += 1,
                _ => {}
            }
        }
    }
    assert_eq!((welcome, refused), (MAX_SPECTATORS, 3));
    host.handle(Time::from_micros(40_000), host::Input::Timeout);
    host.handle(Time::from_micros(140_000), host::Input::Timeout);
    // 32 spectators share each update.
    assert!(host.stats().sent >= MAX_SPECTATORS as u64 && host.stats().updates * 32 == host.stats().sent);
}
