//! The client as a wasm module for browsers: what JavaScript sees of it.
//!
//! JavaScript moves bytes and draws; everything that decides anything is in the pure crates below. [`Client`] is polled: after
//! everything that happens, [`Client::poll`] is called until it answers 0, and again when [`Client::wake_at`] has come.
//! [`Demo`] is a game of bots that nobody else takes part in.
//!
//! # Options of a client
//!
//! | option | what it is |
//! |---|---|
//! | `game` | `"pong"` or `"arena"` |
//! | `mode` | `"lockstep"`, also if left out, or `"room"` (arena only) |
//! | `session` | the name of the session, or the code of the room |
//! | `players` | for how many a new one is: 2 to 4 in pong, 1 to 64 in arena |
//! | `bots` | whether bots play, too: for who is not there in pong, six more in arena |
//! | `token` | who the player is: what `who` said the last time; nobody known if left out |
//!
//! and `name`, `routes`, `key`, `listed`, `watch`, `unix_ms`, `now_us`, `random`.
//!
//! # Frames
//!
//! Ten numbers for each shape: `id, kind, x, y, w, h, epoch, tint, angle, level`. `x` and `y` are of its middle; another
//! `epoch` says that it has not moved here but is here; `angle` is in radians from the right over downwards.
//!
//! | kind | what | tint | level |
//! |---|---|---|---|
//! | 0 | a ball | -1 | 1 |
//! | 1 | a paddle | seat | 1 |
//! | 2 | a wall of the court | -1 | 1 |
//! | 3 | an avatar; `angle` is where it looks | player | health, 0 to 1 |
//! | 4, 5, 11 | a built wall, a crate, a rock | its builder, or -1 | health, 0 to 1 |
//! | 6, 7 | what somebody might build: could, could not | player | 0 a wall, 1 a crate |
//! | 8 | a shot; `angle` is where it flies | player | 1 |
//! | 9 | the ground, as large as the map | -1 | 1 |
//! | 12 | the shield around an avatar | player | 1 |
//! | 10 | the camera: where the own avatar is, or was, or the middle; not to be drawn | seat, or -1 | 1 |
//!
//! Arena is in tiles from the corner of the map, y downwards. A player is a seat, or a bot from 1000 on. In a room there is a frame
//! sixty times a second, in lockstep with each tick: `ticks_per_second` of the status is how often, and [`Client::tick`] the
//! number of a frame.
//!
//! # Controls
//!
//! [`Client::controls`] takes `held` (1 up, 2 down, 4 left, 8 right, 16 the button for shooting and building), the pointer in
//! the units of frames, and `build` (0 no, 1 a wall, 2 a crate, 3 taking away). [`Client::press`] says that the button went down,
//! so that a short press is not missed: it serves in pong; in arena it shoots, or builds or takes away where the pointer is.
//! Without a pointer an avatar looks where it walks.
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
//! | 4 | a point | has hit somebody |
//! | 8 | the end | has shot somebody dead |
//! | 16 | a serve | was shot dead |
//! | 32 | | something was built |
//! | 64 | | something fell or was taken away |
//! | 128 | | lives again |
//! | 256 | | somebody else's shot |
//!
//! `diagnostics` has the same figures in both modes (in a room `confirmed` is the newest update's tick, and `depth` how many ticks own inputs
//! are ahead of it) and `room`: null in lockstep, otherwise `{snapshot_bytes, bytes_per_second, updates, updates_lost, buffer_ms, delay_ms,
//! reconciliation_ms: {last, mean, max}, corrections, snaps, entities, frozen_ms, lead_ticks, saved_ms (how long ago, or null)}`. [`Client::ghost`] is the
//! confirmed state, or what the newest update says.
//!
//! # Who somebody is
//!
//! In a room, [`Client::who`] is `{token, bad_token, active, characters: [{name, life}]}`. The token is a secret that a page keeps for
//! the next time and shows nobody; `bad_token` is what was wrong with the one it came with, if something was. What a life has is up
//! to the game: in arena `{kills, deaths, built}`. [`Client::come_as`] says which token is the right one now, such as one that another
//! page of the same browser was given.

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

/// The root key of a passphrase, in hexadecimal: what a page keeps instead of it. Slow on purpose.
#[wasm_bindgen]
pub fn key_from_passphrase(passphrase: &str) -> String {
    to_hex(&root_of(passphrase))
}

/// What a page shows to be told of sessions, in this minute of Unix time, in hexadecimal.
#[wasm_bindgen]
pub fn page_proof(key: &str, unix_minute: f64) -> Result<String, String> {
    let key = AccessKey::from_root(&from_hex(key).ok_or("a key has 64 hexadecimal digits")?);
    Ok(to_hex(&key.page_proof(unix_minute as u64)))
}

/// What the bytes of a save say of themselves, as JSON. Throws a sentence if they are none.
#[wasm_bindgen]
pub fn save_info(save: &[u8]) -> Result<String, String> {
    copies::describe(save).map(|info| to_json(&info))
}

fn time(us: f64) -> Time {
    // Below zero and beyond the end it saturates.
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
    fn a_page_proves_the_passphrase_that_the_server_has() {
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
