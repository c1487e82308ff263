//! Rule: no placeholders, no ignored tests.
//!
//! The rule reads tokens, so it sees inside macros and is not misled by strings and comments.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Violation;
use super::tree::Tree;

const RULE: &str = "unfinished";

pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, _) in tree.rust() {
        // A file that parsed as Rust is a valid stream of tokens.
        let Ok(tokens) = file.text.parse::<TokenStream>() else { continue };
        let mut found = Vec::new();
        find(tokens, &mut found);
        violations.extend(found.iter().map(|(line, what)| Violation::new(RULE, &file.path, *line, *what)));
    }
    violations
}

fn find(tokens: TokenStream, found: &mut Vec<(usize, &'static str)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for pair in tokens.windows(2) {
        if let Some(what) = judge(&pair[0], &pair[1]) {
            found.push((pair[0].span().start().line, what));
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            find(group.stream(), found);
        }
    }
}

fn judge(first: &TokenTree, second: &TokenTree) -> Option<&'static str> {
    match (first, second) {
        (TokenTree::Ident(name), TokenTree::Punct(mark)) if mark.as_char() == '!' => {
            let placeholder = name == "todo" || name == "unimplemented";
            placeholder.then_some(
                "a placeholder: finish it, or leave the feature out and say so where one looks for it",
            )
        }
        (TokenTree::Punct(mark), TokenTree::Group(group))
            if mark.as_char() == '#' && group.delimiter() == Delimiter::Bracket =>
        {
            let ignored =
                group.stream().into_iter().next().is_some_and(|token| token.to_string() == "ignore");
            ignored.then_some("an ignored test: make it fast and sure enough to run, or remove it")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::planted(&[("a.rs", text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn placeholders_are_found_also_inside_macros() {
        assert_eq!(
            lines("//! A.\nfn a() { todo!() }\nfn b() { assert!({ unimplemented!(\"b\") }) }\n"),
            [2, 3]
        );
    }

    #[test]
    fn ignored_tests_are_found() {
        assert_eq!(lines("//! A.\n#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[ignore]\nfn b() {}\n"), [3, 5]);
    }

    #[test]
    fn strings_comments_and_other_names_are_not() {
        assert!(
            lines("//! A `todo!()`.\n// todo!()\nfn todo() -> bool { \"todo!()\" != \"\" }\n").is_empty()
        );
    }
}
