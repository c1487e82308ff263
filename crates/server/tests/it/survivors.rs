//! Tests that a server killed at any moment keeps what it reported as saved: positions, structures, profiles and
//! identities. Real processes.

use std::collections::BTreeMap;

use sametick_sim::Rng;
use serde_json::{Value, json};

use crate::everyone::{Socket, block_on};
use crate::process::Folder;
use crate::web::Up;

/// Kills in the test command; `SAMETICK_SERVER_KILLS` sets another number. The writer of the database itself is killed
/// far more often by the tests of `store`.
const KILLS: u64 = 6;

/// After this many snapshots everything in sight has been sent: the first ones have room for a part of it.
const ALL_TOLD: u32 = 15;

/// A script's own state and the structures it has seen, by tick.
#[derive(Default)]
struct Seen {
    token: Option<String>,
    saved: u64,
    snapshots: u32,
    at: BTreeMap<u64, Value>,
    /// When each structure was seen first.
    structures: BTreeMap<String, u64>,
}

impl Seen {
    fn take(&mut self, message: &Value) {
        match message["kind"].as_str() {
            Some("token") => self.token = message["token"].as_str().map(ToOwned::to_owned),
            Some("saved") => self.saved = message["tick"].as_u64().unwrap(),
            Some("snapshot") => {
                let tick = message["tick"].as_u64().unwrap();
                self.snapshots += 1;
                if let Some(at) = message["own"].get("at") {
                    self.at.insert(tick, at.clone());
                }
                let standing = message["features"]["build"]["structure"].as_object();
                for (number, structure) in standing.into_iter().flatten() {
                    // Rocks exist without being built.
                    if structure["kind"] != 2 {
                        self.structures.entry(number.clone()).or_insert(tick);
                    }
                }
            }
            Some("error") => panic!("{message}"),
            _ => {}
        }
    }
}

/// Walks about, and builds near its position.
fn wish(rng: &mut Rng, seq: u64, at: &Value) -> Value {
    let turn = |rng: &mut Rng| rng.chance(1, 2);
    let command = |feature: &str, action: &str, payload: Value| json!({"v": 2, "kind": "command", "seq": seq, "feature": feature, "action": action, "payload": payload});
    if seq.is_multiple_of(3) {
        let [x, y] = [0, 1].map(|axis| at[axis].as_i64().unwrap() / 256);
        // Nothing can be built beyond the edge.
        let [x, y] = [x, y].map(|at| (at + i64::from(rng.between(-3, 3))).max(0));
        return command("build", "place", json!({"x": x, "y": y, "kind": "crate"}));
    }
    let step = json!({"up": turn(rng), "down": turn(rng), "left": turn(rng), "right": turn(rng)});
    command("movement", "input_batch", json!({"inputs": vec![step; 4]}))
}

/// Plays until the room was saved once more, and a little longer. Updates what was seen.
async fn play(up: &Up, rng: &mut Rng, seen: &mut Seen) {
    let token = seen.token.as_ref().map(|token| format!("&token={token}")).unwrap_or_default();
    let path = format!("den/ws?name=Ada&setup=%7B%22bots%22:0%7D{token}");
    let mut ada = Socket::open(up, &path).await.unwrap();
    assert_eq!(ada.hear_kind("welcome").await["seat"], 0);
    let before = std::mem::take(seen);
    let (mut seq, mut longer) = (0, rng.below(20));
    while seen.token.is_none() || seen.saved == 0 || longer > 0 || seen.snapshots <= ALL_TOLD {
        let (message, _) = ada.hear().await.unwrap();
        seen.take(&message);
        if message["kind"] == "snapshot" {
            if seen.snapshots < ALL_TOLD {
                continue;
            }
            if seen.snapshots == ALL_TOLD {
                check(&before, seen);
                // From now on something happens that can be lost.
                seen.saved = 0;
            }
            longer = longer.saturating_sub(u64::from(seen.saved > 0));
            seq += 1;
            if let Some(at) = seen.at.values().last() {
                let wish = wish(rng, seq, at);
                ada.say(&wish).await;
            }
        }
    }
}

/// Asserts that everything that was reported as saved is there, or something newer.
fn check(before: &Seen, now: &Seen) {
    let Some((_, at)) = now.at.first_key_value() else { return };
    if before.saved == 0 {
        return;
    }
    // The position may lie between those of two updates.
    let near = |other: &Value| {
        [0, 1].iter().all(|axis| {
            let [one, other] = [at, other].map(|at| at[*axis].as_i64().unwrap());
            one.abs_diff(other) <= 256
        })
    };
    let since = before.saved.saturating_sub(3);
    // It is told where they are when that has changed.
    let then = before.at.range(..since).next_back();
    assert!(
        then.into_iter().chain(before.at.range(since..)).any(|(_, known)| near(known)),
        "{at} was not taken since {since}: {:?}",
        before.at.range(since..).collect::<Vec<_>>()
    );
    let kept = before.structures.iter().filter(|(_, tick)| **tick < before.saved);
    let lost: Vec<_> = kept.filter(|(number, _)| !now.structures.contains_key(*number)).collect();
    assert!(lost.is_empty(), "structures that were saved at {} are gone: {lost:?}", before.saved);
}

#[test]
fn a_killed_server_loses_nothing_it_reported_as_saved() {
    let kills = std::env::var("SAMETICK_SERVER_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let (folder, mut rng, mut seen) = (Folder::new(), Rng::new(kills), Seen::default());
    for _ in 0..kills {
        let up = Up::start(&folder, &["--data", "data"], None);
        block_on(play(&up, &mut rng, &mut seen));
        up.signal("-KILL");
        let (clean, _) = up.end();
        assert!(!clean);
    }
    let up = Up::start(&folder, &["--data", "data"], None);
    block_on(play(&up, &mut rng, &mut seen));
    assert!(seen.structures.len() > 1, "something was built: {:?}", seen.structures);
    // A clean end loses nothing at all.
    up.signal("-TERM");
    assert!(up.end().0);
    let log = Up::log_in(&folder);
    assert!(!log.contains(seen.token.as_deref().unwrap()) && !log.contains("ERROR"), "{log}");
}
