//! Bots can be beaten, better ones less often, and they use only the state.

use sametick_pong::{Phase, Pong, Setup, Skill, Wall, autopilot};
use sametick_sim::{Game, Inputs, Seat};

/// Points of the left and right player over some games: the left one is `autopilot` if `player`, all others are bots.
fn points(skill: Skill, player: bool) -> [u32; 2] {
    let mut points = [0; 2];
    for seed in 0..12 {
        let mut pong = Pong::new(&Setup { seed, skill, ..Setup::default() });
        let mut inputs = Inputs::new();
        while !matches!(pong.phase, Phase::Over { .. }) {
            inputs.clear();
            if player {
                inputs.set(Seat(0), autopilot(&pong, Seat(0)));
            }
            pong.step(&inputs);
            assert!(pong.tick.0 < 200_000, "a game that does not end: {:?}", pong.phase);
        }
        points[0] += u32::from(pong.paddle(Wall::Left).score);
        points[1] += u32::from(pong.paddle(Wall::Right).score);
    }
    points
}

#[test]
fn a_good_player_beats_bots_and_better_bots_less_often() {
    let share = |[ours, theirs]: [u32; 2]| theirs as f32 / (ours + theirs) as f32;
    let [easy, normal, hard] =
        [Skill::Easy, Skill::Normal, Skill::Hard].map(|skill| share(points(skill, true)));
    println!("share of points against a good player: easy {easy}, normal {normal}, hard {hard}");
    assert!(easy < normal && normal < hard && hard < 0.8);
}

#[test]
fn among_bots_both_sides_score() {
    let [left, right] = points(Skill::Normal, false);
    assert!(left.min(right) * 3 > left.max(right), "{left}:{right}");
}

#[test]
fn bots_return_serves_and_sometimes_miss() {
    for skill in [Skill::Easy, Skill::Normal, Skill::Hard] {
        let mut pong = Pong::new(&Setup { seed: 1, skill, points: 50, ..Setup::default() });
        let (mut hits, mut rallies) = (0, 0);
        for _ in 0..60_000 {
            let before = pong.phase;
            pong.step(&Inputs::new());
            if let (Phase::Rally { hits: seen, .. }, Phase::Pause { .. }) = (before, pong.phase) {
                hits += u32::from(seen);
                rallies += 1;
            }
        }
        println!("{skill:?}: {hits} hits in {rallies} rallies");
        assert!(rallies > 20 && hits > rallies * 2, "{skill:?}: {hits} hits in {rallies} rallies");
    }
}

#[test]
fn games_among_autopilots_come_to_an_end() {
    for seed in 0..12 {
        let players = 2 + (seed % 3) as u8;
        let mut pong = Pong::new(&Setup { seed, players, bots: false, ..Setup::default() });
        let mut inputs = Inputs::new();
        while !matches!(pong.phase, Phase::Over { .. }) {
            inputs.clear();
            (0..u16::from(players)).map(Seat).for_each(|seat| inputs.set(seat, autopilot(&pong, seat)));
            pong.step(&inputs);
            assert!(pong.tick.0 < 60_000, "seed {seed}, {players} players: {:?}", pong.phase);
        }
        println!("{players} players: {} ticks", pong.tick);
    }
}
