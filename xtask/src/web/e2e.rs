//! The stories in `web/app/e2e`: real pages in a real browser play on a real server.

use std::fs;

use anyhow::{Context, Result};

use super::{Places, recipe};
use crate::workspace::Workspace;
use crate::{setup, shell};

/// Runs them all, and says where their pictures are.
pub fn run(workspace: &Workspace) -> Result<String> {
    let places = Places::of(workspace);
    recipe::install_packages(&places.app)?;
    // As the tests build it, with the features that all of them ask for: what they have built already is not built again.
    shell::run(shell::cargo(&workspace.root).args(["test", "--workspace", "--no-run", "--quiet"]))?;
    let out = workspace.target.join("e2e");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let mut passed = 0;
    let mut notes = Vec::new();
    let mut npm = recipe::npm(&places.app);
    npm.args(["run", "e2e"])
        .env("SAMETICK", workspace.target.join("debug/sametick"))
        .env("SAMETICK_E2E_OUT", &out)
        .env("CHROMIUM", chromium()?);
    shell::run_watching(&mut npm, |line| {
        passed += line.strip_prefix("ℹ pass ").and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
        notes.extend(line.strip_prefix("ℹ first playable").map(|note| format!("; first playable{note}")));
    })
    .with_context(|| format!("what pages showed and servers said is in {}", out.display()))?;
    Ok(format!("{passed} stories{}; pictures in {}", notes.concat(), out.join("shots").display()))
}

/// Where the browser lies: the driver asks for a path.
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
