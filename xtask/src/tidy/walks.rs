//! The walks in ARCHITECTURE.md: every hop `file::function` exists, and the file of a hop names the next one.

use syn::visit::{self, Visit};
use syn::{ImplItemFn, ItemFn, TraitItemFn};

use super::Violation;
use super::tree::{File, Syntax, Tree};

const RULE: &str = "walks";
const PAGE: &str = "ARCHITECTURE.md";

/// Longer walks say nothing at a glance.
const MAX_HOPS: usize = 10;

/// A step of a walk, as it is written: `crates/wire/src/link.rs::send`.
struct Hop<'a> {
    line: usize,
    path: &'a str,
    function: &'a str,
}

pub fn check(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.find(PAGE) else { return Vec::new() };
    walks(page).iter().flat_map(|walk| check_walk(tree, walk)).collect()
}

/// Runs of numbered lines, each of which begins with a hop.
fn walks(page: &File) -> Vec<Vec<Hop<'_>>> {
    let mut walks: Vec<Vec<Hop<'_>>> = vec![Vec::new()];
    for (line, text) in page.lines() {
        match hop(line, text) {
            Some(hop) => walks.last_mut().expect("there is one").push(hop),
            None if walks.last().is_some_and(|walk| !walk.is_empty()) => walks.push(Vec::new()),
            None => {}
        }
    }
    walks.retain(|walk| !walk.is_empty());
    walks
}

fn hop(line: usize, text: &str) -> Option<Hop<'_>> {
    let (number, rest) = text.split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (path, function) = rest.split_once('`')?.0.split_once(".rs::")?;
    let path = &rest[..path.len() + ".rs".len()];
    Some(Hop { line, path, function })
}

fn check_walk(tree: &Tree, walk: &[Hop<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut complain = |line: usize, message: String| {
        violations.push(Violation::new(RULE, PAGE, line, message));
    };
    if walk.len() > MAX_HOPS {
        complain(walk[0].line, format!("a walk has at most {MAX_HOPS} hops, and this one {}", walk.len()));
    }
    for hop in walk {
        let file = tree.find(hop.path);
        if !file.is_some_and(|file| has_function(file, hop.function)) {
            complain(hop.line, format!("there is no function `{}` in `{}`", hop.function, hop.path));
        }
    }
    for [hop, next] in walk.windows(2).map(|pair| [&pair[0], &pair[1]]) {
        let names_next = |file: &File| {
            hop.path == next.path
                || has_word(&file.text, next.function)
                || has_word(&file.text, stem(next.path))
        };
        if !tree.find(hop.path).is_some_and(names_next) {
            let next = format!("`{}::{}`", next.path, next.function);
            complain(hop.line, format!("`{}` does not name the next hop, {next}", hop.path));
        }
    }
    violations
}

fn stem(path: &str) -> &str {
    path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or(path)
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|other| other == word)
}

fn has_function(file: &File, name: &str) -> bool {
    let Syntax::Rust(syntax) = &file.syntax else { return false };
    let mut finder = Finder { name, found: false };
    finder.visit_file(syntax);
    finder.found
}

struct Finder<'a> {
    name: &'a str,
    found: bool,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.found |= item.sig.ident == self.name;
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.found |= item.sig.ident == self.name;
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.found |= item.sig.ident == self.name;
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &[(&str, &str)] = &[
        ("a.rs", "//! A.\nfn send() { b::take() }\n"),
        ("b.rs", "//! B.\nstruct B;\nimpl B { fn take(&self) {} }\n"),
        ("c.rs", "//! C.\nfn end() {}\n"),
    ];

    fn messages(page: &str) -> Vec<String> {
        let files: Vec<(&str, &str)> = CODE.iter().copied().chain([(PAGE, page)]).collect();
        check(&Tree::planted(&files)).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_walk_whose_files_name_each_other_is_sound() {
        assert_eq!(messages("1. `a.rs::send` queues it\n2. `b.rs::take` has it\n"), [""; 0]);
    }

    #[test]
    fn missing_functions_and_missing_ways_are_found() {
        let gone = messages("1. `a.rs::sends` queues it\n2. `b.rs::take` has it\n");
        assert_eq!(gone, ["there is no function `sends` in `a.rs`"]);
        let apart = messages("1. `b.rs::take` has it\n2. `c.rs::end` ends it\n");
        assert_eq!(apart, ["`b.rs` does not name the next hop, `c.rs::end`"]);
        assert_eq!(messages("1. `b.rs::take` one walk\n\n1. `c.rs::end` another\n"), [""; 0]);
    }

    #[test]
    fn long_walks_are_found() {
        let walk: String = (1..=11).map(|number| format!("{number}. `a.rs::send` again\n")).collect();
        assert_eq!(messages(&walk), ["a walk has at most 10 hops, and this one 11"]);
    }
}
