//! Sizes and schemas: encoded data stays small, and does not change unnoticed.

use sametick_pong::court::{Point, UNIT};
use sametick_pong::{Event, Input, Motion, Pong, Setup, What, crowd};
use sametick_sim::{Game, Inputs, Rng, Tick, from_canonical, schema_hash_of, to_canonical};

/// Room for four players, four events, and every number at its longest.
const MAX_STATE_BYTES: usize = 200;

#[test]
fn an_input_is_one_byte() {
    for motion in [Motion::Still, Motion::Less, Motion::More] {
        let input = Input::moving(motion).and_serve().and_rematch();
        assert_eq!(to_canonical(&input).unwrap().len(), 1);
        assert_eq!(input.motion(), motion);
    }
    let golden = [(Input::NONE, 0), (Input::moving(Motion::Less), 1), (Input::moving(Motion::More), 2)];
    for (input, byte) in golden {
        assert_eq!(to_canonical(&input).unwrap(), [byte]);
        assert_eq!(to_canonical(&input.and_serve()).unwrap(), [byte | 4]);
        assert_eq!(to_canonical(&input.and_rematch()).unwrap(), [byte | 8]);
    }
    assert_eq!(Motion::of_keys(true, true), Motion::Still);
}

#[test]
fn bytes_that_are_no_input_are_refused_with_a_reason() {
    assert!(from_canonical::<Input>(&[3]).is_err() && from_canonical::<Input>(&[16]).is_err());
    let error = Input::try_from(0x83).unwrap_err().to_string();
    assert!(error.starts_with("0x83 is no input of pong"), "{error}");
}

#[test]
fn a_state_is_small() {
    let mut longest = 0;
    for players in 2..=4 {
        let mut pong = Pong::new(&Setup { seed: 3, players, ..Setup::default() });
        let (mut rng, mut inputs) = (Rng::new(4), Inputs::new());
        for tick in (1..=20_000).map(Tick) {
            inputs.clear();
            crowd::fill(tick, players, &mut rng, &mut inputs);
            pong.step(&inputs);
            longest = longest.max(to_canonical(&pong).unwrap().len());
        }
    }
    println!("longest state seen: {longest} bytes");
    assert!(longest < MAX_STATE_BYTES - 20, "{longest} bytes");
}

#[test]
fn the_largest_state_there_can_be_is_still_small() {
    let mut pong = Pong::new(&Setup { seed: u64::MAX, players: 4, ..Setup::default() });
    let far = Point { x: -118 * UNIT, y: -118 * UNIT };
    let event = Event { tick: Tick(u32::MAX), at: far, what: What::Hit(sametick_pong::Wall::Bottom) };
    pong.tick = Tick(u32::MAX);
    pong.events = [Some(event); 4];
    pong.ball.at = far;
    pong.ball.motion = Point { x: -4900, y: -4900 };
    pong.phase = sametick_pong::Phase::Rally {
        server: sametick_pong::Wall::Top,
        striker: sametick_pong::Wall::Top,
        rival: sametick_pong::Wall::Bottom,
        hits: u16::MAX,
        ticks: u16::MAX,
    };
    for paddle in &mut pong.paddles {
        (paddle.at, paddle.speed, paddle.score) = (-100 * UNIT, -3000, 99);
        paddle.driver = sametick_pong::Driver::Bot { aim: -100 * UNIT, look_in: 255 };
    }
    pong.check().unwrap();
    // Only the two random numbers of at most ten bytes each may still be longer.
    let bytes = to_canonical(&pong).unwrap().len();
    println!("largest state: {bytes} bytes");
    assert!(bytes + 2 <= MAX_STATE_BYTES, "{bytes} bytes");
    let mut next = pong.clone();
    next.step(&Inputs::new());
    next.check().unwrap();
}

#[test]
fn the_schema_changes_on_purpose_or_not_at_all() {
    // Builds that differ in this are not compatible, and cannot read each other's saves and logs. If you meant to
    // change a type of state, setup or input: put the new hash here, pin the hashes in determinism.rs anew, and say in
    // the changelog that sessions of older builds need the older build.
    let hash = schema_hash_of::<Pong>().to_string();
    assert_eq!(
        hash,
        "fcc9ca5bf8568a836b2c116c2f5475b96b2fa597d990502b6a13433a0533ede3",
        "{}",
        sametick_sim::description_of::<Pong>()
    );
}

#[test]
fn states_that_could_not_be_are_refused_with_a_reason() {
    let pong = Pong::new(&Setup::default());
    let refused = |change: fn(&mut Pong)| {
        let mut bad = pong.clone();
        change(&mut bad);
        assert!(from_canonical::<Pong>(&to_canonical(&bad).unwrap()).is_err());
        bad.check().unwrap_err().to_string()
    };
    assert!(refused(|pong| pong.rules.players = 5).contains("players"));
    assert!(refused(|pong| pong.ball.at.x = i32::MIN).contains("ball"));
    assert!(refused(|pong| pong.ball.motion = Point { x: i32::MIN, y: i32::MIN }).contains("ball"));
    assert!(refused(|pong| pong.paddles[1].at = i32::MAX).contains("Right"));
    assert!(refused(|pong| pong.paddles[3].score = 1).contains("Bottom"));
    assert!(
        refused(|pong| pong.phase = sametick_pong::Phase::Over { winner: sametick_pong::Wall::Top, ticks: 0 })
            .contains("wall")
    );
}
