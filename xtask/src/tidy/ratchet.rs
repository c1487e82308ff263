//! Rule: long files and functions may shrink, not grow.
//!
//! `xtask/ratchet.txt` lists files and functions over their limit with their present length. An entry is written by
//! hand, with a reason in the commit; from then on the number only falls.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItemFn, ItemFn, ItemImpl, ItemMod, ItemTrait, Signature, TraitItemFn};

use super::Violation;
use super::tree::{File, Tree, is_test_only};

const RULE: &str = "ratchet";
const LIST: &str = "xtask/ratchet.txt";

/// A file without its inline tests.
const FILE_LINES: usize = 500;
/// A file with its inline tests, or a file of tests: long lists of cases are easier to read than clever ones.
const TEST_FILE_LINES: usize = 1000;
const FUNCTION_LINES: usize = 60;
/// A test tells one scenario from beginning to end.
const TEST_FUNCTION_LINES: usize = 100;

/// Generated or vendored text has no author to ask for shorter files.
const MEASURED: &[&str] = &["rs", "ts", "svelte", "mjs", "js", "css"];

const HEADER: &str = "\
# Files and functions over their limit, with their present length. They may shrink, not grow.
# `cargo xtask tidy --update` lowers the numbers and drops what is under its limit. A new line is written by hand:
# LENGTH file PATH | LENGTH fn PATH NAME
";

/// The measured file or function: `file PATH` or `fn PATH NAME`.
type Subject = String;

pub fn check(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.find(LIST) else {
        return vec![Violation::new(RULE, LIST, 0, "the list is missing; an empty file will do")];
    };
    match parse(&file.text) {
        Ok(listed) => compare(&listed, &measure(tree)),
        Err(error) => vec![Violation::new(RULE, LIST, 0, format!("{error:#}"))],
    }
}

/// Rewrites the list with smaller numbers, never with larger or new ones.
pub fn update(root: &Path, tree: &Tree) -> Result<()> {
    let path = root.join(LIST);
    let listed = parse(&fs::read_to_string(&path)?)?;
    let shrunk = shrink(&listed, &measure(tree));
    fs::write(&path, render(&shrunk)).with_context(|| format!("cannot write {LIST}"))
}

fn parse(text: &str) -> Result<BTreeMap<Subject, usize>> {
    let mut listed = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let (length, subject) = line.split_once(' ').with_context(|| format!("not understood: `{line}`"))?;
        let length = length.parse().with_context(|| format!("not a length: `{line}`"))?;
        listed.insert(subject.trim().to_owned(), length);
    }
    Ok(listed)
}

fn render(listed: &BTreeMap<Subject, usize>) -> String {
    let lines = listed.iter().map(|(subject, length)| format!("{length} {subject}\n"));
    [HEADER.to_owned()].into_iter().chain(lines).collect()
}

fn shrink(
    listed: &BTreeMap<Subject, usize>,
    measured: &BTreeMap<Subject, Length>,
) -> BTreeMap<Subject, usize> {
    let lower = |(subject, length): (&Subject, &usize)| {
        let now = measured.get(subject)?;
        Some((subject.clone(), now.lines.min(*length)))
    };
    listed.iter().filter_map(lower).collect()
}

/// A file or function over its limit.
#[derive(Clone, Debug)]
struct Length {
    lines: usize,
    limit: usize,
    path: String,
    /// The line where it begins.
    line: usize,
}

fn compare(listed: &BTreeMap<Subject, usize>, measured: &BTreeMap<Subject, Length>) -> Vec<Violation> {
    let over = measured.iter().filter_map(|(subject, now)| {
        let message = complaint(subject, now, listed.get(subject).copied())?;
        Some(Violation::new(RULE, &now.path, now.line, message))
    });
    let gone = listed.keys().filter(|subject| !measured.contains_key(*subject)).map(|subject| {
        let message =
            format!("`{subject}` is no longer too long, well done: run `cargo xtask tidy --update`");
        Violation::new(RULE, LIST, 0, message)
    });
    over.chain(gone).collect()
}

fn complaint(subject: &str, now: &Length, before: Option<usize>) -> Option<String> {
    let Length { lines, limit, .. } = now;
    match before {
        Some(before) if before == *lines => None,
        Some(before) if before > *lines => Some(format!(
            "`{subject}` shrank from {before} to {lines} lines: run `cargo xtask tidy --update`"
        )),
        Some(before) => {
            Some(format!("`{subject}` grew from {before} to {lines} lines, and may only shrink: split it"))
        }
        None => Some(format!(
            "`{subject}` has {lines} lines, over the limit of {limit}: split it where the idea changes"
        )),
    }
}

/// Everything in the tree that is over its limit.
fn measure(tree: &Tree) -> BTreeMap<Subject, Length> {
    let mut over = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.has_extension(MEASURED)) {
        let limit = if file.is_test() { TEST_FILE_LINES } else { FILE_LINES };
        add_file(&mut over, file, file.text.lines().count(), limit);
    }
    for (file, syntax) in tree.rust() {
        let mut ruler = Ruler::new(file);
        ruler.visit_file(syntax);
        // Tests beside the code make a file longer without making it harder to read.
        over.remove(&format!("file {}", file.path));
        let all = file.text.lines().count();
        if file.is_test() || all > TEST_FILE_LINES {
            add_file(&mut over, file, all, TEST_FILE_LINES);
        } else {
            add_file(&mut over, file, all - ruler.test_lines, FILE_LINES);
        }
        for (subject, length) in ruler.functions {
            if length.lines > length.limit {
                keep_longest(&mut over, subject, length);
            }
        }
    }
    over
}

fn add_file(over: &mut BTreeMap<Subject, Length>, file: &File, lines: usize, limit: usize) {
    if lines > limit {
        let length = Length { lines, limit, path: file.path.clone(), line: 0 };
        over.insert(format!("file {}", file.path), length);
    }
}

/// Two functions may share a name, for two platforms for example: the longer one counts.
fn keep_longest(over: &mut BTreeMap<Subject, Length>, subject: Subject, length: Length) {
    let longest = over.entry(subject).or_insert_with(|| length.clone());
    if longest.lines < length.lines {
        *longest = length;
    }
}

/// Walks a file and measures its functions, and the lines of its tests.
struct Ruler<'a> {
    file: &'a File,
    /// The modules and types around the current item.
    around: Vec<String>,
    in_tests: bool,
    test_lines: usize,
    functions: Vec<(Subject, Length)>,
}

impl<'a> Ruler<'a> {
    fn new(file: &'a File) -> Self {
        Self { file, around: Vec::new(), in_tests: file.is_test(), test_lines: 0, functions: Vec::new() }
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        let line = signature.fn_token.span.start().line;
        let lines = block.brace_token.span.close().end().line + 1 - line;
        let in_tests = self.in_tests || is_test_only(attributes);
        let limit = if in_tests { TEST_FUNCTION_LINES } else { FUNCTION_LINES };
        let name =
            self.around.iter().cloned().chain([signature.ident.to_string()]).collect::<Vec<_>>().join("::");
        let length = Length { lines, limit, path: self.file.path.clone(), line };
        self.functions.push((format!("fn {} {name}", self.file.path), length));
    }

    fn inside(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.around.push(name);
        visit(self);
        self.around.pop();
    }
}

impl<'ast> Visit<'ast> for Ruler<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let outer = self.in_tests;
        self.in_tests |= is_test_only(&item.attrs);
        if let (true, false, Some((brace, _))) = (self.in_tests, outer, &item.content) {
            self.test_lines += brace.span.close().end().line + 1 - item.mod_token.span.start().line;
        }
        self.inside(item.ident.to_string(), |this| visit::visit_item_mod(this, item));
        self.in_tests = outer;
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        self.inside(name_of(item), |this| visit::visit_item_impl(this, item));
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.inside(item.ident.to_string(), |this| visit::visit_item_trait(this, item));
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// `Type`, or `Type as Trait`.
fn name_of(item: &ItemImpl) -> String {
    let last =
        |path: &syn::Path| path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let own = match &*item.self_ty {
        syn::Type::Path(path) => last(&path.path),
        _ => "_".to_owned(),
    };
    match &item.trait_ {
        Some((_, path, _)) => format!("<{own} as {}>", last(path)),
        None => own,
    }
}

#[cfg(test)]
mod tests;
