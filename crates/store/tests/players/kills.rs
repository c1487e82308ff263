//! `kill -9` at any moment: acknowledged writes survive, nothing unwritten appears, no file is damaged, and only
//! checkpoints that waited to be written are lost.
//!
//! A child process, this program again, saves one generation after the other and reports which of them it has begun and
//! which are saved. It is killed and its file is checked, repeatedly.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "processes are started and killed by the clock, and their size comes from the environment"
)]

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sametick_sim::Rng;
use sametick_store::players::{
    Answer, Kept, PlaceId, PlayerId, PlayerWriter, PlayerWriterOptions, Purpose, Question, Sqlite,
    SqliteOptions, Storage, Token, TokenState, Write,
};

use crate::kit::{CODE, FAR_FUTURE_S, GAME, PATIENCE, folder, place, waker};

/// Kills in the test command; `SAMETICK_KILLS` sets another number.
const KILLS: u64 = 200;
/// How many of them hit one file.
const KILLS_PER_FILE: u64 = 25;
const PLAYERS: u128 = 6;
const PARTS: u32 = 6;
/// The most unacknowledged generations of the child: enough that there is always something to write.
const MAX_UNDER_WAY: u64 = 3;
/// How long a write waits in the child, unless it is flushed.
const USUAL: Duration = Duration::from_millis(30);
/// The delay that a busy machine may add to that.
const SLACK: Duration = Duration::from_secs(5);

#[test]
fn acknowledged_writes_survive_a_kill_at_any_moment() {
    let kills = std::env::var("SAMETICK_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut rng = Rng::new(kills);
    let mut told = Told::default();
    let mut killed = 0;
    while killed < kills {
        let (_folder, path) = folder();
        let mut history = History::default();
        for _ in 0..KILLS_PER_FILE.min(kills - killed) {
            killed += 1;
            let asks = rng.chance(3, 4);
            let run = Run::until_killed(&path, history.begun, asks, &mut rng);
            told.generations += run.begun.saturating_sub(history.begun);
            history.begun = history.begun.max(run.begun);
            history.saved = history.saved.max(run.saved);
            told.saved += u64::from(run.saved > 0);
            let lost = check(&path, &history, &run);
            told.max_lost = told.max_lost.max(lost.unwrap_or_default());
        }
    }
    println!("{killed} kills: {told:?}");
    assert!(told.saved > kills / 3, "the child comes to save something: {told:?}");
}

/// The totals of all runs.
#[derive(Debug, Default)]
struct Told {
    generations: u64,
    /// Runs in which a write was acknowledged.
    saved: u64,
    /// The greatest age of a file's newest checkpoint.
    max_lost: Duration,
}

/// The history of a file.
#[derive(Debug, Default)]
struct History {
    begun: u64,
    saved: u64,
}

/// One run of the child.
#[derive(Debug, Default)]
struct Run {
    first: u64,
    begun: u64,
    saved: u64,
    /// When the child began, and when it was killed.
    first_ms: Option<u64>,
    killed_ms: u64,
}

impl Run {
    fn until_killed(path: &Path, after: u64, asks: bool, rng: &mut Rng) -> Run {
        let mut child = spawn(path, after, asks);
        let (lines, mut run) = (listen(&mut child), Run { first: after + 1, ..Run::default() });
        // Some kills come before it has begun, while the file is created.
        if !rng.chance(1, 10) {
            run.hear(lines.recv_timeout(PATIENCE));
        }
        let until = Instant::now() + Duration::from_micros(rng.below(80_000));
        while run.hear(lines.recv_timeout(until.saturating_duration_since(Instant::now()))) {}
        run.killed_ms = unix_ms();
        child.kill().unwrap();
        child.wait().unwrap();
        while run.hear(lines.recv_timeout(PATIENCE)) {}
        run
    }

    /// Returns whether a line was read.
    fn hear(&mut self, line: Result<String, RecvTimeoutError>) -> bool {
        let Ok(line) = line else { return false };
        let mut words = line.split(' ');
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        match words.next() {
            Some("begun") => {
                self.begun = number(words.next()).unwrap();
                self.first_ms = self.first_ms.or(number(words.next()));
            }
            Some("saved") => self.saved = number(words.next()).unwrap(),
            // Output of the test framework.
            _ => {}
        }
        true
    }
}

fn spawn(path: &Path, after: u64, asks: bool) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["kills::the_child_that_is_killed", "--exact", "--nocapture", "--test-threads=1"])
        .env("SAMETICK_KILLED_PATH", path)
        .env("SAMETICK_KILLED_AFTER", after.to_string())
        .env("SAMETICK_KILLED_ASKS", u8::from(asks).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn listen(child: &mut Child) -> Receiver<String> {
    let (say, lines) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
    lines
}

/// Checks the file of a killed process. Returns how old the newest checkpoint was.
fn check(path: &Path, history: &History, run: &Run) -> Option<Duration> {
    let (mut storage, aside) = Sqlite::open(path, &SqliteOptions::default(), Purpose::Writing).unwrap();
    assert_eq!(aside, None, "no damage");
    storage.check().unwrap();
    let expected = history.saved..=history.begun;
    check_tokens(&mut storage, run);
    for (what, generation) in generations(&mut storage) {
        assert!(expected.contains(&generation), "{what} is of {generation}, not of {expected:?}; {run:?}");
    }
    let written_ms = newest_checkpoint_ms(&mut storage)?;
    // Older saves have been written, whether they were flushed or not.
    let lost = Duration::from_millis(run.killed_ms.saturating_sub(written_ms.max(run.first_ms?)));
    assert!(lost <= USUAL + SLACK, "{lost:?} were lost; {run:?}");
    Some(lost)
}

/// The generation of every row.
fn generations(storage: &mut Sqlite) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for player in 0..PLAYERS {
        let found = storage.look_up(&question(player)).unwrap();
        let row = found.checkpoint.as_ref();
        row.iter().for_each(|row| assert_eq!(u64::from(row.tick), read(&row.kept), "a row is whole"));
        all.push((format!("checkpoint {player}"), row.map_or(0, |row| row.tick.into())));
        let profile = found.profiles.first().map_or(0, |(_, kept)| read(kept));
        all.push((format!("profile {player}"), profile));
        let parts = found.place.map(|place| place.parts).unwrap_or_default();
        for key in 0..PARTS {
            let part = parts.iter().find(|(part, _)| *part == key).map_or(0, |(_, kept)| read(kept));
            all.push((format!("part {key}"), part));
        }
    }
    all
}

/// Checks that every acknowledged token is there, and all but the last are retired.
fn check_tokens(storage: &mut Sqlite, run: &Run) {
    for generation in run.first.max(run.saved.saturating_sub(5))..=run.saved {
        let token = Some(token(generation).hash());
        let state = storage.look_up(&Question { token, now_unix_s: 1, ..question(0) }).unwrap().token;
        let is_retired = state == TokenState::Retired;
        let is_last = generation == run.saved;
        assert!(is_retired || is_last && state == TokenState::Good, "{generation} is {state:?}; {run:?}");
    }
}

fn newest_checkpoint_ms(storage: &mut Sqlite) -> Option<u64> {
    let found = storage.look_up(&question(0)).unwrap();
    found.checkpoint.map(|row| row.unix_ms)
}

fn question(player: u128) -> Question {
    Question {
        player: Some(PlayerId(player)),
        game: GAME.into(),
        code: CODE.into(),
        with_place: true,
        ..Question::default()
    }
}

fn token(generation: u64) -> Token {
    Token::from_bytes(u128::from(generation).to_be_bytes())
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A generation, in as many bytes as a player's data.
fn written(generation: u64) -> Kept {
    Kept::new(&generation.to_le_bytes().repeat(20)).unwrap()
}

fn read(kept: &Kept) -> u64 {
    let generation = u64::from_le_bytes(kept.as_bytes()[..8].try_into().unwrap());
    assert_eq!(*kept, written(generation), "it is whole");
    generation
}

/// Not a test of its own: it saves until it is killed.
#[test]
fn the_child_that_is_killed() {
    let Ok(path) = std::env::var("SAMETICK_KILLED_PATH") else { return };
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let asks = number("SAMETICK_KILLED_ASKS") == 1;
    let (waker, woken) = waker();
    let options = PlayerWriterOptions { usual: USUAL, hurried: USUAL, ..PlayerWriterOptions::default() };
    let (mut writer, _) = PlayerWriter::open(Path::new(&path), options, waker).unwrap();
    let first = number("SAMETICK_KILLED_AFTER") + 1;
    let mut saved = first - 1;
    for generation in first.. {
        say(&format!("begun {generation} {}", unix_ms()));
        save_generation(&mut writer, generation, place());
        if asks {
            // Tickets are numbered from one on, like the generations of this child.
            writer.flush();
        }
        writer.tend();
        while asks && generation - saved >= MAX_UNDER_WAY {
            match writer.poll() {
                Some(Answer::Saved(ticket)) => {
                    saved = first - 1 + ticket.0;
                    say(&format!("saved {saved}"));
                }
                Some(other) => panic!("{other:?}"),
                None => woken.recv_timeout(PATIENCE).unwrap(),
            }
        }
    }
}

fn say(line: &str) {
    // One write: the parent never reads half a line.
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn save_generation(writer: &mut PlayerWriter, generation: u64, place: PlaceId) {
    let (unix_ms, tick) = (unix_ms(), generation as u32);
    let game = || GAME.to_owned();
    let setup = vec![1; 100];
    let code = CODE.to_owned();
    writer.save(Write::Place { place, game: game(), code, setup, seats: 8, seed: 1, listed: true, unix_ms });
    for player in (0..PLAYERS).map(PlayerId) {
        let kept = || written(generation);
        writer.save(Write::Checkpoint { place, player, seat: 1, tick, kept: kept(), unix_ms });
        let character = "rook".to_owned();
        writer.save(Write::Profile { player, game: game(), character, kept: kept(), unix_ms });
    }
    for key in 0..PARTS {
        writer.save(Write::Part { place, key, kept: Some(written(generation)) });
    }
    let (hash, player) = (token(generation).hash(), PlayerId(0));
    writer.save(Write::Token { hash, player, expires_unix_s: FAR_FUTURE_S });
    writer.save(Write::Retire { hash: token(generation - 1).hash() });
}
