//! Rule: crates use only what the layering table allows.

use super::Violation;
use crate::layers::{self, Layer};
use crate::workspace::{Member, Use, UseKind};

const RULE: &str = "directions";

pub fn check(members: &[Member]) -> Vec<Violation> {
    members.iter().flat_map(check_member).collect()
}

fn check_member(member: &Member) -> Vec<Violation> {
    let manifest = format!("{}/Cargo.toml", member.folder);
    let Some(layer) = layers::find(&member.folder) else {
        let message = format!(
            "crate `{}` is not in the layering table: decide its kind and what it may use, and add it to \
             xtask/src/layers.rs and to ARCHITECTURE.md",
            member.package
        );
        return vec![Violation::new(RULE, &manifest, 0, message)];
    };
    let wrong = member.uses.iter().filter(|used| !is_allowed(layer, used));
    wrong.map(|used| Violation::new(RULE, &manifest, 0, complaint(layer, used))).collect()
}

fn is_allowed(layer: &Layer, used: &Use) -> bool {
    let allowed = match used.kind {
        UseKind::Normal => layer.may_use,
        UseKind::Build => layer.may_build_with,
        // Tests may use any crate: nothing is built on top of them.
        UseKind::Dev => return true,
    };
    allowed.iter().any(|name| layers::matches(name, &used.folder))
}

fn complaint(layer: &Layer, used: &Use) -> String {
    let (verb, allowed) = match used.kind {
        UseKind::Build => ("build with", layer.may_build_with),
        _ => ("use", layer.may_use),
    };
    let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
    format!(
        "`{}` may not {verb} `{}`, only {allowed}: move the code, or argue for a change of xtask/src/layers.rs",
        layer.folder, used.folder
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, uses: &[(&str, UseKind)]) -> Member {
        let uses =
            uses.iter().map(|(folder, kind)| Use { folder: (*folder).to_owned(), kind: *kind }).collect();
        Member { package: format!("package of {folder}"), folder: folder.to_owned(), uses, binaries: vec![] }
    }

    #[test]
    fn allowed_uses_pass() {
        let members = [
            member("crates/wire", &[("crates/sim", UseKind::Normal)]),
            member("games/pong", &[("crates/sim", UseKind::Normal), ("crates/build-id", UseKind::Build)]),
            member("crates/server", &[("games/pong", UseKind::Normal)]),
            member("crates/sim", &[("crates/simulator", UseKind::Dev)]),
        ];
        assert_eq!(check(&members), []);
    }

    #[test]
    fn uses_against_the_direction_are_all_found() {
        let members = [
            member("crates/sim", &[("crates/wire", UseKind::Normal), ("crates/build-id", UseKind::Normal)]),
            member("crates/lockstep", &[("crates/room", UseKind::Normal)]),
            member("games/pong", &[("crates/wire", UseKind::Normal)]),
        ];
        let violations = check(&members);
        assert_eq!(violations.len(), 4);
        assert!(violations[0].message.contains("`sim` may not use `crates/wire`"), "{}", violations[0]);
    }

    #[test]
    fn an_unknown_crate_must_be_added_to_the_table() {
        let violations = check(&[member("crates/novelty", &[])]);
        assert!(violations[0].message.contains("xtask/src/layers.rs"), "{}", violations[0]);
    }
}
