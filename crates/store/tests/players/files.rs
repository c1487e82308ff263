//! The database file: schemas, restarts, and secrets that must not be in it.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use sametick_store::players::{
    Found, Kept, PlaceRow, PlayerId, PlayerWriter, PlayerWriterOptions, Purpose, Sqlite, SqliteOptions,
    StorageError, Token, TokenState, Write,
};

use crate::kit::{CODE, FAR_FUTURE_S, GAME, Kit, about, checkpoint, folder, place, waker, with_token};

const PLAYER: PlayerId = PlayerId(0xabc);

fn save_all(kit: &mut Kit, token: &Token) {
    let (game, kept) = (GAME.to_owned(), Kept::new(b"level 3").unwrap());
    let (player, place, unix_ms) = (PLAYER, place(), 5);
    for write in [
        Write::Player { player, name: "Ada".into(), subject: Some("user_1".into()), unix_ms },
        Write::Token { hash: token.hash(), player, expires_unix_s: FAR_FUTURE_S },
        Write::Profile { player, game: game.clone(), character: "rook".into(), kept, unix_ms },
        Write::Profile {
            player,
            game: game.clone(),
            character: "knight".into(),
            kept: Kept::default(),
            unix_ms,
        },
        Write::Active { player, game: game.clone(), character: "rook".into() },
        Write::Place {
            place,
            game,
            code: CODE.into(),
            setup: vec![1, 2],
            seats: 8,
            seed: u64::MAX,
            listed: true,
            unix_ms,
        },
        Write::Part { place, key: u32::MAX, kept: Some(Kept::new(b"wall").unwrap()) },
        Write::Part { place, key: 7, kept: Some(Kept::new(b"gone").unwrap()) },
        Write::Part { place, key: 7, kept: None },
        checkpoint(PLAYER.0, 42),
    ] {
        kit.writer.save(write);
    }
    kit.flush();
}

#[test]
fn everything_that_was_saved_is_found_after_a_restart() {
    let (_folder, path) = folder();
    let token = Token::from_bytes([9; 16]);
    let mut kit = Kit::open(&path);
    assert_eq!(kit.ask(&about(PLAYER)), Ok(Found::default()), "nobody knows anything yet");
    save_all(&mut kit, &token);
    assert!(kit.writer.close(Duration::from_secs(60)));
    let mut kit = Kit::open(&path);
    let found = kit.ask(&with_token(&token)).unwrap();
    assert_eq!(found.token, TokenState::Good);
    let known = found.player.unwrap();
    assert_eq!((known.id, &*known.name, known.subject.as_deref()), (PLAYER, "Ada", Some("user_1")));
    let row = found.checkpoint.unwrap();
    assert_eq!((row.seat, row.tick, row.unix_ms), (3, 42, 42));
    let profiles = [("knight".to_owned(), Kept::default()), ("rook".into(), Kept::new(b"level 3").unwrap())];
    assert_eq!((&*found.profiles, found.active.as_deref()), (&profiles[..], Some("rook")));
    let expected = PlaceRow {
        id: place(),
        setup: vec![1, 2],
        seats: 8,
        seed: u64::MAX,
        listed: true,
        parts: vec![(u32::MAX, Kept::new(b"wall").unwrap())],
        checkpoints: vec![(PLAYER, 3, 42)],
    };
    assert_eq!((found.place, found.senseless), (Some(expected), 0));
    kit.writer.save(Write::Forget { place: place() });
    kit.flush();
    let found = kit.ask(&with_token(&token)).unwrap();
    assert_eq!((found.place, found.checkpoint), (None, None));
    assert_eq!(found.profiles.len(), 2, "characters are no part of a room");
}

#[test]
fn tokens_expire_and_strangers_are_unknown() {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    let token = Token::from_bytes([1; 16]);
    kit.writer.save(Write::Token { hash: token.hash(), player: PLAYER, expires_unix_s: FAR_FUTURE_S });
    kit.flush();
    let mut state_at = |now_unix_s| {
        let question = sametick_store::players::Question { now_unix_s, ..with_token(&token) };
        kit.ask(&question).unwrap().token
    };
    assert_eq!(state_at(FAR_FUTURE_S - 1), TokenState::Good);
    assert_eq!(state_at(FAR_FUTURE_S), TokenState::Expired);
    let stranger = kit.ask(&with_token(&Token::from_bytes([2; 16]))).unwrap();
    assert_eq!((stranger.token, stranger.player), (TokenState::Unknown, None));
}

#[test]
fn no_token_is_in_a_file_or_in_any_debug_output() {
    let (folder, path) = folder();
    let bytes = *b"\xde\xad\xbe\xef-very-secret";
    let token = Token::from_bytes(bytes);
    let mut kit = Kit::open(&path);
    save_all(&mut kit, &token);
    let question = with_token(&token);
    let found = kit.ask(&question).unwrap();
    let write = Write::Token { hash: token.hash(), player: PLAYER, expires_unix_s: 1 };
    let retire = Write::Retire { hash: token.hash() };
    let hash = token.hash().0;
    let shown = format!("{token:?} {write:?} {retire:?} {question:?} {found:?} {:?}", kit.writer);
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let list = |bytes: &[u8]| format!("{bytes:?}").trim_matches(['[', ']']).to_owned();
    for secret in [digits(&bytes), list(&bytes), digits(&hash), list(&hash)] {
        assert!(!shown.contains(&secret), "{shown}");
    }
    let mut files = 0;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let contents = std::fs::read(file.unwrap().path()).unwrap();
        let has = |secret: &[u8]| contents.windows(secret.len()).any(|window| window == secret);
        assert!(!has(&bytes) && !has(token.to_hex().as_bytes()));
        files += usize::from(has(&hash));
    }
    assert!(files > 0, "its hash is");
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = folder();
    let mut kit = Kit::open(&path);
    kit.flush();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

fn version(path: &Path) -> u32 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let (_folder, path) = folder();
    assert!(Kit::open(&path).writer.close(Duration::from_secs(60)));
    let known = version(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 77).unwrap();
    let error = PlayerWriter::open(&path, PlayerWriterOptions::default(), waker().0).unwrap_err();
    assert_eq!(error, StorageError::Newer { found: 77, known });
    let words = error.to_string();
    assert!(words.contains("schema 77") && words.contains(&format!("up to {known}")), "{words}");
    assert_eq!(version(&path), 77, "it is left as it is");
}

#[test]
fn an_old_schema_is_migrated_and_a_repeat_changes_nothing() {
    let (_folder, path) = folder();
    let token = Token::from_bytes([9; 16]);
    let mut kit = Kit::open(&path);
    save_all(&mut kit, &token);
    assert!(kit.writer.close(Duration::from_secs(60)));
    let known = version(&path);
    // A file of the first version: no tables of rooms.
    let old = Connection::open(&path).unwrap();
    old.execute_batch("DROP TABLE places; DROP TABLE parts; DROP TABLE checkpoints; PRAGMA user_version = 1")
        .unwrap();
    drop(old);
    for _ in 0..3 {
        let mut kit = Kit::open(&path);
        let found = kit.ask(&with_token(&token)).unwrap();
        assert_eq!((found.profiles.len(), found.place), (2, None));
        kit.writer.save(checkpoint(1, 1));
        kit.flush();
        assert_eq!(version(&path), known);
    }
    // A completed step whose number was not written: it is repeated without effect.
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 0).unwrap();
    let mut kit = Kit::open(&path);
    assert_eq!(kit.tick_of(PlayerId(1)), Some(1));
    assert_eq!(version(&path), known);
}

#[test]
fn two_versions_that_start_at_once_migrate_it_once() {
    let (_folder, path) = folder();
    let open = || Sqlite::open(&path, &SqliteOptions::default(), Purpose::Writing);
    std::thread::scope(|scope| {
        let opening: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        for result in opening {
            match result.join().unwrap() {
                Ok((storage, aside)) => assert_eq!((storage.check(), aside), (Ok(()), None)),
                Err(error) => assert!(matches!(error, StorageError::Busy(_)), "{error}"),
            }
        }
    });
    assert!(open().is_ok());
}
