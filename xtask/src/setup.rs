//! Checks for the tools that the other commands need, and installs those it may.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};

use crate::arguments::Arguments;
use crate::shell;
use crate::wasm::Toolchain;

const HELP: &str = "\
Install what the other commands need, or say exactly what to install.

Usage: cargo xtask setup

As root on Debian, missing packages are installed with apt-get. Anyone else is shown the command to run. What is
there already is left alone. Rust itself must be rustup's stable toolchain.
";

/// One tool: its check, and the Debian packages that contain it.
struct Tool {
    purpose: &'static str,
    present: fn() -> Result<bool>,
    packages: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool { purpose: "Node, to run wasm", present: || Ok(answers("node")), packages: &["nodejs"] },
    Tool { purpose: "npm, to build the web app", present: || Ok(answers("npm")), packages: &["npm"] },
    Tool { purpose: "Chromium, to play in", present: || Ok(answers(&chromium())), packages: &["chromium"] },
    Tool { purpose: "a C++ compiler, for libFuzzer", present: || Ok(answers("c++")), packages: &["g++"] },
    Tool {
        purpose: "Python and its WebSockets, for examples/join.py",
        present: || Ok(python().is_some()),
        packages: &["python3", "python3-websockets"],
    },
    Tool {
        purpose: "a standard library for wasm32",
        present: || Ok(Toolchain::find()?.is_some()),
        packages: &["rustc-web", "rust-web-src"],
    },
];

/// The browser of the end-to-end tests.
pub fn chromium() -> String {
    std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into())
}

/// A Python that has the library of the example: the one that is found first, or Debian's own.
fn python() -> Option<&'static str> {
    let has = |python: &&str| shell::succeeds(Command::new(python).args(["-c", "import websockets"]));
    ["python3", "/usr/bin/python3"].into_iter().find(has)
}

/// Parts of the Rust toolchain that rustup's smallest profile leaves out.
const COMPONENTS: &[&str] = &["rustfmt", "clippy"];

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.help() {
        print!("{HELP}");
        return Ok(());
    }
    arguments.finish()?;
    ensure()
}

/// Returns once all tools are there.
pub fn ensure() -> Result<()> {
    ensure_components()?;
    let missing = missing(TOOLS)?;
    if missing.is_empty() {
        println!("every tool is there");
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages).copied().collect();
    for tool in &missing {
        println!("missing: {} ({})", tool.purpose, tool.packages.join(", "));
    }
    if !is_debian_root() {
        bail!("some tools are missing; install them, then run this again:\n\n    {}", by_hand(&packages));
    }
    install(&packages)?;
    match self::missing(TOOLS)?.first() {
        None => Ok(()),
        Some(tool) => bail!("apt-get succeeded, but there still is no tool for {}", tool.purpose),
    }
}

fn ensure_components() -> Result<()> {
    for component in COMPONENTS {
        let subcommand = component.trim_start_matches("rust");
        if shell::succeeds(Command::new("cargo").args([subcommand, "--version"])) {
            continue;
        }
        shell::run(Command::new("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

fn missing(tools: &'static [Tool]) -> Result<Vec<&'static Tool>> {
    let mut missing = Vec::new();
    for tool in tools {
        if !(tool.present)()? {
            missing.push(tool);
        }
    }
    Ok(missing)
}

fn answers(program: &str) -> bool {
    shell::succeeds(Command::new(program).arg("--version"))
}

fn is_debian_root() -> bool {
    let root = shell::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    root && Path::new("/etc/debian_version").exists()
}

fn by_hand(packages: &[&str]) -> String {
    format!("sudo apt-get update && sudo apt-get install --yes {}", packages.join(" "))
}

fn install(packages: &[&str]) -> Result<()> {
    ensure!(!packages.is_empty(), "nothing to install");
    shell::run(apt_get().arg("update"))?;
    shell::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    // A question nobody answers would hang a machine without a terminal.
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    command.arg("--quiet");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANTED: &[Tool] = &[
        Tool { purpose: "what is there", present: || Ok(true), packages: &["there"] },
        Tool { purpose: "what is not", present: || Ok(false), packages: &["absent", "absent-src"] },
    ];

    #[test]
    fn only_what_is_missing_is_asked_for() {
        let missing = missing(PLANTED).unwrap();
        assert_eq!(missing.len(), 1);
        let command = by_hand(missing[0].packages);
        assert_eq!(command, "sudo apt-get update && sudo apt-get install --yes absent absent-src");
    }

    #[test]
    fn a_program_that_does_not_exist_does_not_answer() {
        assert!(!answers("sametick-no-such-program"));
    }
}
