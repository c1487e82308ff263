//! Tells the program which git commit it was built from (logs say it, so that an old one can be replayed), and puts the
//! web app into it.
#![allow(clippy::disallowed_methods, reason = "a build script asks the environment")]

#[path = "build/files.rs"]
mod files;

use std::path::Path;

fn main() {
    sametick_build_id::emit_commit();

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/files.rs");
    let folder = |name| std::env::var(name).expect("cargo says where things are");
    let (manifest_dir, out_dir) = (folder("CARGO_MANIFEST_DIR"), folder("OUT_DIR"));
    if let Err(why) = files::embed(Path::new(&manifest_dir), Path::new(&out_dir)) {
        println!("cargo::error={why}");
    }
}
