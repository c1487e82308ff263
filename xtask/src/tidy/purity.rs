//! Rule: pure crates use no standard library, no unsafe code, and no dependency that reads a clock, a socket or the
//! machine's randomness.

use anyhow::Result;
use toml::Table;

use super::Violation;
use super::tree::{Syntax, Tree};
use crate::layers::{self, Kind};
use crate::shell;
use crate::wasm;
use crate::workspace::{Member, Workspace};

const RULE: &str = "purity";

/// Crates that give a pure crate access to more than its inputs.
const IMPURE: &[(&str, &str)] = &[
    ("async-std", "it is a runtime"),
    ("bevy", "only the bevy crate names it"),
    ("bevy_ecs", "only the bevy crate names it"),
    ("chrono", "it reads the wall clock"),
    ("fastrand", "it seeds itself from the machine"),
    ("getrandom", "randomness is passed in, never read"),
    ("instant", "it reads a clock"),
    ("mio", "it polls sockets"),
    ("object_store", "it touches the disk and the network"),
    ("quinn", "it owns sockets and tasks"),
    ("rand", "its algorithms change between versions; use sametick_sim::Rng"),
    ("rayon", "the order of its work is the scheduler's"),
    ("rusqlite", "it touches the disk"),
    ("socket2", "it opens sockets"),
    ("time", "it reads the wall clock"),
    ("tokio", "it is a runtime"),
    ("web-time", "it reads a clock"),
];

pub fn check(workspace: &Workspace, tree: &Tree) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    let unsafe_is_forbidden = workspace_forbids_unsafe(tree);
    for member in workspace.members.iter().filter(|member| is_pure(&member.folder)) {
        violations.extend(check_root(&member.folder, tree));
        violations.extend(check_lints(&member.folder, tree, unsafe_is_forbidden));
        violations.extend(check_below(member, &dependencies(workspace, member)?));
    }
    Ok(violations)
}

fn is_pure(folder: &str) -> bool {
    layers::find(folder).is_some_and(|layer| layer.kind == Kind::Pure)
}

/// The crate says `#![no_std]`, without conditions: a crate that is pure only sometimes is not pure.
fn check_root(folder: &str, tree: &Tree) -> Option<Violation> {
    let path = format!("{folder}/src/lib.rs");
    let no_std = match tree.find(&path).map(|file| &file.syntax) {
        Some(Syntax::Rust(root)) => root.attrs.iter().any(|attribute| attribute.path().is_ident("no_std")),
        _ => false,
    };
    (!no_std).then(|| Violation::new(RULE, &path, 0, "a pure crate says `#![no_std]`, without conditions"))
}

/// The crate takes the workspace's lints, which forbid unsafe code and switch on the bans of clippy.toml.
fn check_lints(folder: &str, tree: &Tree, unsafe_is_forbidden: bool) -> Vec<Violation> {
    let path = format!("{folder}/Cargo.toml");
    let inherits = manifest(tree, &path)
        .and_then(|manifest| manifest.get("lints")?.get("workspace")?.as_bool())
        .unwrap_or(false);
    let mut violations = Vec::new();
    if !inherits {
        let message = "a pure crate takes the workspace's lints: add `[lints]` with `workspace = true`";
        violations.push(Violation::new(RULE, &path, 0, message));
    }
    if !unsafe_is_forbidden {
        let message = "[workspace.lints.rust] must say `unsafe_code = \"forbid\"`: pure crates rely on it";
        violations.push(Violation::new(RULE, "Cargo.toml", 0, message));
    }
    violations
}

fn workspace_forbids_unsafe(tree: &Tree) -> bool {
    let read = || -> Option<bool> {
        let manifest = manifest(tree, "Cargo.toml")?;
        let level = manifest.get("workspace")?.get("lints")?.get("rust")?.get("unsafe_code")?.clone();
        Some(level.as_str() == Some("forbid"))
    };
    read().unwrap_or(false)
}

fn manifest(tree: &Tree, path: &str) -> Option<Table> {
    tree.find(path)?.text.parse().ok()
}

/// All dependencies of a crate for wasm32, by name. Derive macros run on the machine that builds, so they and their
/// dependencies do not count.
fn dependencies(workspace: &Workspace, member: &Member) -> Result<Vec<String>> {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["tree", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    cargo.args(["--target", wasm::TARGET, "--package", &member.package]);
    let listing = shell::read(&mut cargo)?;
    Ok(listing.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn check_below(member: &Member, dependencies: &[String]) -> Vec<Violation> {
    let path = format!("{}/Cargo.toml", member.folder);
    let found = IMPURE.iter().filter(|(name, _)| dependencies.iter().any(|dependency| dependency == name));
    let report = |(name, reason): &(&str, &str)| {
        let message = format!(
            "`{name}` lies below this pure crate, and {reason}; who brings it: cargo tree --package {} --target {} \
             --edges normal --invert {name}",
            member.package,
            wasm::TARGET
        );
        Violation::new(RULE, &path, 0, message)
    };
    found.map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "crates/sim/src/lib.rs";
    const MANIFEST: &str = "crates/sim/Cargo.toml";

    #[test]
    fn a_pure_crate_must_be_no_std() {
        let good = Tree::planted(&[(LIB, "//! Sim.\n#![no_std]\nextern crate alloc;\n")]);
        assert_eq!(check_root("crates/sim", &good), None);
        let sometimes = Tree::planted(&[(LIB, "//! Sim.\n#![cfg_attr(not(test), no_std)]\n")]);
        assert!(check_root("crates/sim", &sometimes).is_some());
        assert!(check_root("crates/sim", &Tree::planted(&[])).is_some());
    }

    #[test]
    fn a_pure_crate_takes_the_lints_of_the_workspace() {
        let good = Tree::planted(&[(MANIFEST, "[lints]\nworkspace = true\n")]);
        assert_eq!(check_lints("crates/sim", &good, true), []);
        assert_eq!(check_lints("crates/sim", &good, false).len(), 1);
        let own = Tree::planted(&[(MANIFEST, "[lints.rust]\nunsafe_code = \"allow\"\n")]);
        assert_eq!(check_lints("crates/sim", &own, true).len(), 1);
    }

    #[test]
    fn the_workspace_forbids_unsafe_code() {
        let with = |level: &str| {
            let text = format!("[workspace.lints.rust]\nunsafe_code = \"{level}\"\n");
            workspace_forbids_unsafe(&Tree::planted(&[("Cargo.toml", &text)]))
        };
        assert!(with("forbid"));
        assert!(!with("deny"));
    }

    #[test]
    fn impure_dependencies_are_found() {
        let member = Member {
            package: "sametick-sim".into(),
            folder: "crates/sim".into(),
            uses: vec![],
            binaries: vec![],
        };
        let below = ["serde".to_owned(), "getrandom".to_owned(), "tokio".to_owned()];
        let violations = check_below(&member, &below);
        assert_eq!(violations.len(), 2);
        assert!(violations[0].message.contains("--invert getrandom"), "{}", violations[0]);
    }
}
