//! The parts of `cargo xtask web` that need more than xtask compiles quickly: wasm-bindgen as a library, and compression.
//!
//! ```text
//! sametick-bundle bind MODULE.wasm FOLDER   JavaScript, types and the module itself for browsers, into FOLDER
//! sametick-bundle pack FOLDER               a `.gz` and a `.br` beside every file below FOLDER that gets smaller by it,
//!                                           and hash and size of all of them, as JSON
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use wasm_bindgen_cli_support::Bindgen;

/// As small as either gets: these files are compressed once and sent often.
const BROTLI_QUALITY: i32 = 11;
const BROTLI_WINDOW: i32 = 22;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["bind", module, folder] => bind(Path::new(module), Path::new(folder)),
        ["pack", folder] => {
            println!("{}", serde_json::to_string(&pack(Path::new(folder))?)?);
            Ok(())
        }
        _ => bail!("usage: sametick-bundle bind MODULE.wasm FOLDER | pack FOLDER"),
    }
}

fn bind(module: &Path, folder: &Path) -> Result<()> {
    Bindgen::new()
        .input_path(module)
        .web(true)?
        .typescript(true)
        // The app says where the module lies: its bundler gives the file a name with a hash.
        .omit_default_module_path(true)
        .remove_name_section(true)
        // Which tools made it is the manifest's to say.
        .remove_producers_section(true)
        .generate(folder)
        .with_context(|| format!("wasm-bindgen cannot read {}", module.display()))
}

/// Every file by its path below `folder`, with forward slashes; those that this adds as well.
fn pack(folder: &Path) -> Result<BTreeMap<String, serde_json::Value>> {
    let mut files = BTreeMap::new();
    collect(folder, "", &mut files)?;
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, serde_json::Value>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    // Read to its end first: packing adds to it.
    for entry in entries.collect::<Result<Vec<_>, _>>()? {
        let name = entry.file_name();
        let name = format!("{prefix}{}", name.to_str().context("a file name is UTF-8")?);
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            pack_file(&entry.path(), name, files)?;
        }
    }
    Ok(())
}

fn pack_file(path: &Path, name: String, files: &mut BTreeMap<String, serde_json::Value>) -> Result<()> {
    let plain = fs::read(path)?;
    for (ending, packed) in [(".gz", gzipped(&plain)?), (".br", brotlied(&plain)?)] {
        if packed.len() < plain.len() {
            let mut beside = path.as_os_str().to_owned();
            beside.push(ending);
            fs::write(beside, &packed)?;
            files.insert(format!("{name}{ending}"), measured(&packed));
        }
    }
    files.insert(name, measured(&plain));
    Ok(())
}

fn measured(bytes: &[u8]) -> serde_json::Value {
    json!({ "blake3": blake3::hash(bytes).to_hex().to_string(), "bytes": bytes.len() })
}

fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn brotlied(bytes: &[u8]) -> Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW,
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut compressed, &parameters)?;
    Ok(compressed)
}
