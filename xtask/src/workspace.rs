//! The workspace from `cargo metadata`: its members, their folders, and their dependencies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

pub struct Workspace {
    pub root: PathBuf,
    pub target: PathBuf,
    pub members: Vec<Member>,
}

pub struct Member {
    pub package: String,
    /// Its folder, relative to the root: `crates/sim`.
    pub folder: String,
    pub uses: Vec<Use>,
    /// Names of its binary targets.
    pub binaries: Vec<String>,
}

/// One dependency on a crate of this repository.
pub struct Use {
    pub folder: String,
    pub kind: UseKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UseKind {
    Normal,
    Build,
    Dev,
}

impl Workspace {
    /// The workspace xtask itself belongs to.
    pub fn load() -> Result<Self> {
        let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = xtask.parent().context("xtask lies in the root of the repository")?;
        Self::load_from(root, root)
    }

    /// The workspace of the fuzz targets, which is apart because it needs flags of its own.
    pub fn load_fuzz(root: &Path) -> Result<Self> {
        Self::load_from(root, &root.join("fuzz"))
    }

    fn load_from(root: &Path, folder: &Path) -> Result<Self> {
        let mut cargo = shell::cargo(root);
        cargo.args(["metadata", "--format-version=1", "--no-deps", "--manifest-path"]);
        let metadata = shell::read(cargo.arg(folder.join("Cargo.toml")))?;
        Self::parse(root, &serde_json::from_str(&metadata)?)
    }

    fn parse(root: &Path, metadata: &Value) -> Result<Self> {
        let packages = metadata["packages"].as_array().context("metadata lists packages")?;
        Ok(Self {
            root: root.to_owned(),
            target: PathBuf::from(text(&metadata["target_directory"])?),
            members: packages.iter().map(|package| Member::parse(root, package)).collect::<Result<_>>()?,
        })
    }
}

impl Member {
    fn parse(root: &Path, package: &Value) -> Result<Self> {
        let manifest = Path::new(text(&package["manifest_path"])?);
        let dependencies = package["dependencies"].as_array().context("a package lists dependencies")?;
        let targets = package["targets"].as_array().context("a package lists targets")?;
        let is_binary = |target: &&Value| target["kind"][0] == "bin";
        Ok(Self {
            package: text(&package["name"])?.to_owned(),
            folder: relative(root, manifest.parent().context("a manifest lies in a folder")?),
            uses: dependencies.iter().filter_map(|dependency| Use::parse(root, dependency)).collect(),
            binaries: targets
                .iter()
                .filter(is_binary)
                .map(|target| text(&target["name"]).map(str::to_owned))
                .collect::<Result<_>>()?,
        })
    }
}

impl Use {
    /// `None` for dependencies from outside the repository.
    fn parse(root: &Path, dependency: &Value) -> Option<Self> {
        let path = Path::new(dependency["path"].as_str()?);
        let kind = match dependency["kind"].as_str() {
            Some("build") => UseKind::Build,
            Some("dev") => UseKind::Dev,
            _ => UseKind::Normal,
        };
        Some(Self { folder: relative(root, path), kind })
    }
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("cargo metadata changed its format: expected a string")
}

/// `path` as seen from `root`, with forward slashes.
fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_their_uses_are_read() {
        let metadata = serde_json::json!({
            "target_directory": "/r/target",
            "packages": [{
                "name": "sametick-wire",
                "manifest_path": "/r/crates/wire/Cargo.toml",
                "dependencies": [
                    { "name": "sametick-sim", "kind": null, "path": "/r/crates/sim" },
                    { "name": "sametick-build-id", "kind": "build", "path": "/r/crates/build-id" },
                    { "name": "serde", "kind": null },
                ],
                "targets": [{ "name": "wire", "kind": ["lib"] }, { "name": "tool", "kind": ["bin"] }],
            }],
        });
        let workspace = Workspace::parse(Path::new("/r"), &metadata).unwrap();
        let wire = &workspace.members[0];
        assert_eq!(
            (wire.folder.as_str(), wire.binaries.as_slice()),
            ("crates/wire", &["tool".to_owned()][..])
        );
        let uses: Vec<_> = wire.uses.iter().map(|used| (used.folder.as_str(), used.kind)).collect();
        assert_eq!(uses, [("crates/sim", UseKind::Normal), ("crates/build-id", UseKind::Build)]);
    }
}
