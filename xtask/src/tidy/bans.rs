//! Rule: only edge crates switch off the bans of clippy.toml, and they say why.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, ItemMod};

use super::Violation;
use super::tree::{File, Tree, is_test_only};
use crate::layers;

const RULE: &str = "bans";
const BANS: &[&str] = &["disallowed_methods", "disallowed_types"];

pub fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust().flat_map(|(file, syntax)| check_file(file, syntax)).collect()
}

fn check_file(file: &File, syntax: &syn::File) -> Vec<Violation> {
    let mut finder = Finder { in_tests: file.is_test(), lifted: Vec::new() };
    finder.visit_file(syntax);
    let pure = folder_of(&file.path).and_then(layers::find).is_some_and(|layer| !layer.kind.may_lift_bans());
    finder.lifted.iter().filter_map(|lifted| lifted.complaint(pure, file)).collect()
}

/// The crate's folder: everything before `src`, `tests` and the like.
fn folder_of(path: &str) -> Option<&str> {
    let inner = ["/src/", "/tests/", "/benches/", "/examples/", "/build.rs"];
    inner.iter().find_map(|part| path.find(part)).map(|end| &path[..end])
}

/// One place where a ban is switched off.
struct Lifted {
    line: usize,
    has_reason: bool,
    in_tests: bool,
}

impl Lifted {
    fn complaint(&self, pure: bool, file: &File) -> Option<Violation> {
        let message = if pure && !self.in_tests {
            "a pure crate may not switch off the bans of clippy.toml: pass the value in, or use what the ban's reason \
             names"
        } else if !self.has_reason {
            "say why the ban is switched off: add `reason = \"…\"`"
        } else {
            return None;
        };
        Some(Violation::new(RULE, &file.path, self.line, message))
    }
}

struct Finder {
    in_tests: bool,
    lifted: Vec<Lifted>,
}

impl Finder {
    fn inside(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let outer = self.in_tests;
        self.in_tests |= is_test_only(attributes);
        visit(self);
        self.in_tests = outer;
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.inside(&item.attrs, |this| visit::visit_item_mod(this, item));
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.inside(&item.attrs, |this| visit::visit_item_fn(this, item));
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let switches = ["allow", "expect", "cfg_attr"];
        let syn::Meta::List(list) = &attribute.meta else { return };
        let text = list.tokens.to_string();
        if switches.iter().any(|name| list.path.is_ident(name)) && BANS.iter().any(|ban| text.contains(ban)) {
            self.lifted.push(Lifted {
                line: attribute.span().start().line,
                has_reason: text.contains("reason ="),
                in_tests: self.in_tests,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH_REASON: &str =
        "//! Doc.\n#![allow(clippy::disallowed_methods, reason = \"it measures wall time\")]\n";
    const WITHOUT_REASON: &str = "//! Doc.\n#![allow(clippy::disallowed_types)]\n";

    #[test]
    fn the_edge_may_lift_bans_with_a_reason() {
        assert_eq!(check(&Tree::planted(&[("crates/transport/src/lib.rs", WITH_REASON)])), []);
        assert_eq!(check(&Tree::planted(&[("crates/transport/src/lib.rs", WITHOUT_REASON)])).len(), 1);
    }

    #[test]
    fn pure_crates_may_not_even_with_a_reason() {
        let item = "//! Doc.\nfn a() {\n    #[expect(clippy::disallowed_types, reason = \"so\")]\n    let x = 1;\n}\n";
        let tree = Tree::planted(&[("crates/sim/src/lib.rs", WITH_REASON), ("games/pong/src/step.rs", item)]);
        let lines: Vec<usize> = check(&tree).iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn the_tests_of_a_pure_crate_may() {
        let inline = "//! Doc.\n#[cfg(test)]\n#[allow(clippy::disallowed_types, reason = \"a model\")]\nmod tests {}\n";
        let tree =
            Tree::planted(&[("crates/sim/tests/model.rs", WITH_REASON), ("crates/sim/src/lib.rs", inline)]);
        assert_eq!(check(&tree), []);
    }
}
