//! Tests of the registry of games: games of any type begin, step, save, load and print.

use proptest::prelude::*;
use sametick::games::{AnyGame, Games, Layout};
use sametick_pong::{Pong, autopilot};
use sametick_sim::contest::{Contest, Wanted};
use sametick_sim::record::TickInputs;
use sametick_sim::{BuildId, Game, StateHash, Tick, to_canonical};

use crate::trial;

fn known() -> Games {
    trial::games()
}

#[test]
fn a_game_is_found_by_name_and_build() {
    let games = known();
    assert_eq!(games.find("pong", Pong::BUILD).unwrap().rate(), Pong::RATE);
    assert_eq!(games.of_build(BuildId::from_bytes([7; 16])).map(AnyGame::name), Some("slow"));
    let other = games.find("pong", BuildId::from_bytes([1; 16])).unwrap_err().to_string();
    assert!(other.contains(&Pong::BUILD.to_string()) && other.contains("0101"), "{other}");
    let none = games.find("chess", Pong::BUILD).unwrap_err().to_string();
    assert!(none.contains("it has slow, faulty, leaky, threaded, fragile, pong"), "{none}");
}

#[test]
fn numbers_of_any_width_are_printed_in_full() {
    let mut run = trial::slow().begin(&[1]).unwrap();
    let rehearsal = trial::slow().rehearse(3, 200).unwrap();
    trial::take_steps();
    rehearsal.ticks.iter().for_each(|tick| run.step(tick));
    assert_eq!(trial::take_steps(), 200);
    let json = run.to_json(Layout::Page).unwrap();
    assert!(json.contains(&(i128::MAX - 200).to_string()), "{json}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_rehearsal_repeats_and_a_run_goes_on_from_any_save(seed: u64, cut in 0usize..300) {
        let games = known();
        for game in games.iter().filter(|game| ["pong", "slow"].contains(&game.name())) {
            let rehearsal = game.rehearse(seed, 300).unwrap();
            prop_assert!(game.rehearse(seed, 300).is_some_and(|again| again == rehearsal));
            let mut run = game.begin(&rehearsal.setup).unwrap();
            let mut saved = vec![];
            for tick in &rehearsal.ticks {
                if run.tick() == Tick(cut as u32) {
                    run.save(&mut saved);
                }
                run.step(tick);
            }
            let mut again = game.begin(&rehearsal.setup).unwrap();
            again.load(Tick(cut as u32), &saved).unwrap();
            prop_assert_eq!(again.hash(), StateHash::of_bytes(&saved));
            rehearsal.ticks[cut..].iter().for_each(|tick| again.step(tick));
            prop_assert_eq!(again.hash(), run.hash());
            prop_assert_eq!(again.parts("", 2), run.parts("", 2));
            let mut last = vec![];
            run.save(&mut last);
            prop_assert_eq!(game.differences(&last, &last, 9).unwrap(), vec![]);
            prop_assert_eq!(game.resume(run.tick(), &last).unwrap().hash(), run.hash());
        }
    }
}

#[test]
fn sessions_are_made_of_games_that_are_contests() {
    let wanted = Wanted { seed: 7, seats: 2, scenario: Some("short"), difficulty: 11 };
    assert!(known().iter().all(|game| game.contest().is_none()));
    let games = sametick::games![Pong[2..=4] => autopilot; sessions];
    let pong = games.named("pong").unwrap();
    let contest = pong.contest().unwrap();
    assert_eq!((contest.groups(), contest.scenarios()), (Pong::GROUPS, Pong::SCENARIOS));
    assert_eq!(contest.setup(&wanted), to_canonical(&Pong::setup(&wanted)).unwrap());
    let mut run = pong.begin(&contest.setup(&wanted)).unwrap();
    let mut inputs = TickInputs::new();
    while contest.outcome(run.state()).is_none() {
        inputs.clear(run.tick().next());
        run.step(&inputs);
    }
    let outcome = contest.outcome(run.state()).unwrap();
    assert_eq!(outcome.scores.iter().map(|score| score.points).max(), Some(5), "bots play");
    assert_eq!(contest.outcome(&7_u8), None, "of another type");
    let json = serde_json::to_value(&outcome).unwrap();
    assert!(json["scores"][1]["seat"] == 1 && json["scores"][1]["won"].is_boolean(), "{json}");
}
