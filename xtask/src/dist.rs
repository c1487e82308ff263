//! Builds the shipped program: fully optimised and stripped, its symbols in a separate file.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::shell;
use crate::workspace::Workspace;

const HELP: &str = "\
Build the program as it is shipped, into target/dist.

Usage: cargo xtask dist

  sametick         fat LTO, one codegen unit, stripped
  sametick.debug   its symbols and line tables: a debugger or `perf` that finds the file beside the program reads it

Needs `objcopy` (Debian: binutils, which every C compiler brings along).
";

const PROGRAM: &str = "sametick";

/// The size limit of the program, which one person downloads and a container carries.
const MAX_BYTES: u64 = 25_000_000;

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.help() {
        print!("{HELP}");
        return Ok(());
    }
    arguments.finish()?;
    let workspace = Workspace::load()?;
    let mut cargo = shell::cargo(&workspace.root);
    shell::run(cargo.args(["build", "--locked", "--profile", "dist", "--package", PROGRAM]))?;
    let folder = workspace.target.join("dist");
    let shipped = Shipped::split(&folder.join(PROGRAM))?;
    println!("{}", shipped.shown());
    shipped.check()
}

/// The program without its symbols, and the symbols.
struct Shipped {
    program: PathBuf,
    program_bytes: u64,
    symbols: PathBuf,
    symbols_bytes: u64,
}

impl Shipped {
    /// Moves the symbols of `program` into a separate file, which the program refers to by name and checksum.
    fn split(program: &Path) -> Result<Self> {
        let symbols = program.with_extension("debug");
        // Cargo has a second name for the same file, which must keep its symbols: a new build may find nothing to do.
        let whole = program.with_extension("whole");
        std::fs::rename(program, &whole)?;
        objcopy(&["--only-keep-debug"], &whole, &symbols)?;
        objcopy(&["--strip-all"], &whole, program)?;
        let link = format!("--add-gnu-debuglink={}", symbols.display());
        shell::run(Command::new("objcopy").arg(link).arg(program))?;
        std::fs::remove_file(&whole)?;
        let bytes = |path: &Path| std::fs::metadata(path).map(|found| found.len());
        Ok(Self {
            program_bytes: bytes(program)?,
            symbols_bytes: bytes(&symbols)?,
            program: program.to_owned(),
            symbols,
        })
    }

    fn shown(&self) -> String {
        let row = |path: &Path, bytes: u64| format!("{}  {:.1} MB", path.display(), megabytes(bytes));
        format!("{}\n{}", row(&self.program, self.program_bytes), row(&self.symbols, self.symbols_bytes))
    }

    fn check(&self) -> Result<()> {
        ensure!(
            self.program_bytes <= MAX_BYTES,
            "the program has {:.1} MB, more than {:.1} MB",
            megabytes(self.program_bytes),
            megabytes(MAX_BYTES)
        );
        shell::run(Command::new(&self.program).arg("--version"))
    }
}

fn objcopy(how: &[&str], from: &Path, to: &Path) -> Result<()> {
    shell::run(Command::new("objcopy").args(how).arg(from).arg(to))
        .context("symbols are taken off by `objcopy` (Debian: apt-get install binutils)")
}

#[allow(clippy::cast_precision_loss, reason = "a size for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(program_bytes: u64) -> Shipped {
        let (program, symbols) = (PathBuf::from("true"), PathBuf::from("true.debug"));
        Shipped { program, program_bytes, symbols, symbols_bytes: 120_000_000 }
    }

    #[test]
    fn a_program_that_has_grown_too_large_is_refused_with_its_size() {
        assert!(shipped(MAX_BYTES).check().is_ok());
        let error = shipped(26_200_000).check().unwrap_err().to_string();
        assert_eq!(error, "the program has 26.2 MB, more than 25.0 MB");
    }

    #[test]
    fn both_files_are_shown_with_their_sizes() {
        assert_eq!(shipped(17_340_000).shown(), "true  17.3 MB\ntrue.debug  120.0 MB");
    }
}
