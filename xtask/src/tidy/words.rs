//! Words that hide the subject of a sentence are in no text: it says who it is about.

use super::Violation;
use super::tree::Tree;

const RULE: &str = "words";

/// With what to write instead.
const HIDDEN: &[(&str, &str)] = &[
    ("whoever", "name the peer, client, player, member or caller"),
    ("somebody", "name the peer, client, player, member or caller"),
    ("as whom", "say \"under which player\" or \"on which seat\""),
];

/// What has these words for a reason: this rule, and the record of what changed.
const EXEMPT: &[&str] = &["xtask/src/tidy/words.rs", "CHANGELOG.md"];

pub fn check(tree: &Tree) -> Vec<Violation> {
    let texts = tree.files.iter().filter(|file| {
        file.has_extension(&["rs", "md", "ts", "mjs", "svelte", "toml", "py"])
            && !EXEMPT.contains(&file.path.as_str())
            && !file.path.contains("/dist/")
    });
    let mut violations = Vec::new();
    for file in texts {
        for (number, line) in file.lines() {
            let lower = line.to_lowercase();
            for (word, instead) in HIDDEN.iter().filter(|(word, _)| has_word(&lower, word)) {
                let message = format!("\"{word}\" hides who it is: {instead}");
                violations.push(Violation::new(RULE, &file.path, number, message));
            }
        }
    }
    violations
}

fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric();
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(is_letter)
            && !line[at + word.len()..].chars().next().is_some_and(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_subjects_are_found_in_any_text() {
        let tree = Tree::planted(&[
            ("a.rs", "//! Whoever comes.\nfn somebody_comes() {}\n"),
            ("b.md", "as whom\nwhomever, somebody's\n"),
            ("web/app/dist/c.ts", "somebody"),
            ("c.rs", "//! A peer comes.\n"),
        ]);
        let found: Vec<(String, usize)> =
            check(&tree).into_iter().map(|violation| (violation.path, violation.line)).collect();
        let expected = [("a.rs", 1), ("a.rs", 2), ("b.md", 1), ("b.md", 2)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
