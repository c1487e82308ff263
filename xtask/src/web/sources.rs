//! One hash over everything that affects the built web app.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::workspace::Workspace;

/// Crates whose build ids cover the Rust part: the compiled ones, the build tools, and the one that writes the build id
/// into games. An id covers the sources of a crate and of those below it, and the locked packages below them.
const CRATES: &[&str] = &["crates/web", "crates/bundle", "crates/build-id"];

/// Tables of the root manifest that change the compiled code of a crate.
const MANIFEST_TABLES: &[&[&str]] =
    &[&["profile", "release"], &["profile", "web"], &["workspace", "package", "version"]];

/// Folders and files of the app that are not its sources.
const NOT_SOURCES: &[&str] = &["dist", "e2e", "node_modules", "src/wasm"];

/// The hash, in hexadecimal.
pub fn hash(workspace: &Workspace) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut part = |name: &str, content: &[u8]| {
        for bytes in [name.as_bytes(), content] {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
    };
    for folder in CRATES {
        let id = sametick_build_id::build_id(&workspace.root.join(folder))?;
        part(folder, id.as_bytes());
    }
    part("Cargo.toml", manifest_part(&workspace.root)?.as_bytes());
    part("recipe", &fs::read(workspace.root.join("xtask/src/web/recipe.rs"))?);
    for (name, path) in app_sources(&workspace.root.join("web/app"))? {
        part(&name, &fs::read(path)?);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn manifest_part(root: &Path) -> Result<String> {
    let manifest: Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let manifest = Value::Table(manifest);
    let value = |path: &&[&str]| path.iter().try_fold(&manifest, |value, key| value.get(key));
    Ok(MANIFEST_TABLES.iter().map(|path| format!("{path:?} {:?}\n", value(path))).collect())
}

/// The sources of the app in the order of their names, which are relative to it and have forward slashes.
fn app_sources(app: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    collect(app, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let file_name = entry.file_name();
        let file_name = file_name.to_str().context("a file name is UTF-8")?;
        let name = format!("{prefix}{file_name}");
        if NOT_SOURCES.contains(&name.as_str()) || is_aside(file_name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.push((name, entry.path()));
        }
    }
    Ok(())
}

/// Whether a file is a text, a test, a tool's setting or an editor's backup: these are not built.
fn is_aside(file_name: &str) -> bool {
    let is_test = file_name.contains(".test.");
    is_test || file_name.starts_with('.') || file_name.ends_with('~') || file_name.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_listed_by_name_without_what_is_made_of_them() {
        let app = std::env::temp_dir().join(format!("sametick-sources-{}", std::process::id()));
        let files = [
            "index.html",
            "README.md",
            ".prettierrc",
            "dist/index.html",
            "e2e/play.mjs",
            "node_modules/vite/package.json",
            "src/main.ts",
            "src/names.test.ts",
            "src/wasm/sametick_web.js",
            "src/lib/wasm/note.ts",
        ];
        for file in files {
            let path = app.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let found = app_sources(&app);
        fs::remove_dir_all(&app).unwrap();
        let names: Vec<String> = found.unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["index.html", "src/lib/wasm/note.ts", "src/main.ts"]);
    }

    #[test]
    fn the_tables_of_the_root_manifest_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let part = manifest_part(root).unwrap();
        assert!(!part.contains("None"), "{part}");
    }
}
