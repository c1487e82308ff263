//! A damaged file is set aside and reported, and its readable rows are carried over.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sametick_store::players::{Answer, PlayerId, PlayerWriter, PlayerWriterOptions, Recovery};

use crate::kit::{Kit, checkpoint, folder, waker};

const PLAYERS: u128 = 3_000;
const PAGE: usize = 4096;

fn filled(path: &Path) {
    let mut kit = Kit::open(path);
    (0..PLAYERS).for_each(|player| kit.writer.save(checkpoint(player, 5)));
    assert!(kit.writer.close(Duration::from_secs(60)));
}

fn reopen(path: &Path) -> (Kit, Recovery) {
    let (waker, woken) = waker();
    let (writer, recovery) = PlayerWriter::open(path, PlayerWriterOptions::default(), waker).unwrap();
    (Kit { writer, woken, heard: Default::default() }, recovery.expect("it was damaged"))
}

fn rows(recovery: &Recovery, table: &str) -> u64 {
    recovery.tables.iter().find(|found| found.name == table).map_or(0, |found| found.rows)
}

#[test]
fn a_file_that_is_no_database_is_set_aside() {
    let (_folder, path) = folder();
    fs::write(&path, "these are not the players you are looking for. ".repeat(200)).unwrap();
    let (mut kit, recovery) = reopen(&path);
    let words = recovery.to_string();
    assert!(words.contains("damaged") && words.contains("is lost"), "{words}");
    let aside = recovery.aside.unwrap();
    assert!(fs::read_to_string(&aside).unwrap().starts_with("these are not"));
    assert!(aside.to_str().unwrap().contains("players.sqlite.broken-"));
    kit.writer.save(checkpoint(1, 1));
    kit.flush();
    assert_eq!(kit.tick_of(PlayerId(1)), Some(1));
}

#[test]
fn readable_rows_of_a_damaged_file_are_rescued_from_both_ends() {
    let (_folder, path) = folder();
    filled(&path);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / PAGE / 2 * PAGE;
    bytes[middle..middle + PAGE].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let (mut kit, recovery) = reopen(&path);
    let saved = rows(&recovery, "checkpoints");
    assert!(saved > PLAYERS as u64 * 9 / 10 && saved < PLAYERS as u64, "{recovery}");
    let (words, lost) = (recovery.to_string(), PLAYERS as u64 - saved);
    assert!(words.contains(&format!("There are now: {saved} checkpoints")), "{words}");
    assert!(words.contains(&format!("Lost: {lost} checkpoints")), "{words}");
    let there = |kit: &mut Kit, player| kit.tick_of(PlayerId(player)) == Some(5);
    assert!(there(&mut kit, 0) && there(&mut kit, PLAYERS - 1), "from both ends");
    assert!(kit.writer.close(Duration::from_secs(60)));
    Kit::open(&path);
}

#[test]
fn damage_found_at_runtime_is_repaired_and_reported() {
    let (_folder, path) = folder();
    filled(&path);
    let mut kit = Kit::open(&path);
    // A write by another connection makes SQLite drop its cache of the file.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute("INSERT INTO players VALUES (x'00', 'Eve', NULL, 1)", []).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    let garbage = vec![0xa5; len - 12 * PAGE];
    std::os::unix::fs::FileExt::write_all_at(&file, &garbage, 12 * PAGE as u64).unwrap();
    (0..PLAYERS).for_each(|player| kit.writer.save(checkpoint(player, 6)));
    let ticket = kit.writer.flush();
    let mut words = String::new();
    loop {
        match kit.next() {
            Answer::Failing(more) | Answer::Notice(more) => words += &more,
            Answer::Saved(saved) if saved == ticket => break,
            Answer::Recovered => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(words.contains("damaged") && words.contains("is kept as"), "{words}");
    for player in (0..PLAYERS).step_by(17) {
        assert_eq!(kit.tick_of(PlayerId(player)), Some(6), "what is new is in the new file");
    }
}
