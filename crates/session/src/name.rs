//! Text that people write and others read: names, labels, lines of chat. Normalises it so that invisible differences
//! vanish.
//!
//! The rules, for all of them:
//! - every kind of blank becomes a space, blanks in a row become one, and those at the ends are removed;
//! - invisible characters are removed: control characters, marks of the writing direction, zero widths, joiners,
//!   variation selectors, tags, private use and noncharacters;
//! - a letter that can be written in two ways, as one character or as a letter and its marks, is written in one (NFC);
//! - of combining marks in a row two are kept, and none at the beginning;
//! - the result must not be empty, nor longer than its limits in characters and in bytes.

use alloc::string::String;
use core::fmt;
use core::ops::Deref;

use sametick_wire::hello::MAX_NAME;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use unicode_normalization::UnicodeNormalization;

/// The most characters of a name: it has to fit beside a seat on a screen.
pub const MAX_NAME_CHARS: usize = 24;

/// The most characters of a line of chat.
pub const MAX_LINE_CHARS: usize = 280;

/// The most bytes of a line of chat: four for each character would let a flood of emoji through.
pub const MAX_LINE_BYTES: usize = 600;

/// The most combining marks on one letter: enough for all languages, too few for stacks of them.
const MAX_MARKS: usize = 2;

/// Why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untidy {
    /// Nothing is left after normalisation.
    Empty,
    /// It is too long.
    TooLong,
}

/// A name of a player, group or session, as it is shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Name(String);

impl Name {
    /// Normalises and checks a text.
    pub fn parse(text: &str) -> Result<Name, Untidy> {
        tidy(text, MAX_NAME_CHARS, MAX_NAME).map(Name)
    }

    /// Whether two names are read alike.
    pub fn is_like(&self, other: &Name) -> bool {
        self.0.chars().flat_map(char::to_lowercase).eq(other.0.chars().flat_map(char::to_lowercase))
    }

    /// This name with a number appended, shortened to fit.
    pub fn numbered(&self, number: usize) -> Name {
        let end = alloc::format!(" {number}");
        let mut name: String = self.0.chars().take(MAX_NAME_CHARS - end.len()).collect();
        while name.len() + end.len() > MAX_NAME {
            name.pop();
        }
        Name(name.trim_end().chars().chain(end.chars()).collect())
    }
}

/// A line of chat.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Line(String);

impl Line {
    /// Normalises and checks a text.
    pub fn parse(text: &str) -> Result<Line, Untidy> {
        tidy(text, MAX_LINE_CHARS, MAX_LINE_BYTES).map(Line)
    }
}

macro_rules! is_text {
    ($kind:ident) => {
        impl Deref for $kind {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $kind::parse(&text).map_err(D::Error::custom)
            }
        }
    };
}

is_text!(Name);
is_text!(Line);

impl fmt::Display for Untidy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Untidy::Empty => "nothing is left of this text that could be read",
            Untidy::TooLong => "this text is too long",
        })
    }
}

fn tidy(text: &str, max_chars: usize, max_bytes: usize) -> Result<String, Untidy> {
    let mut out = String::new();
    let (mut count, mut marks, mut is_blank) = (0, 0, false);
    for letter in text.chars().filter(|letter| is_space(*letter) || !is_unseen(*letter)).nfc() {
        if is_space(letter) {
            (is_blank, marks) = (!out.is_empty(), 0);
            continue;
        }
        marks = if is_mark(letter) { marks + 1 } else { 0 };
        let is_bare = out.is_empty() || is_blank;
        if marks > MAX_MARKS || marks > 0 && is_bare {
            continue;
        }
        if core::mem::take(&mut is_blank) {
            out.push(' ');
            count += 1;
        }
        out.push(letter);
        count += 1;
        if count > max_chars || out.len() > max_bytes {
            return Err(Untidy::TooLong);
        }
    }
    if out.is_empty() { Err(Untidy::Empty) } else { Ok(out) }
}

/// Whether every letter of a text is visible and none changes how others are drawn: no control characters, no marks of
/// the writing direction, nothing without a width.
pub fn is_printable(text: &str) -> bool {
    !text.chars().any(is_unseen)
}

/// Includes letters that are drawn as nothing but have a width.
fn is_space(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
        )
}

fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{13455}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}')
        || letter as u32 & 0xfffe == 0xfffe
}

/// The blocks of marks that combine with any letter; marks of a single script are few on a letter anyway.
fn is_mark(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{6d6}'..='\u{6dc}' | '\u{e31}' | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{302a}'..='\u{302f}' | '\u{3099}' | '\u{309a}'
        | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invisible_and_stacked_characters_are_normalised_away() {
        let table = [
            ("Ada", "Ada"),
            ("  Ada \t\n Lovelace\u{a0}", "Ada Lovelace"),
            ("A\u{200b}d\u{200d}a\u{feff}", "Ada"),
            ("\u{202e}adA\u{202c}", "adA"),
            ("\u{2066}Ada\u{2069}\u{200f}", "Ada"),
            ("A\u{3164}\u{2800}da", "A da"),
            ("\0A\u{7f}da\u{85}", "Ada"),
            ("Ada\u{e0041}\u{fe0f}\u{f8ff}", "Ada"),
            ("\u{301}Ada", "Ada"),
            ("é e\u{301} e\u{200d}\u{301}", "é é é"),
            ("\u{212b}\u{2126} \u{1112}\u{1161}\u{11ab}", "ÅΩ 한"),
            ("a\u{344}\u{344}", "ä\u{301}\u{308}"),
            ("Z\u{300}\u{301}\u{302}\u{303}\u{304}o", "Z\u{300}\u{301}o"),
            ("Ольга 小林 עדה", "Ольга 小林 עדה"),
            ("<b>&amp;", "<b>&amp;"),
        ];
        for (written, shown) in table {
            assert_eq!(Name::parse(written).as_deref(), Ok(shown), "{written:?}");
        }
        for nothing in ["", "  ", "\u{200b}\u{202e}", "\u{3164}", "\u{301}"] {
            assert_eq!(Name::parse(nothing), Err(Untidy::Empty), "{nothing:?}");
        }
    }

    #[test]
    fn length_is_limited_in_characters_and_in_bytes() {
        assert!(Name::parse(&"x".repeat(MAX_NAME_CHARS)).is_ok());
        assert_eq!(Name::parse(&"x".repeat(MAX_NAME_CHARS + 1)), Err(Untidy::TooLong));
        assert!(Name::parse(&"林".repeat(MAX_NAME / 3)).is_ok());
        assert_eq!(Name::parse(&"林".repeat(MAX_NAME / 3 + 1)), Err(Untidy::TooLong));
        assert_eq!(Line::parse(&"x".repeat(1 << 20)), Err(Untidy::TooLong));
        assert!(Name::parse(&"\u{200b}".repeat(1 << 16)).is_err());
    }

    #[test]
    fn names_that_read_alike_get_a_number() {
        let name = |text: &str| Name::parse(text).unwrap();
        assert!(name("ADA").is_like(&name("ada")) && !name("Ada").is_like(&name("Bob")));
        assert_eq!(&*name("Ada").numbered(2), "Ada 2");
        assert_eq!(&*name(&"x".repeat(24)).numbered(12), "xxxxxxxxxxxxxxxxxxxxx 12");
        assert!(name(&"林".repeat(16)).numbered(3).len() <= MAX_NAME);
    }

    proptest! {
        #[test]
        fn normalised_text_is_unchanged_by_parsing_again(text in "\\PC{0,40}|[\u{0}-\u{20}\u{200b}-\u{2069}\u{300}-\u{310}ae\u{344}\u{1100}-\u{1200}]{0,40}") {
            if let Ok(name) = Name::parse(&text) {
                prop_assert_eq!(Name::parse(&name), Ok(name.clone()));
                prop_assert!(name.chars().count() <= MAX_NAME_CHARS && name.len() <= MAX_NAME);
                let again = name.numbered(7);
                prop_assert_eq!(Name::parse(&again), Ok(again));
            }
        }
    }
}
