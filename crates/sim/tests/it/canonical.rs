//! Canonical bytes: those of postcard, with a single NaN.

use proptest::prelude::*;
use sametick_sim::{StateHash, canon, from_canonical, to_canonical};
use serde::{Serialize, Serializer};

use crate::rich::{Rich, rich, sample};

proptest! {
    #[test]
    fn the_bytes_are_those_of_postcard(value in rich()) {
        prop_assert_eq!(to_canonical(&value).unwrap(), postcard::to_allocvec(&value).unwrap());
    }

    #[test]
    fn a_value_survives_the_round_trip(value in rich()) {
        prop_assert_eq!(from_canonical::<Rich>(&to_canonical(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn the_hash_is_that_of_the_bytes(value in rich(), long in prop::collection::vec(any::<u8>(), 0..5000)) {
        prop_assert_eq!(StateHash::of(&value), StateHash::of_bytes(&to_canonical(&value).unwrap()));
        let text = String::from_utf8_lossy(&long).into_owned();
        let mixed = (&text, long, &value, text.len() as u32);
        prop_assert_eq!(StateHash::of(&mixed), StateHash::of_bytes(&to_canonical(&mixed).unwrap()));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = from_canonical::<Rich>(&bytes);
    }

    #[test]
    fn damaged_bytes_never_make_the_decoder_panic(value in rich(), at in any::<prop::sample::Index>(), bits in 1u8..) {
        let mut bytes = to_canonical(&value).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        let _ = from_canonical::<Rich>(&bytes);
    }

    #[test]
    fn every_nan_is_the_same(bits in any::<u32>(), long in any::<u64>()) {
        let nan32 = f32::from_bits(bits | 0x7f80_0001);
        let nan64 = f64::from_bits(long | 0x7ff0_0000_0000_0001);
        let bytes = to_canonical(&(nan32, nan64)).unwrap();
        prop_assert_eq!(bytes, [0, 0, 0xc0, 0x7f, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]);
    }
}

#[test]
fn golden_bytes() {
    let value = (300_u16, -1_i32, "ab", Some(true), None::<u8>, vec![1_u8, 2], 1.5_f32, 'x', [7_i64; 2]);
    let expected = [0xac, 2, 1, 2, b'a', b'b', 1, 1, 0, 2, 1, 2, 0, 0, 0xc0, 0x3f, 1, b'x', 14, 14];
    assert_eq!(to_canonical(&value).unwrap(), expected);
}

#[test]
fn zeros_of_either_sign_stay_apart() {
    assert_ne!(to_canonical(&0.0_f32).unwrap(), to_canonical(&-0.0_f32).unwrap());
}

#[test]
fn bytes_after_the_value_are_refused() {
    let mut bytes = to_canonical(&sample()).unwrap();
    bytes.extend([0, 0]);
    let error = from_canonical::<Rich>(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "2 bytes too many after the value");
    assert!(!error.is_truncated());
}

#[test]
fn missing_bytes_are_refused_wherever_they_are_missing() {
    let bytes = to_canonical(&sample()).unwrap();
    for end in 0..bytes.len() {
        let error = from_canonical::<Rich>(&bytes[..end]).unwrap_err();
        assert!(error.is_truncated(), "cut at {end}: {error}");
    }
}

#[test]
fn a_sequence_of_unknown_length_is_an_error() {
    struct Endless;
    impl Serialize for Endless {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq((0..10_u32).filter(|n| n % 3 == 0))
        }
    }
    assert_eq!(to_canonical(&Endless), Err(canon::EncodeError::UnknownLength));
}
