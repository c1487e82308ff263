//! The rows of inputs that a step receives.

use proptest::prelude::*;
use sametick_sim::{Inputs, Owner, Row, Seat, from_canonical, to_canonical};

#[test]
fn a_seat_can_come_act_and_go_in_one_tick() {
    let mut inputs = Inputs::new();
    inputs.leave(Seat(1));
    inputs.set(Seat(1), 'x');
    inputs.join(Seat(1));
    let row = Row { seat: Seat(1), joined: true, left: true, input: Some('x') };
    assert_eq!(inputs.iter().collect::<Vec<_>>(), [&row]);
}

#[test]
fn only_a_missing_input_that_was_due_is_an_omission() {
    let mut inputs = Inputs::<char>::new();
    inputs.join(Seat(0));
    inputs.leave(Seat(1));
    inputs.omit(Seat(2));
    inputs.set(Seat(3), 'x');
    assert!(inputs.iter().map(Row::is_omitted).eq([false, false, true, false]));
    assert!(inputs.iter().map(|row| *row.input_or(&'-')).eq("---x".chars()));
}

#[test]
fn clearing_keeps_nothing_but_memory() {
    let mut inputs = Inputs::new();
    inputs.set(Seat(4), 1_u8);
    inputs.clear();
    assert!(inputs.is_empty());
    assert_eq!(inputs, Inputs::new());
}

#[test]
fn golden_bytes() {
    let mut inputs = Inputs::new();
    inputs.set(Seat(2), 300_u16);
    inputs.join(Seat(0));
    assert_eq!(to_canonical(&inputs).unwrap(), [2, 0, 1, 0, 0, 2, 0, 0, 1, 0xac, 2, 0]);
    inputs.bring(Owner::Player(Seat(2)), vec![9]);
    inputs.bring(Owner::Place, vec![]);
    let bytes = to_canonical(&inputs).unwrap();
    assert_eq!(bytes[bytes.len() - 6..], [1, 2, 1, 9, 0, 0]);
    assert_eq!(from_canonical::<Inputs<u16>>(&bytes), Ok(inputs));
}

#[test]
fn rows_out_of_order_are_refused() {
    let row = |seat| Row { seat: Seat(seat), joined: false, left: false, input: Some(1_u8) };
    for rows in [vec![row(2), row(1)], vec![row(1), row(1)]] {
        let nothing: [u8; 0] = [];
        assert!(from_canonical::<Inputs<u8>>(&to_canonical(&(rows, nothing.to_vec())).unwrap()).is_err());
    }
}

proptest! {
    #[test]
    fn the_order_of_calls_does_not_matter(seats in prop::collection::vec((any::<u16>(), any::<u8>()), 0..40)) {
        let (mut forth, mut back) = (Inputs::new(), Inputs::new());
        let unique: std::collections::BTreeMap<u16, u8> = seats.iter().copied().collect();
        seats.iter().for_each(|(seat, _)| forth.set(Seat(*seat), unique[seat]));
        seats.iter().rev().for_each(|(seat, _)| back.set(Seat(*seat), unique[seat]));
        prop_assert_eq!(&forth, &back);
        prop_assert!(forth.iter().is_sorted_by_key(|row| row.seat));
        prop_assert_eq!(from_canonical::<Inputs<u8>>(&to_canonical(&forth).unwrap()).unwrap(), forth);
    }
}
