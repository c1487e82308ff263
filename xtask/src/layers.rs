//! The layering of the workspace as a table: the kind of each crate and the crates it may use.
//!
//! This is the architecture table in a form that can be checked. A crate that is not listed here is an error, so that
//! adding one is a decision and not an accident.

/// The kind of a crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `no_std`, no clock, no sockets, no threads, no async, no unsafe code; builds for wasm32.
    Pure,
    /// Touches the operating system.
    Edge,
    /// A library (perhaps with a binary) that combines the others.
    Lib,
    /// The client for browsers.
    Wasm,
    /// Used by build scripts and chores.
    Build,
    /// Tests the others; never shipped.
    Test,
    /// Works on the repository.
    Chore,
}

impl Kind {
    /// May such a crate switch off the clippy bans on clocks, hash maps and platform maths?
    pub fn may_lift_bans(self) -> bool {
        !matches!(self, Self::Pure | Self::Wasm)
    }
}

/// One row of the table. Folders are relative to `crates/`, except `examples/catch`, `games/*` and `xtask`.
pub struct Layer {
    pub folder: &'static str,
    pub kind: Kind,
    pub may_use: &'static [&'static str],
    pub may_build_with: &'static [&'static str],
}

const GAMES: &str = "games/*";

const LAYERS: &[Layer] = &[
    layer("derive", Kind::Build, &[], &[]),
    layer("sim", Kind::Pure, &["derive"], &["build-id"]),
    layer("wire", Kind::Pure, &["sim"], &[]),
    layer("lockstep", Kind::Pure, &["sim", "wire"], &[]),
    layer("room", Kind::Pure, &["sim", "wire"], &[]),
    layer("session", Kind::Pure, &["sim", "wire"], &[]),
    layer("client", Kind::Pure, &["sim", "wire", "lockstep", "room", "session"], &[]),
    layer(GAMES, Kind::Pure, &["sim"], &["build-id"]),
    layer("examples/catch", Kind::Pure, &["sim"], &["build-id"]),
    layer("store", Kind::Edge, &["sim", "wire"], &[]),
    layer("transport", Kind::Edge, &["wire"], &[]),
    layer(
        "server",
        Kind::Lib,
        &["sim", "wire", "lockstep", "room", "session", "client", "store", "transport", GAMES],
        &["build-id"],
    ),
    layer("bevy", Kind::Lib, &["client", "transport"], &[]),
    layer("web", Kind::Wasm, &["sim", "wire", "lockstep", "room", "client", "store", GAMES], &[]),
    layer(
        "simulator",
        Kind::Test,
        &["sim", "wire", "lockstep", "room", "session", "client", "store", GAMES],
        &[],
    ),
    layer(
        "conformance",
        Kind::Test,
        &["sim", "wire", "lockstep", "room", "session", "client", "store", GAMES],
        &["build-id"],
    ),
    layer("build-id", Kind::Build, &[], &[]),
    layer("bundle", Kind::Chore, &[], &[]),
    layer("xtask", Kind::Chore, &["build-id"], &[]),
];

const fn layer(
    folder: &'static str,
    kind: Kind,
    may_use: &'static [&'static str],
    may_build_with: &'static [&'static str],
) -> Layer {
    Layer { folder, kind, may_use, may_build_with }
}

/// The row for a crate that lies in `folder`, such as `crates/sim` or `games/pong`.
pub fn find(folder: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| matches(layer.folder, folder))
}

/// Does the table's name for a crate mean the one in `folder`?
pub fn matches(name: &str, folder: &str) -> bool {
    let folder = folder.strip_prefix("crates/").unwrap_or(folder);
    match name.strip_suffix('*') {
        Some(prefix) => {
            folder.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
        }
        None => name == folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_find_their_row() {
        assert_eq!(find("crates/sim").map(|layer| layer.kind), Some(Kind::Pure));
        assert_eq!(find("games/pong").map(|layer| layer.folder), Some(GAMES));
        assert!(find("crates/nonsense").is_none());
        assert!(find("games/pong/inner").is_none());
    }

    #[test]
    fn every_name_in_the_table_is_a_row_of_the_table() {
        for layer in LAYERS {
            for name in layer.may_use.iter().chain(layer.may_build_with) {
                assert!(LAYERS.iter().any(|other| other.folder == *name), "{} names {name}", layer.folder);
            }
        }
    }

    #[test]
    fn pure_crates_use_only_pure_crates() {
        for layer in LAYERS.iter().filter(|layer| layer.kind == Kind::Pure) {
            for name in layer.may_use {
                let used = LAYERS.iter().find(|other| other.folder == *name).unwrap();
                // A derive is no part of what is built with it.
                let pure = used.kind == Kind::Pure || used.folder == "derive";
                assert!(pure, "{} may use {name}", layer.folder);
            }
        }
    }

    #[test]
    fn lockstep_and_room_never_see_each_other() {
        assert!(!find("crates/lockstep").unwrap().may_use.contains(&"room"));
        assert!(!find("crates/room").unwrap().may_use.contains(&"lockstep"));
    }
}
