//! The players queue under ThreadSanitizer: the standard library and the store are built with it, by the nightly
//! compiler.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::shell;
use crate::wasm::host_triple;
use crate::workspace::Workspace;

const NIGHTLY: &str = "nightly";

/// A program with a data race, which proves that the detector works. Not a module: it needs unsafe code.
const RACY: &str = include_str!("races/racy.rs.txt");

/// ThreadSanitizer's message for a race.
const FOUND: &str = "WARNING: ThreadSanitizer: data race";

/// Enough to meet every state of queue and thread; every round has another interleaving.
const BOUNDS: [(&str, &str); 2] = [("SAMETICK_KILLS", "20"), ("SAMETICK_SEEDS", "50")];

/// Runs the store's players tests `rounds` times. A race in them, or none in the racy program, is an error.
pub fn run(workspace: &Workspace, rounds: u64) -> Result<()> {
    let rustup = |words: &[&str]| shell::run(Command::new("rustup").args(words));
    rustup(&["component", "add", "rust-src", "--toolchain", NIGHTLY])
        .context("ThreadSanitizer needs rustup's nightly toolchain with the component rust-src")?;
    let folder = workspace.target.join("races");
    std::fs::create_dir_all(&folder)?;
    find_planted(&folder)?;
    for round in 1..=rounds {
        println!("\nround {round} of {rounds}");
        let mut tests = sanitized_tests(workspace, &folder)?;
        tests.envs(BOUNDS).env("TSAN_OPTIONS", "halt_on_error=1 second_deadlock_stack=1");
        shell::run(&mut tests)?;
    }
    Ok(())
}

/// The detector must find the race in the racy program, or its silence means nothing.
fn find_planted(folder: &Path) -> Result<()> {
    let (source, program) = (folder.join("racy.rs"), folder.join("racy"));
    std::fs::write(&source, RACY)?;
    let mut rustc = Command::new("rustup");
    rustc.args(["run", NIGHTLY, "rustc", "--edition", "2024", "-Zsanitizer=thread"]);
    rustc.arg("-Cunsafe-allow-abi-mismatch=sanitizer").arg("-o").arg(&program).arg(&source);
    shell::run(&mut rustc)?;
    let output = Command::new(&program).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains(FOUND), "the planted race was not found; the detector said:\n{said}");
    if output.status.success() {
        bail!("the planted race was found, but the program ended as if nothing had happened");
    }
    println!("the planted race is found");
    Ok(())
}

fn sanitized_tests(workspace: &Workspace, folder: &Path) -> Result<Command> {
    let mut cargo = Command::new("rustup");
    cargo.current_dir(&workspace.root).args(["run", NIGHTLY, "cargo", "test", "--locked", "-Zbuild-std"]);
    // With a target named, the flags do not reach build scripts and macros.
    cargo.args(["--target", &host_triple()?]).arg("--target-dir").arg(folder);
    cargo.args(["--package", "sametick-store", "--test", "players", "--lib"]);
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        cargo.env_remove(name);
    }
    cargo.env("RUSTFLAGS", "-Zsanitizer=thread");
    Ok(cargo)
}
