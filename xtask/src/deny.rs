//! cargo-deny over every workspace here: licences, bans, sources, and advisories where their database can be had.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::shell;
use crate::workspace::Workspace;

/// The version that `deny.toml` is written for.
const VERSION: &str = "0.20.2";

/// The product's workspace, and its checks that need no network.
const PRODUCT: &str = "Cargo.toml";
const CHECKS: &[&str] = &["bans", "licenses", "sources"];

/// The workspaces of tests and benchmarks. cargo-deny cannot tell there which versions our own crates ask for, so bans
/// are checked in the product's workspace.
const BESIDE: &[&str] = &["fuzz/Cargo.toml", "bench/Cargo.toml"];
const CHECKS_BESIDE: &[&str] = &["licenses", "sources"];

/// Whether cargo-deny is on the path or installed by [`run_long`].
pub fn is_installed(workspace: &Workspace) -> bool {
    program(workspace).is_some()
}

/// Checks every workspace and returns a summary.
pub fn check(workspace: &Workspace) -> Result<String> {
    shell::run(deny(workspace, PRODUCT).arg("check").args(CHECKS))?;
    for manifest in BESIDE {
        shell::run(deny(workspace, manifest).arg("check").args(CHECKS_BESIDE))?;
    }
    // Fetching is tried separately: without a network the check is skipped, which is no finding.
    if !shell::succeeds(deny(workspace, PRODUCT).args(["fetch", "db"])) {
        let checks = CHECKS.join(", ");
        return Ok(format!("{checks} ok; advisories unknown: their database cannot be fetched here"));
    }
    for manifest in [PRODUCT].iter().chain(BESIDE) {
        shell::run(deny(workspace, manifest).args(["check", "advisories"]))?;
    }
    Ok(format!("{} and advisories ok", CHECKS.join(", ")))
}

/// Installs cargo-deny if there is none, then checks.
pub fn run_long(workspace: &Workspace) -> Result<()> {
    if !is_installed(workspace) {
        let mut cargo = shell::cargo(&workspace.root);
        // Not optimised: it runs for seconds, and would be compiled for minutes.
        cargo.args(["install", "--debug", "--locked", "cargo-deny", "--version", VERSION, "--root"]);
        shell::run(cargo.arg(tools(workspace)))?;
    }
    let note = check(workspace)?;
    println!("\n{note}");
    Ok(())
}

fn deny(workspace: &Workspace, manifest: &str) -> Command {
    let mut command = Command::new(program(workspace).unwrap_or_else(|| "cargo-deny".into()));
    command.current_dir(&workspace.root).args(["--locked", "--log-level", "error", "--manifest-path"]);
    command.arg(workspace.root.join(manifest));
    command
}

fn program(workspace: &Workspace) -> Option<PathBuf> {
    let installed = tools(workspace).join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    let answers = |program: &PathBuf| shell::succeeds(Command::new(program).arg("--version"));
    [installed, PathBuf::from("cargo-deny")].into_iter().find(answers)
}

fn tools(workspace: &Workspace) -> PathBuf {
    workspace.target.join("tools")
}
