//! Senseless rows are replaced when a player is looked up, and counted.

use rusqlite::{Connection, params};
use sametick_store::players::{Kept, PlayerId, Token, TokenState, Write};

use crate::kit::{FAR_FUTURE_S, GAME, Kit, about, folder, with_token};

const PLAYER: PlayerId = PlayerId(5);

/// A file changed by `sql`; `?1` is the player.
fn spoilt(sql: &[&str]) -> (tempfile::TempDir, Kit) {
    let (folder, path) = folder();
    let mut kit = Kit::open(&path);
    let (game, kept) = (GAME.to_owned(), Kept::new(b"good").unwrap());
    kit.writer.save(Write::Player { player: PLAYER, name: "Ada".into(), subject: None, unix_ms: 1 });
    kit.writer.save(Write::Profile { player: PLAYER, game, character: "rook".into(), kept, unix_ms: 1 });
    kit.flush();
    let other = Connection::open(&path).unwrap();
    for sql in sql {
        other.execute(sql, params![PLAYER.to_bytes()]).unwrap();
    }
    (folder, kit)
}

/// Looks up twice: rows that were senseless the first time are repaired by the second.
fn mended(kit: &mut Kit) -> (u32, sametick_store::players::Found) {
    let first = kit.ask(&about(PLAYER)).unwrap();
    kit.flush();
    let second = kit.ask(&about(PLAYER)).unwrap();
    assert_eq!(second.senseless, 0, "{second:?}");
    assert_eq!(
        (&first.player, &first.profiles, &first.active, &first.checkpoint),
        (&second.player, &second.profiles, &second.active, &second.checkpoint),
        "what is said at once is what will be in the file"
    );
    assert_eq!(kit.writer.stats().mended, u64::from(first.senseless));
    (first.senseless, second)
}

#[test]
fn valid_rows_are_left_alone() {
    let (_folder, mut kit) = spoilt(&[]);
    let (senseless, found) = mended(&mut kit);
    assert_eq!((senseless, found.profiles.len(), found.active), (0, 1, None));
}

#[test]
fn an_active_character_without_a_profile_is_given_one() {
    let (_folder, mut kit) = spoilt(&["INSERT INTO active VALUES (?1, 'arena', 'knight')"]);
    let (senseless, found) = mended(&mut kit);
    assert_eq!((senseless, found.active.as_deref()), (1, Some("knight")));
    let good = Kept::new(b"good").unwrap();
    assert_eq!(found.profiles, [("knight".into(), Kept::default()), ("rook".into(), good)]);
}

#[test]
fn characters_with_bad_ids_are_dropped_and_long_ones_emptied() {
    let (_folder, mut kit) = spoilt(&[
        "INSERT INTO profiles VALUES (?1, 'arena', 'Rook!', x'01', 1)",
        "INSERT INTO profiles VALUES (?1, 'arena', '', x'01', 1)",
        "INSERT INTO profiles VALUES (?1, 'arena', 'abcdefghijklmnopqrstuvwxyz', x'01', 1)",
        "INSERT INTO profiles VALUES (?1, 'arena', 'long', zeroblob(257), 1)",
        "INSERT INTO active VALUES (?1, 'arena', 'no such thing')",
    ]);
    let (senseless, found) = mended(&mut kit);
    assert_eq!((senseless, found.active), (5, None));
    let good = Kept::new(b"good").unwrap();
    assert_eq!(found.profiles, [("long".into(), Kept::default()), ("rook".into(), good)]);
}

#[test]
fn a_player_without_a_row_is_given_one() {
    let (_folder, mut kit) = spoilt(&["DELETE FROM players WHERE player = ?1"]);
    let (senseless, found) = mended(&mut kit);
    let known = found.player.unwrap();
    assert_eq!((senseless, known.id, known.name), (1, PLAYER, String::new()));
    let token = Token::from_bytes([4; 16]);
    let stranger = PlayerId(6);
    kit.writer.save(Write::Token { hash: token.hash(), player: stranger, expires_unix_s: FAR_FUTURE_S });
    kit.flush();
    let found = kit.ask(&with_token(&token)).unwrap();
    assert_eq!((found.token, found.player.map(|known| known.id)), (TokenState::Good, Some(stranger)));
}

#[test]
fn rows_saved_during_a_repair_stay() {
    let (_folder, mut kit) = spoilt(&["INSERT INTO active VALUES (?1, 'arena', 'knight')"]);
    let kept = Kept::new(b"just now").unwrap();
    let (game, character) = (GAME.to_owned(), "knight".to_owned());
    assert_eq!(kit.ask(&about(PLAYER)).unwrap().senseless, 1);
    let write = Write::Profile { player: PLAYER, game, character, kept: kept.clone(), unix_ms: 2 };
    kit.writer.save(write);
    kit.flush();
    let found = kit.ask(&about(PLAYER)).unwrap();
    assert_eq!((found.senseless, &found.profiles[0]), (0, &("knight".to_owned(), kept)));
}
