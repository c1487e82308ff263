//! Rule: relative links in Markdown lead to files that exist.

use std::collections::BTreeSet;

use super::Violation;
use super::tree::{File, Tree};

pub fn check(tree: &Tree) -> Vec<Violation> {
    let known = known_paths(tree);
    let pages = tree.files.iter().filter(|file| file.has_extension(&["md"]));
    pages.flat_map(|page| check_page(page, &known)).collect()
}

/// Every file, and every folder that holds one.
fn known_paths(tree: &Tree) -> BTreeSet<&str> {
    let mut known = BTreeSet::from([""]);
    for file in &tree.files {
        known.insert(&file.path);
        known.extend(file.path.match_indices('/').map(|(end, _)| &file.path[..end]));
    }
    known
}

fn check_page(page: &File, known: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut in_code = false;
    for (number, line) in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for link in links(line) {
            let Some(path) = resolve(&page.path, &link) else { continue };
            if !known.contains(path.as_str()) {
                let message =
                    format!("the link to `{link}` leads nowhere: there is no `{path}` in the repository");
                violations.push(Violation::new("links", &page.path, number, message));
            }
        }
    }
    violations
}

/// The targets of `[text](target)` and `[label]: target` in one line, code spans left out.
fn links(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let definition = prose
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .map(|(_, target)| target);
    let first_word = |target: &str| target.split_whitespace().next().unwrap_or_default().to_owned();
    inline.chain(definition).map(first_word).collect()
}

/// The path in the repository that a link means; `None` when it leads elsewhere.
fn resolve(page: &str, link: &str) -> Option<String> {
    let link = link.trim_matches(['<', '>']);
    let path = link.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || link.contains("://") || link.starts_with("mailto:") || names_item(page, link) {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    if path.starts_with('/') {
        parts.clear();
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Pages beside a crate may be included in its documentation, where a link may name an item: `Game`, `mod@wire`,
/// `Link::handle()`. rustdoc checks those.
fn names_item(page: &str, link: &str) -> bool {
    let identifier = link.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    page.contains("crates/") && (identifier || ["::", "@", "()"].iter().any(|mark| link.contains(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_nothing_are_found() {
        let page = "See [a](a.md), [up](../README.md#top) and [folder](sub/).\n\
                    [gone](gone.md) and [also gone](../docs/sub/x.md \"title\")\n\
                    [label]: nowhere.md\n";
        let tree = Tree::planted(&[
            ("docs/page.md", page),
            ("docs/a.md", ""),
            ("docs/sub/y.md", ""),
            ("README.md", ""),
        ]);
        let lines: Vec<usize> = check(&tree).iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [2, 2, 3]);
    }

    #[test]
    fn code_addresses_and_anchors_are_left_alone() {
        let page = "[x](https://example.org/x) [y](#y) `[c](code.md)`\n```\n[d](fenced.md)\n```\n";
        assert_eq!(check(&Tree::planted(&[("page.md", page)])), []);
    }

    #[test]
    fn items_are_left_to_rustdoc_beside_crates_only() {
        let page = "[a](crate::A) [b](mod@b) [c](Game)\n";
        assert_eq!(check(&Tree::planted(&[("crates/sim/guide.md", page)])), []);
        assert_eq!(check(&Tree::planted(&[("README.md", page)])).len(), 3);
    }
}
