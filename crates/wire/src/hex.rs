//! Bytes as hexadecimal digits: keys, proofs and hashes in addresses, headers and messages for people.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Two digits a byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly as many bytes as are asked for; upper or lower case.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    read_hex(text, N)?.try_into().ok()
}

/// At most this many bytes.
pub fn read_hex(text: &str, most: usize) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
    Some(pairs).filter(|pairs| pairs.len() <= most)?.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn only_valid_hexadecimal_is_read_back() {
        assert_eq!(to_hex(&[0, 0xaf, 9]), "00af09");
        assert_eq!(from_hex("00aF09"), Some([0, 0xaf, 9]));
        for bad in ["", "00af0", "00af0g", "00af0900", "+0af09"] {
            assert_eq!(from_hex::<3>(bad), None, "{bad}");
        }
        assert_eq!(read_hex("00aF09", 3), Some(alloc::vec![0, 0xaf, 9]));
        assert_eq!((read_hex("", 3), read_hex("00aF09", 2)), (Some(Vec::new()), None));
        assert_eq!(from_hex::<32>(&"é".to_string().repeat(32)), None);
    }
}
