//! The house rules, checked: one small module per rule, every violation listed with what to do about it.

mod bans;
mod directions;
mod links;
mod machine;
mod module_docs;
mod names;
mod purity;
mod ratchet;
mod tree;
mod type_names;
mod unfinished;
mod walks;
mod words;

use std::fmt;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use tree::Tree;

const HELP: &str = "\
Check the house rules and list every violation.

Usage: cargo xtask tidy [--update]

  --update   record in xtask/ratchet.txt that long files or functions have shrunk (it never raises a number)

Rules:
  syntax       every Rust file parses
  module-docs  every Rust file begins with `//!` and a sentence
  directions   crates use only what the table in xtask/src/layers.rs allows
  purity       pure crates are no_std, free of unsafe code, clocks, sockets and randomness
  bans         only crates at the edge switch off the bans of clippy.toml, and say why
  names        no file, module, crate or type is named after nothing in particular
  ratchet      long files and functions may shrink, not grow
  machine      no path of one machine, no address of a registry
  unfinished   no placeholders, no ignored tests
  links        relative links in Markdown lead to files
  type-names   no public type name is in two crates without a reason
  walks        the hops of the walks in ARCHITECTURE.md exist, and each file names the next
  words        no text hides its subject: see xtask/src/tidy/words.rs
";

/// One broken rule, at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    path: String,
    /// 0 when the whole file is meant.
    line: usize,
    rule: &'static str,
    message: String,
}

impl Violation {
    fn new(rule: &'static str, path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, message } = self;
        match line {
            0 => write!(f, "{path}: {message} [{rule}]"),
            line => write!(f, "{path}:{line}: {message} [{rule}]"),
        }
    }
}

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    if arguments.help() {
        print!("{HELP}");
        return Ok(());
    }
    let update = arguments.flag("--update");
    arguments.finish()?;
    let workspace = Workspace::load()?;
    if update {
        ratchet::update(&workspace.root, &Tree::load(&workspace.root)?)?;
    }
    check(&workspace)
}

/// Checks every rule on the whole tree.
pub fn check(workspace: &Workspace) -> Result<()> {
    let tree = Tree::load(&workspace.root)?;
    let mut violations = Vec::new();
    violations.extend(tree.unparsed());
    violations.extend(module_docs::check(&tree));
    violations.extend(directions::check(&workspace.members));
    violations.extend(purity::check(workspace, &tree)?);
    violations.extend(bans::check(&tree));
    violations.extend(names::check(&tree));
    violations.extend(ratchet::check(&tree));
    violations.extend(machine::check(&tree));
    violations.extend(unfinished::check(&tree));
    violations.extend(links::check(&tree));
    violations.extend(type_names::check(&tree));
    violations.extend(walks::check(&tree));
    violations.extend(words::check(&tree));
    violations.sort();
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!("{} violations of the house rules", violations.len());
    }
    println!("tidy: {} files keep the house rules", tree.files.len());
    Ok(())
}
