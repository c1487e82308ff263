//! The build recipe of the web app. Its bytes do not depend on the machine: paths are remapped, and neither flags of
//! the environment nor a user's configuration reach the compiler. This file is one of the sources that the manifest
//! covers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::manifest::Manifest;
use super::{Places, sources};
use crate::shell;
use crate::wasm::{TARGET, Toolchain};
use crate::workspace::Workspace;

const PACKAGE: &str = "sametick-web";
const MODULE: &str = "sametick_web.wasm";
const BUNDLE: &str = "sametick-bundle";
const PROFILE: &str = "web";

/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`, which has precedence over every other place for flags.
const FLAG_SEPARATOR: &str = "\x1f";

/// A file beside the npm packages that names the lock file they were installed for.
const INSTALLED: &str = "node_modules/.sametick-installed";

/// Builds everything, the app into `dist`, and returns the manifest that belongs to it.
pub fn build(workspace: &Workspace, dist: &Path) -> Result<Manifest> {
    let places = Places::of(workspace);
    let toolchain = Toolchain::find()?.context("no toolchain for wasm32; run `cargo xtask setup`")?;
    let module = build_module(workspace, &toolchain)?;
    bind(workspace, &module, &places.bindings)?;
    install_packages(&places.app)?;
    shell::run(npm(&places.app).args(["run", "check"]))?;
    shell::run(npm(&places.app).arg("test"))?;
    shell::run(npm(&places.app).args(["run", "build", "--", "--emptyOutDir", "--outDir"]).arg(dist))?;
    Ok(Manifest {
        compiler: compiler(&toolchain)?,
        made_with: made_with(&places.app)?,
        sources: sources::hash(workspace)?,
        builds: builds(workspace, &places.bindings)?,
        files: pack(workspace, dist)?,
    })
}

/// The compiler's name and host: together they decide the bytes of the module.
pub fn compiler(toolchain: &Toolchain) -> Result<String> {
    let verbose = shell::read(toolchain.rustc().arg("-vV"))?;
    let version = verbose.lines().next().context("`rustc -vV` begins with its version")?;
    let host = verbose.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(format!("{version} {}", host.context("`rustc -vV` names its host")?))
}

/// Why the app cannot be built here, if so.
pub fn why_no_packages(app: &Path) -> Result<Option<String>> {
    let (needed, node) = (needed_node(app)?, node_version()?);
    if version(&node) < version(&needed) {
        return Ok(Some(format!("Node is {node}, the app needs {needed}")));
    }
    let reason = "packages are not installed, and npm does not reach a registry";
    Ok((!can_install(app)).then(|| reason.into()))
}

fn needed_node(app: &Path) -> Result<String> {
    let package: Value = serde_json::from_str(&std::fs::read_to_string(app.join("package.json"))?)?;
    Ok(package["engines"]["node"].as_str().context("package.json names the Node it needs")?.to_owned())
}

fn node_version() -> Result<String> {
    Ok(shell::read(Command::new("node").arg("--version"))?.trim().to_owned())
}

/// The numbers in `v20.20.2` or `>=20.19`.
fn version(text: &str) -> Vec<u32> {
    let numbers = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    numbers.split('.').map_while(|number| number.parse().ok()).collect()
}

fn can_install(app: &Path) -> bool {
    packages_are_installed(app).unwrap_or(false)
        || shell::succeeds(npm(app).args(["ping", "--fetch-retries=0"]))
}

fn build_module(workspace: &Workspace, toolchain: &Toolchain) -> Result<PathBuf> {
    let target_dir = workspace.target.join(toolchain.folder());
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["build", "--locked", "--package", PACKAGE, "--profile", PROFILE, "--target", TARGET]);
    cargo.arg("--target-dir").arg(&target_dir);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", remaps(workspace, toolchain)?.join(FLAG_SEPARATOR));
    toolchain.prepare(&mut cargo);
    shell::run(&mut cargo)?;
    let module = target_dir.join(TARGET).join(PROFILE).join(MODULE);
    ensure!(module.exists(), "{} was not built: is the crate a cdylib?", module.display());
    Ok(module)
}

/// Panics name the file they are in; these names must not be paths of this machine.
fn remaps(workspace: &Workspace, toolchain: &Toolchain) -> Result<Vec<String>> {
    let sysroot = shell::read(toolchain.rustc().args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    // The later of two matching ones wins: a path inside another comes after it.
    let mut pairs = vec![(cargo_home()?, "/cargo".to_owned())];
    pairs.extend(registry_sources()?.into_iter().map(|folder| (folder, "/crates".to_owned())));
    pairs.extend([
        (library, library_name(toolchain)?),
        (workspace.root.clone(), "/sametick".to_owned()),
        (workspace.target.clone(), "/target".to_owned()),
    ]);
    Ok(pairs.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect())
}

/// The compiler's name for its library sources where they are not installed (the component `rust-src`): the module is
/// the same with and without them.
fn library_name(toolchain: &Toolchain) -> Result<String> {
    let verbose = shell::read(toolchain.rustc().arg("-vV"))?;
    let commit = verbose.lines().find_map(|line| line.strip_prefix("commit-hash: "));
    Ok(format!("/rustc/{}", commit.context("`rustc -vV` names its commit")?))
}

fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home).context("where is cargo's home?")
}

/// The folders of crate sources, which are named after the registry they were fetched from.
fn registry_sources() -> Result<Vec<PathBuf>> {
    let all = cargo_home()?.join("registry/src");
    let folders = std::fs::read_dir(&all).with_context(|| format!("cannot read {}", all.display()))?;
    Ok(folders.filter_map(Result::ok).map(|entry| entry.path()).collect())
}

fn bind(workspace: &Workspace, module: &Path, bindings: &Path) -> Result<()> {
    if bindings.exists() {
        std::fs::remove_dir_all(bindings)?;
    }
    shell::run(bundle(workspace)?.arg("bind").arg(module).arg(bindings))
}

/// Compresses the app's files, each beside its plain form: `dist` was emptied before, so there are no older ones.
fn pack(workspace: &Workspace, dist: &Path) -> Result<serde_json::Map<String, Value>> {
    let packed = shell::read(bundle(workspace)?.arg("pack").arg(dist))?;
    Ok(serde_json::from_str(&packed)?)
}

/// The program that binds and packs, built with the features of the whole workspace: crates that the tests have built
/// are not built again.
fn bundle(workspace: &Workspace) -> Result<Command> {
    let mut cargo = shell::cargo(&workspace.root);
    shell::run(cargo.args(["build", "--quiet", "--locked", "--workspace", "--bin", BUNDLE]))?;
    let name = format!("{BUNDLE}{}", std::env::consts::EXE_SUFFIX);
    Ok(Command::new(workspace.target.join("debug").join(name)))
}

pub fn npm(app: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(app).stdin(Stdio::null());
    npm
}

pub fn install_packages(app: &Path) -> Result<()> {
    if packages_are_installed(app)? {
        return Ok(());
    }
    shell::run(npm(app).args(["ci", "--no-audit", "--no-fund"]))?;
    Ok(std::fs::write(app.join(INSTALLED), lock_hash(app)?)?)
}

fn packages_are_installed(app: &Path) -> Result<bool> {
    let lock = lock_hash(app)?;
    Ok(std::fs::read_to_string(app.join(INSTALLED)).is_ok_and(|installed| installed == lock))
}

fn lock_hash(app: &Path) -> Result<String> {
    let lock = app.join("package-lock.json");
    let bytes = std::fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

/// Information for people who look for the cause of a difference. It is not compared.
fn made_with(app: &Path) -> Result<Value> {
    let vite: Value =
        serde_json::from_str(&std::fs::read_to_string(app.join("node_modules/vite/package.json"))?)?;
    Ok(serde_json::json!({ "node": node_version()?, "vite": vite["version"] }))
}

/// The build ids of the games in the module, which must be those of a native build.
fn builds(workspace: &Workspace, bindings: &Path) -> Result<Value> {
    let script = workspace.root.join("crates/web/builds.mjs");
    let printed = shell::read(Command::new("node").arg(script).arg(bindings))?;
    let builds: Value = serde_json::from_str(&printed).context("the module's builds() is JSON")?;
    for (game, build) in builds.as_object().context("the module's builds() is an object")? {
        let native = sametick_build_id::build_id(&workspace.root.join("games").join(game))?.to_string();
        ensure!(*build == native, "{game} is {build} in the module, but natively \"{native}\"");
    }
    Ok(builds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(version("v20.9.0") < version(">=20.19"));
        assert!(version("v20.19.0") >= version(">=20.19"));
        assert!(version("v22.1.0") >= version(">=20.19"));
    }
}
