//! The rules of pong, by example.

use sametick_pong::setup::MAX_SCORE;
use sametick_pong::{Input, Motion, Phase, Pong, Setup, Wall, What};
use sametick_sim::{Game, Seat};

use crate::table::{Table, idle, is_over, is_pause, is_rally, is_serving, is_waiting};

const SERVE: Input = Input::NONE.and_serve();
const REMATCH: Input = Input::NONE.and_rematch();

fn server(pong: &Pong) -> Wall {
    match pong.phase {
        Phase::Waiting { server, .. }
        | Phase::Serving { server, .. }
        | Phase::Rally { server, .. }
        | Phase::Pause { server, .. } => server,
        Phase::Over { .. } => panic!("nobody serves after the game"),
    }
}

#[test]
fn a_game_for_two_begins_when_both_are_there() {
    let mut table = Table::for_two(1);
    table.ticks(1000, &idle([0]));
    assert!(is_waiting(&table.pong.phase), "one player alone waits for ever");
    table.tick(&idle([0, 1]));
    assert!(is_serving(&table.pong.phase));
}

#[test]
fn the_ball_sticks_to_the_servers_paddle_until_the_serve() {
    let mut table = Table::for_two(1);
    table.tick(&idle([0, 1]));
    let seat = server(&table.pong).seat().0;
    let other = 1 - seat;
    table.ticks(180, &[(seat, SERVE), (other, SERVE)]);
    table.ticks(40, &[(seat, Input::moving(Motion::More)), (other, SERVE)]);
    assert!(is_serving(&table.pong.phase), "only the server serves");
    let paddle = table.pong.paddles[usize::from(seat)];
    assert!(paddle.at > 0);
    assert_eq!(table.pong.ball.at.y, paddle.at);
    table.tick(&[(seat, SERVE), (other, Input::NONE)]);
    assert!(is_rally(&table.pong.phase));
    assert_eq!(table.now(), [What::Served(Wall::ALL[usize::from(seat)])]);
    let away = if seat == 0 { 1 } else { -1 };
    assert_eq!(table.pong.ball.motion.x.signum(), away, "away from the server");
}

#[test]
fn the_ball_goes_by_itself_after_three_seconds() {
    let mut table = Table::for_two(1);
    table.tick(&idle([0, 1]));
    assert_eq!(table.until(&idle([0, 1]), is_rally), 180 + 180, "after the countdown");
}

#[test]
fn a_button_held_since_before_does_not_serve_at_once() {
    let mut table = Table::for_two(1);
    let held = [(0, SERVE), (1, SERVE)];
    table.tick(&held);
    assert_eq!(table.until(&held, is_rally), 180 + 21);
}

#[test]
fn serves_differ_in_angle_and_first_server() {
    let mut slants = Vec::new();
    let mut servers = [0; 2];
    for seed in 0..64 {
        let mut table = Table::for_two(seed);
        table.until(&idle([0, 1]), is_rally);
        servers[server(&table.pong).index()] += 1;
        slants.push(table.pong.ball.motion.y);
    }
    assert!(servers.iter().all(|count| *count > 16), "{servers:?}");
    slants.sort_unstable();
    slants.dedup();
    assert!(slants.len() > 55 && slants[0] < -500 && slants[slants.len() - 1] > 500, "{slants:?}");
}

#[test]
fn a_lost_ball_is_a_point_for_the_other_and_the_loser_serves() {
    let mut table = Table::for_two(3);
    // Both stay in a corner; sooner or later the ball passes one of them.
    let corner = [(0, Input::moving(Motion::Less)), (1, Input::moving(Motion::Less))];
    table.until(&corner, is_pause);
    let scorer = if table.scores() == [1, 0, 0, 0] { Wall::Left } else { Wall::Right };
    let loser = if scorer == Wall::Left { Wall::Right } else { Wall::Left };
    assert_eq!(table.pong.paddle(loser).score, 0);
    assert_eq!(table.now().last(), Some(&What::Point(scorer)));
    assert_eq!(server(&table.pong), loser);
    let lost_at = table.pong.ball.at;
    table.ticks(59, &corner);
    assert!(is_pause(&table.pong.phase));
    assert!(table.pong.ball.at.x.abs() > lost_at.x.abs(), "the lost ball rolls out of the court");
    table.tick(&corner);
    assert_eq!(table.pong.phase, Phase::Serving { server: loser, ticks: 0 });
}

/// Plays until the game is over; the left player plays, the right one hides in the corner.
fn one_sided(setup: Setup) -> (Table, u32) {
    let mut table = Table::new(setup);
    for ticks in 0..100_000 {
        if is_over(&table.pong.phase) {
            return (table, ticks);
        }
        let left = sametick_pong::autopilot(&table.pong, Seat(0));
        table.tick(&[(0, left), (1, Input::moving(Motion::Less))]);
    }
    panic!("nobody won: {:?}", table.scores());
}

#[test]
fn eleven_points_win() {
    let (table, _) = one_sided(Setup { seed: 5, bots: false, ..Setup::default() });
    assert_eq!(table.pong.phase, Phase::Over { winner: Wall::Left, ticks: 0 });
    assert_eq!(table.scores()[0], 11);
    assert!(table.scores()[1] < 11);
    assert_eq!(table.now()[table.now().len() - 2..], [What::Point(Wall::Left), What::Won(Wall::Left)]);
}

#[test]
fn another_number_of_points_can_be_played_for() {
    let (table, _) = one_sided(Setup { seed: 5, points: 3, bots: false, ..Setup::default() });
    assert_eq!(table.scores()[0], 3);
}

/// A table one ball before the end: the left player is about to make a point.
fn near_the_end(setup: Setup, left: u8, right: u8) -> Table {
    let mut table = Table::new(setup);
    table.until(&idle([0, 1]), is_rally);
    table.pong.paddles[0].score = left;
    table.pong.paddles[1].score = right;
    let line = setup_line(&table.pong);
    table.pong.phase =
        Phase::Rally { server: Wall::Left, striker: Wall::Left, rival: Wall::Right, hits: 3, ticks: 9 };
    table.pong.ball.at = sametick_pong::Point { x: line - 100, y: 80_000 };
    table.pong.ball.motion = sametick_pong::Point { x: 3000, y: 0 };
    table.pong.paddles[1].at = -50_000;
    table
}

fn setup_line(pong: &Pong) -> i32 {
    pong.rules.court().line(Wall::Right)
}

#[test]
fn a_required_lead_extends_the_game() {
    let setup = Setup { lead: 2, bots: false, ..Setup::default() };
    for (left, right, over) in
        [(10, 10, false), (10, 9, true), (11, 10, true), (14, 14, false), (8, 2, false)]
    {
        let mut table = near_the_end(setup, left, right);
        table.tick(&idle([0, 1]));
        assert_eq!(table.scores()[..2], [left + 1, right]);
        assert_eq!(is_over(&table.pong.phase), over, "{left}:{right}");
    }
}

#[test]
fn at_the_highest_score_no_lead_is_asked_for() {
    let mut table =
        near_the_end(Setup { lead: 5, bots: false, ..Setup::default() }, MAX_SCORE - 1, MAX_SCORE - 1);
    table.tick(&idle([0, 1]));
    assert!(is_over(&table.pong.phase));
}

#[test]
fn a_rematch_needs_everyone_present() {
    let (mut table, _) = one_sided(Setup { seed: 5, points: 1, bots: false, ..Setup::default() });
    table.ticks(500, &[(0, REMATCH), (1, Input::NONE)]);
    assert!(is_over(&table.pong.phase), "one of two wants it");
    table.tick(&[(0, Input::NONE), (1, REMATCH)]);
    assert!(is_serving(&table.pong.phase), "the wish of the first is remembered");
    assert_eq!(table.scores(), [0; 4]);
}

#[test]
fn a_rematch_wanted_at_once_still_lets_the_winner_be_seen() {
    let (mut table, _) = one_sided(Setup { seed: 5, points: 1, bots: false, ..Setup::default() });
    assert_eq!(table.until(&[(0, REMATCH), (1, REMATCH)], is_serving), 60);
}

#[test]
fn a_rematch_does_not_wait_for_absent_players() {
    let (mut table, _) = one_sided(Setup { seed: 5, points: 1, bots: false, ..Setup::default() });
    table.ticks(100, &[(1, REMATCH)]);
    assert!(is_waiting(&table.pong.phase), "the next game waits for a second player");
    table.tick(&idle([0, 1]));
    assert!(is_serving(&table.pong.phase));
}

#[test]
fn a_rally_of_a_minute_is_a_let() {
    let mut table = near_the_end(Setup { bots: false, ..Setup::default() }, 4, 4);
    table.pong.phase =
        Phase::Rally { server: Wall::Right, striker: Wall::Left, rival: Wall::Right, hits: 200, ticks: 3599 };
    table.pong.ball.motion.x = -3000;
    table.tick(&idle([0, 1]));
    assert_eq!(table.now(), [What::Let]);
    assert_eq!(table.pong.phase, Phase::Pause { server: Wall::Right, ticks: 0 });
    assert_eq!(table.scores()[..2], [4, 4]);
}

#[test]
fn among_four_the_last_to_touch_the_ball_gets_the_point() {
    let setup = Setup { players: 4, bots: false, ..Setup::default() };
    let all = idle([0, 1, 2, 3]);
    for (striker, rival, expected) in [
        (Wall::Top, Wall::Left, Wall::Top),
        (Wall::Left, Wall::Bottom, Wall::Left),
        // The ball passes the player who touched it last: the one before gets the point.
        (Wall::Right, Wall::Bottom, Wall::Bottom),
    ] {
        let mut table = Table::new(setup);
        table.until(&all, is_rally);
        table.pong.phase = Phase::Rally { server: Wall::Top, striker, rival, hits: 3, ticks: 9 };
        table.pong.ball.at = sametick_pong::Point { x: setup_line(&table.pong) - 100, y: 80_000 };
        table.pong.ball.motion = sametick_pong::Point { x: 3000, y: 0 };
        table.tick(&all);
        assert_eq!(table.now(), [What::Point(expected)]);
        assert_eq!(server(&table.pong), Wall::Right, "the player who missed it serves");
    }
}

#[test]
fn with_three_the_fourth_wall_is_solid() {
    let mut table = Table::new(Setup { players: 3, bots: false, ..Setup::default() });
    table.until(&idle([0, 1, 2]), is_rally);
    table.pong.ball.at = sametick_pong::Point { x: 0, y: table.pong.rules.court().line(Wall::Bottom) - 10 };
    table.pong.ball.motion = sametick_pong::Point { x: 0, y: 3000 };
    table.tick(&idle([0, 1, 2]));
    assert_eq!(table.now(), [What::Bounced(Wall::Bottom)]);
    assert_eq!(table.pong.ball.motion.y, -3000);
}

#[test]
fn setups_out_of_range_are_taken_as_the_nearest_in_range() {
    let rules = |players, points, lead| {
        let rules = Pong::new(&Setup { players, points, lead, ..Setup::default() }).rules;
        (rules.players, rules.points, rules.lead)
    };
    assert_eq!(rules(0, 0, 0), (2, 1, 1));
    assert_eq!(rules(255, 255, 255), (4, 50, 5));
    assert_eq!(rules(3, 21, 2), (3, 21, 2));
}

#[test]
fn a_guess_goes_on_moving_and_presses_nothing() {
    let input = Input::moving(Motion::Less).and_serve().and_rematch();
    assert_eq!(Pong::guess(&input), Input::moving(Motion::Less));
}
