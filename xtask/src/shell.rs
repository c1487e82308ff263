//! Runs other programs: shows the command first, and checks its result.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// `cargo`, the same one that started us, in the directory `root`.
pub fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if describes_xtask(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// Variables by which `cargo run` describes xtask to itself. Build scripts that watch them would rebuild
/// their crate each time one alternates between `cargo …` and `cargo xtask …`.
fn describes_xtask(variable: &OsStr) -> bool {
    let Some(name) = variable.to_str() else { return false };
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Shows and runs a command with our own output; fails when it does.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Like [`run`], and hands each line of standard output to `see` after printing it.
pub fn run_watching(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    println!("$ {}", shown(command));
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("standard output was piped")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        see(&line);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command quietly and returns its standard output.
pub fn read(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}\n{}", shown(command), output.status, complaint.trim_end());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether this command starts and succeeds. Its output is discarded.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it, without the environment.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named() {
        let error = run(&mut Command::new("false")).unwrap_err().to_string();
        assert!(error.contains("`false` failed"), "{error}");
    }

    #[test]
    fn lines_are_seen_as_they_come() {
        let mut seen = Vec::new();
        run_watching(Command::new("echo").arg("one\ntwo"), |line| seen.push(line.to_owned())).unwrap();
        assert_eq!(seen, ["one", "two"]);
    }

    #[test]
    fn variables_that_describe_xtask_are_recognised() {
        assert!(describes_xtask(OsStr::new("CARGO_PKG_NAME")));
        assert!(!describes_xtask(OsStr::new("CARGO_TARGET_DIR")));
    }
}
