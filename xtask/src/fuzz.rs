//! Fuzzing for a bounded time, on stable Rust: libFuzzer with the coverage flags passed by hand.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::shell;
use crate::wasm::host_triple;
use crate::workspace::Workspace;

const HELP: &str = "\
Build the fuzz targets and run each for a bounded time.

Usage: cargo xtask fuzz [TARGET] [--seconds N] [--list]
       cargo xtask fuzz TARGET --repro FILE

  TARGET         one target; all of them otherwise
  --seconds N    how long each runs (10)
  --list         name the targets
  --repro FILE   run a target once on a kept input, with libFuzzer's full report

Seeds lie in fuzz/seeds/TARGET. New inputs and crashes are kept in the target folder, under fuzz/.
";

const DEFAULT_SECONDS: u64 = 10;

/// What cargo-fuzz passes, without the sanitizers that need a nightly compiler. Memory safety is not what these
/// targets look for (there is no unsafe code to test): they look for panics, overflow and allocation.
const RUSTFLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // The linker would otherwise drop counters together with code it finds unused, and the tables no longer match.
    "-Clink-dead-code",
    "-Ccodegen-units=1",
];

/// One input may take this long before it counts as a hang.
const INPUT_TIMEOUT_SECONDS: u64 = 10;
/// A decoder that needs this much memory has failed long before.
const MEMORY_LIMIT_MB: u64 = 1024;
/// Larger than any datagram, so that the limits of every decoder can be crossed.
const MAX_INPUT_BYTES: u64 = 8192;

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.help() {
        print!("{HELP}");
        return Ok(());
    }
    let list = arguments.flag("--list");
    let seconds = arguments.value("--seconds")?.unwrap_or(DEFAULT_SECONDS);
    let repro: Option<PathBuf> = arguments.value("--repro")?;
    let target = arguments.word();
    arguments.finish()?;

    let fuzzer = Fuzzer::new(&Workspace::load()?)?;
    match (list, target, repro) {
        (true, _, _) => fuzzer.targets.iter().for_each(|name| println!("{name}")),
        (_, Some(target), Some(file)) => fuzzer.reproduce(&target, &file)?,
        (_, None, Some(_)) => bail!("--repro needs a TARGET"),
        (_, Some(target), None) => println!("{}", fuzzer.run(&[&target], seconds)?),
        (_, None, None) => println!("{}", fuzzer.run_all(seconds)?),
    }
    Ok(())
}

/// Runs every target and returns a line for a summary.
pub fn run_each(workspace: &Workspace, seconds: u64) -> Result<String> {
    Fuzzer::new(workspace)?.run_all(seconds)
}

/// `cargo SUBCOMMAND` on the fuzz workspace without libFuzzer: targets become plain programs that read files.
pub fn plain_cargo(workspace: &Workspace, subcommand: &str) -> Command {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args([subcommand, "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
    cargo.arg(workspace.target.join("fuzz"));
    cargo
}

struct Fuzzer {
    root: PathBuf,
    /// The folder of everything that is built or found.
    folder: PathBuf,
    host: String,
    targets: Vec<String>,
}

impl Fuzzer {
    fn new(workspace: &Workspace) -> Result<Self> {
        let members = Workspace::load_fuzz(&workspace.root)?.members;
        let targets: Vec<String> = members.into_iter().flat_map(|member| member.binaries).collect();
        check_declared(&workspace.root.join("fuzz/targets"), &targets)?;
        Ok(Self {
            root: workspace.root.clone(),
            folder: workspace.target.join("fuzz"),
            host: host_triple()?,
            targets,
        })
    }

    fn run_all(&self, seconds: u64) -> Result<String> {
        let targets: Vec<&str> = self.targets.iter().map(String::as_str).collect();
        self.run(&targets, seconds)
    }

    fn run(&self, targets: &[&str], seconds: u64) -> Result<String> {
        self.build(targets)?;
        let mut executions = 0;
        for target in targets {
            let found = self.run_one(target, seconds)?;
            println!(
                "{target}: {} runs, {} edges covered, {} inputs kept",
                found.runs, found.cov, found.corpus
            );
            executions += found.runs;
        }
        Ok(format!("{} targets, {seconds} s each, {executions} runs", targets.len()))
    }

    fn build(&self, targets: &[&str]) -> Result<()> {
        let mut cargo = shell::cargo(&self.root);
        cargo.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
        // Naming the target, though it is the host, keeps the flags away from build scripts and derive macros.
        cargo.arg(&self.folder).args(["--target", &self.host]);
        for target in targets {
            let known = self.targets.iter().any(|name| name == target);
            ensure!(known, "there is no fuzz target `{target}`; there are: {}", self.targets.join(", "));
            cargo.args(["--bin", target]);
        }
        cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", RUSTFLAGS.join(" "));
        shell::run(&mut cargo)
    }

    fn program(&self, target: &str) -> Command {
        let mut command = Command::new(self.folder.join(&self.host).join("release").join(target));
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    fn run_one(&self, target: &str, seconds: u64) -> Result<Found> {
        let corpus = self.folder.join("corpus").join(target);
        let crashes = self.folder.join("crashes").join(target);
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&crashes)?;
        let before = files(&crashes)?;
        let mut program = self.program(target);
        program
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={INPUT_TIMEOUT_SECONDS}"))
            .arg(format!("-rss_limit_mb={MEMORY_LIMIT_MB}"))
            .arg(format!("-max_len={MAX_INPUT_BYTES}"))
            // Coming closer to a value that is compared with counts as progress: magic numbers get found.
            .arg("-use_value_profile=1")
            .arg(format!("-artifact_prefix={}/", crashes.display()))
            .arg(&corpus);
        // libFuzzer writes what it finds into the first folder and only reads the others.
        let seeds = self.root.join("fuzz/seeds").join(target);
        if seeds.exists() {
            program.arg(seeds);
        }
        let output = program.output().with_context(|| format!("cannot start the fuzz target {target}"))?;
        if output.status.success() {
            return Found::parse(&String::from_utf8_lossy(&output.stderr));
        }
        let kept = files(&crashes)?.difference(&before).next().cloned();
        bail!("{}", failure(target, &output, kept.as_deref()))
    }

    fn reproduce(&self, target: &str, file: &Path) -> Result<()> {
        // The target runs in the root of the repository, which need not be where the path was typed.
        let file = file.canonicalize().with_context(|| format!("there is no {}", file.display()))?;
        self.build(&[target])?;
        shell::run(self.program(target).arg(file))
    }
}

/// A target that is written but not declared would never run, and nobody would notice.
fn check_declared(folder: &Path, targets: &[String]) -> Result<()> {
    for file in files(folder)? {
        let name = file.file_stem().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        ensure!(targets.contains(&name), "fuzz/targets/{name}.rs has no [[bin]] entry in fuzz/Cargo.toml");
    }
    Ok(())
}

fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn failure(target: &str, output: &Output, kept: Option<&Path>) -> String {
    let report = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = report.lines().filter(|line| !is_progress(line)).collect();
    let input = match kept {
        Some(path) => format!(
            "the input was kept: {0}\nreproduce it:       cargo xtask fuzz {target} --repro {0}\n\
             once it is fixed, add it to fuzz/seeds/{target}/ so that it stays fixed",
            path.display()
        ),
        None => "no input was kept: the target failed before it ran one".to_owned(),
    };
    format!("fuzz target `{target}` failed ({})\n{}\n\n{input}", output.status, lines.join("\n"))
}

/// Progress lines begin with the number of runs: `#1024  NEW  cov: …`. Other lines may begin with `#` as well.
fn is_progress(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The figures of libFuzzer's last line: `#123  DONE  cov: 45 ft: 67 corp: 8/90b …`.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    runs: u64,
    cov: u64,
    corpus: u64,
}

impl Found {
    fn parse(report: &str) -> Result<Self> {
        let last = report.lines().rfind(|line| is_progress(line)).unwrap_or_default();
        let words: Vec<&str> = last.split_whitespace().collect();
        let after =
            |label: &str| words.iter().position(|word| *word == label).and_then(|at| words.get(at + 1));
        let number = |word: &str| word.trim_start_matches('#').split('/').next().and_then(|n| n.parse().ok());
        let read = || -> Option<Self> {
            Some(Self {
                runs: number(words.first()?)?,
                cov: number(after("cov:")?)?,
                corpus: number(after("corp:")?)?,
            })
        };
        // Without a coverage figure the build lacks its instrumentation, and the run was blind.
        read().with_context(|| format!("libFuzzer reported no coverage; it said:\n{report}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_read() {
        let report = "INFO: Seed: 1\n#2\tINITED cov: 4 ft: 5 corp: 1/1b\n\
                      #123\tDONE   cov: 45 ft: 67 corp: 8/90b lim: 4 exec/s: 1 rss: 30Mb\n\
                      ###### End of recommended dictionary. ######\nDone 123 runs in 1 second(s)\n";
        assert_eq!(Found::parse(report).unwrap(), Found { runs: 123, cov: 45, corpus: 8 });
    }

    #[test]
    fn a_run_without_coverage_is_an_error() {
        assert!(Found::parse("#2\tINITED exec/s: 0 rss: 26Mb\n").is_err());
        assert!(Found::parse("").is_err());
    }

    #[test]
    fn a_target_without_an_entry_is_noticed() {
        let folder = std::env::temp_dir().join(format!("xtask-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("forgotten.rs"), "").unwrap();
        let error = check_declared(&folder, &["other".into()]).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("fuzz/targets/forgotten.rs"), "{error}");
    }
}
