//! A folder store used by several processes, some of which are killed.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "processes are started and killed by the clock, and their number comes from the environment"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sametick_sim::{Rng, Tick};
use sametick_store::saves::{
    AppendError, Condition, FolderStore, MAX_OBJECT_BYTES, ObjectStore, Outcome, PutError, Save, at_once,
};

use crate::kit::{bring, key, save};
use crate::stores::behaves;

/// Kills in the test command; `SAMETICK_KILLS` sets another number.
const KILLS: u64 = 36;
const WRITERS: u64 = 3;
/// Longer than anything takes on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_folder_keeps_the_contract_of_stores() {
    let folder = tempfile::tempdir().unwrap();
    at_once(behaves(&FolderStore::open(folder.path()).unwrap()));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"], "empty folders are removed");
}

#[test]
fn a_log_grows_and_a_repeated_piece_is_not_written_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    let append = |at, bytes: &[u8]| at_once(store.append(&key().log(), at, bytes));
    assert_eq!(append(3, b"x"), Err(AppendError::Conflict { bytes: 0 }));
    assert_eq!(append(0, b"one,"), Ok(4));
    assert_eq!(append(4, b"two,"), Ok(8));
    assert_eq!(append(4, b"two,"), Ok(8), "as after an answer that was lost");
    assert_eq!(append(4, b"two,three"), Ok(13), "as after half of it was written");
    assert_eq!(append(4, b"2"), Err(AppendError::Conflict { bytes: 13 }));
    assert_eq!(append(4, b"TWO,three"), Err(AppendError::Conflict { bytes: 13 }));
    assert_eq!(append(14, b"x"), Err(AppendError::Conflict { bytes: 13 }));
    assert_eq!(at_once(store.get(&key().log())).unwrap().unwrap().bytes, b"one,two,three");
}

#[test]
fn a_log_too_large_to_read_whole_is_read_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    at_once(store.append(&key().log(), 0, b"begin")).unwrap();
    let file = fs::OpenOptions::new().write(true).open(store.path(&key().log()).unwrap()).unwrap();
    file.set_len(MAX_OBJECT_BYTES + 1).unwrap();
    let trouble = at_once(store.get(&key().log())).unwrap_err();
    assert!(trouble.0.contains("too large to be read whole"), "{trouble}");
    at_once(store.append(&key().log(), MAX_OBJECT_BYTES + 1, b"end")).unwrap();
    let end = at_once(store.get_range(&key().log(), MAX_OBJECT_BYTES..u64::MAX)).unwrap().unwrap();
    assert_eq!(end.bytes, b"\0end");
    assert_eq!(at_once(store.head(&key().log())).unwrap().unwrap().version, end.version);
}

#[test]
fn keys_cannot_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("in")).unwrap();
    for key in ["../out", "/etc/x", "a/../../out", "", "a//b", ".lock", "a/.b", "a\\b", "c:x"] {
        assert!(
            matches!(at_once(store.put(key, b"x", Condition::New, None)), Err(PutError::Failing(_))),
            "{key}"
        );
        assert!(at_once(store.get(key)).is_err() && at_once(store.delete(key)).is_err(), "{key}");
    }
    assert!(!folder.path().join("out").exists());
}

#[test]
fn an_unwritable_folder_is_reported_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    at_once(store.put("sessions", b"a file in the way", Condition::New, None)).unwrap();
    let put = at_once(store.put(&key().save(), b"x", Condition::New, None));
    let Err(PutError::Failing(trouble)) = put else { panic!("{put:?}") };
    assert!(trouble.0.contains("sessions"), "{trouble}");
    assert_eq!(at_once(store.get("sessions")).unwrap().unwrap().bytes, b"a file in the way");
    assert!(FolderStore::open(folder.path().join("sessions/deeper")).is_err());
}

/// A limit on the size of files acts like a full disk: some bytes fit, and then none.
#[cfg(unix)]
#[test]
fn a_full_disk_is_reported_and_what_was_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    let old = save(5, 0).to_bytes().unwrap();
    at_once(store.put(&key().save(), &old, Condition::New, None)).unwrap();
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.arg("-c").arg(limited).arg(std::env::current_exe().unwrap());
    let said = child(&mut command, "fills_the_disk", folder.path(), 0).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("trouble, the put") && said.contains("trouble, the append"), "{said}");
    assert_eq!(at_once(store.get(&key().save())).unwrap().unwrap().bytes, old);
    let files = fs::read_dir(store.path(&key().save()).unwrap().parent().unwrap()).unwrap();
    let names: BTreeSet<_> = files.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["save".into(), "log".into()].into(), "nothing is left over");
    assert_eq!(at_once(store.append(&key().log(), 0, b"fits again")), Ok(10));
}

/// Not a test of its own: it runs where files cannot be large.
#[test]
fn fills_the_disk() {
    let Some((folder, _)) = asked_to("fills_the_disk") else { return };
    let store = FolderStore::open(folder).unwrap();
    let large = vec![7; 1 << 20];
    let version = at_once(store.head(&key().save())).unwrap().unwrap().version;
    let put = at_once(store.put(&key().save(), &large, Condition::Replaces(version), None));
    if let Err(PutError::Failing(trouble)) = put {
        say(&format!("trouble, the put: {trouble}"));
    }
    if let Err(AppendError::Failing(trouble)) = at_once(store.append(&key().log(), 0, &large)) {
        say(&format!("trouble, the append: {trouble}"));
    }
}

#[test]
fn writers_race_and_are_killed_and_nothing_written_is_lost() {
    let kills = std::env::var("SAMETICK_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    let mut rng = Rng::new(kills);
    let mut writers: Vec<Writer> = (1..=WRITERS).map(|maker| Writer::spawn(folder.path(), maker)).collect();
    writers.iter_mut().for_each(Writer::hear_first);
    let mut seen = Tick::ZERO;
    let mut written = BTreeSet::new();
    for kill in 0..kills {
        let until = Instant::now() + Duration::from_micros(rng.below(40_000));
        while Instant::now() < until {
            seen = look(&store, seen);
        }
        let at = rng.below(WRITERS) as usize;
        let fresh = Writer::spawn(folder.path(), WRITERS + 1 + kill);
        let told = std::mem::replace(&mut writers[at], fresh).kill();
        take(&mut written, told);
        seen = look(&store, seen);
        writers[at].hear_first();
    }
    for writer in writers {
        let told = writer.kill();
        take(&mut written, told);
    }
    seen = look(&store, seen);
    let last = written.last().copied().unwrap_or(Tick::ZERO);
    println!("{kills} kills, {} saves written, up to tick {}", written.len(), seen.0);
    assert!(seen >= last, "tick {} was written, and tick {} is there", last.0, seen.0);
    assert!(written.len() as u64 > kills, "they come to write something");
    assert!(left_overs(&store).len() as u64 <= WRITERS + 1, "they do not pile up");
    let found = at_once(store.get(&key().save())).unwrap().unwrap();
    at_once(store.put(&key().save(), b"x", Condition::Replaces(found.version), None)).unwrap();
    assert_eq!(
        left_overs(&store),
        Vec::<PathBuf>::new(),
        "the next writer removes the temporary files of killed ones"
    );
}

/// Checks that no save is reported as written by two processes.
fn take(written: &mut BTreeSet<Tick>, told: Vec<Tick>) {
    for tick in told {
        assert!(written.insert(tick), "tick {} was written by two", tick.0);
    }
}

/// Checks that the stored save is whole, true and no older than before.
fn look(store: &FolderStore, before: Tick) -> Tick {
    let Some(found) = at_once(store.get(&key().save())).unwrap() else { return before };
    let save = Save::from_bytes(&found.bytes).unwrap();
    assert!(save.is_true() && save.info.tick >= before, "{} after {}", save.info.tick.0, before.0);
    save.info.tick
}

fn left_overs(store: &FolderStore) -> Vec<PathBuf> {
    let folder = store.path(&key().save()).unwrap();
    let files = fs::read_dir(folder.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "unfinished")).collect()
}

/// A process that uploads saves until it is killed.
struct Writer {
    child: Child,
    lines: Receiver<String>,
    told: Vec<Tick>,
}

impl Writer {
    fn spawn(folder: &Path, maker: u64) -> Writer {
        let mut child =
            child(&mut Command::new(std::env::current_exe().unwrap()), "brings_saves", folder, maker);
        let (say, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Writer { child, lines, told: Vec::new() }
    }

    fn hear_first(&mut self) {
        while self.told.is_empty() && self.hear() {}
    }

    /// Returns whether a line was read.
    fn hear(&mut self) -> bool {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let tick = line.strip_prefix("written ").map(|tick| Tick(tick.parse().unwrap()));
                self.told.extend(tick);
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("a writer is silent"),
        }
    }

    fn kill(mut self) -> Vec<Tick> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self.hear() {}
        self.told
    }
}

/// This program again, in the role of `what`.
fn child(command: &mut Command, what: &str, folder: &Path, maker: u64) -> Child {
    command
        .args([&format!("folders::{what}"), "--exact", "--nocapture", "--test-threads=1"])
        .env("SAMETICK_CHILD", what)
        .env("SAMETICK_CHILD_FOLDER", folder)
        .env("SAMETICK_CHILD_MAKER", maker.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn asked_to(what: &str) -> Option<(PathBuf, u64)> {
    (std::env::var("SAMETICK_CHILD").ok()? == what).then(|| {
        let maker = std::env::var("SAMETICK_CHILD_MAKER").unwrap().parse().unwrap();
        (std::env::var_os("SAMETICK_CHILD_FOLDER").unwrap().into(), maker)
    })
}

fn say(line: &str) {
    // One write: the parent never reads half a line.
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Not a test of its own: it uploads saves until it is killed.
#[test]
fn brings_saves() {
    let Some((folder, maker)) = asked_to("brings_saves") else { return };
    let store = FolderStore::open(folder).unwrap();
    let mut rng = Rng::new(maker);
    let mut tick = 0;
    loop {
        tick += 1 + rng.below(3) as u32;
        let mut save = save(tick, 0);
        // Large enough to be killed in the middle of it.
        save.table = vec![maker as u8; 60_000];
        save.info.saved_unix_ms += maker;
        match bring(&save, maker, &store) {
            Outcome::Written => say(&format!("written {tick}")),
            Outcome::NewerIsThere(Tick(newer)) => tick = newer,
            Outcome::AlreadyThere => {}
            other => panic!("{other:?}"),
        }
    }
}
