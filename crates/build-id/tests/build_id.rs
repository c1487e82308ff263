//! Changes that change the build id of a game and changes that do not, on small workspaces in temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sametick_build_id::{Error, build_id, inspect};

/// A workspace in a temporary folder: game → engine (by path) → libm (locked) → below (locked).
struct Sandbox(PathBuf);

const ROOT: &str = r#"
[workspace]
members = ["game", "engine"]
[workspace.package]
edition = "2024"
[workspace.dependencies]
engine = { path = "engine", features = ["fast"] }
libm = "0.2"
"#;

const GAME: &str = r#"
[package]
name = "game"
version = "0.1.0"
description = "a game"
edition.workspace = true
[features]
bots = []
[dependencies]
engine.workspace = true
maths = { package = "libm", version = "0.2" }
[target.'cfg(windows)'.dependencies]
only-there = "1"
[dev-dependencies]
tester = "1"
"#;

const ENGINE: &str = r#"
[package]
name = "engine"
version = "0.1.0"
edition = "2021"
[features]
fast = []
[dependencies]
libm = { workspace = true }
"#;

const LOCK: &str = r#"
version = 4
[[package]]
name = "game"
version = "0.1.0"
dependencies = ["engine", "libm 0.2.9", "only-there", "tester"]
[[package]]
name = "engine"
version = "0.1.0"
dependencies = ["libm 0.2.9"]
[[package]]
name = "libm"
version = "0.1.4"
source = "registry+https://example.org/index"
checksum = "aa00"
[[package]]
name = "libm"
version = "0.2.9"
source = "registry+https://example.org/index"
checksum = "aa11"
dependencies = ["below"]
[[package]]
name = "below"
version = "3.0.0"
source = "registry+https://example.org/index"
checksum = "bb22"
[[package]]
name = "only-there"
version = "1.0.0"
source = "registry+https://example.org/index"
checksum = "cc33"
[[package]]
name = "tester"
version = "1.0.0"
source = "registry+https://example.org/index"
checksum = "dd44"
dependencies = ["libm 0.1.4"]
"#;

impl Sandbox {
    fn new() -> Sandbox {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("sametick-build-id-{}-{number}", std::process::id()));
        let sandbox = Sandbox(folder);
        for (name, text) in [
            ("Cargo.toml", ROOT),
            ("Cargo.lock", LOCK),
            ("game/Cargo.toml", GAME),
            ("game/src/lib.rs", "mod step;\n"),
            ("game/src/step.rs", "pub fn step() {}\n"),
            ("engine/Cargo.toml", ENGINE),
            ("engine/src/lib.rs", "// engine\n"),
        ] {
            sandbox.write(name, text);
        }
        sandbox
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.0.join(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from:?}");
        self.write(name, &text.replace(from, to));
    }

    fn game(&self) -> PathBuf {
        self.0.join("game")
    }

    fn id(&self) -> String {
        build_id(&self.game()).unwrap().to_string()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn changes(change: impl FnOnce(&Sandbox)) -> bool {
    let sandbox = Sandbox::new();
    let before = sandbox.id();
    change(&sandbox);
    before != sandbox.id()
}

#[test]
fn same_sources_in_another_folder_have_the_same_id() {
    assert_eq!(Sandbox::new().id(), Sandbox::new().id());
}

#[test]
fn the_id_is_pinned() {
    // If this fails, the algorithm has changed: raise the version in its domain, every id changes with it.
    assert_eq!(Sandbox::new().id(), "74f2da69019df48058648bc76e1e4824");
}

#[test]
fn sources_decide() {
    assert!(changes(|s| s.write("game/src/step.rs", "pub fn step() { loop {} }\n")));
    assert!(changes(|s| s.write("game/src/more.rs", "")));
    assert!(changes(|s| fs::rename(s.0.join("game/src/step.rs"), s.0.join("game/src/walk.rs")).unwrap()));
    assert!(changes(|s| s.write("engine/src/lib.rs", "// engine 2\n")));
    assert!(changes(|s| s.write("engine/build.rs", "fn main() {}\n")));
}

#[test]
fn declarations_decide() {
    assert!(changes(|s| s.replace("game/Cargo.toml", "bots = []", "bots = []\nmore = []")));
    assert!(changes(|s| s.replace("engine/Cargo.toml", "2021", "2024")));
    assert!(changes(|s| s.replace("Cargo.toml", "edition = \"2024\"", "edition = \"2021\"")));
    assert!(changes(|s| s.replace("Cargo.toml", "features = [\"fast\"]", "features = []")));
    assert!(changes(|s| s.replace(
        "Cargo.toml",
        "libm = \"0.2\"",
        "libm = { version = \"0.2\", default-features = false }"
    )));
}

#[test]
fn locked_versions_of_all_depths_and_targets_decide() {
    assert!(changes(|s| s.replace("Cargo.lock", "0.2.9", "0.2.10")));
    assert!(changes(|s| s.replace("Cargo.lock", "aa11", "aa12")));
    assert!(changes(|s| s.replace("Cargo.lock", "bb22", "bb23")));
    assert!(changes(|s| s.replace("Cargo.lock", "cc33", "cc34")));
}

#[test]
fn what_cannot_change_the_simulation_does_not_change_the_id() {
    assert!(!changes(|s| s.write("game/README.md", "words")));
    assert!(!changes(|s| s.write("game/tests/it.rs", "#[test] fn it() {}")));
    assert!(!changes(|s| s.write("game/src/.lib.rs.swp", "an editor was here")));
    assert!(!changes(|s| s.replace("game/Cargo.toml", "description = \"a game\"", "# a comment")));
    assert!(!changes(|s| {
        s.replace("game/Cargo.toml", "0.1.0", "0.2.0");
        s.replace(
            "Cargo.lock",
            "name = \"game\"\nversion = \"0.1.0\"",
            "name = \"game\"\nversion = \"0.2.0\"",
        );
    }));
}

#[test]
fn dev_dependencies_do_not_change_the_id() {
    assert!(!changes(|s| s.replace("game/Cargo.toml", "tester = \"1\"", "tester = \"1.0\"\nother = \"1\"")));
    assert!(!changes(|s| s.replace("Cargo.lock", "dd44", "dd45")));
    assert!(!changes(|s| s.replace("Cargo.lock", "aa00", "aa01")), "a version only a dev-dependency uses");
}

#[test]
fn line_endings_do_not_change_the_id() {
    assert!(!changes(|s| s.write("game/src/lib.rs", "mod step;\r\n")));
}

#[test]
fn two_versions_of_one_package_are_told_apart() {
    let two = |s: &Sandbox| {
        s.replace(
            "game/Cargo.toml",
            "[features]",
            "[dependencies.old]\npackage = \"libm\"\nversion = \"0.1\"\n[features]",
        );
        s.replace("game/Cargo.toml", "[dependencies]\n", "");
        s.replace("game/Cargo.toml", "engine.workspace = true\n", "");
        s.replace(
            "game/Cargo.toml",
            "maths = ",
            "[dependencies.engine]\nworkspace = true\n[dependencies.maths]\n#",
        );
        s.replace("game/Cargo.toml", "[target", "package = \"libm\"\nversion = \"0.2\"\n[target");
        s.replace(
            "Cargo.lock",
            "\"libm 0.2.9\", \"only-there\"",
            "\"libm 0.1.4\", \"libm 0.2.9\", \"only-there\"",
        );
    };
    let (one, other) = (Sandbox::new(), Sandbox::new());
    two(&one);
    two(&other);
    assert_eq!(one.id(), other.id());
    other.replace("Cargo.lock", "aa00", "aa01");
    assert_ne!(one.id(), other.id(), "the older version is part of the game now");
}

#[test]
fn a_patched_dependency_is_visited_in_its_folder() {
    let patch = |s: &Sandbox| {
        s.replace(
            "Cargo.toml",
            "[workspace.package]",
            "[patch.crates-io]\nlibm = { path = \"libm\" }\n[workspace.package]",
        );
        s.replace("Cargo.lock", "version = \"0.2.9\"\nsource = \"registry+https://example.org/index\"\nchecksum = \"aa11\"\ndependencies = [\"below\"]", "version = \"0.2.9\"");
        s.write("libm/Cargo.toml", "[package]\nname = \"libm\"\nversion = \"0.2.9\"\n");
        s.write("libm/src/lib.rs", "");
    };
    let (one, other) = (Sandbox::new(), Sandbox::new());
    patch(&one);
    patch(&other);
    assert_eq!(one.id(), other.id());
    other.write("libm/src/lib.rs", "// patched again");
    assert_ne!(one.id(), other.id());
}

#[test]
fn everything_read_is_named_for_cargo() {
    let sandbox = Sandbox::new();
    let root = sandbox.0.canonicalize().unwrap();
    let inputs = inspect(&sandbox.game()).unwrap().inputs;
    for name in ["Cargo.lock", "Cargo.toml", "game/Cargo.toml", "game/src", "engine/Cargo.toml", "engine/src"]
    {
        assert!(inputs.contains(&root.join(name)), "{name} is missing from {inputs:?}");
    }
}

#[test]
fn errors_say_what_to_do() {
    let sandbox = Sandbox::new();
    sandbox.replace("Cargo.lock", "name = \"only-there\"", "name = \"elsewhere\"");
    let error = build_id(&sandbox.game()).unwrap_err();
    assert!(matches!(error, Error::NotLocked { .. }));
    assert!(error.to_string().contains("`only-there`, which `game` depends on"), "{error}");

    fs::remove_file(sandbox.0.join("Cargo.lock")).unwrap();
    let error = build_id(&sandbox.game()).unwrap_err().to_string();
    assert!(error.contains("cargo generate-lockfile"), "{error}");

    assert!(matches!(build_id(Path::new("/no/such/folder")), Err(Error::Read(..))));
}
