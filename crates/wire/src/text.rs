//! Checks text of one player before it is shown to others.

/// The rule for names, for a peer that broke it.
pub const NAME_RULE: &str = "a name has no control or direction characters";

/// Whether a text has neither control characters nor characters that change the writing direction: such a text cannot
/// break a line of the log, nor disguise the text around it.
pub fn is_safe_to_show(text: &str) -> bool {
    !text.chars().any(|letter| letter.is_control() || turns_direction(letter))
}

fn turns_direction(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_script_are_safe_and_hidden_marks_are_not() {
        for name in ["Ada", "Zoë 7", "שרה", "李雷", "👩\u{200d}🚀", "❤\u{fe0f}"] {
            assert!(is_safe_to_show(name), "{name:?}");
        }
        for name in ["a\nb", "\0", "\u{7f}", "a\u{202e}b", "\u{2066}a", "a\u{200f}", "a\u{2028}b"] {
            assert!(!is_safe_to_show(name), "{name:?}");
        }
    }
}
