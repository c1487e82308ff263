//! The test command: all checks in order, each step named and timed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::wasm::Toolchain;
use crate::workspace::Workspace;
use crate::{deny, fuzz, setup, shell, tidy, wasm, web};

const HELP: &str = "\
Run everything that must pass, in order, and stop at the first failure.

Usage: cargo xtask test [--only STEP] [--list]

  --only STEP   run one step
  --list        name the steps and what each checks
";

/// Long enough to find a shallow mistake in a decoder, short enough for every commit.
const FUZZ_SECONDS: u64 = 5;

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Result<Outcome>,
}

enum Outcome {
    Passed,
    /// Passed, with a note for the summary.
    Noted(String),
    Skipped(String),
}

const STEPS: &[Step] = &[
    Step { name: "setup", about: "the tools the other steps need are there", run: run_setup },
    Step { name: "fmt", about: "the code is formatted", run: run_fmt },
    Step { name: "clippy", about: "no warnings, and none of the bans in clippy.toml", run: run_clippy },
    Step { name: "tidy", about: "the house rules (cargo xtask tidy --help)", run: run_tidy },
    Step { name: "test", about: "unit, integration and documentation tests", run: run_tests },
    Step { name: "doc", about: "the documentation builds without warnings", run: run_doc },
    Step { name: "wasm", about: "pure crates build for wasm32 and hash as they do natively", run: run_wasm },
    Step { name: "web", about: "the committed web app was built from these sources", run: run_web },
    Step { name: "e2e", about: "pages in a browser play, lose their connection and come back", run: run_e2e },
    Step { name: "fuzz", about: "each fuzz target survives a few seconds", run: run_fuzz },
    Step { name: "deny", about: "licences, advisories and sources of dependencies", run: run_deny },
];

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.help() {
        print!("{HELP}");
        return Ok(());
    }
    let list = arguments.flag("--list");
    let only: Option<String> = arguments.value("--only")?;
    arguments.finish()?;
    if list {
        print!("{}", listing());
        return Ok(());
    }
    let steps = match &only {
        None => STEPS.iter().collect(),
        Some(name) => vec![find(name)?],
    };
    run_all(&Workspace::load()?, &steps)
}

fn listing() -> String {
    STEPS.iter().map(|step| format!("{:8} {}\n", step.name, step.about)).collect()
}

fn find(name: &str) -> Result<&'static Step> {
    let step = STEPS.iter().find(|step| step.name == name);
    step.with_context(|| format!("there is no step `{name}`; the steps are\n\n{}", listing()))
}

fn run_all(workspace: &Workspace, steps: &[&Step]) -> Result<()> {
    let start = Instant::now();
    let mut summary = String::new();
    let mut skipped = 0;
    for step in steps {
        println!("\n=== {}: {}", step.name, step.about);
        let begin = Instant::now();
        let result = (step.run)(workspace);
        summary += &summary_line(step.name, begin.elapsed(), &result);
        skipped += usize::from(matches!(result, Ok(Outcome::Skipped(_))));
        if let Err(error) = result {
            println!("\n{summary}");
            let alone = format!("run this step alone: cargo xtask test --only {}", step.name);
            return Err(error.context(format!("step `{}` failed ({alone})", step.name)));
        }
    }
    let passed = steps.len() - skipped;
    println!(
        "\n{summary}\nsteps: {passed} passed, {skipped} skipped, 0 failed, in {}",
        seconds(start.elapsed())
    );
    Ok(())
}

fn summary_line(name: &str, elapsed: Duration, result: &Result<Outcome>) -> String {
    let word = match result {
        Ok(Outcome::Passed) => "ok".to_owned(),
        Ok(Outcome::Noted(note)) => format!("ok: {note}"),
        Ok(Outcome::Skipped(why)) => format!("SKIPPED: {why}"),
        Err(_) => "FAILED".to_owned(),
    };
    format!("{name:8} {:>9}  {word}\n", seconds(elapsed))
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

fn run_setup(_: &Workspace) -> Result<Outcome> {
    setup::ensure()?;
    Ok(Outcome::Passed)
}

fn run_fmt(workspace: &Workspace) -> Result<Outcome> {
    shell::run(shell::cargo(&workspace.root).args(["fmt", "--all", "--check"]))?;
    shell::run(shell::cargo(&workspace.root).args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]))?;
    Ok(Outcome::Passed)
}

fn run_clippy(workspace: &Workspace) -> Result<Outcome> {
    let deny = ["--all-targets", "--", "-D", "warnings"];
    shell::run(shell::cargo(&workspace.root).args(["clippy", "--workspace"]).args(deny))?;
    shell::run(fuzz::plain_cargo(workspace, "clippy").args(deny))?;
    Ok(Outcome::Passed)
}

fn run_tidy(workspace: &Workspace) -> Result<Outcome> {
    tidy::check(workspace)?;
    Ok(Outcome::Passed)
}

fn run_tests(workspace: &Workspace) -> Result<Outcome> {
    let mut counts = Counts::default();
    // Plain `cargo test`, because only it runs the examples in the documentation.
    let mut cargo = shell::cargo(&workspace.root);
    shell::run_watching(cargo.args(["test", "--workspace"]), |line| counts.add(line))?;
    shell::run_watching(&mut fuzz::plain_cargo(workspace, "test"), |line| counts.add(line))?;
    // Planted bugs are a feature that no other build may have.
    let planted = ["test", "-p", "sametick-simulator", "--features", "planted", "--test", "planted"];
    shell::run_watching(shell::cargo(&workspace.root).args(planted), |line| counts.add(line))?;
    let note = counts.shown();
    println!("\n{note}");
    Ok(Outcome::Noted(note))
}

/// The sums over all `test result:` lines.
#[derive(Default, Debug, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Counts {
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result:") else { return };
        let words: Vec<&str> = counts.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else { continue };
            match pair[1].trim_end_matches(';') {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    fn shown(&self) -> String {
        format!("{} tests passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

fn run_doc(workspace: &Workspace) -> Result<Outcome> {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps"]);
    shell::run(&mut cargo)?;
    Ok(Outcome::Passed)
}

fn run_wasm(workspace: &Workspace) -> Result<Outcome> {
    let toolchain = Toolchain::find()?.context("no toolchain for wasm32; run `cargo xtask setup`")?;
    wasm::check(workspace, &toolchain)?;
    Ok(Outcome::Passed)
}

fn run_web(workspace: &Workspace) -> Result<Outcome> {
    web::check(workspace).map(Outcome::Noted)
}

fn run_e2e(workspace: &Workspace) -> Result<Outcome> {
    web::end_to_end(workspace).map(Outcome::Noted)
}

fn run_fuzz(workspace: &Workspace) -> Result<Outcome> {
    fuzz::run_each(workspace, FUZZ_SECONDS).map(Outcome::Noted)
}

fn run_deny(workspace: &Workspace) -> Result<Outcome> {
    // Compiling cargo-deny takes longer than every other step together, so it runs only where it is installed.
    if !deny::is_installed(workspace) {
        return Ok(Outcome::Skipped(
            "cargo-deny is not here; `cargo xtask long deny` installs and runs it".into(),
        ));
    }
    deny::check(workspace).map(Outcome::Noted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn counts_are_summed_over_binaries() {
        let mut counts = Counts::default();
        counts.add("running 3 tests");
        counts.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.1s",
        );
        counts.add("test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(counts, Counts { passed: 7, failed: 2, ignored: 1 });
    }

    #[test]
    fn a_failure_and_a_skip_are_visible_in_the_summary() {
        let second = Duration::from_secs(1);
        assert!(summary_line("fmt", second, &Err(anyhow!("no"))).contains("FAILED"));
        let skipped = Ok(Outcome::Skipped("not there".into()));
        assert_eq!(summary_line("deny", second, &skipped), "deny         1.0 s  SKIPPED: not there\n");
    }

    #[test]
    fn an_unknown_step_lists_the_known_ones() {
        let error = find("nonsense").err().unwrap().to_string();
        assert!(STEPS.iter().all(|step| error.contains(step.name)), "{error}");
    }
}
