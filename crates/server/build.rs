//! Tells the program which git commit it was built from (logs say it, so that an old one can be replayed), and puts the
//! web app into it.
#![allow(clippy::disallowed_methods, reason = "a build script asks git and the environment")]

#[path = "build/files.rs"]
mod files;

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}

fn main() {
    println!("cargo::rerun-if-env-changed=SAMETICK_COMMIT");
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let given = std::env::var("SAMETICK_COMMIT").ok();
    let commit = given.or_else(|| git(&["rev-parse", "HEAD"])).unwrap_or_default();
    println!("cargo::rustc-env=SAMETICK_COMMIT={commit}");

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/files.rs");
    let folder = |name| std::env::var(name).expect("cargo says where things are");
    let (manifest_dir, out_dir) = (folder("CARGO_MANIFEST_DIR"), folder("OUT_DIR"));
    if let Err(why) = files::embed(Path::new(&manifest_dir), Path::new(&out_dir)) {
        println!("cargo::error={why}");
    }
}
