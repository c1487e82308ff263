//! Files that were deleted, emptied, cut or damaged: losses are reported, readable rows are kept, and backups supply
//! the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use sametick_sim::Rng;
use sametick_store::players::{
    PlayerId, PlayerWriter, PlayerWriterOptions, Purpose, Recovery, Sqlite, SqliteOptions, Storage,
    StorageError, TableRecovery, Token, TokenState, Write,
};
use tempfile::TempDir;

use crate::kit::{FAR_FUTURE_S, Kit, PATIENCE, checkpoint, folder, place, waker, with_token};

const PLAYERS: u128 = 2_000;
const LATER: std::ops::Range<u128> = PLAYERS..PLAYERS + 300;

/// As many players as this, written in one batch.
fn save(kit: &mut Kit, players: impl Iterator<Item = u128>, tick: u32) {
    players.for_each(|player| kit.writer.save(checkpoint(player, tick)));
    kit.flush();
}

/// The files of a server that is killed now: without the shared memory, in another folder.
fn killed(path: &Path) -> (TempDir, PathBuf) {
    let (folder, copy) = folder();
    for file in fs::read_dir(path.parent().unwrap()).unwrap().map(Result::unwrap) {
        if !file.file_name().to_str().unwrap().ends_with("-shm") {
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    (folder, copy)
}

/// A server that was killed: most players are in its file, the later ones only in its log.
fn killed_with_a_log() -> (TempDir, PathBuf) {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    save(&mut kit, 0..PLAYERS, 5);
    assert!(kit.writer.close(PATIENCE));
    let mut kit = Kit::open(&path);
    save(&mut kit, LATER, 6);
    killed(&path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn open(path: &Path) -> (Sqlite, Option<Recovery>) {
    Sqlite::open(path, &SqliteOptions::default(), Purpose::Writing).unwrap()
}

fn checkpoints(recovery: Option<Recovery>) -> (TableRecovery, String) {
    let recovery = recovery.expect("something was lost");
    (recovery.tables[6], recovery.to_string())
}

fn backed_up(path: &Path) -> Kit {
    let (waker, woken) = waker();
    // One backup is made at once, and no other while the test runs.
    let options = PlayerWriterOptions {
        backup_every: Some(Duration::from_secs(3_600)),
        ..PlayerWriterOptions::default()
    };
    let (writer, recovery) = PlayerWriter::open(path, options, waker).unwrap();
    assert_eq!(recovery, None);
    let kit = Kit { writer, woken, heard: Default::default() };
    while kit.writer.stats().backups == 0 {
        std::thread::yield_now();
    }
    kit
}

#[test]
fn a_stop_a_kill_and_a_fresh_start_report_no_loss() {
    let (_folder, path) = folder();
    assert_eq!(open(&path).1, None, "a fresh one");
    // Killed before anything was written.
    let (_kept, copy) = killed(&path);
    assert_eq!(open(&copy).1, None);
    let (_kept, copy) = killed_with_a_log();
    assert_eq!(open(&copy).1, None, "a kill loses nothing");
    assert_eq!(open(&copy).1, None, "nor does a stop");
    // Everything was deleted on purpose.
    fs::remove_file(&copy).unwrap();
    fs::remove_file(beside(&copy, "-mark")).unwrap();
    assert_eq!(open(&copy).1, None);
    // Another database was put in place on purpose, and one of its own without the mark.
    let (_other, other) = killed_with_a_log();
    drop(open(&other));
    fs::copy(&other, &copy).unwrap();
    let (mut storage, recovery) = open(&copy);
    assert_eq!(recovery, None);
    assert_eq!(storage.look_up(&crate::kit::about(PlayerId(1))).unwrap().checkpoint.unwrap().tick, 5);
}

#[test]
fn a_deleted_or_emptied_log_is_reported() {
    for empties in [false, true] {
        let (_kept, path) = killed_with_a_log();
        let log = beside(&path, "-wal");
        assert!(fs::metadata(&log).unwrap().len() > 0);
        match empties {
            true => fs::write(&log, "").unwrap(),
            false => fs::remove_file(&log).unwrap(),
        }
        let (table, words) = checkpoints(open(&path).1);
        assert_eq!((table.rows, table.missing), (PLAYERS as u64, LATER.count() as u64), "{words}");
        assert!(words.contains("the last 1 of 2 batches"), "{words}");
        assert!(words.contains("Lost: 300 checkpoints"), "{words}");
        assert_eq!(open(&path).1, None, "it is said once");
    }
}

#[test]
fn a_damaged_log_gives_back_the_rows_after_the_damage() {
    let (_kept, path) = killed_with_a_log();
    let log = beside(&path, "-wal");
    let mut bytes = fs::read(&log).unwrap();
    // Within the page of the second frame.
    bytes[32 + (24 + 4096) + 2_000] ^= 0xff;
    fs::write(&log, bytes).unwrap();
    let (table, words) = checkpoints(open(&path).1);
    assert!(table.rows > PLAYERS as u64 + 250, "{words}");
    assert!(table.missing < 50, "{words}");
}

#[test]
fn a_deleted_or_emptied_database_is_rescued_from_its_log() {
    for empties in [false, true] {
        let (_kept, path) = killed_with_a_log();
        match empties {
            true => fs::write(&path, "").unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        let (table, words) = checkpoints(open(&path).1);
        assert!(table.rows >= LATER.count() as u64, "{words}");
        assert_eq!(table.rows + table.missing, PLAYERS as u64 + LATER.count() as u64, "{words}");
        assert!(words.contains(if empties { "the file is empty" } else { "the file is gone" }), "{words}");
    }
}

#[test]
fn a_cut_file_gives_back_its_remaining_rows() {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    save(&mut kit, 0..PLAYERS, 5);
    assert!(kit.writer.close(PATIENCE));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() * 79 / 100]).unwrap();
    let (table, words) = checkpoints(open(&path).1);
    assert!(table.rows >= PLAYERS as u64 * 75 / 100, "{words}");
    assert_eq!(table.rows + table.missing, PLAYERS as u64, "{words}");
    assert_eq!(open(&path).1, None, "the new file is whole");
}

#[test]
fn a_file_without_its_first_page_gives_back_the_others() {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    save(&mut kit, 0..PLAYERS, 5);
    assert!(kit.writer.close(PATIENCE));
    let mut bytes = fs::read(&path).unwrap();
    bytes[..4096].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let (table, words) = checkpoints(open(&path).1);
    assert_eq!((table.rows, table.missing), (PLAYERS as u64, 0), "{words}");
}

#[test]
fn a_backup_supplies_lost_rows_and_the_newer_row_stays() {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    let setup = vec![7; 9_000];
    let (game, code) = (crate::kit::GAME.to_owned(), crate::kit::CODE.to_owned());
    let room =
        Write::Place { place: place(), game, code, setup, seats: 8, seed: 1, listed: true, unix_ms: 1 };
    kit.writer.save(room);
    save(&mut kit, 0..PLAYERS, 5);
    assert!(kit.writer.close(PATIENCE));
    let mut kit = backed_up(&path);
    // Every other player continues, and new ones join.
    save(&mut kit, (0..PLAYERS).step_by(2).chain(LATER), 6);
    assert!(kit.writer.close(PATIENCE));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let (mut storage, recovery) = open(&path);
    let (table, words) = checkpoints(recovery);
    assert!(table.rows >= PLAYERS as u64 && table.from_backup >= PLAYERS as u64 / 2, "{words}");
    assert!(words.contains("players.sqlite.backup-1"), "{words}");
    let mut newer = 0;
    for player in 0..PLAYERS {
        let found = storage.look_up(&crate::kit::about(PlayerId(player))).unwrap();
        let row = found.checkpoint.expect("everybody who was there at the backup is there");
        assert!(row.tick == 5 || row.tick == 6 && player % 2 == 0, "{player} is at {}", row.tick);
        newer += usize::from(row.tick == 6);
        assert_eq!(found.place.expect("the room is there").setup.len(), 9_000);
    }
    assert!(newer > 100, "rows that were left of the file are newer: {newer}");
}

#[test]
fn a_backup_replaces_a_missing_or_older_file() {
    for deletes in [true, false] {
        let (_folder, path) = folder();
        let mut kit = Kit::open(&path);
        save(&mut kit, 0..PLAYERS, 5);
        // In the log only: the file has the schema at most.
        let kit = {
            drop(kit);
            backed_up(&path)
        };
        let (_kept, copy) = killed(&path);
        drop(kit);
        match deletes {
            true => fs::remove_file(&copy).unwrap(),
            // An older file, as from a restored disk.
            false => {
                let old = Connection::open(&copy).unwrap();
                old.execute_batch("DELETE FROM checkpoints; UPDATE commits SET number = 0").unwrap();
            }
        }
        let _ = fs::remove_file(beside(&copy, "-wal"));
        let (table, words) = checkpoints(open(&copy).1);
        let all = PLAYERS as u64;
        assert_eq!((table.rows, table.from_backup, table.missing), (all, all, 0), "{words}");
        assert_eq!(open(&copy).1, None);
    }
}

#[test]
fn rows_deleted_after_the_backup_stay_deleted_in_whole_tables() {
    let (_folder, path) = folder();
    let token = Token::from_bytes([9; 16]);
    let mut kit = Kit::open(&path);
    let (hash, player) = (token.hash(), PlayerId(1));
    kit.writer.save(Write::Token { hash, player, expires_unix_s: FAR_FUTURE_S });
    save(&mut kit, 0..PLAYERS, 5);
    assert!(kit.writer.close(PATIENCE));
    let mut kit = backed_up(&path);
    kit.writer.save(Write::Retire { hash });
    save(&mut kit, 0..1, 6);
    assert!(kit.writer.close(PATIENCE));
    // Only checkpoints are damaged: they fill the end of the file.
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 10 * 4096]).unwrap();
    let (mut storage, recovery) = open(&path);
    let (table, words) = checkpoints(recovery);
    assert_eq!((table.rows, table.missing), (PLAYERS as u64, 0), "{words}");
    assert_eq!(storage.look_up(&with_token(&token)).unwrap().token, TokenState::Retired);
}

#[test]
fn two_backups_are_kept_and_never_replaced_by_a_worse_one() {
    let (_folder, path) = folder();
    let (newest, before) = (beside(&path, ".backup-1"), beside(&path, ".backup-2"));
    let count = |path: &Path| {
        let sql = "SELECT count(*) FROM checkpoints";
        Connection::open(path).unwrap().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    for players in [10, 20, 30] {
        let mut kit = Kit::open(&path);
        save(&mut kit, 0..players, 5);
        assert!(kit.writer.close(PATIENCE));
        assert!(backed_up(&path).writer.close(PATIENCE));
    }
    assert_eq!((count(&newest), count(&before)), (30, 20));
    assert!(!beside(&path, ".backup-new").exists());
    // Nothing is new since the last backup.
    let made = fs::metadata(&newest).unwrap().modified().unwrap();
    let options =
        PlayerWriterOptions { backup_every: Some(Duration::ZERO), ..PlayerWriterOptions::default() };
    let (writer, _) = PlayerWriter::open(&path, options, waker().0).unwrap();
    assert!(writer.close(PATIENCE));
    assert_eq!(fs::metadata(&newest).unwrap().modified().unwrap(), made);
    // The file is replaced by an older one while the server runs.
    let (waker, woken) = waker();
    let (writer, _) = PlayerWriter::open(&path, PlayerWriterOptions::default(), waker).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("DELETE FROM checkpoints; UPDATE commits SET number = 1").unwrap();
    drop((writer, woken, other));
    let (_kept, copy) = killed(&path);
    fs::remove_file(beside(&copy, "-mark")).unwrap();
    let (waker, woken) = crate::kit::waker();
    let (writer, _) = PlayerWriter::open(&copy, options, waker).unwrap();
    let mut kit = Kit { writer, woken, heard: Default::default() };
    let said = kit.next();
    let is_refused = format!("{said:?}").contains("its backup to 3");
    assert!(is_refused, "{said:?}");
    assert_eq!(count(&beside(&copy, ".backup-1")), 30);
}

/// Whatever the damage: the files can be opened, no player is invented, and the new file is sound.
#[test]
fn a_file_with_any_damage_can_be_opened() {
    const SEEDS: u64 = 60;
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    save(&mut kit, 0..200, 5);
    assert!(kit.writer.close(PATIENCE));
    let mut kit = Kit::open(&path);
    save(&mut kit, 100..300, 6);
    let (_kept, whole) = killed(&path);
    let (mut noticed, mut found) = (0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let (_kept, copy) = killed(&whole);
        let victim = if rng.chance(1, 2) { copy.clone() } else { beside(&copy, "-wal") };
        let mut bytes = fs::read(&victim).unwrap();
        if rng.chance(1, 3) {
            bytes.truncate(rng.below(bytes.len() as u64) as usize);
        }
        for _ in 0..rng.below(20) {
            let at = rng.below(bytes.len().max(1) as u64) as usize;
            let until = (at + rng.below(300) as usize).min(bytes.len());
            bytes[at.min(until)..until].iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
        }
        fs::write(&victim, bytes).unwrap();
        let opened = Sqlite::open(&copy, &SqliteOptions::default(), Purpose::Writing);
        // Any number in the place of the version is believed.
        if matches!(opened, Err(StorageError::Newer { .. })) {
            continue;
        }
        let (storage, recovery) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        storage.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        noticed += u64::from(recovery.is_some());
        if let Some(recovery) = recovery {
            found += recovery.tables[6].rows;
            assert!(recovery.tables[6].rows <= 300 + 20, "seed {seed}: {recovery}");
        }
    }
    println!("{noticed} of {SEEDS} noticed, with {} rows of 300 on average", found / noticed.max(1));
    assert!(noticed > SEEDS / 2 && found / noticed > 150);
}
