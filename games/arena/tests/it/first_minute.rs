//! The first minute of a player: the shield, and bots that hold back.

use sametick_arena::presence::{MAX_HEALTH, NEWCOMER_TICKS, SHIELD_TICKS};
use sametick_arena::{Arena, Avatar, FIRST_BOT, Input, Setup, Walk, autopilot};
use sametick_sim::replica::{Hosted, Scene};
use sametick_sim::{Game, Inputs, Rng, Seat};

use crate::field::{FIRING, Field, STILL, walking};

const SECOND: u32 = 30;

/// Two players in the open who have just joined.
fn just_come() -> Field {
    let mut field = Field::for_two();
    field.arena.people.iter_mut().for_each(|person| person.own.shield = SHIELD_TICKS);
    field
}

fn shielded(field: &Field) -> [bool; 2] {
    let mut scene = Scene::new(Arena::KINDS);
    field.arena.show(&mut scene);
    [0, 1].map(|number| scene.get::<Avatar>(number).unwrap().shielded)
}

#[test]
fn nothing_hurts_an_avatar_for_three_seconds() {
    let mut field = just_come();
    for _ in 0..SHIELD_TICKS {
        assert!(shielded(&field)[1]);
        field.tick(&[(0, FIRING), (1, walking(0, 0))]);
        assert_eq!(field.own(1).health, MAX_HEALTH);
    }
    assert_eq!(shielded(&field), [false; 2]);
    field.ticks(10, &[(0, FIRING), (1, STILL)]);
    assert!(field.own(1).health < MAX_HEALTH);
}

#[test]
fn a_shot_of_ones_own_ends_the_shield() {
    let mut field = just_come();
    field.tick(&[(0, FIRING), (1, STILL)]);
    assert_eq!((shielded(&field), field.own(0).shield), ([false, true], 0));
    let mut field = just_come();
    field.ticks(5, &[(0, walking(1, 1)), (1, STILL)]);
    assert_eq!(shielded(&field), [true; 2], "walking does not");
}

#[test]
fn every_life_begins_with_a_shield() {
    let mut field = Field::for_two();
    while field.own(1).is_alive() {
        field.tick(&[(0, FIRING), (1, STILL)]);
    }
    while !field.own(1).is_alive() {
        field.tick(&[(0, STILL), (1, STILL)]);
    }
    assert_eq!((field.own(1).shield, shielded(&field)), (SHIELD_TICKS, [false, true]));
}

#[test]
fn bots_do_not_aim_at_shields() {
    let mut field = just_come();
    assert!(!autopilot(&field.arena, Seat(0)).fire);
    field.arena.people[1].own.shield = 0;
    assert!(autopilot(&field.arena, Seat(0)).fire);
}

/// Two players and a bot; the bot stands four tiles from seat 0, and seat 1 is far away.
fn beside_a_bot() -> Field {
    let mut field = Field::new(Setup { seed: 3, bots: 1, ..Setup::default() });
    field.tick(&[(0, STILL)]);
    let [x, y] = field.open_area();
    field.put(0, sametick_arena::Tile::new(x + 3, y + 5).unwrap());
    field.put(FIRST_BOT, sametick_arena::Tile::new(x + 7, y + 5).unwrap());
    field.arena.people[0].own.shield = 0;
    field
}

/// Whether the bot shoots at seat 0 in the next second.
fn is_shot_at(field: &mut Field) -> bool {
    let before = field.arena.next_shot;
    field.ticks(SECOND, &[(0, STILL)]);
    field.arena.next_shot > before
}

#[test]
fn a_bot_spares_a_newcomer_until_it_shoots_or_time_is_up() {
    assert!(!is_shot_at(&mut beside_a_bot()));
    let mut fired = beside_a_bot();
    fired.tick(&[(0, Input { aim: 128, ..FIRING })]);
    assert!(is_shot_at(&mut fired), "it defends itself");
    let mut known = beside_a_bot();
    known.arena.people[0].newcomer = 0;
    assert!(is_shot_at(&mut known));
    let mut field = beside_a_bot();
    field.ticks(u32::from(NEWCOMER_TICKS), &[(0, STILL)]);
    assert_eq!(field.arena.people[0].newcomer, 0);
}

/// The percentage of hits among a hundred or more shots of a bot at a player who stands still.
fn hits_percent(change: impl Fn(&mut sametick_arena::Person)) -> u32 {
    let (mut shots, mut hits) = (0, 0);
    for seed in 0..12 {
        let mut field = beside_a_bot();
        field.arena.rules.seed = seed;
        let [at, bot] = [0, FIRST_BOT].map(|number| sametick_arena::Tile::of(field.own(number).at).unwrap());
        let from = field.arena.next_shot;
        for _ in 0..20 * SECOND {
            field.put(0, at);
            field.put(FIRST_BOT, bot);
            let person = &mut field.arena.people[0];
            (person.newcomer, person.own.health) = (0, MAX_HEALTH);
            change(person);
            field.tick(&[(0, STILL)]);
            hits += u32::from(field.own(0).health < MAX_HEALTH);
        }
        shots += field.arena.next_shot - from;
    }
    assert!(shots > 100, "{shots}");
    hits * 100 / shots
}

#[test]
fn bots_aim_worse_at_players_who_do_badly() {
    let good = hits_percent(|person| (person.score, person.deaths) = (5, 2));
    let fresh = hits_percent(|person| (person.score, person.deaths) = (0, 0));
    let poor = hits_percent(|person| (person.score, person.deaths) = (0, 4));
    let newcomer = hits_percent(|person| (person.newcomer, person.fired) = (300, true));
    println!(
        "of a hundred shots: {good} hit a good player, {fresh} a fresh one, {poor} a poor one, {newcomer} a newcomer"
    );
    assert!(good > fresh && fresh > poor && poor >= newcomer && newcomer * 3 <= good);
}

/// The seconds until a newcomer is killed who is idle for five seconds and then walks about harmlessly; at most two
/// minutes.
fn seconds_until_fallen(seed: u64) -> u32 {
    let mut arena = Arena::new(&Setup::quick(seed, 16, true));
    let (mut rng, mut inputs) = (Rng::new(!seed), Inputs::new());
    // Bots have played for a while.
    for _ in 0..rng.below(1_800) {
        arena.step(&inputs);
    }
    let mut walk = Walk::STILL;
    for tick in 0..120 * SECOND {
        if tick >= 5 * SECOND && tick.is_multiple_of(SECOND) {
            walk = Walk::towards(rng.between(-1, 1), rng.between(-1, 1));
        }
        inputs.set(Seat(0), Input { walk, ..STILL });
        arena.step(&inputs);
        if arena.at_seat(Seat(0)).is_some_and(|person| !person.own.is_alive()) {
            return tick / SECOND;
        }
    }
    120
}

#[test]
fn an_idle_newcomer_survives_fifteen_seconds() {
    let mut seconds: Vec<u32> = (0..400).map(seconds_until_fallen).collect();
    seconds.sort_unstable();
    let survived = seconds.iter().filter(|seconds| **seconds >= 15).count();
    println!(
        "the median falls after {} s, one in twenty after {} s; {survived} of 400 live for 15 s",
        seconds[200], seconds[20]
    );
    assert!(survived * 100 >= seconds.len() * 95, "{survived} of {}", seconds.len());
}
