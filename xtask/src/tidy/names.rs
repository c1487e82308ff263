//! Rule: no file, module, crate or type has a name without meaning: such places end up holding everything.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Ident, ItemEnum, ItemMod, ItemStruct, ItemTrait, ItemType, ItemUnion};

use super::Violation;
use super::tree::Tree;

const RULE: &str = "names";
const BANNED: &[&str] = &["core", "common", "util", "utils", "shared", "helper", "helpers", "manager"];

pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = check_paths(tree);
    for (file, syntax) in tree.rust() {
        let mut finder = Finder { found: Vec::new() };
        finder.visit_file(syntax);
        violations.extend(finder.found.iter().map(|(line, name)| report(&file.path, *line, name)));
    }
    violations.extend(check_packages(tree));
    violations
}

/// Checks files and folders; reports each bad name once, however many files lie below it.
fn check_paths(tree: &Tree) -> Vec<Violation> {
    let mut bad = BTreeSet::new();
    for file in &tree.files {
        let ends = file.path.match_indices('/').map(|(at, _)| at).chain([file.path.len()]);
        for end in ends {
            let path = &file.path[..end];
            let name = path.rsplit('/').next().unwrap_or(path);
            let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
            if is_banned(stem) {
                bad.insert((path, stem));
            }
        }
    }
    bad.into_iter().map(|(path, stem)| report(path, 0, stem)).collect()
}

fn check_packages(tree: &Tree) -> Vec<Violation> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let bad = manifests.filter_map(|file| {
        let manifest: toml::Table = file.text.parse().ok()?;
        let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
        is_banned(&name).then(|| report(&file.path, 0, &name))
    });
    bad.collect()
}

fn report(path: &str, line: usize, name: &str) -> Violation {
    let message =
        format!("`{name}` says nothing about what it holds: name the idea, or move it to where it is used");
    Violation::new(RULE, path, line, message)
}

/// Is the last word of a name, in any spelling, one of the banned ones?
fn is_banned(name: &str) -> bool {
    let last = name.rsplit(['_', '-']).next().unwrap_or(name);
    let camel = last.rfind(|letter: char| letter.is_ascii_uppercase()).map_or(last, |start| &last[start..]);
    [last, camel].iter().any(|word| BANNED.contains(&word.to_ascii_lowercase().as_str()))
}

struct Finder {
    found: Vec<(usize, String)>,
}

impl Finder {
    fn see(&mut self, name: &Ident) {
        if is_banned(&name.to_string()) {
            self.found.push((name.span().start().line, name.to_string()));
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.see(&item.ident);
        visit::visit_item_mod(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.see(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.see(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast ItemUnion) {
        self.see(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.see(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.see(&item.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_decides() {
        for bad in ["core", "net_utils", "sametick-core", "RoomManager", "Helper", "Utils"] {
            assert!(is_banned(bad), "{bad}");
        }
        for good in
            ["score", "common_prefix", "Hardcore", "SharedSecret", "Room", "encore", "CoreTemperature"]
        {
            assert!(!is_banned(good), "{good}");
        }
    }

    #[test]
    fn files_folders_modules_crates_and_types_are_found() {
        let tree = Tree::planted(&[
            ("crates/core/Cargo.toml", "[package]\nname = \"sametick-core\"\n"),
            ("crates/core/src/lib.rs", "//! Doc.\nmod util;\nstruct LinkManager;\n"),
            ("crates/wire/src/helpers.rs", "//! Doc.\n"),
            ("crates/wire/src/link.rs", "//! Doc.\nstruct Link;\n"),
        ]);
        let mut found: Vec<(String, usize)> =
            check(&tree).into_iter().map(|violation| (violation.path, violation.line)).collect();
        found.sort();
        let expected = [
            ("crates/core", 0),
            ("crates/core/Cargo.toml", 0),
            ("crates/core/src/lib.rs", 2),
            ("crates/core/src/lib.rs", 3),
            ("crates/wire/src/helpers.rs", 0),
        ];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
