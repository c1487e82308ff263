//! The git commit of a package, for logs: it says what to check out to get a build again.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that says the commit to builds, and that [`emit_commit`] sets for the package.
const VARIABLE: &str = "SAMETICK_COMMIT";

/// For the `build.rs` of a *program*: sets `SAMETICK_COMMIT` for the package, which `sametick_sim::commit!()` reads and
/// `sametick::games!` records in logs.
///
/// It is the commit that is checked out in the package's own git repository; nothing if the package is in none. A build
/// outside of a repository, such as in a container, is told it by an environment variable of the same name. Cargo asks again
/// after each commit and builds the package anew then, so this belongs into the package of the program, and not into that of
/// a game which other packages use: a commit is no part of a game.
///
/// ```text
/// fn main() {
///     sametick_build_id::emit_commit();
/// }
/// ```
///
/// # Panics
/// If it is not run by cargo.
#[expect(
    clippy::disallowed_methods,
    reason = "a build script is the edge: cargo tells it all by environment"
)]
pub fn emit_commit() {
    let Some(folder) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        panic!(
            "CARGO_MANIFEST_DIR is not set: sametick_build_id::emit_commit() is for build scripts, run by cargo"
        );
    };
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let repository = Repository::of(Path::new(&folder));
    for path in repository.iter().flat_map(Repository::inputs) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let given = std::env::var(VARIABLE).ok().filter(|given| !given.is_empty());
    let commit = given.or_else(|| repository?.head());
    println!("cargo::rustc-env={VARIABLE}={}", commit.unwrap_or_default());
}

/// The commit that is checked out in the git repository to which the package in this folder belongs; nothing if it belongs
/// to none.
pub fn commit(manifest_dir: &Path) -> Option<String> {
    Repository::of(manifest_dir)?.head()
}

/// The git repository of a package.
struct Repository<'a> {
    folder: &'a Path,
}

impl Repository<'_> {
    fn of(folder: &Path) -> Option<Repository<'_>> {
        let repository = Repository { folder };
        // A package that was downloaded may lie below a repository, such as that of a home folder, and is no part of it.
        repository.git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
        Some(repository)
    }

    fn head(&self) -> Option<String> {
        self.git(&["rev-parse", "--verify", "HEAD"])
    }

    /// The files that change when another commit is checked out. Cargo takes one that is not there for changed.
    fn inputs(&self) -> Vec<PathBuf> {
        let place = |name: &str| {
            let path = self.folder.join(self.git(&["rev-parse", "--git-path", name])?);
            path.is_file().then_some(path)
        };
        let branch = self.git(&["symbolic-ref", "--quiet", "HEAD"]);
        let reference = branch.and_then(|branch| place(&branch)).or_else(|| place("packed-refs"));
        // The log of HEAD changes with each commit; where none is kept, what HEAD refers to does.
        [place("HEAD"), place("logs/HEAD").or(reference)].into_iter().flatten().collect()
    }

    fn git(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new("git").args(arguments).current_dir(self.folder).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}
