//! A public type has a name of its own: one that two crates have needs a reason, here.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree, Visibility};

use super::Violation;
use super::tree::{Syntax, Tree};

const RULE: &str = "type-names";

/// Names that several crates have, and why that helps their readers.
const SHARED_NAMES: &[(&str, &str)] = &[
    ("Ack", "what has arrived: of packets, and of commands in envelopes"),
    ("Bytes", "the crate `bytes`, which HTTP speaks; and a number of bytes as people read it"),
    ("Claim", "one type of `wire`, which `lockstep` shows as its own"),
    (
        "Client",
        "the machine, its wasm module, and the simulator's client around it: one idea at three levels",
    ),
    ("Clock", "the machine's clock, and the simulator's in its place"),
    ("Event", "each protocol has its own; code names them by module"),
    ("Host", "the host of a room, and the host of sessions: hosts in both vocabularies, never in one file"),
    ("HostConfig", "the settings of either host"),
    ("Input", "each state machine has its own; code names them by module (`link::Input`)"),
    ("Join", "the first message of both protocols; each has its own fields"),
    ("JoinAs", "how to take part, in lockstep and in rooms"),
    ("Outcome", "how a trial, a game or an upload came out"),
    ("Output", "each state machine has its own; code names them by module (`host::Output`)"),
    ("Participant", "one that takes part, as relay and host list it"),
    ("Player", "a player of a trial, in lockstep and in rooms; and of envelopes, whose JSON has the name"),
    ("PlayerId", "one type of `wire`, which `store` shows as its own"),
    ("ReadError", "bits that end too early, and logs that cannot be read on"),
    ("Refusal", "each door refuses in its own words: a link, a session, a sign-in"),
    ("Request", "the crate `http`; and what a member asks of a session"),
    ("Save", "the same save: in a relay's memory, and as bytes"),
    ("Seated", "a player on a seat, in the rosters of both protocols"),
    ("Session", "the same session: its ticks in `lockstep`, its life in `session`"),
    ("SessionId", "the same session: by number in a relay, for ever in `session`"),
    ("Settings", "of a session, and of a server"),
    ("Snapshot", "what is known of a room, binary and in envelopes"),
    ("Status", "what a peer, a view or a client is doing"),
    ("ToHost", "messages to either host"),
    ("Token", "one type of `wire`, which `store` shows as its own"),
    ("TokenHash", "one type of `wire`, which `store` shows as its own"),
    ("Trial", "the test harness of both modes"),
    ("View", "what a player sees of a room, and what a member sees of a session"),
    ("Welcome", "the first answer in both room protocols, binary and envelopes"),
];

/// Names that two crates have and that are still to be told apart. This list may only shrink.
const TO_RENAME: &[&str] = &[
    "Answer",
    "Claims",
    "Closed",
    "Code",
    "Difference",
    "Fault",
    "Fetched",
    "Field",
    "Found",
    "Head",
    "HostRow",
    "Identity",
    "Kept",
    "Key",
    "Known",
    "Layout",
    "Listed",
    "Mark",
    "Mode",
    "Pace",
    "Piece",
    "Plan",
    "Progress",
    "Purpose",
    "Reading",
    "Report",
    "Resumed",
    "Run",
    "Seal",
    "SessionKey",
    "SessionRow",
    "Side",
    "Source",
    "Standing",
    "Stats",
    "Summary",
    "Table",
    "Ticket",
    "Unfit",
    "Until",
    "Way",
];

const OWN_PATH: &str = "xtask/src/tidy/type_names.rs";

fn known_names() -> impl Iterator<Item = &'static str> {
    SHARED_NAMES.iter().map(|(name, _)| *name).chain(TO_RENAME.iter().copied())
}

pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut homes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let roots = tree.files.iter().filter_map(|file| file.path.strip_suffix("/src/lib.rs"));
    for folder in roots.filter(|folder| folder.starts_with("crates/")) {
        let mut names = BTreeSet::new();
        collect(tree, &format!("{folder}/src"), "lib", &mut names);
        names.into_iter().for_each(|name| {
            homes.entry(name).or_default().insert(folder);
        });
    }
    let shared = homes.iter().filter(|(_, folders)| folders.len() > 1);
    let known: BTreeSet<&str> = known_names().collect();
    let without_reason = shared.filter(|(name, _)| !known.contains(name.as_str()));
    let mut violations: Vec<Violation> = without_reason
        .map(|(name, folders)| {
            let all: Vec<&str> = folders.iter().copied().collect();
            let message = format!(
                "`{name}` is a public type of {}: give each its own name, or a reason in xtask/src/tidy/type_names.rs",
                all.join(" and ")
            );
            Violation::new(RULE, &format!("{}/src/lib.rs", all[0]), 0, message)
        })
        .collect();
    let is_shared = |name: &str| homes.get(name).is_some_and(|folders| folders.len() > 1);
    let idle = known.iter().filter(|name| !is_shared(name) && tree.find(OWN_PATH).is_some());
    violations.extend(idle.map(|name| {
        let message = format!("`{name}` is no name of two crates any more: take it off the list");
        Violation::new(RULE, OWN_PATH, 0, message)
    }));
    violations
}

/// The public types of a module and of the public modules in it.
fn collect(tree: &Tree, folder: &str, module: &str, names: &mut BTreeSet<String>) {
    let Some(file) = tree.find(&format!("{folder}/{module}.rs")) else { return };
    let Syntax::Rust(syntax) = &file.syntax else { return };
    let inside = if module == "lib" { folder.to_owned() } else { format!("{folder}/{module}") };
    collect_items(tree, &inside, &syntax.items, names);
}

fn collect_items(tree: &Tree, folder: &str, items: &[Item], names: &mut BTreeSet<String>) {
    let is_public = |visibility: &Visibility| matches!(visibility, Visibility::Public(_));
    for item in items {
        match item {
            Item::Struct(item) if is_public(&item.vis) => _ = names.insert(item.ident.to_string()),
            Item::Enum(item) if is_public(&item.vis) => _ = names.insert(item.ident.to_string()),
            Item::Trait(item) if is_public(&item.vis) => _ = names.insert(item.ident.to_string()),
            Item::Use(item) if is_public(&item.vis) => collect_used(&item.tree, names),
            Item::Mod(item) if is_public(&item.vis) => match &item.content {
                Some((_, items)) => collect_items(tree, folder, items, names),
                None => collect(tree, folder, &item.ident.to_string(), names),
            },
            _ => {}
        }
    }
}

/// What a crate re-exports of its own modules; what it passes on of other crates is theirs.
fn collect_used(used: &UseTree, names: &mut BTreeSet<String>) {
    let is_type = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_uppercase()) && name.chars().any(char::is_lowercase)
    };
    match used {
        UseTree::Path(path) if path.ident.to_string().starts_with("sametick") => {}
        UseTree::Path(path) => collect_used(&path.tree, names),
        UseTree::Name(name) if is_type(&name.ident.to_string()) => _ = names.insert(name.ident.to_string()),
        UseTree::Rename(rename) if is_type(&rename.rename.to_string()) => {
            names.insert(rename.rename.to_string());
        }
        UseTree::Group(group) => group.items.iter().for_each(|used| collect_used(used, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_two_crates_show_is_found_wherever_it_stands() {
        let tree = Tree::planted(&[
            ("crates/a/src/lib.rs", "//! A.\npub mod deep;\nmod hidden;\npub use hidden::Third;\n"),
            ("crates/a/src/deep.rs", "//! D.\npub struct First;\npub(crate) struct Second;\n"),
            ("crates/a/src/hidden.rs", "//! H.\npub struct Third;\npub enum Fourth {}\n"),
            (
                "crates/b/src/lib.rs",
                "//! B.\npub enum First {}\npub struct Second;\npub trait Third {}\npub struct Fourth;\n\
                 pub use sametick_a::First as Fifth;\n",
            ),
        ]);
        let found: Vec<String> = check(&tree).into_iter().map(|violation| violation.message).collect();
        let is_named = |name: &str| found.iter().any(|message| message.starts_with(&format!("`{name}`")));
        assert!(is_named("First") && is_named("Third"), "{found:?}");
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
