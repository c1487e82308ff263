//! Builds for wasm32 and checks that it computes the same as the native build.
//!
//! The standard library for wasm32 comes from rustup where rustup can fetch it. A machine that cannot (no network to
//! rustup's servers) uses Debian's `rustc-web`, which has no wasm32 library of its own but the sources to build one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::layers::{self, Kind};
use crate::shell;
use crate::workspace::Workspace;

const HELP: &str = "\
Build the pure crates for wasm32 and compare their hashes with those of the native build.

Usage: cargo xtask wasm [--toolchain rustup|debian]

The toolchain is chosen by what is there: rustup's wasm32 target, else Debian's rustc-web and rust-web-src.
";

pub const TARGET: &str = "wasm32-unknown-unknown";

/// The crate whose wasm build and native example must print the same lines.
const CONFORMANCE: &str = "sametick-conformance";

/// Debian's compiler and the sources of the standard library, from `rustc-web` and `rust-web-src`.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/Cargo.lock";

/// Seeds and tick counts to compare: ordinary ones, the edges of `u64`, and one long run.
const RUNS: &[(u64, u32)] = &[(0, 300), (1, 300), (42, 300), (u64::MAX, 300), (7, 5000)];

/// The recorded games with seed and ticks, replayed natively and as wasm: a lockstep session of a little less than
/// three minutes, and a room of almost two.
const RECORDED: [(&str, u64, u32); 2] = [("pong", 2024, 10_000), ("arena", 2025, 3_000)];

/// The source of the standard library for wasm32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// Installed for the toolchain in use.
    Rustup,
    /// Built from Debian's sources by Debian's compiler, linked by rustup's linker.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// The toolchain of this machine; installs rustup's target if that is possible.
    pub fn find() -> Result<Option<Self>> {
        if rustup_has_target() || rustup_adds_target() { Ok(Some(Self::Rustup)) } else { Self::find_debian() }
    }

    fn find_debian() -> Result<Option<Self>> {
        if !Path::new(DEBIAN_RUSTC).exists() || !Path::new(DEBIAN_SOURCES).exists() {
            return Ok(None);
        }
        Ok(Some(Self::Debian { linker: find_linker()? }))
    }

    fn named(name: &str) -> Result<Option<Self>> {
        match name {
            "rustup" => Ok(rustup_has_target().then_some(Self::Rustup)),
            "debian" => Self::find_debian(),
            other => bail!("--toolchain is rustup or debian, not `{other}`"),
        }
    }

    /// Its compiler.
    pub fn rustc(&self) -> Command {
        let Self::Debian { .. } = self else { return Command::new("rustc") };
        let mut rustc = Command::new(DEBIAN_RUSTC);
        rustc.env_remove("LD_LIBRARY_PATH");
        rustc
    }

    pub fn prepare(&self, cargo: &mut Command) {
        let Self::Debian { linker } = self else { return };
        // BOOTSTRAP lets a stable compiler build its own standard library. The library path that `cargo run` set
        // for us leads to the other toolchain's compiler libraries.
        cargo
            .env("RUSTC", DEBIAN_RUSTC)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
            .env_remove("LD_LIBRARY_PATH")
            .arg("-Zbuild-std=std,panic_abort");
    }

    pub fn folder(&self) -> &'static str {
        match self {
            Self::Rustup => "wasm",
            Self::Debian { .. } => "wasm-debian",
        }
    }
}

fn rustup_has_target() -> bool {
    let answer = shell::read(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    let Ok(folder) = answer else { return false };
    let Ok(mut files) = std::fs::read_dir(folder.trim()) else { return false };
    files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libcore-")))
}

fn rustup_adds_target() -> bool {
    shell::succeeds(Command::new("rustup").args(["target", "add", TARGET])) && rustup_has_target()
}

/// rustup ships a linker that knows wasm beside its compiler; Debian's knows none by default.
fn find_linker() -> Result<PathBuf> {
    let sysroot = shell::read(Command::new("rustc").args(["--print", "sysroot"]))?;
    let linker =
        Path::new(sysroot.trim()).join("lib/rustlib").join(host_triple()?).join("bin").join("rust-lld");
    ensure!(linker.exists(), "there is no {}: is `rustc` rustup's stable toolchain?", linker.display());
    Ok(linker)
}

/// The platform the compiler in use runs on.
pub fn host_triple() -> Result<String> {
    let version = shell::read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names its host")
}

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.help() {
        print!("{HELP}");
        return Ok(());
    }
    let name: Option<String> = arguments.value("--toolchain")?;
    arguments.finish()?;
    let toolchain = match name {
        Some(name) => Toolchain::named(&name)?,
        None => Toolchain::find()?,
    };
    let toolchain = toolchain.context("no toolchain for wasm32 here; `cargo xtask setup` gets one")?;
    check(&Workspace::load()?, &toolchain)
}

/// Builds every pure crate, then compares hashes with the native build.
pub fn check(workspace: &Workspace, toolchain: &Toolchain) -> Result<()> {
    let mut packages = pure_packages(workspace);
    packages.push(CONFORMANCE);
    let built = build(workspace, toolchain, &packages)?;
    let module = built.join("sametick_conformance.wasm");
    ensure!(module.exists(), "{} was not built: is the crate a cdylib?", module.display());
    compare_all(workspace, &module)?;
    RECORDED.iter().try_for_each(|recorded| compare_replays(workspace, &module, *recorded))
}

fn pure_packages(workspace: &Workspace) -> Vec<&str> {
    let pure = |folder: &str| layers::find(folder).is_some_and(|layer| layer.kind == Kind::Pure);
    workspace
        .members
        .iter()
        .filter(|member| pure(&member.folder))
        .map(|member| member.package.as_str())
        .collect()
}

/// Builds packages in release mode and returns the folder with what was built.
pub fn build(workspace: &Workspace, toolchain: &Toolchain, packages: &[&str]) -> Result<PathBuf> {
    // A folder of its own: the flags differ from the native build's, and sharing would rebuild both each time.
    let target_dir = workspace.target.join(toolchain.folder());
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["build", "--release", "--target", TARGET, "--target-dir"]).arg(&target_dir);
    for package in packages {
        cargo.args(["--package", package]);
    }
    toolchain.prepare(&mut cargo);
    shell::run(&mut cargo)?;
    Ok(target_dir.join(TARGET).join("release"))
}

fn compare_all(workspace: &Workspace, module: &Path) -> Result<()> {
    let runner = workspace.root.join("crates/conformance/run.mjs");
    let mut lines = 0;
    for (seed, ticks) in RUNS {
        let (seed, ticks) = (seed.to_string(), ticks.to_string());
        let wasm = shell::read(Command::new("node").arg(&runner).arg(module).args([&seed, &ticks]))?;
        let native = shell::read(example(workspace, "hashes").args([&seed, &ticks]))?;
        lines += compare(&native, &wasm).with_context(|| format!("seed {seed}, {ticks} ticks"))?;
    }
    println!("wasm and native agree: {} seeds, {lines} lines, to the letter", RUNS.len());
    Ok(())
}

/// Records a game, and replays its log both ways: every tick has the same hash.
fn compare_replays(
    workspace: &Workspace,
    module: &Path,
    (game, seed, ticks): (&str, u64, u32),
) -> Result<()> {
    let log = workspace.target.join("conformance.log");
    shell::run(example(workspace, "record").arg(game).arg(&log).args([seed.to_string(), ticks.to_string()]))?;
    let native = shell::read(example(workspace, "replay").arg(&log))?;
    let replayer = workspace.root.join("crates/conformance/replay.mjs");
    let wasm = shell::read(Command::new("node").arg(replayer).arg(module).arg(&log))?;
    // The last line counts the checks in the log.
    let agreed = compare(&native, &wasm)? - 1;
    ensure!(agreed >= ticks as usize, "only {agreed} of {ticks} ticks were recorded");
    let checks = native.lines().last().unwrap_or_default();
    println!("a recorded log of {game} replays to the same hashes as wasm: {agreed} ticks, {checks}");
    Ok(())
}

fn example(workspace: &Workspace, name: &str) -> Command {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", CONFORMANCE, "--example", name, "--"]);
    cargo
}

/// How many lines agree, or the first that does not.
fn compare(native: &str, wasm: &str) -> Result<usize> {
    ensure!(!native.trim().is_empty(), "the native run printed nothing to compare");
    for (index, (ours, theirs)) in native.lines().zip(wasm.lines()).enumerate() {
        if ours != theirs {
            bail!("line {} differs\n  native: {ours}\n  wasm:   {theirs}", index + 1);
        }
    }
    let (ours, theirs) = (native.lines().count(), wasm.lines().count());
    ensure!(ours == theirs, "native printed {ours} lines, wasm {theirs}");
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_outputs_are_counted() {
        assert_eq!(compare("a\nb\n", "a\nb\n").unwrap(), 2);
    }

    #[test]
    fn the_first_difference_is_shown() {
        let error = compare("a\nb\nc\n", "a\nx\ny\n").unwrap_err().to_string();
        assert_eq!(error, "line 2 differs\n  native: b\n  wasm:   x");
    }

    #[test]
    fn silence_and_missing_lines_do_not_pass() {
        assert!(compare("", "").is_err());
        assert!(compare("a\nb\n", "a\n").is_err());
        assert!(compare("a\n", "a\nb\n").is_err());
    }
}
