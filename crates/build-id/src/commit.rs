//! The git commit of a package, for logs: the commit to check out to reproduce a build.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that passes the commit to builds, and that [`emit_commit`] sets for the package.
const VARIABLE: &str = "SAMETICK_COMMIT";

/// For the `build.rs` of a *program*: sets `SAMETICK_COMMIT` for the package, which `sametick_sim::commit!()` reads and
/// `sametick::games!` records in logs.
///
/// It is the commit that is checked out in the package's own git repository; unset if the package is in none. A build
/// outside a repository, such as in a container, gets the commit from an environment variable of the same name. Cargo
/// runs the script again after each commit and rebuilds the package, so this belongs in the package of the program, and
/// not in that of a game which other packages use: a commit is no part of a game.
///
/// ```text
/// fn main() {
///     sametick_build_id::emit_commit();
/// }
/// ```
///
/// # Panics
/// If it is not run by Cargo.
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

/// The commit that is checked out in the git repository to which the package in this folder belongs; none if it belongs
/// to no repository.
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
        // A downloaded package may lie below a repository, such as that of a home folder, without being part of it.
        repository.git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
        Some(repository)
    }

    fn head(&self) -> Option<String> {
        self.git(&["rev-parse", "--verify", "HEAD"])
    }

    /// The files that change when another commit is checked out. Cargo treats a missing file as changed.
    fn inputs(&self) -> Vec<PathBuf> {
        let place = |name: &str| {
            let path = self.folder.join(self.git(&["rev-parse", "--git-path", name])?);
            path.is_file().then_some(path)
        };
        let branch = self.git(&["symbolic-ref", "--quiet", "HEAD"]);
        let reference = branch.and_then(|branch| place(&branch)).or_else(|| place("packed-refs"));
        // The reflog of HEAD changes with each commit; where there is none, the ref that HEAD points to does.
        [place("HEAD"), place("logs/HEAD").or(reference)].into_iter().flatten().collect()
    }

    fn git(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new("git").args(arguments).current_dir(self.folder).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}
