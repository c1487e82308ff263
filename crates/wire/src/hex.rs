//! Bytes as hexadecimal digits: keys, proofs and hashes in addresses, headers and lines for people.

use alloc::format;
use alloc::string::String;

/// Two digits a byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly as many bytes as are asked for; digits may be large or small.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        assert_eq!(to_hex(&[0, 0xaf, 9]), "00af09");
        assert_eq!(from_hex("00aF09"), Some([0, 0xaf, 9]));
        for bad in ["", "00af0", "00af0g", "00af0900", "+0af09"] {
            assert_eq!(from_hex::<3>(bad), None, "{bad}");
        }
        assert_eq!(from_hex::<32>(&"é".to_string().repeat(32)), None);
    }
}
