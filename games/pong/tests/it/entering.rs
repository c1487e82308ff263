//! A new player has time: a countdown before the next serve, and bots that begin gently.

use sametick_pong::{Input, Motion, Phase, Pong, Setup, Skill, Wall, What, autopilot};
use sametick_sim::{Rng, Seat};

use crate::table::{Table, idle, is_over, is_rally, is_serving};

const SERVE: Input = Input::NONE.and_serve();

/// Three seconds.
const COUNTDOWN: u32 = 180;

fn is_served(table: &Table) -> bool {
    table.now().iter().any(|what| matches!(what, What::Served(_)))
}

/// The number of ticks until a serve while these seats have these inputs, and the counts shown meanwhile.
fn until_served(table: &mut Table, acts: &[(u16, Input)]) -> (u32, Vec<u8>) {
    let (mut ticks, mut counted) = (0, Vec::new());
    loop {
        counted.extend(table.pong.count());
        table.tick(acts);
        ticks += 1;
        if is_served(table) {
            counted.dedup();
            return (ticks, counted);
        }
        assert!(ticks < 5_000, "nobody serves: {:?}", table.pong.phase);
    }
}

#[test]
fn a_game_and_each_game_after_it_begin_with_three_two_one() {
    let mut table = Table::for_two(1);
    let eager = [(0, SERVE.and_rematch()), (1, SERVE.and_rematch())];
    table.tick(&eager);
    assert!(is_serving(&table.pong.phase));
    let (ticks, counted) = until_served(&mut table, &eager);
    assert_eq!((ticks, counted), (COUNTDOWN + 21, vec![3, 2, 1]));
    // Within a game there is none.
    let corner = [(0, SERVE), (1, Input::moving(Motion::Less).and_serve())];
    table.until(&corner, is_serving);
    assert_eq!(until_served(&mut table, &corner).1, []);
    table.pong.paddles[0].score = 50;
    table.until(&corner, is_over);
    table.until(&eager, is_serving);
    assert_eq!(until_served(&mut table, &eager).1, [3, 2, 1]);
}

#[test]
fn no_ball_is_served_within_three_seconds_of_a_join() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let players = 2 + (seed % 3) as u8;
        let mut table = Table::new(Setup { seed, players, ..Setup::default() });
        // Bots have played for a while; then one player after the other takes a seat.
        table.ticks(300 + rng.below(4_000) as u32, &[]);
        let mut acts: Vec<(u16, Input)> = Vec::new();
        for seat in 0..u16::from(players) {
            acts.push((seat, SERVE.and_rematch()));
            let serves_at = until_served(&mut table, &acts);
            assert!(serves_at.0 > COUNTDOWN, "seed {seed}, seat {seat}: after {} ticks", serves_at.0);
            assert_eq!(serves_at.1.last(), Some(&1), "seed {seed}: it is counted down to the end");
            table.ticks(rng.below(900) as u32, &acts);
        }
    }
}

#[test]
fn a_join_while_the_ball_is_held_restarts_the_countdown() {
    let mut table = Table::new(Setup { seed: 1, ..Setup::default() });
    table.tick(&[(0, SERVE)]);
    table.ticks(150, &[(0, SERVE)]);
    assert_eq!(table.pong.count(), Some(1));
    table.tick(&[(0, SERVE), (1, SERVE)]);
    assert_eq!(table.pong.count(), Some(3));
}

#[test]
fn rejoining_delays_others_once_a_minute_at_most() {
    let mut table = Table::new(Setup { seed: 4, ..Setup::default() });
    table.until(&[(0, SERVE), (1, SERVE)], is_rally);
    // Seat 1 joins and leaves every quarter of a second for two minutes.
    let (mut counting, mut serves) = (0, 0);
    for tick in 0..7_200 {
        let left = autopilot(&table.pong, Seat(0)).and_rematch();
        let acts = [(0, left), (1, SERVE.and_rematch())];
        table.tick(if tick % 15 < 7 { &acts[..1] } else { &acts });
        counting += u32::from(table.pong.count().is_some());
        serves += u32::from(is_served(&table));
        if is_over(&table.pong.phase) {
            table.pong.paddles.iter_mut().for_each(|paddle| paddle.score = 0);
        }
    }
    println!("{counting} ticks of countdown, {serves} serves");
    assert!(counting <= 3 * COUNTDOWN && serves > 10, "{counting} ticks, {serves} serves");
    // A player who is alone with bots delays no other, and gets the countdown every time.
    let mut alone = Table::new(Setup { seed: 4, ..Setup::default() });
    alone.until(&[(0, SERVE)], is_rally);
    for _ in 0..3 {
        alone.ticks(5, &[]);
        assert!(until_served(&mut alone, &[(0, SERVE.and_rematch())]).0 > COUNTDOWN);
    }
}

/// A bot's share of the first points, and of those after them, against a good player.
fn shares(skill: Skill) -> [f32; 2] {
    let mut made = [[0_u32; 2]; 2];
    for seed in 0..60 {
        let mut table = Table::new(Setup { seed, skill, points: 30, ..Setup::default() });
        let mut points = 0;
        while points < 15 && !is_over(&table.pong.phase) {
            let left = autopilot(&table.pong, Seat(0));
            table.tick(&[(0, left)]);
            if let Some(What::Point(wall)) = table.now().iter().find(|what| matches!(what, What::Point(_))) {
                // The third to fifth are in between.
                match points {
                    0..2 => made[0][wall.index()] += 1,
                    5.. => made[1][wall.index()] += 1,
                    _ => {}
                }
                points += 1;
            }
        }
    }
    made.map(|[ours, theirs]| theirs as f32 / (ours + theirs) as f32)
}

#[test]
fn bots_begin_gently_and_come_to_full_strength() {
    for skill in [Skill::Easy, Skill::Normal, Skill::Hard] {
        let [first, later] = shares(skill);
        println!("{skill:?}: {first:.2} of the first two points, {later:.2} from the sixth on");
        assert!(first * 2.0 < later, "{skill:?}: {first} and {later}");
    }
}

#[test]
fn a_paddle_of_a_gentle_bot_is_slower() {
    let fastest = |seen: u8| {
        let mut table = Table::new(Setup { seed: 3, ..Setup::default() });
        table.until(&[(0, SERVE)], is_rally);
        let mut fastest = 0;
        for _ in 0..3_000 {
            table.pong.paddles[0].seen = seen;
            table.tick(&idle([0]));
            fastest = fastest.max(table.pong.paddle(Wall::Right).speed.abs());
        }
        fastest
    };
    let speeds = [0, 3, 5].map(fastest);
    assert!(speeds.is_sorted() && speeds[0] * 2 == speeds[2] && speeds[1] < speeds[2], "{speeds:?}");
}

#[test]
fn what_is_counted_is_part_of_the_state() {
    let mut table = Table::for_two(2);
    table.tick(&idle([0, 1]));
    let bytes = sametick_sim::to_canonical(&table.pong).unwrap();
    let pong: Pong = sametick_sim::from_canonical(&bytes).unwrap();
    assert_eq!((pong.count(), pong.countdown), (Some(3), 180));
    table.pong.phase = Phase::Pause { server: Wall::Left, ticks: 0 };
    assert_eq!(table.pong.count(), None, "it is counted while the ball is held");
    table.pong.countdown = 181;
    assert!(table.pong.check().is_err());
}
