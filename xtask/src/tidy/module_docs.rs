//! Rule: every Rust file begins with a sentence about its purpose.

use super::Violation;
use super::tree::{File, Tree};

pub fn check(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|file| file.has_extension(&["rs"]) && !begins_with_docs(file))
        .map(report)
        .collect()
}

fn begins_with_docs(file: &File) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    first.strip_prefix("//!").is_some_and(|sentence| !sentence.trim().is_empty())
}

fn report(file: &File) -> Violation {
    Violation::new(
        "module-docs",
        &file.path,
        1,
        "begin the file with `//!` and one sentence: what is it for?",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_sentence_are_found() {
        let tree = Tree::planted(&[
            ("good.rs", "//! Says what it is.\n"),
            ("bare.rs", "fn main() {}\n"),
            ("late.rs", "use std::fmt;\n//! Too late.\n"),
            ("empty.rs", "//!\nfn main() {}\n"),
            ("page.md", "# No Rust\n"),
        ]);
        let paths: Vec<String> = check(&tree).into_iter().map(|violation| violation.path).collect();
        assert_eq!(paths, ["bare.rs", "late.rs", "empty.rs"]);
    }
}
