//! Hashes source files in a fixed order and with one kind of line ending.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::digest::Digest;

/// One source file: its path below the crate, with forward slashes, and where it lies.
struct Source {
    name: String,
    path: PathBuf,
}

/// Adds all files below `roots` (folders or single files) to the hash, named relative to `base`.
pub(crate) fn add(roots: &[PathBuf], base: &Path, digest: &mut Digest) -> Result<(), Error> {
    let mut found = Vec::new();
    for root in roots {
        collect(root, base, &mut found)?;
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found.dedup_by(|a, b| a.name == b.name);
    digest.count(found.len());
    for source in found {
        let bytes = fs::read(&source.path).map_err(|error| Error::Read(source.path, error))?;
        digest.part(source.name.as_bytes());
        digest.part(&with_unix_lines(bytes));
    }
    Ok(())
}

fn collect(path: &Path, base: &Path, found: &mut Vec<Source>) -> Result<(), Error> {
    if !path.is_dir() {
        found.push(Source { name: relative_name(path, base)?, path: path.to_path_buf() });
        return Ok(());
    }
    let unreadable = |error| Error::Read(path.to_path_buf(), error);
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Files left behind by editors and file managers are not sources.
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with('.') && !name.ends_with('~') {
            collect(&entry.path(), base, found)?;
        }
    }
    Ok(())
}

fn relative_name(path: &Path, base: &Path) -> Result<String, Error> {
    let inside = path.strip_prefix(base).unwrap_or(path);
    let parts: Option<Vec<_>> = inside.components().map(|part| part.as_os_str().to_str()).collect();
    let parts =
        parts.ok_or_else(|| Error::Invalid(path.to_path_buf(), "a file name must be UTF-8".into()))?;
    Ok(parts.join("/"))
}

/// Text with CRLF as LF, because git may check it out either way; other files unchanged.
fn with_unix_lines(bytes: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) if text.contains("\r\n") => text.replace("\r\n", "\n").into_bytes(),
        Ok(text) => text.into_bytes(),
        Err(binary) => binary.into_bytes(),
    }
}
