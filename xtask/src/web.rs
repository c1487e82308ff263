//! The web app: built by one pinned recipe, committed, and checked against its sources.
//!
//! `web/app/dist` is in the repository, so that the product builds without Node. Its manifest states its origin: a hash
//! over every source that affects it, and the compiler. The hash is always compared; the bytes only where the same
//! compiler is installed, for only the same compiler makes the same bytes.

mod check;
mod e2e;
mod manifest;
mod recipe;
mod sources;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::workspace::Workspace;

pub use check::check;
pub use e2e::{run as end_to_end, run_long as end_to_end_long};

const HELP: &str = "\
Build the web app, check that what is committed was built from these sources, or play it in a browser.

Usage: cargo xtask web build
       cargo xtask web check
       cargo xtask web e2e

  build   the wasm module, its bindings, the app, and web/app/dist/manifest.json
  check   the sources hash to what the manifest says, the files too; where the compiler is the manifest's and npm
          works, everything is built again and compared byte for byte
  e2e     pages in Chromium play on a server with the app that is in web/app/dist; pictures of every page and
          state, and what was seen and said if something fails, are left in target/e2e
";

/// Paths of the web app.
struct Places {
    app: PathBuf,
    /// The output of wasm-bindgen, imported by the app's sources. Not committed.
    bindings: PathBuf,
    dist: PathBuf,
}

impl Places {
    fn of(workspace: &Workspace) -> Self {
        let app = workspace.root.join("web/app");
        Self { bindings: app.join("src/wasm"), dist: app.join("dist"), app }
    }
}

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.help() {
        print!("{HELP}");
        return Ok(());
    }
    let word = arguments.word();
    arguments.finish()?;
    let workspace = Workspace::load()?;
    match word.as_deref() {
        Some("build") => build(&workspace),
        Some("check") => check(&workspace).map(|note| println!("{note}")),
        Some("e2e") => end_to_end(&workspace).map(|note| println!("{note}")),
        _ => bail!("build it, check it, or play it?\n\n{HELP}"),
    }
}

fn build(workspace: &Workspace) -> Result<()> {
    let places = Places::of(workspace);
    let built = recipe::build(workspace, &places.dist)?;
    built.write(&places.dist)?;
    println!("{}", built.shown());
    built.check_size()
}
