//! Ids of the simulation's build and of the schema of its types: peers with different ids are not compatible.

use alloc::string::String;
use core::fmt;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Schema)]
        pub struct $name([u8; $len]);

        impl $name {
            /// The length in bytes.
            pub const LEN: usize = $len;

            /// The id with these bytes.
            pub const fn from_bytes(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// The bytes of the id.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }

            /// Reads lower- or upper-case hexadecimal of exactly the right length.
            pub const fn from_hex(text: &str) -> Option<Self> {
                let text = text.as_bytes();
                if text.len() != 2 * $len {
                    return None;
                }
                let mut bytes = [0; $len];
                let mut at = 0;
                while at < $len {
                    match (nibble(text[2 * at]), nibble(text[2 * at + 1])) {
                        (Some(high), Some(low)) => bytes[at] = high << 4 | low,
                        _ => return None,
                    }
                    at += 1;
                }
                Some(Self(bytes))
            }

            /// The first eight hexadecimal digits, for people.
            pub fn short(&self) -> String {
                let mut text = alloc::format!("{self}");
                text.truncate(8);
                text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

hex_id!(
    /// A hash over the sources and locked dependencies of `sim` and the game, which decide the simulation (L10).
    ///
    /// Native and browser builds of the same sources agree on it; a commit that only touches docs does not change it.
    BuildId,
    16
);

hex_id!(
    /// A BLAKE3 hash over the description of a set of types: equal exactly when their bytes mean the same (V3).
    SchemaHash,
    32
);

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
