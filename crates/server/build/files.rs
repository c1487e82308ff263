//! Puts the built web app into the program: every file plain, and compressed where that is smaller.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where the built app lies, from the folder of this crate.
const DIST: &str = "../../web/app/dist";

/// What the app was built from: for whoever builds it, not for whoever sees it.
const RECIPE: &str = "/manifest.json";

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
    files.retain(|(name, _)| name != RECIPE);
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

/// One file in the table, with its forms written beside it.
fn row(name: &str, path: &Path, out_dir: &Path) -> io::Result<String> {
    let plain = fs::read(path)?;
    let tag = blake3::hash(&plain).to_hex().chars().take(32).collect::<String>();
    // What has been compressed once need not be again: a commit alone runs this script anew.
    let keep = |ending: &str, make: fn(&[u8]) -> io::Result<Vec<u8>>| -> io::Result<(PathBuf, usize)> {
        let kept = out_dir.join(format!("{tag}.{ending}"));
        if !kept.exists() {
            let beside = out_dir.join(format!("{tag}.{ending}.new"));
            fs::write(&beside, make(&plain)?)?;
            fs::rename(&beside, &kept)?;
        }
        let len = usize::try_from(fs::metadata(&kept)?.len()).unwrap_or(usize::MAX);
        Ok((kept, len))
    };
    let include = |path: &Path| format!("include_bytes!({:?})", path.display().to_string());
    let form = |ending, make| -> io::Result<String> {
        let (kept, len) = keep(ending, make)?;
        let smaller = len < plain.len();
        Ok(if smaller { format!("Some({})", include(&kept)) } else { "None".into() })
    };
    let (gzip, brotli) = (form("gz", gzip)?, form("br", brotli)?);
    let (plain, _) = keep("plain", |plain| Ok(plain.to_vec()))?;
    let mut row = String::new();
    let _ = writeln!(
        row,
        "    File {{ path: {name:?}, content_type: {:?}, tag: {tag:?}, is_immutable: {}, plain: {}, gzip: {gzip}, \
         brotli: {brotli} }},",
        content_type(name),
        has_hash(name),
        include(&plain),
    );
    Ok(row)
}

fn gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn brotli(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut small = Vec::new();
    let params = brotli::enc::BrotliEncoderParams { quality: 11, lgwin: 22, ..Default::default() };
    brotli::BrotliCompress(&mut &plain[..], &mut small, &params)?;
    Ok(small)
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
