//! Checks that the committed web app is what its sources build to.

use anyhow::{Context, Result, bail, ensure};

use super::manifest::Manifest;
use super::{Places, recipe, sources};
use crate::wasm::Toolchain;
use crate::workspace::Workspace;

const REBUILD: &str = "run `cargo xtask web build` and commit web/app/dist";

/// Compares as much as this machine allows, and returns what was compared.
pub fn check(workspace: &Workspace) -> Result<String> {
    let places = Places::of(workspace);
    let committed = Manifest::read(&places.dist)?;
    ensure!(
        sources::hash(workspace)? == committed.sources,
        "web/app/dist was built from other sources: {REBUILD}"
    );
    committed.check_files(&places.dist).with_context(|| format!("web/app/dist was changed: {REBUILD}"))?;
    committed.check_size()?;
    let size = committed.shown();
    if let Some(why) = why_not_built_again(&places, &committed)? {
        return Ok(format!("{size}; sources and hashes as committed; bytes not compared: {why}"));
    }
    let again = workspace.target.join("web-dist");
    let built = recipe::build(workspace, &again)?;
    if let Some(name) = committed.difference(&built) {
        bail!("{name} is built to other bytes than are committed (compare {}): {REBUILD}", again.display());
    }
    Ok(format!("{size}; built again to the same bytes"))
}

fn why_not_built_again(places: &Places, committed: &Manifest) -> Result<Option<String>> {
    let Some(toolchain) = Toolchain::find()? else { return Ok(Some("no toolchain for wasm32".into())) };
    let compiler = recipe::compiler(&toolchain)?;
    if compiler != committed.compiler {
        return Ok(Some(format!("built by {}, here is {compiler}", committed.compiler)));
    }
    recipe::why_no_packages(&places.app)
}
