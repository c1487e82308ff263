//! Rule: nothing in the tree belongs to one machine: no absolute paths, no address of a registry or mirror.

use super::Violation;
use super::tree::{File, Tree};

const RULE: &str = "machine";

/// The only source of crates that a lock file may name.
const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// Beginnings of paths that exist on one machine only. Split, so that this file keeps its own rule.
const PATHS: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Parts of host names from which packages are fetched.
const HOSTS: &[&str] = &[
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com/-/"),
    concat!("deb.debian", ".org"),
    concat!("pypi", ".org"),
    concat!("files.pythonhosted", ".org"),
    concat!("static.rust-lang", ".org"),
];

/// Words in a host name that mark it as a registry.
const HOST_WORDS: &[&str] = &["registry", "mirror", "artifactory", "nexus"];

pub fn check(tree: &Tree) -> Vec<Violation> {
    tree.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in file.lines() {
        let complaint = match file.path.rsplit('/').next() {
            Some("Cargo.lock") => in_cargo_lock(line),
            Some("package-lock.json") => in_npm_lock(line),
            _ => in_text(line),
        };
        violations.extend(complaint.map(|message| Violation::new(RULE, &file.path, number, message)));
    }
    violations
}

fn in_cargo_lock(line: &str) -> Option<&'static str> {
    let foreign = line.starts_with("source = ") && line != CRATES_IO;
    foreign.then_some("every crate comes from crates.io: `cargo update` without a replaced source")
}

fn in_npm_lock(line: &str) -> Option<&'static str> {
    let address = line.trim_start().starts_with("\"resolved\": \"http");
    address
        .then_some("no download addresses in the lock file: `npm install --omit-lockfile-registry-resolved`")
}

fn in_text(line: &str) -> Option<&'static str> {
    if PATHS.iter().any(|path| has_path(line, path)) {
        Some("a path of one machine: make it relative to the repository, or take it from the environment")
    } else if HOSTS.iter().any(|host| line.contains(host)) || names_registry(line) {
        Some("the address of a registry: leave it to the configuration of the machine")
    } else {
        None
    }
}

/// Whether an absolute path begins here. The same letters inside a longer path or an address do not count.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let inside = before.is_some_and(|letter| letter.is_alphanumeric() || "._-~}*/".contains(letter));
        let after = line[start + path.len()..].chars().next();
        !inside && after.is_some_and(|letter| letter.is_alphanumeric() || "._".contains(letter))
    })
}

fn names_registry(line: &str) -> bool {
    let hosts = line.split("://").skip(1).map(|rest| {
        let end = rest.find(['/', '"', '\'', ' ', '>', ')', '`']).unwrap_or(rest.len());
        &rest[..end]
    });
    hosts.into_iter().any(|host| HOST_WORDS.iter().any(|word| host.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for start in PATHS {
            assert_eq!(found("a.md", &format!("see `{start}project/x`\n")), 1, "{start}");
        }
    }

    #[test]
    fn similar_paths_are_not() {
        let text = concat!(
            "target",
            "/wo",
            "rk/x\n",
            "https://example.org",
            "/ho",
            "me/x\n",
            "the folder /ro",
            "ot/ of\n"
        );
        assert_eq!(found("a.md", text), 0);
    }

    #[test]
    fn registries_are_found() {
        for host in HOSTS {
            assert_eq!(found("config.toml", &format!("url = \"https://{host}/x\"\n")), 1, "{host}");
        }
        let own = concat!("registry = \"http://crates-mi", "rror.example/index\"\n");
        assert_eq!(found("config.toml", own), 1);
        assert_eq!(found("README.md", "[crates](https://crates.io/crates/sametick)\n"), 0);
    }

    #[test]
    fn lock_files_name_no_other_source() {
        assert_eq!(found("Cargo.lock", &format!("{CRATES_IO}\n")), 0);
        assert_eq!(found("fuzz/Cargo.lock", "source = \"registry+https://example.org/index\"\n"), 1);
        assert_eq!(
            found("web/app/package-lock.json", "      \"resolved\": \"https://example.org/a.tgz\",\n"),
            1
        );
        assert_eq!(found("web/app/package-lock.json", "      \"integrity\": \"sha512-x\",\n"), 0);
    }
}
