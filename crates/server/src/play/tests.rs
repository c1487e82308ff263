//! Tests that every frame fits its screen in any phase, and that applying its changes yields the same screen.

use proptest::prelude::*;
use sametick_client::Status;
use sametick_lockstep::diagnostics::Diagnostics;
use sametick_pong::{Input, Phase, Pong, Setup, Wall, autopilot};
use sametick_sim::{Game, Inputs, Seat, Tick};
use sametick_wire::Time;

use super::court::Side;
use super::frame::{Frame, Palette, width};
use super::scene::{MIN_SIZE, Scene, draw};

#[path = "../../tests/it/screen.rs"]
mod screen;
use screen::Screen;

/// States of every phase, with players on some of the seats and bots on the others.
fn states(players: u8, seated: u16) -> Vec<Pong> {
    let mut pong = Pong::new(&Setup { seed: 5, players, points: 2, ..Setup::default() });
    let mut states = vec![pong.clone()];
    let mut inputs = Inputs::new();
    for tick in 0..20_000_i32 {
        inputs.clear();
        for seat in (0..seated.min(players.into())).map(Seat) {
            // The players act one after the other, each after a while: until then the screen shows what to press.
            let is_idle = (tick - 40 * i32::from(seat.0)).rem_euclid(400) < 200;
            let input = if is_idle { Input::NONE } else { autopilot(&pong, seat) };
            inputs.set(seat, input);
        }
        let kind =
            |pong: &Pong| (std::mem::discriminant(&pong.phase), pong.paddles.map(|paddle| paddle.ready));
        let before = kind(&pong);
        pong.step(&inputs);
        if kind(&pong) != before || tick % 101 == 0 {
            states.push(pong.clone());
        }
        if states.len() > 120 {
            break;
        }
    }
    states
}

fn scene(pong: &Pong, seat: Option<Seat>) -> Scene<'_> {
    Scene {
        relay: "udp://127.0.0.1:7777",
        session: "friday",
        name: "Ada",
        tells_releases: true,
        status: &Status::Playing,
        seat,
        shown: Some((pong.tick + 5, pong)),
        confirmed: Some((pong.tick, pong)),
        ghost: false,
        rtt_us: Some(32_190),
        omissions: 0,
        diagnostics: None,
        note: None,
    }
}

fn lines(frame: &Frame) -> Vec<String> {
    let mut screen = Screen::new(frame.width(), frame.height());
    screen.feed(&frame.changes(None, Palette::Mono));
    assert_eq!(screen.lines(), frame.lines());
    frame.lines()
}

fn text(pong: &Pong, seat: Option<Seat>) -> String {
    lines(&draw(&scene(pong, seat), (80, 24), Palette::Mono)).join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_frame_fits_and_reaches_the_screen_by_its_changes(
        sizes in prop::array::uniform2((0_u16..150, 0_u16..60)),
        (players, seated, seat) in (2_u8..=4, 0_u16..=4, 0_u16..6),
        places in prop::array::uniform2(0_usize..1_000),
        name in "\\PC{0,20}|[\\x00-\\x1f]{1,5}|Ada",
        (ghost, panel, colour, same_size) in any::<(bool, bool, bool, bool)>(),
        status in 0_usize..7,
    ) {
        let states = states(players, seated);
        let [first, second] = places.map(|place| &states[place % states.len()]);
        let statuses = [
            Status::Connecting,
            Status::Joining,
            Status::CatchingUp,
            Status::Playing,
            Status::Stalled { since: Time::ZERO },
            Status::Refused("full".into()),
            Status::Lost { retry_at: Time::ZERO, why: name.clone() },
        ];
        let diagnostics = Diagnostics { cpu_deficit_ticks: 9, loss_permille: 999, ..Diagnostics::default() };
        let palette = if colour { Palette::Colour } else { Palette::Mono };
        let mut scene = Scene {
            session: &name,
            name: &name,
            tells_releases: colour,
            status: &statuses[status],
            confirmed: Some((second.tick, second)),
            ghost,
            diagnostics: panel.then_some(&diagnostics),
            note: None,
            ..scene(first, Some(Seat(seat)).filter(|seat| seat.0 < u16::from(players)))
        };
        let mut shown = Screen::new(usize::from(sizes[0].0), usize::from(sizes[0].1));
        let before = draw(&scene, sizes[0], palette);
        shown.feed(&before.changes(None, palette));
        prop_assert_eq!(shown.lines(), before.lines());
        prop_assert!(before.lines().iter().all(|line| width(line) == before.width()));
        scene.shown = (status > 1).then_some((second.tick, second));
        let size = if same_size { sizes[0] } else { sizes[1] };
        let after = draw(&scene, size, palette);
        if !same_size {
            shown = Screen::new(after.width(), after.height());
        }
        shown.feed(&after.changes(Some(&before).filter(|_| same_size), palette));
        prop_assert_eq!(shown.lines(), after.lines());
        prop_assert_eq!(after.changes(Some(&after), palette), "");
    }
}

#[test]
fn every_phase_shows_its_state_and_its_keys() {
    let mut said: Vec<String> = Vec::new();
    for (players, seated) in [(2, 1), (2, 2), (3, 1), (4, 4), (4, 2)] {
        for pong in states(players, seated) {
            for seat in (0..seated).map(|seat| Some(Seat(seat))).chain([None]) {
                let scene = Scene { tells_releases: false, ..scene(&pong, seat) };
                let [small, large] =
                    [MIN_SIZE, (150, 50)].map(|size| lines(&draw(&scene, size, Palette::Mono)));
                let line = small[1].clone();
                for (row, large_row) in [(0, 0), (1, 1), (18, 48), (19, 49)] {
                    assert_eq!(small[row].trim(), large[large_row].trim(), "nothing is cut off");
                }
                let is_rally = matches!(pong.phase, Phase::Rally { .. });
                assert!(is_rally || !line.trim().is_empty(), "{:?}", pong.phase);
                said.push(line.trim().to_owned());
            }
        }
    }
    for expected in [
        "1 of 2 here. Space begins, with bots for the others.",
        "Ready. Waiting for the others.",
        "Your serve: space lets the ball go.",
        "→ bot serves.",
        "Get ready: you serve in 3…",
        "Get ready: → bot serves in 1…",
        "↑ player serves.",
        "Your point.",
        "Point for → player.",
        "You win! Space for a rematch.",
        "→ bot wins. Space for a rematch.",
        "→ player wins.",
    ] {
        assert!(said.iter().any(|line| line == expected), "nobody said: {expected}");
    }
}

#[test]
fn the_own_wall_is_at_the_left_or_at_the_bottom() {
    for (wall, place) in [
        (Wall::Left, Wall::Left),
        (Wall::Right, Wall::Left),
        (Wall::Top, Wall::Bottom),
        (Wall::Bottom, Wall::Bottom),
    ] {
        assert_eq!(Side::of(Some(wall)).place(wall), place);
    }
    let pong = &states(4, 4)[1];
    for (seat, mark) in [(0, "[← Ada 0]"), (1, "[← Ada 0]"), (2, "[↓ Ada 0]"), (3, "[↓ Ada 0]")] {
        let shown = text(pong, Some(Seat(seat)));
        assert!(shown.contains(mark), "{shown}");
        // All four arrows are there: no player is at two walls.
        assert!(
            ['←', '→', '↑', '↓'].iter().all(|arrow| shown.lines().next().unwrap().contains(*arrow)),
            "{shown}"
        );
    }
}

#[test]
fn a_paddle_on_screen_goes_where_its_keys_say() {
    for (players, seat) in [(2, 0), (2, 1), (4, 2), (4, 3)] {
        let mut pong = Pong::new(&Setup { seed: 1, players, ..Setup::default() });
        let mut middles = Vec::new();
        for _ in 0..3 {
            let frame = draw(&scene(&pong, Some(Seat(seat))), (80, 24), Palette::Mono);
            let shown = lines(&frame);
            let is_solid = |glyph: char| "█▀▄".contains(glyph);
            let sum_of = |places: Vec<usize>| places.iter().sum::<usize>() as f32 / places.len() as f32;
            middles.push(if seat < 2 {
                let column = shown[12].chars().position(|glyph| glyph == '┊').unwrap() + 1;
                let rows = (3..21).filter(|row| shown[*row].chars().skip(column).take(3).any(is_solid));
                sum_of(rows.collect())
            } else {
                sum_of(
                    shown[20]
                        .chars()
                        .enumerate()
                        .filter(|(_, glyph)| is_solid(*glyph))
                        .map(|(at, _)| at)
                        .collect(),
                )
            });
            let mut inputs = Inputs::new();
            inputs.set(Seat(seat), Input::moving(sametick_pong::Motion::More));
            (0..12).for_each(|_| pong.step(&inputs));
        }
        assert!(middles[0] < middles[1] && middles[1] < middles[2], "{seat}: {middles:?}");
    }
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let pong = Pong::new(&Setup::default());
    let small = lines(&draw(&scene(&pong, None), (59, 20), Palette::Mono)).join("\n");
    assert!(small.contains("This window has 59×20 characters; pong needs 60×20."), "{small}");
}

#[test]
fn trouble_with_the_relay_is_shown_above_the_court() {
    let pong = Pong::new(&Setup::default());
    let mut scene = scene(&pong, Some(Seat(0)));
    let stalled = Status::Stalled { since: Time::ZERO };
    scene.status = &stalled;
    let shown = lines(&draw(&scene, MIN_SIZE, Palette::Mono));
    assert!(shown[1].contains("Waiting for the relay…") && shown[18].contains("waiting for the relay"));
    scene.status = &Status::CatchingUp;
    assert!(lines(&draw(&scene, MIN_SIZE, Palette::Mono))[1].contains("Catching up…"));
    let lost = Status::Lost { retry_at: Time::ZERO, why: "the server stops".into() };
    scene.status = &lost;
    assert!(lines(&draw(&scene, MIN_SIZE, Palette::Mono))[1].contains("Connection lost: the server stops"));
    (scene.status, scene.shown, scene.confirmed) = (&Status::Connecting, None, None::<(Tick, &Pong)>);
    assert!(
        lines(&draw(&scene, MIN_SIZE, Palette::Mono)).join("").contains("Calling udp://127.0.0.1:7777 …")
    );
}
