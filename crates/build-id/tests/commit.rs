//! The git commit of a package, in repositories in temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use sametick_build_id::{build_id, commit};

/// A folder with a package, removed at the end.
struct Package(PathBuf);

impl Package {
    fn new() -> Package {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("sametick-commit-{}-{number}", std::process::id()));
        fs::create_dir_all(folder.join("game/src")).unwrap();
        let package = Package(folder);
        package.write(
            "game/Cargo.toml",
            "[package]\nname = \"game\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        );
        package.write("game/Cargo.lock", "version = 4\n[[package]]\nname = \"game\"\nversion = \"0.1.0\"\n");
        package.write("game/src/lib.rs", "pub fn step() {}\n");
        package
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn game(&self) -> PathBuf {
        self.0.join("game")
    }

    /// Commits everything in the repository of this folder. Returns the commit.
    fn commit(&self, message: &str) -> String {
        git(&self.0, &["add", "--all"]);
        git(&self.0, &["commit", "--quiet", "--message", message]);
        git(&self.0, &["rev-parse", "HEAD"])
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(who).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_commit_of_docs_changes_the_commit_but_not_the_build() {
    let package = Package::new();
    git(&package.0, &["init", "--quiet"]);
    let first = package.commit("the game");
    assert_eq!(commit(&package.game()).as_deref(), Some(&first[..]));
    let build = build_id(&package.game()).unwrap();
    package.write("README.md", "How to play.\n");
    let second = package.commit("docs");
    assert_ne!(first, second);
    assert_eq!(commit(&package.game()), Some(second));
    assert_eq!(build_id(&package.game()).unwrap(), build);
}

#[test]
fn a_package_in_no_repository_has_no_commit() {
    let package = Package::new();
    assert_eq!(commit(&package.game()), None);
}

#[test]
fn a_package_that_only_lies_below_a_repository_has_no_commit() {
    // Like a package in the registry below a home folder that is a repository.
    let package = Package::new();
    git(&package.0, &["init", "--quiet"]);
    package.write(".gitignore", "game/\n");
    package.commit("other things");
    assert_eq!(commit(&package.game()), None);
}

#[test]
fn a_repository_without_a_commit_has_none() {
    let package = Package::new();
    git(&package.0, &["init", "--quiet"]);
    git(&package.0, &["add", "--all"]);
    assert_eq!(commit(&package.game()), None);
}
