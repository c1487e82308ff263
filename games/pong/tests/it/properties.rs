//! Invariants that hold for all inputs and all bytes.

use proptest::prelude::*;
use sametick_pong::{Input, Phase, Pong, Setup, Skill};
use sametick_sim::{Game, Inputs, Seat, StateHash, from_canonical, to_canonical};

fn setups() -> impl Strategy<Value = Setup> {
    let skill = prop_oneof![Just(Skill::Easy), Just(Skill::Normal), Just(Skill::Hard)];
    (any::<u64>(), any::<u8>(), 1..5_u8, any::<u8>(), any::<bool>(), skill, any::<bool>()).prop_map(
        |(seed, players, points, lead, bots, skill, once)| Setup {
            seed,
            players: players % 6,
            points,
            lead,
            bots,
            skill,
            once,
        },
    )
}

/// The actions of a seat for a number of ticks: (joins, leaves, listed, input).
type Act = (bool, bool, bool, Option<Input>);

fn acts() -> impl Strategy<Value = Vec<([Act; 5], u8)>> {
    let input = any::<u8>().prop_map(|bits| Input::try_from(bits & 15).ok());
    let act = (prop::bool::weighted(0.1), prop::bool::weighted(0.05), prop::bool::weighted(0.9), input);
    prop::collection::vec((prop::array::uniform5(act), any::<u8>()), 1..30)
}

fn fill(acts: &[Act; 5], first: bool, inputs: &mut Inputs<Input>) {
    inputs.clear();
    for (seat, (joins, leaves, listed, input)) in acts.iter().enumerate() {
        let seat = Seat(seat as u16);
        match input {
            _ if !listed => continue,
            Some(input) => inputs.set(seat, *input),
            None => inputs.omit(seat),
        }
        if first && *joins {
            inputs.join(seat);
        }
        if first && *leaves {
            inputs.leave(seat);
        }
    }
}

fn total(pong: &Pong) -> u32 {
    pong.paddles.iter().map(|paddle| u32::from(paddle.score)).sum()
}

proptest! {
    #[test]
    fn a_session_stays_within_its_bounds(setup in setups(), acts in acts()) {
        let mut pong = Pong::new(&setup);
        let mut inputs = Inputs::new();
        for (acts, ticks) in &acts {
            for tick in 0..*ticks {
                fill(acts, tick == 0, &mut inputs);
                let before = pong.clone();
                pong.step(&inputs);
                prop_assert_eq!(pong.check(), Ok(()));
                let again = matches!(before.phase, Phase::Over { .. }) && !matches!(pong.phase, Phase::Over { .. });
                let gained = total(&pong).checked_sub(total(&before));
                let fits = if again { total(&pong) == 0 } else { matches!(gained, Some(0 | 1)) };
                prop_assert!(fits, "{} to {} points", total(&before), total(&pong));
            }
            let bytes = to_canonical(&pong).unwrap();
            let back: Pong = from_canonical(&bytes).unwrap();
            prop_assert_eq!(&back, &pong);
            prop_assert_eq!(to_canonical(&back).unwrap(), bytes);
        }
    }

    #[test]
    fn a_state_made_of_any_bytes_is_refused_or_can_be_played(
        setup in setups(),
        acts in acts(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut pong = Pong::new(&setup);
        let mut inputs = Inputs::new();
        for (acts, ticks) in &acts {
            (0..*ticks).for_each(|tick| { fill(acts, tick == 0, &mut inputs); pong.step(&inputs); });
        }
        let mut bytes = to_canonical(&pong).unwrap();
        for (place, byte) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
        if let Ok(mut changed) = from_canonical::<Pong>(&bytes) {
            for tick in 0..200 {
                fill(&acts[0].0, tick == 0, &mut inputs);
                changed.step(&inputs);
                prop_assert_eq!(changed.check(), Ok(()));
            }
        }
    }

    #[test]
    fn any_byte_is_one_input_or_none(byte: u8) {
        match from_canonical::<Input>(&[byte]) {
            Ok(input) => prop_assert_eq!(to_canonical(&input).unwrap(), vec![byte]),
            Err(error) => prop_assert!(byte > 15 || byte & 3 == 3, "{byte}: {error}"),
        }
    }

    #[test]
    fn left_and_right_are_treated_alike(seed: u64, y in -90_000..90_000, slant in -2500..2500) {
        // A state and its mirror image stay each other's mirror images.
        let setup = Setup { seed, bots: false, ..Setup::default() };
        let start = |side: i32| {
            let mut pong = Pong::new(&setup);
            let [here, there] = sides(side);
            pong.phase = Phase::Rally { server: here, striker: here, rival: there, hits: 0, ticks: 0 };
            pong.ball.at.y = y;
            pong.ball.motion = sametick_pong::Point { x: 3000 * side, y: slant };
            pong
        };
        let (mut left, mut right) = (start(-1), start(1));
        for _ in 0..400 {
            left.step(&Inputs::new());
            right.step(&Inputs::new());
            prop_assert_eq!((left.ball.at.x, left.ball.at.y), (-right.ball.at.x, right.ball.at.y));
            prop_assert_eq!(left.paddles[0].score, right.paddles[1].score);
        }
    }
}

fn sides(side: i32) -> [sametick_pong::Wall; 2] {
    use sametick_pong::Wall::{Left, Right};
    if side < 0 { [Right, Left] } else { [Left, Right] }
}

#[test]
fn hashes_tell_states_apart() {
    let pong = Pong::new(&Setup::default());
    let mut other = pong.clone();
    other.paddles[0].score = 1;
    assert_ne!(StateHash::of(&pong), StateHash::of(&other));
}
