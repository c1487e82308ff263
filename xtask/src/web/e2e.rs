//! Runs the end-to-end stories in `web/app/e2e`: real pages in a real browser play on a real server.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};

use super::{Places, recipe};
use crate::workspace::Workspace;
use crate::{setup, shell};

/// A story that has been flaky once.
struct Story {
    file: &'static str,
    name: &'static str,
}

/// Every story that has been flaky, and why. [`run_long`] repeats them.
const FAILED_BY_CHANCE: &[Story] = &[
    // Walkers stood behind rocks, shots ended in them, and the map moved under the mouse.
    Story { file: "arena", name: "a page walks and shoots among native bots in a room over websocket" },
    Story { file: "arena", name: "a page walks and shoots among native bots in a room over webtransport" },
    Story { file: "arena", name: "what one page plans and builds is seen by another" },
    Story { file: "arena", name: "two thumbs walk, shoot and build on a phone" },
    Story { file: "arena", name: "the same arena is played in lockstep" },
    Story {
        file: "known",
        name: "who reloads has its seat, its place, its walls and its character again, and others see who it is",
    },
    Story { file: "known", name: "a server that was killed and started again has everybody where they were" },
    // The game was over before the story was, or a return was too quick to be seen.
    Story { file: "lobby", name: "two play, one is cut off and returns to the same seat" },
    Story {
        file: "lobby",
        name: "a host is killed in the middle of a game, then the gateway: everybody is back, or has not noticed",
    },
    Story {
        file: "lobby",
        name: "a host that is asked to end hands its session to another one, and the game goes on there",
    },
    // The browser had taken the port. Other stories were affected at times; these need the most ports.
    Story { file: "drop", name: "where WebTransport is swallowed, a page takes WebSocket by itself" },
    Story { file: "drop", name: "a server that was killed and started again is played on by itself" },
    // A tap right after a quick drag is no click.
    Story {
        file: "watching",
        name: "who watches moves the view with keys, mouse and fingers, and follows a player",
    },
    // A point on screen was a prediction that a late input took back.
    Story {
        file: "play",
        name: "a tab that is loaded anew, or left and come back to, has its own seat and score; a copy of it has another seat",
    },
    // The home page's first list was older than the lobby's.
    Story {
        file: "edges",
        name: "a seat waits for a minute and never for longer, and a game that everybody has left is said to be deserted",
    },
    // The other page's game was disturbed by a busy machine.
    Story {
        file: "timed/hidden",
        name: "a page that was hidden and frozen for 30 s catches up, and the other's game is not disturbed",
    },
];

/// How often the whole step is run after that.
const WHOLE_RUNS: u64 = 3;

/// The prerequisites of the stories.
struct Stage {
    app: PathBuf,
    program: PathBuf,
    out: PathBuf,
    chromium: String,
}

impl Stage {
    /// Builds and installs missing parts.
    fn set(workspace: &Workspace) -> Result<Stage> {
        let places = Places::of(workspace);
        recipe::install_packages(&places.app)?;
        // As the tests build it, with the features of the whole workspace: crates that the tests have built are not
        // built again.
        shell::run(shell::cargo(&workspace.root).args(["test", "--workspace", "--no-run", "--quiet"]))?;
        let out = workspace.target.join("e2e");
        let program = workspace.target.join("debug/sametick");
        Ok(Stage { app: places.app, program, out, chromium: chromium()? })
    }

    /// Deletes the output of the last run.
    fn clear(&self) -> Result<()> {
        if self.out.exists() {
            fs::remove_dir_all(&self.out)?;
        }
        Ok(())
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("SAMETICK", &self.program)
            .env("SAMETICK_E2E_OUT", &self.out)
            .env("CHROMIUM", &self.chromium)
    }

    /// Runs one story.
    fn tell(&self, story: &Story) -> Result<()> {
        let pattern = format!("^{}$", escaped(story.name));
        let mut node = Command::new("node");
        node.current_dir(&self.app).args(["--test", "--test-reporter=spec", "--test-name-pattern", &pattern]);
        node.arg(format!("e2e/{}.test.mjs", story.file));
        let mut passed = 0;
        shell::run_watching(self.prepare(&mut node), |line| passed += passes_in(line))?;
        ensure!(passed == 1, "there is no story \"{}\" in {}.test.mjs", story.name, story.file);
        Ok(())
    }

    /// Runs all stories; returns their number, and their measurements.
    fn tell_all(&self) -> Result<(u32, String)> {
        let mut passed = 0;
        let mut notes = Vec::new();
        let mut npm = recipe::npm(&self.app);
        shell::run_watching(self.prepare(npm.args(["run", "e2e"])), |line| {
            passed += passes_in(line);
            notes.extend(line.strip_prefix("ℹ first playable").map(|note| format!("; first playable{note}")));
        })?;
        Ok((passed, notes.concat()))
    }
}

/// Runs them all, and returns where their pictures are.
pub fn run(workspace: &Workspace) -> Result<String> {
    let stage = Stage::set(workspace)?;
    stage.clear()?;
    let evidence = || format!("what pages showed and servers said is in {}", stage.out.display());
    let (passed, notes) = stage.tell_all().with_context(evidence)?;
    Ok(format!("{passed} stories{notes}; pictures in {}", stage.out.join("shots").display()))
}

/// Runs every story that was ever flaky so many times, then all of them a few times, beside a busy core. Failures are
/// counted, and their output is kept.
pub fn run_long(workspace: &Workspace, times: u64) -> Result<()> {
    let stage = Stage::set(workspace)?;
    stage.clear()?;
    let failures = beside_a_busy_core(|| {
        let mut failures = Vec::new();
        for story in FAILED_BY_CHANCE {
            let before = failures.len();
            for time in 1..=times {
                let failed = stage.tell(story).err();
                failures.extend(failed.map(|error| format!("{} ({time} of {times}): {error:#}", story.name)));
            }
            println!("{} of {times} failed: {}", failures.len() - before, story.name);
        }
        for time in 1..=WHOLE_RUNS {
            let failed = stage.tell_all().err();
            failures
                .extend(failed.map(|error| format!("the whole step ({time} of {WHOLE_RUNS}): {error:#}")));
        }
        failures
    });
    ensure!(
        failures.is_empty(),
        "{} failed; what pages showed is in {}\n{}",
        failures.len(),
        stage.out.display(),
        failures.join("\n")
    );
    println!(
        "{} stories {times} times and all of them {WHOLE_RUNS} times: 0 failures",
        FAILED_BY_CHANCE.len()
    );
    Ok(())
}

/// Runs `act` while a thread keeps one core busy.
fn beside_a_busy_core<T>(act: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let result = act();
        is_done.store(true, Ordering::Relaxed);
        result
    })
}

/// The number of passed stories, if this line of the reporter has it.
fn passes_in(line: &str) -> u32 {
    line.strip_prefix("ℹ pass ").and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Escapes a name for use as a literal pattern.
fn escaped(name: &str) -> String {
    let special = |letter: char| r"\.+*?()|[]{}^$/".contains(letter);
    name.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// The path of the browser, which the driver needs.
fn chromium() -> Result<String> {
    let name = setup::chromium();
    if name.contains('/') {
        return Ok(name);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|path| path.is_file());
    let found =
        found.with_context(|| format!("there is no {name}; run `cargo xtask setup`, or set CHROMIUM"))?;
    Ok(found.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_story_of_the_table_is_told() -> Result<()> {
        let places = Places::of(&Workspace::load()?);
        for Story { file, name } in FAILED_BY_CHANCE {
            let told = fs::read_to_string(places.app.join(format!("e2e/{file}.test.mjs")))?;
            // The file of a story that runs for every route does not contain the route.
            let name = name.strip_suffix("websocket").or(name.strip_suffix("webtransport")).unwrap_or(name);
            assert!(told.contains(name), "{file}: {name}");
        }
        Ok(())
    }

    #[test]
    fn a_name_is_meant_literally() {
        assert_eq!(escaped("a (b) c?"), r"a \(b\) c\?");
        assert_eq!((passes_in("ℹ pass 12"), passes_in("ℹ fail 1")), (12, 0));
    }
}
