//! Parses a crate's `Cargo.toml`, with everything inherited from its workspace filled in.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::Error;

/// A parsed manifest and where it lies.
pub(crate) struct Manifest {
    pub(crate) folder: PathBuf,
    table: Table,
    workspace: Option<Workspace>,
}

/// The root of the workspace a crate belongs to.
struct Workspace {
    folder: PathBuf,
    table: Table,
}

/// One dependency as declared.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The name the sources use.
    pub(crate) alias: String,
    /// The name of the package, which differs from the alias when it is renamed.
    pub(crate) package: String,
    /// The required version; `*` if none is given.
    pub(crate) version: String,
    /// Where it lies, for a path dependency.
    pub(crate) path: Option<PathBuf>,
    /// Whether it may be missing from the lock file.
    pub(crate) optional: bool,
    /// Features and conditions as declared, for the hash.
    pub(crate) terms: String,
}

impl Manifest {
    /// Reads the manifest in `folder` and, if it inherits anything, that of its workspace.
    pub(crate) fn read(folder: &Path) -> Result<Manifest, Error> {
        let table = read_toml(&folder.join("Cargo.toml"))?;
        let workspace = Workspace::find(folder, &table)?;
        Ok(Manifest { folder: folder.to_path_buf(), table, workspace })
    }

    /// The manifest's own file, and the workspace's if it is another.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let folders = std::iter::once(&self.folder).chain(self.workspace.as_ref().map(|root| &root.folder));
        folders.map(|folder| folder.join("Cargo.toml")).collect()
    }

    pub(crate) fn name(&self) -> Result<String, Error> {
        self.package_key("name").ok_or_else(|| self.invalid("no [package] name".into()))
    }

    /// The version, which only serves to find the crate in the lock file.
    pub(crate) fn version(&self) -> Option<String> {
        self.package_key("version")
    }

    pub(crate) fn edition(&self) -> String {
        self.package_key("edition").unwrap_or_else(|| "2015".into())
    }

    /// The `[features]` table in one canonical text.
    pub(crate) fn features(&self) -> String {
        self.table.get("features").map(canonical).unwrap_or_default()
    }

    /// The folder or file of the library outside `src`, if it lies there.
    pub(crate) fn library_path(&self) -> Option<PathBuf> {
        let path = self.table.get("lib")?.get("path")?.as_str()?;
        Some(self.folder.join(path))
    }

    /// The build script, if there is one: it may write code.
    pub(crate) fn build_script(&self) -> Option<PathBuf> {
        let declared = self.table.get("package").and_then(|package| package.get("build"));
        let path = match declared {
            Some(Value::Boolean(false)) => return None,
            Some(Value::String(path)) => self.folder.join(path),
            _ => self.folder.join("build.rs"),
        };
        path.is_file().then_some(path)
    }

    /// Every normal dependency, for all targets, sorted by alias and terms.
    pub(crate) fn dependencies(&self) -> Result<Vec<Dependency>, Error> {
        let mut found = Vec::new();
        self.collect(self.table.get("dependencies"), "", &mut found)?;
        for (target, tables) in self.table.get("target").and_then(Value::as_table).into_iter().flatten() {
            self.collect(tables.get("dependencies"), target, &mut found)?;
        }
        found.sort_by(|a, b| (&a.alias, &a.terms).cmp(&(&b.alias, &b.terms)));
        Ok(found)
    }

    /// The folder that `[patch]` in the workspace root puts in place of a registry package.
    pub(crate) fn patched(&self, package: &str) -> Option<PathBuf> {
        let (folder, table) = match &self.workspace {
            Some(root) => (&root.folder, &root.table),
            None => (&self.folder, &self.table),
        };
        let sources = table.get("patch")?.as_table()?.values().filter_map(Value::as_table);
        sources.flatten().find_map(|(key, entry)| {
            let name = entry.get("package").and_then(Value::as_str).unwrap_or(key);
            let path = entry.get("path")?.as_str()?;
            (name == package).then(|| folder.join(path))
        })
    }

    pub(crate) fn invalid(&self, what: String) -> Error {
        Error::Invalid(self.folder.join("Cargo.toml"), what)
    }

    /// A text in `[package]`, taken from the workspace if it is inherited.
    fn package_key(&self, key: &str) -> Option<String> {
        let value = self.table.get("package")?.get(key)?;
        let value = if inherits(value) { self.workspace_value(&["package", key])? } else { value };
        value.as_str().map(str::to_owned)
    }

    fn workspace_value(&self, path: &[&str]) -> Option<&Value> {
        let start = self.workspace.as_ref()?.table.get("workspace")?;
        path.iter().try_fold(start, |value, key| value.get(key))
    }

    fn collect(&self, table: Option<&Value>, target: &str, found: &mut Vec<Dependency>) -> Result<(), Error> {
        for (alias, entry) in table.and_then(Value::as_table).into_iter().flatten() {
            found.push(self.dependency(alias, entry, target)?);
        }
        Ok(())
    }

    fn dependency(&self, alias: &str, entry: &Value, target: &str) -> Result<Dependency, Error> {
        let (base, folder) = if inherits(entry) {
            let base = self.workspace_value(&["dependencies", alias]).ok_or_else(|| {
                self.invalid(format!("`{alias}` is inherited, but no workspace above declares it"))
            })?;
            (base, self.workspace.as_ref().map_or(&self.folder, |root| &root.folder))
        } else {
            (entry, &self.folder)
        };
        let text = |key: &str| base.get(key).and_then(Value::as_str);
        Ok(Dependency {
            alias: alias.to_owned(),
            package: text("package").unwrap_or(alias).to_owned(),
            version: text("version").or(base.as_str()).unwrap_or("*").to_owned(),
            path: text("path").map(|path| folder.join(path)),
            optional: entry.get("optional").and_then(Value::as_bool).unwrap_or(false),
            terms: terms(base, entry, target),
        })
    }
}

impl Workspace {
    /// The workspace of the crate in `folder`: itself, the one it names, or the nearest above.
    fn find(folder: &Path, table: &Table) -> Result<Option<Workspace>, Error> {
        if table.contains_key("workspace") {
            return Ok(Some(Workspace { folder: folder.to_path_buf(), table: table.clone() }));
        }
        if let Some(named) = table.get("package").and_then(|package| package.get("workspace")?.as_str()) {
            let folder = folder.join(named);
            let table = read_toml(&folder.join("Cargo.toml"))?;
            return Ok(Some(Workspace { folder, table }));
        }
        for above in folder.ancestors().skip(1) {
            let file = above.join("Cargo.toml");
            if !file.is_file() {
                continue;
            }
            let table = read_toml(&file)?;
            if table.contains_key("workspace") {
                return Ok(Some(Workspace { folder: above.to_path_buf(), table }));
            }
        }
        Ok(None)
    }
}

/// Reads one TOML file.
pub(crate) fn read_toml(path: &Path) -> Result<Table, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Read(path.to_path_buf(), error))?;
    text.parse().map_err(|error| Error::Toml(path.to_path_buf(), Box::new(error)))
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// Everything declared about a dependency that may change what it compiles to, in one text.
fn terms(base: &Value, entry: &Value, target: &str) -> String {
    let mut features: Vec<&str> = Vec::new();
    for value in [base, entry] {
        let listed = value.get("features").and_then(Value::as_array).into_iter().flatten();
        features.extend(listed.filter_map(Value::as_str));
    }
    features.sort_unstable();
    features.dedup();
    let default = [base, entry].iter().any(|value| {
        value.get("default-features").or(value.get("default_features")).and_then(Value::as_bool)
            == Some(false)
    });
    let optional = entry.get("optional").and_then(Value::as_bool).unwrap_or(false);
    format!("target={target:?} features={features:?} no-default={default} optional={optional}")
}

/// TOML in a canonical form, independent of its order and layout. Tables are sorted by key.
fn canonical(value: &Value) -> String {
    match value {
        Value::Table(table) => {
            let mut keys: Vec<_> = table.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_str());
            let lines: Vec<_> =
                keys.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            format!("{{{}}}", lines.join(","))
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(canonical).collect();
            items.sort_unstable();
            format!("[{}]", items.join(","))
        }
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}
