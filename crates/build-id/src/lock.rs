//! Parses `Cargo.lock` and resolves the versions of a crate's dependencies.

use std::path::{Path, PathBuf};

use semver::{Version, VersionReq};
use toml::Value;

use crate::manifest::read_toml;
use crate::{Error, manifest};

/// A parsed lock file.
pub(crate) struct Lock {
    pub(crate) path: PathBuf,
    packages: Vec<Package>,
}

/// One locked package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Where it comes from; `None` for a package in a folder.
    pub(crate) source: Option<String>,
    pub(crate) checksum: Option<String>,
    /// As written: `name`, `name version` or `name version (source)`, the shortest form that is unambiguous.
    dependencies: Vec<String>,
}

impl Lock {
    /// Finds and reads the lock file in `folder` or the nearest above it.
    pub(crate) fn find(folder: &Path) -> Result<Lock, Error> {
        let path = folder.ancestors().map(|above| above.join("Cargo.lock")).find(|path| path.is_file());
        let path = path.ok_or_else(|| Error::NoLock(folder.to_path_buf()))?;
        let table = read_toml(&path)?;
        let entries = table.get("package").and_then(Value::as_array).into_iter().flatten();
        let packages = entries.map(|entry| Package::read(entry, &path)).collect::<Result<_, _>>()?;
        Ok(Lock { path, packages })
    }

    /// The entry of a crate that lies in a folder.
    pub(crate) fn local(&self, name: &str, version: Option<&str>) -> Option<&Package> {
        let named = || self.packages.iter().filter(|package| package.name == name);
        let exact = named().find(|p| p.source.is_none() && version.is_none_or(|v| v == p.version));
        // With a version inherited in a way that is not followed, the only entry of that name is meant.
        exact.or_else(|| named().next().filter(|_| named().count() == 1))
    }

    /// The package that `by` gets when it asks for `wanted`.
    pub(crate) fn resolve<'a>(
        &'a self,
        by: &'a Package,
        wanted: &manifest::Dependency,
    ) -> Option<&'a Package> {
        let request = VersionReq::parse(&wanted.version).ok();
        let fits = |package: &&Package| {
            let version = Version::parse(&package.version).ok();
            package.name == wanted.package
                && request.as_ref().zip(version).is_none_or(|(request, version)| request.matches(&version))
        };
        // Several may fit (a dev-dependency on another version): Cargo takes the newest, and so does this function.
        let fitting = self.dependencies(by).filter(fits);
        fitting.max_by_key(|package| Version::parse(&package.version).ok())
    }

    /// The direct dependencies of a package.
    pub(crate) fn dependencies<'a>(&'a self, of: &'a Package) -> impl Iterator<Item = &'a Package> {
        of.dependencies.iter().filter_map(|reference| self.by_reference(reference))
    }

    fn by_reference(&self, reference: &str) -> Option<&Package> {
        let mut words = reference.split(' ');
        let (name, version, source) = (words.next()?, words.next(), words.next());
        let source = source.map(|text| text.trim_matches(['(', ')']));
        self.packages.iter().find(|package| {
            package.name == name
                && version.is_none_or(|version| version == package.version)
                && source
                    .is_none_or(|source| package.source.as_deref().is_some_and(|s| s.starts_with(source)))
        })
    }
}

impl Package {
    fn read(entry: &Value, path: &Path) -> Result<Package, Error> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let need = |key: &str| {
            text(key).ok_or_else(|| Error::Invalid(path.to_path_buf(), format!("a package without {key}")))
        };
        let listed = entry.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        Ok(Package {
            name: need("name")?,
            version: need("version")?,
            source: text("source"),
            checksum: text("checksum"),
            dependencies: listed.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }
}
