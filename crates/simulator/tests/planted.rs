//! Each planted bug is found within a few seeds, and by its own checker. For a wrong state, the violation names the
//! client, the tick and the fields.

use sametick_lockstep::planted::{Bug, plant};
use sametick_simulator::outcome::Checker;
use sametick_simulator::run::{self, Until};

/// How many worlds are enough to find every one of them.
const SEEDS: u64 = 96;

const BUGS: [(Bug, Checker); 17] = [
    (Bug::AcceptedTwice, Checker::Inputs),
    (Bug::LateIntoNext, Checker::Inputs),
    (Bug::OmissionForgotten, Checker::Inputs),
    (Bug::TickForgotten, Checker::Links),
    (Bug::ResimulationSkipped, Checker::Screen),
    (Bug::LeaveUnwritten, Checker::Log),
    (Bug::ChecksMixedUp, Checker::Desync),
    (Bug::TableKept, Checker::Links),
    (Bug::NumbersMisread, Checker::Links),
    (Bug::OwnInputKept, Checker::States),
    (Bug::AcknowledgedEarly, Checker::Log),
    (Bug::HandedInLost, Checker::Inputs),
    (Bug::FirstMissed, Checker::Back),
    (Bug::AnyClaim, Checker::Back),
    (Bug::RewindUnwritten, Checker::Log),
    (Bug::GivenWrong, Checker::Ticks),
    (Bug::TableAhead, Checker::States),
];

#[test]
fn every_planted_bug_is_found_by_its_checker() {
    let mut missed = Vec::new();
    for (bug, expected) in BUGS {
        plant(Some(bug));
        let total = run::run(0, Until::Seeds(SEEDS), 1, |total| total.failed.is_empty());
        let found = total.failed.first().and_then(|outcome| Some((outcome.seed, outcome.violation.clone()?)));
        println!("{bug:?}: {} worlds, {found:?}", total.figures.worlds);
        if found.as_ref().map(|(_, violation)| violation.checker) != Some(expected) {
            missed.push((bug, found));
            continue;
        }
        let what = found.map(|(_, violation)| violation.what).unwrap_or_default();
        if expected == Checker::States {
            // Such as "client 2 != the replay after tick 40:" and "  totals[3]: 5 != 7".
            let (whose, fields) = what.split_once(":\n  ").unwrap_or_else(|| panic!("{bug:?}: {what}"));
            assert!(whose.contains(" != the replay after tick "), "{bug:?}: {what}");
            let is_named = |line: &str| line.contains(": ") && line.contains(" != ");
            assert!(fields.lines().all(is_named), "{bug:?}: {what}");
        }
    }
    plant(None);
    assert!(missed.is_empty(), "{missed:#?}");
}
