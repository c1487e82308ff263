//! Walks from a game's manifest over its path dependencies and locked packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::lock::{Lock, Package};
use crate::manifest::{Dependency, Manifest};
use crate::{Error, Id, Inspection, sources};

/// The crates and packages found so far.
pub(crate) struct Visit {
    lock: Lock,
    root: String,
    /// Crates in folders by their true path, so that each is visited once; the value is their name and own hash.
    crates: BTreeMap<PathBuf, (String, Id)>,
    locked: BTreeSet<Package>,
    inputs: BTreeSet<PathBuf>,
}

impl Visit {
    /// Visits the crate in `folder` and everything below it.
    pub(crate) fn start(folder: &Path) -> Result<Visit, Error> {
        // Cargo reads manifests by their true path; a workspace is looked for above that.
        let folder = true_path(folder)?;
        let lock = Lock::find(&folder)?;
        let root = Manifest::read(&folder)?.name()?;
        let inputs = BTreeSet::from([lock.path.clone()]);
        let mut visit = Visit { lock, root, crates: BTreeMap::new(), locked: BTreeSet::new(), inputs };
        visit.folder(&folder)?;
        Ok(visit)
    }

    /// The hash over everything found. Crates are ordered by name and content, never by place.
    pub(crate) fn finish(self) -> Result<Inspection, Error> {
        let mut digest = Digest::new();
        digest.part(self.root.as_bytes());
        let crates: BTreeSet<_> = self.crates.into_values().collect();
        digest.count(crates.len());
        for (name, id) in &crates {
            digest.part(name.as_bytes());
            digest.part(id.as_bytes());
        }
        digest.count(self.locked.len());
        for package in &self.locked {
            digest.part(package.name.as_bytes());
            digest.part(package.version.as_bytes());
            // A checksum covers the content; a git dependency has none, but its source names the commit.
            let content = package.checksum.as_ref().or(package.source.as_ref());
            digest.part(content.map_or(&[], String::as_bytes));
        }
        Ok(Inspection { id: digest.finish(), inputs: self.inputs.into_iter().collect() })
    }

    fn folder(&mut self, folder: &Path) -> Result<(), Error> {
        let folder = true_path(folder)?;
        if self.crates.contains_key(&folder) {
            return Ok(());
        }
        let manifest = Manifest::read(&folder)?;
        let dependencies = manifest.dependencies()?;
        let id = self.own_hash(&manifest, &dependencies)?;
        self.crates.insert(folder, (manifest.name()?, id));
        self.inputs.extend(manifest.files());
        dependencies.iter().try_for_each(|dependency| self.dependency(&manifest, dependency))
    }

    /// The hash of one crate without its dependencies.
    fn own_hash(&mut self, manifest: &Manifest, dependencies: &[Dependency]) -> Result<Id, Error> {
        let mut digest = Digest::new();
        for part in [manifest.name()?, manifest.edition(), manifest.features()] {
            digest.part(part.as_bytes());
        }
        digest.count(dependencies.len());
        for dependency in dependencies {
            for part in [&dependency.alias, &dependency.package, &dependency.terms] {
                digest.part(part.as_bytes());
            }
        }
        let roots = source_roots(manifest);
        sources::add(&roots, &manifest.folder, &mut digest)?;
        self.inputs.extend(roots);
        Ok(digest.finish())
    }

    fn dependency(&mut self, manifest: &Manifest, dependency: &Dependency) -> Result<(), Error> {
        if let Some(path) = &dependency.path {
            return self.folder(path);
        }
        let name = manifest.name()?;
        let missing = |package: &str| Error::NotLocked { by: name.clone(), package: package.to_owned() };
        let own = self.lock.local(&name, manifest.version().as_deref()).ok_or_else(|| missing(&name))?;
        match self.lock.resolve(own, dependency).cloned() {
            Some(package) => self.locked(&package, manifest),
            // An optional dependency that is not enabled is not locked, and compiles to nothing.
            None if dependency.optional => Ok(()),
            None => Err(missing(&dependency.package)),
        }
    }

    /// Adds a locked package and everything below it.
    fn locked(&mut self, package: &Package, manifest: &Manifest) -> Result<(), Error> {
        if package.source.is_none() {
            let patched = manifest.patched(&package.name);
            let place = patched.ok_or_else(|| {
                manifest.invalid(format!("`{}` is locked without a source and not patched", package.name))
            })?;
            return self.folder(&place);
        }
        if self.locked.insert(package.clone()) {
            let below: Vec<_> = self.lock.dependencies(package).cloned().collect();
            below.iter().try_for_each(|package| self.locked(package, manifest))?;
        }
        Ok(())
    }
}

/// The sources of a crate that are compiled: `src`, the build script, and the library's folder if it lies elsewhere.
fn source_roots(manifest: &Manifest) -> Vec<PathBuf> {
    let src = manifest.folder.join("src");
    let library = manifest.library_path().filter(|path| !path.starts_with(&src));
    // Of a library right beside its manifest only that file counts: the folder holds docs and tests as well.
    let library = library.map(|path| match path.parent() {
        Some(folder) if folder != manifest.folder => folder.to_path_buf(),
        _ => path,
    });
    let all = [Some(src).filter(|src| src.is_dir()), library, manifest.build_script()];
    all.into_iter().flatten().collect()
}

fn true_path(folder: &Path) -> Result<PathBuf, Error> {
    folder.canonicalize().map_err(|error| Error::Read(folder.to_path_buf(), error))
}
