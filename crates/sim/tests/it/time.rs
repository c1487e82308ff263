//! Ticks, rates and ids.

use proptest::prelude::*;
use sametick_sim::{BuildId, SchemaHash, Tick, TickRate, Time};

proptest! {
    #[test]
    fn errors_do_not_add_up_over_ticks(rate in 1_u16..=1000, second in 0_u32..4000) {
        let rate = TickRate::hz(rate);
        let due = rate.due_micros(Tick(second * rate.per_second()));
        prop_assert_eq!(due, u64::from(second) * 1_000_000);
    }

    #[test]
    fn an_id_survives_being_written(bytes in any::<[u8; 16]>()) {
        let id = BuildId::from_bytes(bytes);
        prop_assert_eq!(BuildId::from_hex(&id.to_string()), Some(id));
        prop_assert_eq!(BuildId::from_hex(&id.to_string().to_uppercase()), Some(id));
        prop_assert!(id.to_string().starts_with(&id.short()));
    }

    #[test]
    fn no_text_makes_an_id_panic(text in ".{0,70}") {
        let _ = (BuildId::from_hex(&text), SchemaHash::from_hex(&text));
    }
}

#[test]
fn time_never_runs_backwards_or_over() {
    let (early, late) = (Time::from_millis(1), Time::from_millis(3));
    assert_eq!((late.micros_since(early), early.micros_since(late)), (2000, 0));
    assert_eq!(Time::from_micros(u64::MAX).plus_micros(1), Time::from_micros(u64::MAX));
    assert_eq!(Time::from_micros(1_000_007).to_string(), "1.000007s");
    assert_eq!((Tick(9).ticks_since(Tick(4)), Tick(4).ticks_since(Tick(9))), (5, 0));
}
