//! Views of a state for drawing.

use sametick_pong::{Input, Setup, View, Wall, What};
use sametick_sim::Tick;

use crate::table::{Table, idle, is_pause, is_rally, is_serving};

#[test]
fn between_two_ticks_everything_is_on_its_way() {
    let mut table = Table::for_two(1);
    table.until(&idle([0, 1]), is_rally);
    let before = table.pong.clone();
    table.tick(&[(0, Input::moving(sametick_pong::Motion::More)), (1, Input::NONE)]);
    let [start, middle, end] = [0.0, 0.5, 1.0].map(|part| View::between(&before, &table.pong, part));
    assert_eq!((start, end), (View::of(&before), View::of(&table.pong)));
    let x = |view: View| view.ball.unwrap()[0];
    assert!((x(start) + x(end) - 2.0 * x(middle)).abs() < 0.001);
    let paddle = |view: View| view.paddles[0].unwrap().centre[1];
    assert!(paddle(start) < paddle(middle) && paddle(middle) < paddle(end));
    assert_eq!(middle.paddles[2], None, "solid walls have no paddle");
    assert_eq!(View::between(&before, &table.pong, 7.0), end);
}

#[test]
fn a_ball_that_jumps_to_the_server_is_not_seen_flying_there() {
    let mut table = Table::for_two(1);
    table.until(&idle([0, 1]), is_pause);
    table.ticks(59, &idle([0, 1]));
    let mut before = table.pong.clone();
    before.ball.at.x = 0;
    table.tick(&idle([0, 1]));
    assert!(is_serving(&table.pong.phase));
    assert_eq!(View::between(&before, &table.pong, 0.1).ball, View::of(&table.pong).ball);
}

#[test]
fn nothing_is_drawn_outside_the_court() {
    let mut table = Table::new(Setup { players: 4, seed: 3, ..Setup::default() });
    assert_eq!(View::of(&table.pong).ball, None, "no ball before the game");
    for _ in 0..5000 {
        table.tick(&[]);
        let view = View::of(&table.pong);
        let inside = |at: [f32; 2], half: [f32; 2]| {
            at[0].abs() + half[0] <= view.half[0] && at[1].abs() + half[1] <= view.half[1]
        };
        assert!(view.paddles.iter().flatten().all(|bar| inside(bar.centre, bar.half)), "{view:?}");
        assert!(view.ball.is_none_or(|ball| inside(ball, [0.0; 2])), "{view:?}");
    }
}

#[test]
fn events_are_heard_once_and_in_order() {
    let mut table = Table::new(Setup { seed: 3, points: 1, ..Setup::default() });
    let mut heard = Vec::new();
    for _ in 0..20_000 {
        let before = table.pong.tick;
        // A slow screen: three ticks for each frame.
        table.ticks(3, &[]);
        heard.extend(table.pong.events_since(before).copied());
    }
    assert!(heard.windows(2).all(|pair| pair[0].tick <= pair[1].tick && pair[0] != pair[1]));
    assert!(heard[0].tick > Tick(300) && matches!(heard[0].what, What::Served(_)));
    let count = |wanted: fn(&What) -> bool| heard.iter().filter(|event| wanted(&event.what)).count();
    let points = count(|what| matches!(what, What::Point(_)));
    assert!(points > 3);
    assert_eq!(points, count(|what| matches!(what, What::Won(_))), "to one point, every point wins");
    assert!(count(|what| matches!(what, What::Hit(_))) > points);
    assert!(count(|what| matches!(what, What::Bounced(Wall::Top | Wall::Bottom))) > 0);
    assert_eq!(count(|what| matches!(what, What::Bounced(Wall::Left | Wall::Right))), 0);
}
