//! State hashes, hashes of parts, and finding the field that differs.

use proptest::prelude::*;
use sametick_sim::diff::{Difference, differences};
use sametick_sim::hash::{Part, first_difference, parts, parts_under};
use sametick_sim::{StateHash, Vec2, to_canonical};

use crate::rich::{Rich, Shape, rich, sample};

/// Finds a difference as two machines do that exchange part hashes only.
fn narrow(ours: &Rich, theirs: &Rich) -> Option<String> {
    let mut place = String::new();
    loop {
        let [ours, theirs] = [ours, theirs].map(|state| parts_under(state, &place, 1));
        let next = first_difference(&ours, &theirs)?.to_owned();
        if next == place {
            return Some(place);
        }
        place = next;
    }
}

fn lines(found: &[Difference]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

fn changed(change: impl FnOnce(&mut Rich)) -> (Rich, Rich) {
    let (ours, mut theirs) = (sample(), sample());
    change(&mut theirs);
    (ours, theirs)
}

#[test]
fn golden_hash() {
    assert_eq!(StateHash::of(&sample()).to_string(), "3f366ddbbeb8abc0");
}

#[test]
fn parts_have_names() {
    let paths = |depth| parts(&sample(), depth).into_iter().map(|part| part.path).collect::<Vec<_>>();
    assert_eq!(paths(0), [""]);
    assert_eq!(paths(1)[..3], ["flag", "small", "wide"]);
    let deep = paths(9);
    for name in [
        "shapes",
        "shapes[2]",
        "shapes[2]::Box.min.x",
        "nested[0][1]",
        "named[\"a\"].x",
        "by_seat[3].1",
        "by_pair[1,true]",
        "maybe?",
        "array[2]",
    ] {
        assert!(deep.iter().any(|path| path == name), "{name} is missing from {deep:?}");
    }
}

proptest! {
    #[test]
    fn parts_cover_the_state(ours in rich(), theirs in rich(), depth in 0_usize..6) {
        prop_assert_eq!(parts(&ours, depth) == parts(&theirs, depth), ours == theirs);
        prop_assert_eq!(&parts(&ours, 0)[0].hash, &StateHash::of(&ours));
    }

    #[test]
    fn narrowing_and_comparing_name_the_same_place(ours in rich(), theirs in rich()) {
        let found = differences(&ours, &theirs, usize::MAX);
        prop_assert_eq!(found.is_empty(), to_canonical(&ours) == to_canonical(&theirs));
        let place = narrow(&ours, &theirs);
        prop_assert_eq!(place.is_none(), found.is_empty());
        if let (Some(place), Some(first)) = (place, found.first()) {
            // Maps may differ in their keys, which are no values of their own: there the two may name neighbours.
            let stem = |path: &str| path.split(['[', '.', '?', ':']).next().unwrap_or_default().to_owned();
            prop_assert_eq!(stem(&place), stem(&first.path), "{} / {}", place, first);
        }
    }
}

#[test]
fn a_changed_field_is_found_by_hashes_alone() {
    let (ours, theirs) =
        changed(|state| state.shapes[2] = Shape::Box { min: Vec2::new(1.25, -2.0), max: Vec2::ZERO });
    assert_eq!(narrow(&ours, &theirs).unwrap(), "shapes[2]::Box.min.x");
    let (ours, theirs) = changed(|state| state.nested[2].clear());
    assert_eq!(narrow(&ours, &theirs).unwrap(), "nested[2]");
    let (ours, theirs) = changed(|state| state.maybe = None);
    assert_eq!(narrow(&ours, &theirs).unwrap(), "maybe");
    assert_eq!(narrow(&sample(), &sample()), None);
}

#[test]
fn differences_are_printed_with_both_values() {
    let (ours, theirs) = changed(|state| {
        state.named.get_mut("b").unwrap().x = 1.25;
        state.by_seat.values_mut().next().unwrap().1 = "ten".into();
    });
    let found = differences(&ours, &theirs, 10);
    assert_eq!(lines(&found), ["named[\"b\"].x: -1.5 != 1.25", "by_seat[3].1: \"nine\" != \"ten\""]);
    assert_eq!(lines(&differences(&ours, &theirs, 1)), ["named[\"b\"].x: -1.5 != 1.25"]);
    assert!(differences(&ours, &ours, 10).is_empty());
}

#[test]
fn different_lengths_and_variants_are_told() {
    let (ours, theirs) = changed(|state| drop(state.nested.pop()));
    assert_eq!(
        lines(&differences(&ours, &theirs, 10)),
        ["nested: 3 items != 2 items", "nested[2]: 1 items != nothing", "nested[2][0]: 3 != nothing"]
    );
    let (ours, theirs) = changed(|state| state.shapes[1] = Shape::Nothing);
    assert_eq!(
        lines(&differences(&ours, &theirs, 10)),
        ["shapes[1]: Circle != Nothing", "shapes[1]::Circle: 2.0 != nothing"]
    );
    let (ours, theirs) = changed(|state| state.maybe = Some(Some(1)));
    assert_eq!(lines(&differences(&ours, &theirs, 10)), ["maybe?: None != Some", "maybe??: nothing != 1"]);
}

#[test]
fn a_renamed_key_is_told() {
    let (ours, theirs) = changed(|state| {
        let value = state.named.remove("b").unwrap();
        state.named.insert("c".into(), value);
    });
    assert_eq!(
        lines(&differences(&ours, &theirs, 2)),
        ["named[\"b\"].x: -1.5 != nothing", "named[\"b\"].y: 2.0 != nothing"]
    );
}

#[test]
fn a_difference_in_a_large_state_prints_only_a_window() {
    let ours: Vec<u32> = (0..200_000).collect();
    let mut theirs = ours.clone();
    theirs[150_000] = 1;
    assert_eq!(lines(&differences(&ours, &theirs, 10)), ["[150000]: 150000 != 1"]);
    theirs.truncate(199_999);
    assert_eq!(lines(&differences(&ours, &theirs, 10)), ["state: 200000 items != 199999 items"]);
}

#[test]
fn a_part_missing_on_one_side_is_a_difference() {
    let part = |path: &str| Part { path: path.into(), hash: StateHash(1) };
    let (long, short) = ([part("a"), part("b")], [part("a")]);
    assert_eq!(first_difference(&long, &short), Some("b"));
    assert_eq!(first_difference(&short, &long), Some("b"));
    assert_eq!(first_difference(&short, &short), None);
}
