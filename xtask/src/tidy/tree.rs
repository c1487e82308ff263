//! The files of the repository: those that git tracks, and untracked ones that it does not ignore.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use syn::Attribute;

use super::Violation;
use crate::shell;

pub struct Tree {
    pub files: Vec<File>,
}

pub struct File {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub text: String,
    pub syntax: Syntax,
}

pub enum Syntax {
    Rust(syn::File),
    Broken(syn::Error),
    Other,
}

impl Tree {
    /// Reads the repository. Ignored and deleted files are left out; binary ones are listed (a page may show a picture)
    /// but have no lines to check.
    pub fn load(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let mut paths: Vec<String> =
            shell::read(&mut git)?.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        paths.sort();
        paths.dedup();
        let read = |path: String| {
            let bytes = fs::read(root.join(&path)).ok()?;
            Some(File::new(&path, String::from_utf8(bytes).unwrap_or_default()))
        };
        Ok(Self { files: paths.into_iter().filter_map(read).collect() })
    }

    /// A tree made of strings, for tests.
    #[cfg(test)]
    pub fn planted(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect() }
    }

    pub fn rust(&self) -> impl Iterator<Item = (&File, &syn::File)> {
        self.files.iter().filter_map(|file| match &file.syntax {
            Syntax::Rust(syntax) => Some((file, syntax)),
            _ => None,
        })
    }

    /// Rust files that do not parse; the other rules pass over them.
    pub fn unparsed(&self) -> Vec<Violation> {
        let report = |file: &File| match &file.syntax {
            Syntax::Broken(error) => {
                let line = error.span().start().line;
                Some(Violation::new("syntax", &file.path, line, format!("does not parse: {error}")))
            }
            _ => None,
        };
        self.files.iter().filter_map(report).collect()
    }

    pub fn find(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let syntax = if path.ends_with(".rs") {
            syn::parse_file(&text).map_or_else(Syntax::Broken, Syntax::Rust)
        } else {
            Syntax::Other
        };
        Self { path: path.to_owned(), text, syntax }
    }

    /// Lines with their numbers, counted from one.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    pub fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = self.path.rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|extension| extensions.contains(&extension))
    }

    /// Is all of this file only ever compiled for tests, benchmarks or demonstration?
    pub fn is_test(&self) -> bool {
        let folders = ["tests", "benches", "examples"];
        self.path.split('/').any(|part| folders.contains(&part)) || self.path.ends_with("/tests.rs")
    }
}

/// Do these attributes make their item part of the tests only (`#[test]`, `#[cfg(test)]`)?
pub fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let cfg_test = || attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        attribute.path().is_ident("test") || (attribute.path().is_ident("cfg") && cfg_test())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_files_are_reported_with_their_line() {
        let tree = Tree::planted(&[("crates/a/src/b.rs", "//! B.\nfn {\n"), ("c.rs", "//! C.\n")]);
        let broken = tree.unparsed();
        assert_eq!(broken.len(), 1);
        assert_eq!((broken[0].path.as_str(), broken[0].line), ("crates/a/src/b.rs", 2));
    }

    #[test]
    fn binary_files_are_there_and_ignored_ones_are_not() {
        let root = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        shell::read(Command::new("git").current_dir(&root).args(["init", "--quiet"])).unwrap();
        fs::write(root.join("picture.png"), [0xff, 0xd8, 0x00]).unwrap();
        fs::write(root.join(".gitignore"), "hidden\n").unwrap();
        fs::write(root.join("hidden"), "x").unwrap();
        let tree = Tree::load(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".gitignore", "picture.png"]);
    }

    #[test]
    fn test_code_is_told_by_its_place_and_attributes() {
        let tree = Tree::planted(&[("crates/a/tests/it/x.rs", ""), ("crates/a/src/x.rs", "")]);
        assert!(tree.files[0].is_test() && !tree.files[1].is_test());
        let item: syn::ItemMod = syn::parse_str("#[cfg(test)] mod tests {}").unwrap();
        assert!(is_test_only(&item.attrs));
        let item: syn::ItemMod = syn::parse_str("#[cfg(unix)] mod unix {}").unwrap();
        assert!(!is_test_only(&item.attrs));
    }
}
