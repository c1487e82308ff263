//! Puts the built web app into the program: every file plain, and compressed where the app's build found that smaller.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the built app lies, from the folder of this crate.
const DIST: &str = "../../web/app/dist";

/// What the app was built from: pages do not ask for it.
const RECIPE: &str = "/manifest.json";

/// The compressed forms of a file, which lie beside it.
const GZIP: &str = ".gz";
const BROTLI: &str = ".br";

/// Writes the table of files, or says why there is none.
pub fn embed(manifest_dir: &Path, out_dir: &Path) -> Result<(), String> {
    let dist = manifest_dir.join(DIST);
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut paths = Vec::new();
    walk(&dist, &mut paths).map_err(|error| format!("{} cannot be read: {error}", dist.display()))?;
    let mut files: Vec<(String, PathBuf)> = paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&dist).expect("it was found there");
            let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
            (format!("/{}", parts.join("/")), path)
        })
        .collect();
    files.retain(|(name, _)| name != RECIPE && !name.ends_with(GZIP) && !name.ends_with(BROTLI));
    files.sort();
    if !files.iter().any(|(name, _)| name == "/index.html") {
        let dist = dist.display();
        return Err(format!(
            "the web app is not built: {dist} has no index.html; `cargo xtask web build` makes it"
        ));
    }
    let mut table = String::from("static FILES: &[File] = &[\n");
    for (name, path) in &files {
        println!("cargo::rerun-if-changed={}", path.display());
        let row = row(name, path, out_dir).map_err(|error| format!("{}: {error}", path.display()))?;
        table.push_str(&row);
    }
    table.push_str("];\n");
    fs::write(out_dir.join("files.rs"), table).map_err(|error| error.to_string())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, found)? } else { found.push(path) }
    }
    Ok(())
}

/// One file in the table, with its compressed forms where there are any. All are copied: a file of the app may go while the
/// program is compiled from an older table.
fn row(name: &str, path: &Path, out_dir: &Path) -> io::Result<String> {
    let plain = fs::read(path)?;
    let tag = blake3::hash(&plain).to_hex().chars().take(32).collect::<String>();
    let include = |ending: &str, bytes: &[u8]| -> io::Result<String> {
        let kept = out_dir.join(format!("{tag}{ending}"));
        let is_kept = fs::read(&kept).is_ok_and(|there| there == bytes);
        if !is_kept {
            fs::write(&kept, bytes)?;
        }
        Ok(format!("include_bytes!({:?})", kept.display().to_string()))
    };
    let form = |ending: &str| -> io::Result<String> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(ending);
        match fs::read(beside) {
            Ok(bytes) => Ok(format!("Some({})", include(ending, &bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok("None".into()),
            Err(error) => Err(error),
        }
    };
    let mut row = String::new();
    let _ = writeln!(
        row,
        "    File {{ path: {name:?}, content_type: {:?}, tag: {tag:?}, is_immutable: {}, plain: {}, gzip: {}, \
         brotli: {} }},",
        content_type(name),
        has_hash(name),
        include(".plain", &plain)?,
        form(GZIP)?,
        form(BROTLI)?,
    );
    Ok(row)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "webp" => "image/webp",
        "jpg" | "jpeg" => "image/jpeg",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "mp3" => "audio/mpeg",
        "ogg" => "audio/ogg",
        _ => "application/octet-stream",
    }
}

/// Whether the name has the hash of the content in it, as in `assets/NAME-HASH.js`.
fn has_hash(name: &str) -> bool {
    let Some(file) = name.strip_prefix("/assets/") else { return false };
    let stem = file.split('.').next().unwrap_or_default();
    let is_hash = |hash: &str| {
        hash.len() >= 8
            && hash.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    // The hash may have dashes of its own, so its length decides: it has eight characters.
    stem.len() > 9
        && stem.is_char_boundary(stem.len() - 8)
        && stem.as_bytes()[stem.len() - 9] == b'-'
        && is_hash(&stem[stem.len() - 8..])
}
