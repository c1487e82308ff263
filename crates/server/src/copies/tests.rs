//! Tests of copies on disk: which are kept, which files are left alone, and the errors.

use sametick_lockstep::session::Facts;
use sametick_pong::{Pong, Setup};
use sametick_sim::{StateHash, Tick, schema_hash_of, to_canonical};

use super::*;

/// A folder that is deleted on drop.
struct Folder(PathBuf);

impl Folder {
    #[track_caller]
    fn new() -> Folder {
        let line = std::panic::Location::caller().line();
        let path = std::env::temp_dir().join(format!("sametick-copies-{}-{line}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const STARTED: u64 = 1_800_000_000_000;

/// A copy of a session after so many ticks.
fn copy_at(name: &str, tick: u32) -> SessionCopy {
    let setup = Setup { seed: 7, ..Setup::default() };
    let mut state = Pong::new(&setup);
    (0..tick).for_each(|_| state.step(&sametick_sim::Inputs::new()));
    let bytes = to_canonical(&state).unwrap();
    let facts = Facts {
        name: name.into(),
        game: Pong::NAME.into(),
        build: Pong::BUILD,
        commit: "c0ffee".into(),
        schema: schema_hash_of::<Pong>(),
        setup: to_canonical(&setup).unwrap(),
        seed: 7,
        rate: Pong::RATE,
        seats: 2,
        listed: true,
    };
    let hash = StateHash::of_bytes(&bytes);
    let save = session::Save { tick: Tick(tick), hash, state: bytes, table: Table::default() };
    SessionCopy { facts, started_unix_ms: STARTED, save }
}

fn outcome(keep: &Keep, copy: &SessionCopy) -> Outcome {
    keep.write(copy).unwrap().outcome
}

#[test]
fn a_copy_comes_back_as_it_was() {
    let folder = Folder::new();
    for place in [folder.path().join("one.save"), folder.path().join("many")] {
        let copy = copy_at("den", 90);
        assert_eq!(outcome(&Keep::at(&place), &copy), Outcome::Written);
        assert_eq!(read_copy::<Pong>(&place, None).unwrap(), copy);
        assert_eq!(read_copy::<Pong>(&place, Some("den")).unwrap(), copy);
    }
    assert!(folder.path().join("many").join(format!("den-{STARTED}.save")).is_file());
}

#[test]
fn a_newer_copy_is_never_replaced_by_an_older_one() {
    let folder = Folder::new();
    let keep = Keep::at(&folder.path().join("den.save"));
    assert_eq!(outcome(&keep, &copy_at("den", 90)), Outcome::Written);
    assert_eq!(outcome(&keep, &copy_at("den", 120)), Outcome::Written);
    assert_eq!(outcome(&keep, &copy_at("den", 100)), Outcome::NewerIsThere(Tick(120)));
    assert_eq!(outcome(&keep, &copy_at("den", 120)), Outcome::AlreadyThere);
    let mut other = copy_at("den", 120);
    other.save.state[0] ^= 1;
    other.save.hash = StateHash::of_bytes(&other.save.state);
    assert!(matches!(outcome(&keep, &other), Outcome::DifferentAtSameTick { .. }));
    assert_eq!(read_copy::<Pong>(&folder.path().join("den.save"), None).unwrap().save.tick, Tick(120));
}

#[test]
fn files_that_are_no_copies_are_left_alone() {
    let folder = Folder::new();
    let file = folder.path().join("mine.save");
    assert_eq!(outcome(&Keep::at(&file), &copy_at("friday", 500)), Outcome::Written);
    let kept = Keep::at(&file).write(&copy_at("den", 90)).unwrap();
    assert_eq!(kept.path, folder.path().join(format!("den-{STARTED}.save")));
    assert!(kept.to_string().contains("another session and is left alone"), "{kept}");
    assert_eq!(read_copy::<Pong>(&file, None).unwrap().facts.name, "friday");
    let text = folder.path().join("notes.txt");
    fs::write(&text, "dear diary").unwrap();
    assert!(matches!(outcome(&Keep::at(&text), &copy_at("den", 90)), Outcome::Unreadable(_)));
    assert_eq!(fs::read(&text).unwrap(), b"dear diary");
}

#[test]
fn the_default_folder_keeps_the_last_ten_sessions() {
    let folder = Folder::new();
    let keep = Keep::Folder(folder.path().to_owned(), Some(KEPT_BY_DEFAULT));
    for number in 0..13 {
        let copy = SessionCopy { started_unix_ms: STARTED + number, ..copy_at("den", 60) };
        keep.write(&copy).unwrap();
    }
    assert_eq!(listed(folder.path()).len(), KEPT_BY_DEFAULT);
}

#[test]
fn a_copy_that_cannot_be_brought_says_why() {
    let folder = Folder::new();
    let file = folder.path().join("den.save");
    let why = |file: &Path, session| read_copy::<Pong>(file, session).unwrap_err().to_string();
    assert!(why(&file, None).contains("No such file"), "{}", why(&file, None));
    let copy = copy_at("den", 90);
    Keep::at(&file).write(&copy).unwrap();
    assert!(why(&file, Some("friday")).contains("of the session \"den\", and \"friday\" is to be joined"));
    let bytes = fs::read(&file).unwrap();
    let mut flipped = bytes.clone();
    let at = bytes.len() - 20;
    flipped[at] ^= 1;
    for (bytes, words) in [
        (&flipped[..], "the checksum of its state and table is wrong"),
        (&bytes[..bytes.len() - 1], "cut off"),
        (b"hello", "not a save"),
        (&[], "cut off"),
    ] {
        fs::write(&file, bytes).unwrap();
        assert!(why(&file, None).contains(words), "{}", why(&file, None));
    }
    let other = |change: &dyn Fn(&mut Save)| {
        let mut save = save_of(&copy, 5);
        change(&mut save);
        fs::write(&file, save.to_bytes().unwrap()).unwrap();
        why(&file, None)
    };
    assert!(other(&|save| save.info.game = "arena".into()).contains("the game arena, and pong"));
    let build = sametick_sim::BuildId::from_bytes([1; 16]);
    assert!(other(&|save| save.info.build = build).contains("build 01010101"));
    assert!(other(&|save| save.info.hash = StateHash(1)).contains("damaged"));
    assert!(other(&|save| save.info.seats = 0).contains("0 seats"));
    assert!(other(&|save| save.table = vec![1]).contains("who sat where"));
    assert!(other(&|save| save.info.session_id = "den-r5".into()).contains("of a room"));
    let none = why(&folder.path().join("."), Some("friday"));
    assert!(none.contains("there is no save of session \"friday\""), "{none}");
    fs::File::create(&file).unwrap().set_len(MAX_SAVE_BYTES as u64 + 1).unwrap();
    assert!(why(&file, None).contains("no save has more than"));
    assert!(
        check_seats(&copy, &file, (3, None))
            .unwrap_err()
            .to_string()
            .contains("2 seats, and 3 are asked for")
    );
    assert!(check_seats(&copy, &file, (1, Some(4))).unwrap_err().to_string().contains("4 are asked for"));
    assert!(check_seats(&copy, &file, (2, Some(2))).is_ok());
}
