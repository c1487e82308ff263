//! The ball in flight: it passes through nothing, a corner is two contacts, and it always arrives.

use sametick_pong::court::{HALF_LENGTH, RADIUS, UNIT};
use sametick_pong::{
    Input, MAX_SPEED, Motion, Phase, Point, Pong, SERVE_SPEED, Setup, Wall, What, autopilot, crowd,
};
use sametick_sim::{Game, Inputs, Rng, Seat, Tick};

use crate::table::{Table, idle, is_rally};

/// A rally with this position and motion of the ball, all players at rest.
fn rally(players: u8, at: Point, motion: Point) -> Table {
    let mut table = Table::new(Setup { players, bots: false, ..Setup::default() });
    let all: Vec<_> = (0..players).map(|seat| (seat.into(), Input::NONE)).collect();
    table.until_state(&all, |pong| is_rally(&pong.phase));
    table.pong.ball.at = at;
    table.pong.ball.motion = motion;
    table
}

fn line(pong: &Pong, wall: Wall) -> i32 {
    pong.rules.court().line(wall)
}

#[test]
fn a_fast_ball_is_met_at_every_distance_from_the_paddle() {
    for gap in 0..MAX_SPEED + 100 {
        let mut table = rally_once(gap);
        table.tick(&idle([0, 1]));
        let hit = table.now() == [What::Hit(Wall::Left)];
        let short = gap > MAX_SPEED;
        assert_eq!(hit, !short, "{gap} steps before the line");
        assert_eq!(table.pong.ball.motion.x > 0, hit);
    }
}

fn rally_once(gap: i32) -> Table {
    let mut table = Table::for_two(1);
    let at = Point { x: -line(&table.pong, Wall::Left) + gap, y: 0 };
    table.pong.phase =
        Phase::Rally { server: Wall::Left, striker: Wall::Right, rival: Wall::Left, hits: 1, ticks: 1 };
    table.pong.ball.at = at;
    table.pong.ball.motion = Point { x: -MAX_SPEED, y: 0 };
    table
}

#[test]
fn what_is_left_of_a_tick_is_flown_after_the_bounce() {
    let at = Point { x: 0, y: 120 * UNIT - RADIUS - 1000 };
    let mut table = rally(2, at, Point { x: 3000, y: 3000 });
    table.tick(&idle([0, 1]));
    assert_eq!(table.now(), [What::Bounced(Wall::Bottom)]);
    // Rounded towards zero, once at the wall and once after.
    let expected = Point { x: 3000, y: at.y + 1000 - 2000 };
    assert!((table.pong.ball.at.x - expected.x).abs() <= 2 && (table.pong.ball.at.y - expected.y).abs() <= 2);
}

#[test]
fn where_and_how_a_paddle_is_hit_decides_angle_and_speed() {
    let after = |offset: i32, speed: i32| {
        let mut table = rally_once(100);
        table.pong.paddles[0].at = -offset;
        table.pong.paddles[0].speed = speed;
        let held = Motion::towards(speed.signum());
        table.tick(&[(0, Input::moving(held)), (1, Input::NONE)]);
        table.pong.ball.motion
    };
    assert_eq!(after(0, 0).y, 0, "straight back from the middle");
    assert!(after(15 * UNIT, 0).y > 3000 && after(-15 * UNIT, 0).y < -3000, "steeper towards the ends");
    assert!(after(0, 3000).y > 500 && after(0, -3000).y < -500, "and along with the paddle");
    let serve = |offset: i32| {
        let mut table = rally_once(100);
        table.pong.ball.motion.x = -3000;
        table.pong.paddles[0].at = -offset;
        table.tick(&idle([0, 1]));
        table.pong.ball.motion.length()
    };
    assert!(
        serve(0) > 3000 && serve(20 * UNIT) > serve(0),
        "faster with every return, more so from the ends"
    );
    for offset in (-18..=18).map(|units| units * UNIT) {
        let motion = after(offset, 3000);
        assert!(motion.length() <= MAX_SPEED && motion.x >= MAX_SPEED * 3 / 5, "{motion:?}");
    }
}

#[test]
fn a_paddle_returns_the_ball_up_to_its_very_end() {
    for (beyond, returned) in [(0, true), (1, false)] {
        for side in [-1, 1] {
            let mut table = rally_once(100);
            table.pong.paddles[0].at = side * (HALF_LENGTH + RADIUS + beyond);
            table.tick(&idle([0, 1]));
            assert_eq!(table.now() == [What::Hit(Wall::Left)], returned, "{beyond} beyond, side {side}");
        }
    }
}

#[test]
fn a_ball_behind_a_paddle_is_lost_and_harmless() {
    let mut table = rally_once(100);
    table.pong.paddles[0].at = 80 * UNIT;
    table.tick(&idle([0, 1]));
    assert_eq!(table.now(), [What::Point(Wall::Right)]);
    // The paddle comes back over it: too late, the ball rolls out and stays.
    table.ticks(50, &[(0, Input::moving(Motion::Less)), (1, Input::NONE)]);
    assert_eq!(table.pong.ball.at, Point { x: -160 * UNIT, y: 0 });
    assert_eq!(table.scores()[..2], [0, 1]);
}

#[test]
fn in_a_corner_between_two_paddles_each_has_its_chance() {
    let corner = |left: i32, top: i32| {
        let mut table = rally(4, Point::ZERO, Point::ZERO);
        let (x, y) = (line(&table.pong, Wall::Left), line(&table.pong, Wall::Top));
        table.pong.phase =
            Phase::Rally { server: Wall::Right, striker: Wall::Right, rival: Wall::Left, hits: 1, ticks: 1 };
        table.pong.ball.at = Point { x: 1000 - x, y: 1001 - y };
        table.pong.ball.motion = Point { x: -4000, y: -4000 };
        table.pong.paddles[Wall::Left.index()].at = left;
        table.pong.paddles[Wall::Top.index()].at = top;
        table.tick(&idle([0, 1, 2, 3]));
        table
    };
    let reach = Pong::new(&Setup { players: 4, ..Setup::default() }).rules.court().reach(Wall::Left);
    for (left, top) in [(-reach, -reach), (-reach, 0)] {
        let table = corner(left, top);
        assert_eq!(table.now(), [What::Hit(Wall::Left)], "the left line came first");
        let Point { x, y } = table.pong.ball.motion;
        assert!(x > 0 && y >= 0, "returned out of the corner: {x}, {y}");
    }
    assert_eq!(corner(0, -reach).now(), [What::Point(Wall::Right)], "the left one missed it first");
}

#[test]
fn a_tick_has_at_most_three_contacts_even_in_a_corner() {
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let players = 3 + rng.below(2) as u8;
        let mut pong = Pong::new(&Setup { players, bots: false, ..Setup::default() });
        let court = pong.rules.court();
        pong.phase =
            Phase::Rally { server: Wall::Top, striker: Wall::Top, rival: Wall::Left, hits: 1, ticks: 1 };
        let near = |wall: Wall, rng: &mut Rng| court.line(wall) - rng.between(0, 6000);
        pong.ball.at = Point { x: -near(Wall::Left, &mut rng), y: near(Wall::Bottom, &mut rng) };
        pong.ball.motion = Point { x: -rng.between(3000, 5000), y: rng.between(3000, 5000) };
        pong.paddles[Wall::Left.index()].at = court.reach(Wall::Left) - rng.between(0, 20_000);
        pong.paddles[Wall::Bottom.index()].at = if players == 4 { -court.reach(Wall::Bottom) } else { 0 };
        pong.step(&Inputs::new());
        pong.check().unwrap();
        assert!(pong.events.iter().flatten().count() <= 3, "{:?}", pong.events);
    }
}

#[test]
fn every_place_on_a_line_can_be_defended() {
    for players in 2..=4 {
        let court = Pong::new(&Setup { players, ..Setup::default() }).rules.court();
        for wall in court.open_walls() {
            let sides = if wall.index() < 2 { [Wall::Top, Wall::Bottom] } else { [Wall::Left, Wall::Right] };
            for side in sides {
                assert!(
                    court.reach(wall) + HALF_LENGTH + RADIUS >= court.line(side),
                    "{players} {wall:?} {side:?}"
                );
            }
        }
    }
}

/// The longest flight between two paddles: twice across the court at three fifths of a serve's speed.
const LONGEST_FLIGHT_TICKS: u32 = 2 * 320 * 5 / 3 * UNIT as u32 / SERVE_SPEED as u32 + 10;

/// Observes a session: bounds of the speed, and the flight times of the ball.
struct Watch {
    flight: u32,
    rally: u32,
    longest_rally: u32,
    rallies: u32,
}

impl Watch {
    fn new() -> Watch {
        Watch { flight: 0, rally: 0, longest_rally: 0, rallies: 0 }
    }

    fn see(&mut self, pong: &Pong, context: &str) {
        pong.check().unwrap();
        let touched = pong
            .events_since(Tick(pong.tick.0 - 1))
            .any(|event| matches!(event.what, What::Hit(_) | What::Served(_)));
        if !is_rally(&pong.phase) {
            self.rallies += u32::from(self.rally > 0);
            self.longest_rally = self.longest_rally.max(self.rally);
            (self.flight, self.rally) = (0, 0);
            return;
        }
        let speed = pong.ball.motion.length();
        assert!((SERVE_SPEED - 2..=MAX_SPEED).contains(&speed), "{context}: speed {speed}");
        self.rally += 1;
        self.flight = if touched { 0 } else { self.flight + 1 };
        assert!(self.flight <= LONGEST_FLIGHT_TICKS, "{context}: stuck at {:?}", pong.ball);
        assert!(self.rally <= 3600, "{context}: an endless rally");
    }
}

#[test]
fn the_ball_never_gets_stuck() {
    let mut rallies = 0;
    for seed in 0..3000 {
        let players = 2 + (seed % 3) as u8;
        let mut pong = Pong::new(&Setup { seed, players, ..Setup::default() });
        let (mut rng, mut inputs, mut watch) = (Rng::new(seed), Inputs::new(), Watch::new());
        for tick in (1..=2500).map(Tick) {
            inputs.clear();
            match seed / 3 % 3 {
                0 => {}
                1 => crowd::fill(tick, players, &mut rng, &mut inputs),
                _ => (0..u16::from(players))
                    .map(Seat)
                    .for_each(|seat| inputs.set(seat, autopilot(&pong, seat))),
            }
            pong.step(&inputs);
            watch.see(&pong, &format!("seed {seed}, tick {tick}"));
        }
        rallies += watch.rallies;
    }
    assert!(rallies > 10_000, "{rallies} rallies seen");
}

#[test]
fn perfect_players_who_never_miss_come_to_a_let() {
    let mut table = Table::for_two(1);
    let mut watch = Watch::new();
    while watch.rallies < 2 {
        let y = table.pong.ball.at.y.clamp(-100 * UNIT, 100 * UNIT);
        // No player could do this: the paddles are always where the ball is.
        table.pong.paddles.iter_mut().take(2).for_each(|paddle| paddle.at = y);
        table.tick(&idle([0, 1]));
        watch.see(&table.pong, "perfect");
    }
    assert!((3599..=3600).contains(&watch.longest_rally), "{}", watch.longest_rally);
    assert_eq!(table.scores(), [0; 4]);
}
