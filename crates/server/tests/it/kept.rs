//! Tests of `sametick replay` on kept sessions: by id, from the nearest save, and of logs that lack their beginning.

use std::path::{Path, PathBuf};

use sametick::games::{AnyGame, Games, Rehearsal};
use sametick::logs::LogFile;
use sametick::replay::{Keep, NotUsed, Playback, ReplayError, Start, compare, play_twice};
use sametick_sim::record::Record;
use sametick_sim::{BuildId, StateHash, Tick};
use sametick_store::log::{Header, LogEncoder, LogReader};
use sametick_store::saves::{ColdLog, MemoryStore, ObjectStore, Piece, Save, SaveInfo, SessionKey, at_once};
use serde_json::Value;

use crate::log::text;
use crate::process::{Folder, command, run};
use crate::recorded::{bytes, header};
use crate::trial;

const TICKS: u32 = 3_000;

/// The tick of the save. The log has a check of it.
const SAVED: u32 = 2_010;

/// A session that was played, with its log and all its states.
struct Played {
    header: Header,
    records: Vec<Record>,
    /// The states after every tick, from the start.
    states: Vec<Vec<u8>>,
    key: SessionKey,
}

impl Played {
    fn of(game: &dyn AnyGame, seed: u64) -> Played {
        let rehearsal: Rehearsal = game.rehearse(seed, TICKS).unwrap();
        let (header, records) = (header(game, &rehearsal), rehearsal.records(game));
        let mut run = game.begin(&rehearsal.setup).unwrap();
        let mut states = vec![vec![]];
        run.save(&mut states[0]);
        for inputs in &rehearsal.ticks {
            run.step(inputs);
            let mut state = vec![];
            run.save(&mut state);
            states.push(state);
        }
        let key = SessionKey::of(header.build, &header.session, header.started_unix_ms);
        Played { header, records, states, key }
    }

    fn hash(&self, tick: u32) -> StateHash {
        StateHash::of_bytes(&self.states[tick as usize])
    }

    fn save(&self, tick: u32) -> Save {
        let info = SaveInfo {
            tick: Tick(tick),
            hash: self.hash(tick),
            ..SaveInfo::of_log(&self.header, self.key.id())
        };
        Save { info, state: self.states[tick as usize].clone(), table: vec![] }
    }

    /// The bytes of a log file with all records after a tick.
    fn bytes_after(&self, tick: u32) -> Vec<u8> {
        let middle = self.records.iter().rposition(|record| record.tick() == Some(Tick(tick))).unwrap() + 1;
        let before = bytes(&self.header, &self.records[..middle]);
        let position = LogReader::open(&before[..]).unwrap().verify().unwrap().position;
        let mut encoder = LogEncoder::continued(&self.header, position).unwrap();
        self.records[middle..].iter().for_each(|record| encoder.push(record).unwrap());
        encoder.flush();
        let (mut all, mut frame) = (vec![], vec![]);
        while encoder.poll_frame(&mut frame).is_some() {
            all.extend_from_slice(&frame);
        }
        all
    }

    fn folder(&self, data: &Path) -> PathBuf {
        let folder = data.join(self.key.prefix());
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Writes a log and a save to a data folder; returns the folder of the session.
    fn keep(&self, data: &Path, log: &[u8], save: Option<&Save>) -> PathBuf {
        let folder = self.folder(data);
        std::fs::write(folder.join("log"), log).unwrap();
        if let Some(save) = save {
            std::fs::write(folder.join("save"), save.to_bytes().unwrap()).unwrap();
        }
        folder
    }

    fn whole(&self) -> Vec<u8> {
        bytes(&self.header, &self.records)
    }
}

fn slow(games: &Games) -> &dyn AnyGame {
    games.named("slow").unwrap()
}

/// Goes to a tick and returns how many steps that took.
fn steps_to(playback: &mut Playback<'_>, tick: u32) -> u64 {
    trial::take_steps();
    playback.go_to(Tick(tick)).unwrap();
    trial::take_steps()
}

#[test]
fn a_tick_after_the_save_is_played_from_there() {
    let (folder, games) = (Folder::new(), trial::games());
    let played = Played::of(slow(&games), 41);
    let session = played.keep(folder.path(), &played.whole(), Some(&played.save(SAVED)));
    let mut playback = Playback::open(&session, &games, Keep::InMemory).unwrap();
    assert_eq!(playback.use_save().unwrap(), None);
    assert_eq!(steps_to(&mut playback, SAVED + 75), 75);
    assert_eq!(playback.started_from(), Start::Save(Tick(SAVED)));
    assert_eq!(playback.run().hash(), played.hash(SAVED + 75));
    assert_eq!(playback.checks_compared(), Some(2), "those after the save");
    // A tick before the save is played from the start, and compared as well.
    assert_eq!(steps_to(&mut playback, 100), 100);
    assert_eq!((playback.started_from(), playback.run().hash()), (Start::Setup, played.hash(100)));
    assert_eq!(playback.checks_compared(), Some(3));
    steps_to(&mut playback, TICKS);
    assert_eq!((playback.run().hash(), playback.covered().first_bad), (played.hash(TICKS), None));
    // Without `use_save` everything is compared.
    let mut all = Playback::open(&session, &games, Keep::InMemory).unwrap();
    assert_eq!(steps_to(&mut all, TICKS), u64::from(TICKS));
    assert_eq!(all.checks_compared(), Some(TICKS as usize / 30));
}

#[test]
fn states_after_a_save_do_not_count_as_compared() {
    let (folder, games) = (Folder::new(), trial::games());
    let mut played = Played::of(slow(&games), 42);
    let wrong = played.records.iter_mut().find_map(|record| match record {
        Record::Check { tick, hash } if *tick == Tick(1_200) => Some(hash),
        _ => None,
    });
    wrong.unwrap().0 ^= 1;
    let session = played.keep(folder.path(), &played.whole(), Some(&played.save(SAVED)));
    let mut playback = Playback::open(&session, &games, Keep::InFile).unwrap();
    playback.use_save().unwrap();
    assert_eq!(steps_to(&mut playback, TICKS), u64::from(TICKS - SAVED));
    playback.keep_states();
    assert_eq!(playback.covered().first_bad, None, "it is before the save");
    let mut again = Playback::open(&session, &games, Keep::InFile).unwrap();
    steps_to(&mut again, TICKS);
    assert_eq!(again.covered().first_bad.map(|bad| bad.tick), Some(Tick(1_200)));
}

#[test]
fn a_save_that_the_log_does_not_agree_with_is_not_used() {
    let (folder, games) = (Folder::new(), trial::games());
    let played = Played::of(slow(&games), 43);
    let why = |save: &Save| {
        let session = played.keep(folder.path(), &played.whole(), Some(save));
        let mut playback = Playback::open(&session, &games, Keep::InMemory).unwrap();
        let why = playback.use_save().unwrap().unwrap();
        assert_eq!(steps_to(&mut playback, TICKS), u64::from(TICKS));
        why
    };
    let mut other = played.save(SAVED);
    (other.state, other.info.hash) = (played.states[7].clone(), played.hash(7));
    let (tick, logged, saved) = (Tick(SAVED), played.hash(SAVED), played.hash(7));
    assert_eq!(why(&other), NotUsed::Different { tick, logged, saved });
    assert_eq!(why(&played.save(SAVED + 1)), NotUsed::Unknown(Tick(SAVED + 1)));
    let mut later = played.save(SAVED);
    later.info.tick = Tick(TICKS + 30);
    assert_eq!(why(&later), NotUsed::Outside { tick: Tick(TICKS + 30), first: Tick(1), last: Tick(TICKS) });
    let mut elsewhere = played.save(SAVED);
    elsewhere.info.started_unix_ms += 1;
    assert_eq!(why(&elsewhere), NotUsed::Other);
    let mut untrue = played.save(SAVED);
    untrue.state[0] ^= 1;
    assert!(matches!(why(&untrue), NotUsed::Unreadable(_)));
    let session = played.folder(folder.path());
    let save = std::fs::read(session.join("save")).unwrap();
    std::fs::write(session.join("save"), &save[..save.len() - 1]).unwrap();
    let mut playback = Playback::open(&session, &games, Keep::InMemory).unwrap();
    let why = playback.use_save().unwrap().unwrap().to_string();
    assert!(why.contains("the save is cut off"), "{why}");
}

#[test]
fn a_log_without_its_beginning_begins_with_the_save() {
    let (folder, games) = (Folder::new(), trial::games());
    let played = Played::of(slow(&games), 44);
    let part = played.bytes_after(1_234);
    let session = played.keep(folder.path(), &part, None);
    let error = Playback::open(&session, &games, Keep::InMemory).unwrap_err();
    assert!(matches!(error, ReplayError::Part { why: NotUsed::None, .. }), "{error}");
    // The log has no check of that tick: the save is trusted, and later checks are compared.
    for saved in [1_234, SAVED] {
        played.keep(folder.path(), &part, Some(&played.save(saved)));
        let mut playback = Playback::open(&session, &games, Keep::InFile).unwrap();
        assert_eq!(playback.begins(), Tick(saved));
        assert_eq!(steps_to(&mut playback, TICKS), u64::from(TICKS - saved));
        assert_eq!((playback.run().hash(), playback.covered().first_bad), (played.hash(TICKS), None));
        assert_eq!(playback.started_from(), Start::Save(Tick(saved)));
        assert_eq!(playback.checks_compared(), Some((TICKS / 30 - saved / 30) as usize));
        assert_eq!(steps_to(&mut playback, saved), 0);
        let early = playback.go_to(Tick(saved - 1)).unwrap_err();
        assert!(matches!(early, ReplayError::TooEarly { .. }), "{early}");
        let log = LogFile::open(&session).unwrap();
        assert_eq!(play_twice(&log, &games, Tick(TICKS)).unwrap(), None);
        let whole = folder.path().join("whole");
        std::fs::write(&whole, played.whole()).unwrap();
        let mut whole = Playback::open(&whole, &games, Keep::InMemory).unwrap();
        let mut part = Playback::open(&session, &games, Keep::InMemory).unwrap();
        assert_eq!(compare(&mut part, &mut whole, Tick(TICKS)).unwrap(), None);
        assert_eq!((part.run().tick(), whole.run().tick()), (Tick(TICKS), Tick(TICKS)));
    }
    let mut wrong = played.save(1_234);
    (wrong.state, wrong.info.hash) = (played.states[7].clone(), played.hash(7));
    played.keep(folder.path(), &part, Some(&wrong));
    let mut playback = Playback::open(&session, &games, Keep::InMemory).unwrap();
    steps_to(&mut playback, TICKS);
    assert_eq!(playback.covered().first_bad.map(|bad| bad.tick), Some(Tick(1_260)), "its first check tells");
    played.keep(folder.path(), &part, Some(&played.save(1_200)));
    let error = Playback::open(&session, &games, Keep::InMemory).unwrap_err().to_string();
    assert!(error.contains("the save is of tick 1200, and the log has ticks 1235 to 3000"), "{error}");
}

/// Runs the command in a folder. Returns whether it succeeded, its output and its errors.
fn in_folder(folder: &Path, args: &[&str]) -> (bool, String, String) {
    let output = run(command(args).current_dir(folder));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_session_is_replayed_by_its_id() {
    let (folder, games) = (Folder::new(), trial::games());
    let played = Played::of(games.named("pong").unwrap(), 45);
    let data = folder.path().join("sametick-data");
    played.keep(&data, &played.whole(), Some(&played.save(SAVED)));
    let (id, build) = (played.key.id().to_owned(), played.key.build().to_string());
    let hash = played.hash(TICKS).to_string();
    for name in [id.clone(), format!("{}/{id}", &build[..8])] {
        let (ok, out, err) = in_folder(folder.path(), &["replay", &name, "--json"]);
        let report: Value = serde_json::from_str(&out).unwrap_or_default();
        assert!(ok && report["hash"] == hash && report["ticks_played"] == TICKS, "{out}{err}");
    }
    let to = (SAVED + 5).to_string();
    let elsewhere = ["replay", &id, "--store", text(&data), "--to", &to];
    std::fs::remove_file(played.folder(&data).join("log.states")).unwrap();
    let (ok, out, err) = in_folder(Path::new("/"), &elsewhere);
    assert!(ok && out.contains("5 ticks played from the save of tick 2010"), "{out}{err}");
    let (ok, out, err) = in_folder(Path::new("/"), &["log", "verify", &id, "--store", text(&data)]);
    assert!(ok && out.contains("100 checks compared, all match"), "{out}{err}");
    let (ok, out, _) = in_folder(folder.path(), &["log", "info", &id]);
    assert!(ok && out.contains("session    \"den\""), "{out}");

    let (ok, _, err) = in_folder(folder.path(), &["replay", "dem"]);
    assert!(!ok && err.contains(&format!("no such session in sametick-data; the nearest are {id}")), "{err}");
    let (ok, _, err) = in_folder(folder.path(), &["replay", "dem", "--store", text(&data)]);
    assert!(!ok && err.contains(&format!("there is no session \"dem\" here; the nearest are {id}")), "{err}");
    let (ok, _, err) = in_folder(folder.path(), &["replay", "match.log"]);
    assert!(!ok && err.contains("match.log: there is no such file") && err.lines().count() == 1, "{err}");
    let (ok, _, err) = in_folder(folder.path(), &["replay", &id, "--store", "nowhere"]);
    assert!(
        !ok && err.contains("there is no such folder") && !folder.path().join("nowhere").exists(),
        "{err}"
    );
    let (ok, _, err) = in_folder(folder.path(), &["replay", "s3://games/sametick"]);
    assert!(!ok && err.contains("that is no session"), "{err}");

    let twin = SessionKey::of(BuildId::from_bytes([3; 16]), "den", played.header.started_unix_ms);
    std::fs::create_dir_all(data.join(twin.prefix())).unwrap();
    std::fs::write(data.join(twin.save()), played.save(SAVED).to_bytes().unwrap()).unwrap();
    let (ok, _, err) = in_folder(folder.path(), &["replay", &id]);
    assert!(!ok && err.contains("of several builds") && err.contains(&format!("03030303/{id}")), "{err}");
    let (ok, _, err) = in_folder(folder.path(), &["replay", &format!("0303/{id}")]);
    assert!(!ok && err.contains("the session has no log"), "{err}");
}

/// Writes a log as segments to a data folder, as if copied from S3.
fn keep_segments(played: &Played, data: &Path, logs: &[Vec<u8>]) {
    let store = MemoryStore::new();
    let cold = ColdLog::new(&store, &played.key);
    for log in logs {
        let first = LogReader::open(&log[..]).unwrap().header().first_tick;
        let (front, rest) = log.split_at(log.len() / 2);
        let piece = |at: usize, first, bytes| Piece { at: at as u64, anew: at == 0, first, ticks: 1, bytes };
        at_once(cold.append(piece(0, first, front))).unwrap();
        at_once(cold.append(piece(front.len(), first + 700, rest))).unwrap();
    }
    for object in at_once(store.list("")).unwrap() {
        let bytes = at_once(store.get(&object.key)).unwrap().unwrap().bytes;
        std::fs::write(data.join(&object.key), bytes).unwrap();
    }
}

#[test]
fn a_log_in_segments_is_replayed_and_a_damaged_one_is_named() {
    let (folder, games) = (Folder::new(), trial::games());
    let played = Played::of(games.named("pong").unwrap(), 46);
    let data = folder.path().join("copied");
    let session = played.keep(&data, b"", Some(&played.save(SAVED)));
    let (id, hash) = (played.key.id().to_owned(), played.hash(TICKS).to_string());
    let replay = |args: &[&str]| {
        let named = ["replay", &id, "--store", text(&data), "--json"];
        let (ok, out, err) = in_folder(folder.path(), &[&named[..], args].concat());
        (ok, serde_json::from_str::<Value>(&out).unwrap_or_default(), err)
    };
    keep_segments(&played, &data, &[played.whole()]);
    let (ok, report, err) = replay(&[]);
    assert!(ok && report["hash"] == hash && report["ticks_played"] == TICKS, "{report}{err}");
    let (ok, report, err) = replay(&["--to", "2020"]);
    assert!(ok && report["ticks_played"] == 10 && report["from_save"] == true, "{report}{err}");
    assert_eq!(std::fs::read_dir(&session).unwrap().count(), 4, "save, manifest, two segments, and no more");
    let (ok, _, err) = replay(&["--twice"]);
    assert!(ok, "{err}");

    // A relay that had lost its file has gone on from a save, with a log of its own.
    keep_segments(&played, &data, &[played.whole(), played.bytes_after(1_234)]);
    let (ok, report, err) = replay(&[]);
    assert!(ok && report["hash"] == hash && report["checks_compared"] == 100, "{report}{err}");
    // And again, with a gap in the ticks.
    let first = bytes(&played.header, &played.records[..500]);
    keep_segments(&played, &data, &[first, played.bytes_after(1_234)]);
    let (ok, report, err) = replay(&[]);
    assert!(ok && report["hash"] == hash && report["first_tick"] == 1_235, "{report}{err}");
    assert!(report["from_tick"] == SAVED && report["from_save"] == true, "{report}");

    let segment = session.join("log.1935");
    let mut spoiled = std::fs::read(&segment).unwrap();
    spoiled[9] ^= 1;
    std::fs::write(&segment, spoiled).unwrap();
    let (ok, _, err) = replay(&[]);
    assert!(
        !ok && err.contains("/log.1935 is not what the manifest says") && err.lines().count() == 1,
        "{err}"
    );
    std::fs::remove_file(&segment).unwrap();
    let (ok, _, err) = replay(&[]);
    assert!(!ok && err.contains("/log.1935 is not there"), "{err}");
    std::fs::remove_file(session.join("log")).unwrap();
    let (ok, _, err) = replay(&[]);
    assert!(!ok && err.contains("the session has no log"), "{err}");
}
