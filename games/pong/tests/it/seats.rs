//! Seats: joining, leaving, missing inputs, and spectators.

use sametick_pong::{Driver, Input, Motion, Phase, Setup, Wall};
use sametick_sim::Seat;

use crate::table::{Table, idle, is_pause, is_rally, is_serving, is_waiting};

const MORE: Input = Input::moving(Motion::More);
const SERVE: Input = Input::NONE.and_serve();

fn with_bots(seed: u64) -> Table {
    Table::new(Setup { seed, ..Setup::default() })
}

fn is_bot(table: &Table, wall: Wall) -> bool {
    matches!(table.pong.paddle(wall).driver, Driver::Bot { .. })
}

#[test]
fn an_omitted_input_means_moving_on_as_before() {
    let mut table = Table::for_two(1);
    table.ticks(3, &[(0, MORE), (1, Input::NONE)]);
    let mut other = Table::for_two(1);
    other.pong = table.pong.clone();
    for _ in 0..10 {
        table.tick_with(|inputs| {
            inputs.omit(Seat(0));
            inputs.set(Seat(1), Input::NONE);
        });
        other.tick(&[(0, MORE), (1, Input::NONE)]);
    }
    assert_eq!(table.pong, other.pong);
}

#[test]
fn an_omitted_input_presses_nothing() {
    let mut table = Table::for_two(1);
    table.tick(&idle([0, 1]));
    table.ticks(5, &[(0, SERVE), (1, SERVE)]);
    for _ in 0..100 {
        table.tick_with(|inputs| [0, 1].into_iter().for_each(|seat| inputs.omit(Seat(seat))));
    }
    assert!(is_serving(&table.pong.phase), "a button pressed too early is not pressed again by silence");
}

#[test]
fn with_bots_a_game_begins_when_everyone_present_is_ready() {
    let mut table = with_bots(1);
    table.ticks(1000, &idle([1]));
    assert!(is_waiting(&table.pong.phase));
    table.tick(&[(1, SERVE)]);
    assert!(is_serving(&table.pong.phase));
}

#[test]
fn bots_alone_begin_by_themselves_and_play_game_after_game() {
    let mut table = Table::new(Setup { seed: 2, points: 2, players: 4, ..Setup::default() });
    table.ticks(299, &[]);
    assert!(is_waiting(&table.pong.phase));
    table.tick(&[]);
    assert!(is_serving(&table.pong.phase));
    for _ in 0..3 {
        table.until(&[], |phase| matches!(phase, Phase::Over { .. }));
        table.until(&[], is_serving);
    }
}

#[test]
fn a_bot_takes_the_paddle_as_it_is_left_and_gives_it_back() {
    let mut table = with_bots(1);
    table.until(&[(0, SERVE), (1, SERVE)], is_rally);
    table.pong.paddles[0].score = 7;
    table.ticks(10, &[(0, MORE), (1, Input::NONE)]);
    let before = *table.pong.paddle(Wall::Left);
    table.tick_with(|inputs| {
        inputs.leave(Seat(0));
        inputs.set(Seat(1), Input::NONE);
    });
    let left = *table.pong.paddle(Wall::Left);
    assert!(is_bot(&table, Wall::Left));
    assert_eq!(left.at, before.at + before.speed, "its last tick was still its own");
    assert!(is_rally(&table.pong.phase) && left.score == 7);
    table.ticks(60, &idle([1]));
    assert!(!is_waiting(&table.pong.phase), "the other does not notice");
    let away = *table.pong.paddle(Wall::Left);
    table.tick_with(|inputs| {
        inputs.join(Seat(0));
        inputs.set(Seat(1), Input::NONE);
    });
    let back = *table.pong.paddle(Wall::Left);
    assert_eq!(back.driver, Driver::Player { held: Motion::Still }, "nothing is held over from before");
    assert!((back.at - away.at).abs() <= away.speed.abs() && back.score == away.score);
}

#[test]
fn a_seat_that_is_not_listed_is_empty() {
    let mut table = with_bots(1);
    table.tick(&idle([0, 1]));
    assert!(!is_bot(&table, Wall::Right));
    table.tick(&idle([0]));
    assert!(is_bot(&table, Wall::Right));
}

#[test]
fn a_new_player_inherits_no_motion_and_no_rematch_wish() {
    let mut table = with_bots(1);
    table.tick(&[(0, MORE.and_serve())]);
    assert!(is_serving(&table.pong.phase));
    let mut table = Table::new(Setup { players: 3, ..Setup::default() });
    table.tick(&[(0, MORE.and_serve()), (1, Input::NONE)]);
    assert!(table.pong.paddles[0].ready);
    table.tick_with(|inputs| {
        inputs.join(Seat(0));
        inputs.set(Seat(1), Input::NONE);
    });
    assert!(!table.pong.paddles[0].ready);
    assert_eq!(table.pong.paddles[0].driver, Driver::Player { held: Motion::Still });
}

#[test]
fn without_bots_the_next_serve_waits_for_the_player() {
    let mut table = Table::for_two(4);
    table.until(&[(0, SERVE), (1, SERVE)], is_rally);
    table.until(&[(0, MORE)], is_pause);
    let scores = table.scores();
    table.until(&[(0, MORE)], is_waiting);
    table.ticks(1000, &[(0, SERVE)]);
    assert!(is_waiting(&table.pong.phase));
    table.tick(&idle([0, 1]));
    assert!(is_serving(&table.pong.phase));
    assert_eq!(table.scores(), scores, "the game goes on where it was");
    table.tick(&idle([0]));
    assert!(is_waiting(&table.pong.phase), "also in the middle of a serve");
}

#[test]
fn spectators_see_everything_and_change_nothing() {
    let mut watched = with_bots(9);
    let mut alone = with_bots(9);
    for _ in 0..2000 {
        let acts = [(0, sametick_pong::autopilot(&alone.pong, Seat(0)))];
        alone.tick(&acts);
        watched.tick_with(|inputs| {
            inputs.set(Seat(0), acts[0].1);
            inputs.set(Seat(2), MORE.and_serve());
            inputs.join(Seat(3));
            inputs.set(Seat(255), SERVE.and_rematch());
        });
    }
    assert_eq!(watched.pong, alone.pong);
    assert_eq!((alone.pong.score(Seat(2)), alone.pong.score(Seat(255))), (None, None));
    assert!(alone.pong.score(Seat(1)).is_some());
}
