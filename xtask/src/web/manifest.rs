//! `manifest.json` beside the built app: its sources, its compiler, and its size.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

pub const NAME: &str = "manifest.json";

/// The endings of compressed files, which lie beside the plain ones.
const GZIP: &str = ".gz";
const BROTLI: &str = ".br";

const ABOUT: &str = "Written by `cargo xtask web build`, compared by `cargo xtask web check`.";

/// The size limit of a first visit, compressed: less than a picture on most pages, two seconds on a slow phone's link.
const MAX_DOWNLOAD_BYTES: u64 = 600_000;

pub struct Manifest {
    pub compiler: String,
    /// Versions of tools that are pinned elsewhere or should not matter.
    pub made_with: Value,
    /// Hash of the sources.
    pub sources: String,
    /// The build id of each game in the module.
    pub builds: Value,
    /// For every file but this one, compressed forms among them: its hash and its size.
    pub files: Map<String, Value>,
}

impl Manifest {
    pub fn read(dist: &Path) -> Result<Self> {
        let path = dist.join(NAME);
        let text = fs::read_to_string(&path).with_context(|| {
            format!("cannot read {}: build the web app with `cargo xtask web build`", path.display())
        })?;
        let parsed = serde_json::from_str(&text).ok().and_then(|value| Self::parse(&value));
        parsed.with_context(|| format!("{} is no manifest; run `cargo xtask web build`", path.display()))
    }

    fn parse(value: &Value) -> Option<Self> {
        Some(Self {
            compiler: value["compiler"].as_str()?.to_owned(),
            made_with: value["made_with"].clone(),
            sources: value["sources"].as_str()?.to_owned(),
            builds: value["builds"].clone(),
            files: value["files"].as_object()?.clone(),
        })
    }

    pub fn write(&self, dist: &Path) -> Result<()> {
        let value = json!({
            "about": ABOUT,
            "compiler": self.compiler,
            "made_with": self.made_with,
            "sources": self.sources,
            "builds": self.builds,
            "files": self.files,
        });
        Ok(fs::write(dist.join(NAME), format!("{}\n", serde_json::to_string_pretty(&value)?))?)
    }

    /// Checks that the files in `dist` are these, to the byte.
    pub fn check_files(&self, dist: &Path) -> Result<()> {
        let mut there = BTreeSet::new();
        list(dist, "", &mut there)?;
        there.remove(NAME);
        let listed: BTreeSet<String> = self.files.keys().cloned().collect();
        if let Some(name) = there.symmetric_difference(&listed).next() {
            let which = if there.contains(name) { "is not in the manifest" } else { "is missing" };
            bail!("{name} {which}");
        }
        for (name, file) in &self.files {
            let hash = blake3::hash(&fs::read(dist.join(name))?).to_hex().to_string();
            ensure!(file["blake3"] == hash, "{name} is not the file that was built");
        }
        Ok(())
    }

    /// The first file that is not the same in both, if any.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let names: BTreeSet<_> = self.files.keys().chain(other.files.keys()).collect();
        let hash = |manifest: &Self, name: &str| manifest.files.get(name).map(|file| file["blake3"].clone());
        names.into_iter().find(|name| hash(self, name) != hash(other, name)).cloned()
    }

    /// The download size of a first visit, every file in the form with this suffix if it has one.
    fn download_bytes(&self, ending: &str) -> u64 {
        let sent = |name: &String| self.files.get(&format!("{name}{ending}")).or(self.files.get(name));
        self.plain_names().filter_map(|name| sent(name)?["bytes"].as_u64()).sum()
    }

    fn plain_names(&self) -> impl Iterator<Item = &String> {
        self.files.keys().filter(|name| !name.ends_with(GZIP) && !name.ends_with(BROTLI))
    }

    pub fn check_size(&self) -> Result<()> {
        let bytes = self.download_bytes(GZIP);
        ensure!(
            bytes < MAX_DOWNLOAD_BYTES,
            "the web app is {bytes} bytes gzipped, more than {MAX_DOWNLOAD_BYTES}: {}",
            self.shown()
        );
        Ok(())
    }

    pub fn shown(&self) -> String {
        let [plain, gzip, brotli] = ["", GZIP, BROTLI].map(|ending| self.download_bytes(ending) / 1000);
        let files = self.plain_names().count();
        format!("web app: {files} files, {plain} kB, gzip {gzip} kB, brotli {brotli} kB")
    }
}

fn list(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.insert(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(files: &[(&str, &str)]) -> Manifest {
        let file = |(name, content): &(&str, &str)| {
            let hash = blake3::hash(content.as_bytes()).to_hex().to_string();
            ((*name).to_owned(), json!({ "blake3": hash, "bytes": content.len() }))
        };
        Manifest {
            compiler: "rustc".into(),
            made_with: Value::Null,
            sources: String::new(),
            builds: json!({ "pong": "00" }),
            files: files.iter().map(file).collect(),
        }
    }

    #[test]
    fn a_manifest_round_trips_and_files_are_compared_with_it() {
        let dist = std::env::temp_dir().join(format!("sametick-manifest-{}", std::process::id()));
        fs::create_dir_all(dist.join("assets")).unwrap();
        fs::write(dist.join("assets/a.js"), "one").unwrap();
        let written = manifest(&[("assets/a.js", "one")]);
        written.write(&dist).unwrap();
        let read = Manifest::read(&dist).unwrap();
        let complaint = |read: &Manifest| read.check_files(&dist).err().map(|error| error.to_string());
        let same = (read.files == written.files, complaint(&read));
        fs::write(dist.join("assets/a.js"), "two").unwrap();
        let changed = complaint(&read);
        fs::write(dist.join("b.js"), "three").unwrap();
        let added = complaint(&read);
        fs::remove_dir_all(&dist).unwrap();
        assert_eq!(same, (true, None));
        assert_eq!(changed.as_deref(), Some("assets/a.js is not the file that was built"));
        assert_eq!(added.as_deref(), Some("b.js is not in the manifest"));
    }

    #[test]
    fn a_difference_is_found_in_either() {
        let (one, two) = (manifest(&[("a", "1")]), manifest(&[("a", "1"), ("b", "2")]));
        assert_eq!((one.difference(&one), one.difference(&two)), (None, Some("b".to_owned())));
        assert_eq!(two.difference(&one), Some("b".to_owned()));
    }

    #[test]
    fn an_app_that_has_grown_too_large_is_refused() {
        let large = "x".repeat(usize::try_from(MAX_DOWNLOAD_BYTES).unwrap());
        assert!(manifest(&[("a", &large[1..])]).check_size().is_ok());
        assert!(manifest(&[("a", &large[1..]), ("b", "x")]).check_size().is_err());
        assert!(manifest(&[("a", &large), ("a.gz", "small"), ("a.br", &large)]).check_size().is_ok());
    }
}
