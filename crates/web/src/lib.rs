//! The client as a wasm module for browsers: its JavaScript interface.
//!
//! JavaScript moves bytes and draws; all decisions are made in the pure crates below. [`Client`] is polled: after every
//! event, JavaScript calls [`Client::poll`] until it returns 0, and again at [`Client::wake_at`]. [`Demo`] is a game
//! that only bots play.
//!
//! # Options of a client
//!
//! | option | what it is |
//! |---|---|
//! | `game` | `"pong"` or `"arena"` |
//! | `mode` | `"lockstep"`, also if left out, or `"room"` (arena only) |
//! | `session` | the name of the session, or the code of the room |
//! | `players` | for how many a new one is: 2 to 4 in pong, 1 to 64 in arena |
//! | `bots` | whether bots play, too: on free seats in pong, six more in arena |
//! | `token` | the identity token, from the last `who`; a new identity if left out |
//!
//! and `name`, `routes`, `key`, `listed`, `watch`, `unix_ms`, `now_us`, `random`.
//!
//! # Frames
//!
//! Ten numbers for each shape: `id, kind, x, y, w, h, epoch, tint, angle, level`. `x` and `y` are of its middle; a new
//! `epoch` means that the shape has jumped and must not be interpolated; `angle` is in radians from the right over
//! downwards.
//!
//! | kind | what | tint | level |
//! |---|---|---|---|
//! | 0 | a ball | -1 | 1 |
//! | 1 | a paddle | seat | 1 |
//! | 2 | a wall of the court | -1 | 1 |
//! | 3 | an avatar; `angle` is where it looks | player | health, 0 to 1 |
//! | 4, 5, 11 | a built wall, a crate, a rock | its builder, or -1 | health, 0 to 1 |
//! | 6, 7 | a build preview: possible, not possible | player | 0 a wall, 1 a crate |
//! | 8 | a shot; `angle` is where it flies | player | 1 |
//! | 9 | the ground, as large as the map | -1 | 1 |
//! | 12 | the shield around an avatar | player | 1 |
//! | 10 | the camera: where the own avatar is, or was, or the middle; not to be drawn | seat, or -1 | 1 |
//!
//! Arena is in tiles from the corner of the map, y downwards. A player is a seat, or a bot from 1000 on. In a room
//! there are sixty frames a second, in lockstep one for each tick: `ticks_per_second` of the status is the frame rate,
//! and [`Client::tick`] the number of a frame.
//!
//! # Controls
//!
//! [`Client::controls`] takes `held` (1 up, 2 down, 4 left, 8 right, 16 the button for shooting and building), the
//! pointer in the units of frames, and `build` (0 nothing, 1 a wall, 2 a crate, 3 remove). [`Client::press`] reports
//! that the button went down, so that a short press is not missed: it serves in pong; in arena it shoots, or builds or
//! removes at the pointer. Without a pointer an avatar looks where it walks.
//!
//! # Words, numbers and sounds
//!
//! | of | `hud` |
//! |---|---|
//! | pong | `{game, phase, server, winner, points, once, hits, countdown (3 to 1, or null), court: {w, h}, seats: [{seat, wall, score, ready, driver, name, you}]}` |
//! | arena | `{game, mode, phase: "playing"\|"dead"\|"watching", seat, health (0 to 100), score, deaths, respawnIn (s, or null), shield (s, or null), builds: {used, limit}, cooldown (1 to 0), size, points, winner, round, wait (s), players: [{seat, name, score, deaths, alive, you, bot, character}] (best first), feed: [{killer, victim, ago (s)}] (newest first)}` |
//!
//! | bit of `events` | in pong | in arena |
//! |---|---|---|
//! | 1 | a paddle | an own shot |
//! | 2 | a wall | was hit |
//! | 4 | a point | has hit a player |
//! | 8 | the end | has killed a player |
//! | 16 | a serve | was shot dead |
//! | 32 | | something was built |
//! | 64 | | something fell or was taken away |
//! | 128 | | has respawned |
//! | 256 | | another player's shot |
//!
//! `diagnostics` has the same figures in both modes (in a room `confirmed` is the newest update's tick, and `depth` how
//! many ticks own inputs are ahead of it) and `room`: null in lockstep, otherwise `{snapshot_bytes, bytes_per_second,
//! updates, updates_lost, buffer_ms, delay_ms, reconciliation_ms: {last, mean, max}, corrections, snaps, entities,
//! frozen_ms, lead_ticks, saved_ms (how long ago, or null)}`. [`Client::ghost`] is the confirmed state, or that of the
//! newest update.
//!
//! # Identity
//!
//! In a room, [`Client::who`] is `{token, bad_token, active, characters: [{name, life}]}`. The token is a secret that a
//! page stores for the next time and never shows; `bad_token` is the error of the token that the client presented, if
//! there was one. The format of a life is the game's: in arena `{kills, deaths, built}`. [`Client::come_as`] sets
//! another token, such as one that another page of the same browser was given.

mod arena;
mod client;
mod copies;
mod demo;
mod diagnostics;
mod options;
mod persona;
mod played;
mod pong;
mod screen;
mod status;

use sametick_arena::Arena;
use sametick_pong::Pong;
use sametick_sim::{Game, Time};
use sametick_wire::access::{AccessKey, root_of};
use sametick_wire::hex::{from_hex, to_hex};
use wasm_bindgen::prelude::wasm_bindgen;

pub use client::Client;
pub use demo::Demo;

/// The build ids compiled in, as JSON: `{"arena":"…","pong":"…"}`. A server of another build refuses them.
#[wasm_bindgen]
pub fn builds() -> String {
    format!(r#"{{"{}":"{}","{}":"{}"}}"#, Arena::NAME, Arena::BUILD, Pong::NAME, Pong::BUILD)
}

/// The root key of a passphrase, in hexadecimal: a page stores it instead of the passphrase. Slow on purpose.
#[wasm_bindgen]
pub fn key_from_passphrase(passphrase: &str) -> String {
    to_hex(&root_of(passphrase))
}

/// The proof with which a page may list sessions, in this minute of Unix time, in hexadecimal.
#[wasm_bindgen]
pub fn page_proof(key: &str, unix_minute: f64) -> Result<String, String> {
    let key = AccessKey::from_root(&from_hex(key).ok_or("a key has 64 hexadecimal digits")?);
    Ok(to_hex(&key.page_proof(unix_minute as u64)))
}

/// Describes a save from its bytes, as JSON. Throws a sentence if they are invalid.
#[wasm_bindgen]
pub fn save_info(save: &[u8]) -> Result<String, String> {
    copies::describe(save).map(|info| to_json(&info))
}

fn time(us: f64) -> Time {
    // Values below zero and beyond the range saturate.
    Time::from_micros(us as u64)
}

fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_json_by_name() {
        assert_eq!(builds(), format!(r#"{{"arena":"{}","pong":"{}"}}"#, Arena::BUILD, Pong::BUILD));
    }

    #[test]
    fn a_pages_proof_of_the_passphrase_satisfies_the_server() {
        let root = key_from_passphrase("correct horse");
        let proof = from_hex(&page_proof(&root, 30_000_000.0).unwrap()).unwrap();
        let server = AccessKey::from_passphrase("correct horse");
        assert!(
            [29_999_999, 30_000_000, 30_000_001]
                .map(|minute| server.is_page_proof(minute, &proof))
                .iter()
                .all(|good| *good)
        );
        assert!(!server.is_page_proof(30_000_002, &proof));
        assert!(!AccessKey::from_passphrase("another").is_page_proof(30_000_000, &proof));
        assert!(page_proof("abc", 1.0).is_err());
    }
}
