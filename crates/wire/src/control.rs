//! Control messages: postcard, read to the last byte, with bounded lists.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Malformed;

/// Deserialises a list, and refuses it as soon as it is too long, before memory is allocated.
pub fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MOST: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct AtMost<T, const MOST: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for AtMost<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = list.next_element()? {
                if items.len() == MOST {
                    return Err(A::Error::invalid_length(MOST + 1, &self));
                }
                items.push(item);
            }
            Ok(items)
        }
    }
    deserializer.deserialize_seq(AtMost::<T, MOST>(PhantomData))
}

/// The error for an invalid control message.
pub const UNREADABLE: Malformed = Malformed::Forbidden(
    "a control message is of a known kind, ends where its fields end, and its lists are within their limits",
);

/// Reads a control message; trailing bytes are refused.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(UNREADABLE),
    }
}

/// The bytes of a control message.
pub fn to_bytes<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, message);
    bytes
}

/// Appends the bytes of a control message.
pub fn put<T: Serialize>(out: &mut Vec<u8>, message: &T) {
    let before = core::mem::take(out);
    *out = postcard::to_extend(message, before).expect("these types always serialise");
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Few(#[serde(deserialize_with = "at_most::<_, _, 3>")] Vec<u16>);

    #[test]
    fn trailing_bytes_and_long_lists_are_refused() {
        let few = Few(vec![1, 300, 3]);
        let bytes = to_bytes(&few);
        assert_eq!(bytes, [3, 1, 0xac, 2, 3]);
        assert_eq!(from_bytes(&bytes), Ok(few));
        assert_eq!(from_bytes::<Few>(&bytes[..4]), Err(UNREADABLE));
        assert_eq!(from_bytes::<Few>(&[&bytes[..], &[0]].concat()), Err(UNREADABLE));
        assert_eq!(from_bytes::<Few>(&to_bytes(&Few(vec![0; 4]))), Err(UNREADABLE));
    }
}
