//! The players database on a disk with power failures: acknowledged writes survive, and batches are atomic.

use std::path::Path;
use std::sync::Arc;

use sametick_sim::Rng;
use sametick_simulator::crash_disk::CrashDisk;
use sametick_store::players::{
    Durability, Found, Kept, OtherFiles, PlaceId, PlayerId, Purpose, Question, Sqlite, SqliteOptions,
    Storage, StorageError, Token, Write,
};

/// Worlds in the test command; `SAMETICK_SEEDS` sets another number.
const SEEDS: u64 = 60;
const CUTS_PER_WORLD: u32 = 12;
const MAX_FAILED_SYNCS: u64 = 4;
const PLAYERS: u64 = 40;
const CODES: [&str; 2] = ["one", "two"];
const FAR_FUTURE_S: u64 = 1 << 40;

#[test]
fn acknowledged_writes_survive_power_failures() {
    #[allow(clippy::disallowed_methods, reason = "the long run says how many seeds")]
    let seeds = std::env::var("SAMETICK_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let disk = CrashDisk::register("forgets");
    let mut told = Told::default();
    for seed in 0..seeds {
        if let Err(violation) = World::new("forgets", &disk, seed, Durability::Synced).live(&mut told) {
            panic!("seed {seed}: {violation}");
        }
    }
    println!("{seeds} seeds: {told:?}");
    assert!(told.in_doubt_kept > 0 && told.in_doubt_lost > 0, "cuts happen at every moment: {told:?}");
}

#[test]
fn a_sync_that_is_missing_is_found() {
    let disk = CrashDisk::register("never synced");
    let violations = (0..20).filter(|seed| {
        let world = World::new("never synced", &disk, *seed, Durability::Unsynced);
        world.live(&mut Told::default()).is_err()
    });
    assert!(violations.count() > 10, "most worlds show it");
}

#[test]
fn writes_after_a_failed_sync_survive() {
    let disk = CrashDisk::register("fails to sync");
    for (seed, failed) in (0..64).map(|seed| (seed, 1 + seed as u32 % 4)) {
        let mut world = World::new("fails to sync", &disk, seed, Durability::Synced);
        let mut storage = world.open().unwrap();
        let batches: Vec<_> = (0..3).map(|_| vec![draw_checkpoint(&mut world.rng)]).collect();
        storage.write(&batches[0]).unwrap();
        disk.fail_syncs(failed, world.rng.chance(1, 2));
        for batch in &batches[1..] {
            while storage.write(batch).is_err() {
                drop(storage);
                storage = (0..MAX_FAILED_SYNCS).find_map(|_| world.open().ok()).unwrap();
            }
        }
        disk.fail_after(0);
        drop(storage);
        disk.cut_power(&mut world.rng);
        batches.iter().for_each(|batch| world.reference.write(batch).unwrap());
        assert_eq!(world.look(None, &mut Told::default()), Ok(()), "{failed} failed, seed {seed}");
    }
}

#[test]
fn a_power_failure_after_a_failed_sync_leaves_whole_batches() {
    let disk = CrashDisk::register("fails twice");
    for (seed, cut_after) in (0..300).map(|seed| (seed, seed % 100)) {
        let mut world = World::new("fails twice", &disk, seed, Durability::Synced);
        let mut batch = |rows| (0..rows).map(|_| draw_checkpoint(&mut world.rng)).collect::<Vec<_>>();
        let (long, short, last) = (batch(200), batch(1), batch(40));
        // The long one is in the database, the short one in the log.
        world.open().unwrap().write(&long).unwrap();
        let mut storage = world.open().unwrap();
        storage.write(&short).unwrap();
        [&long, &short].iter().for_each(|batch| world.reference.write(batch).unwrap());
        disk.fail_syncs(2, true);
        storage.write(&last).unwrap_err();
        drop(storage);
        // The power fails while it is opened and the rest of the second batch is made durable.
        disk.fail_after(cut_after);
        let opened = world.open();
        disk.fail_after(0);
        drop(opened);
        disk.cut_power(&mut world.rng);
        let whole = world.look(Some(last), &mut Told::default());
        assert_eq!(whole, Ok(()), "cut after {cut_after}, seed {seed}");
    }
}

/// The totals of all worlds.
#[derive(Debug, Default)]
struct Told {
    batches: u64,
    cuts: u64,
    errors: u64,
    /// Batches in progress when the power failed, by their result.
    in_doubt_kept: u64,
    in_doubt_lost: u64,
}

/// A database on a crashing disk, and one in memory to compare it with.
struct World<'a> {
    vfs: &'static str,
    disk: &'a CrashDisk,
    durability: Durability,
    rng: Rng,
    reference: Sqlite,
}

impl World<'_> {
    fn new<'a>(vfs: &'static str, disk: &'a CrashDisk, seed: u64, durability: Durability) -> World<'a> {
        disk.wipe();
        // A database of this name is in memory.
        let in_memory =
            SqliteOptions { exclusive: true, files: Some(files("memdb", None)), ..SqliteOptions::default() };
        let (reference, _) = Sqlite::open(Path::new(":memory:"), &in_memory, Purpose::Writing).unwrap();
        World { vfs, disk, durability, rng: Rng::new(seed), reference }
    }

    fn live(mut self, told: &mut Told) -> Result<(), String> {
        for _ in 0..CUTS_PER_WORLD {
            // Some power failures come while the file is created or opened.
            if self.rng.chance(1, 3) {
                self.disk.fail_after(self.rng.below(60));
            }
            let under_way = match self.open() {
                Ok(storage) => self.write_until_cut(storage, told)?,
                Err(_) => None,
            };
            self.disk.cut_power(&mut self.rng);
            told.cuts += 1;
            self.look(under_way, told)?;
        }
        Ok(())
    }

    /// Writes batches until the power fails or there are enough. Returns the batch that was in progress.
    fn write_until_cut(
        &mut self,
        mut storage: Sqlite,
        told: &mut Told,
    ) -> Result<Option<Vec<Write>>, String> {
        if self.rng.chance(3, 4) {
            self.disk.fail_after(self.rng.below(400));
        }
        for _ in 0..self.rng.below(40) {
            let batch = draw_batch(&mut self.rng);
            if self.rng.chance(1, 20) {
                let count = 1 + self.rng.below(MAX_FAILED_SYNCS) as u32;
                self.disk.fail_syncs(count, self.rng.chance(1, 2));
            }
            // As the persist thread does: after an error it is closed, opened anew, and everything is written again.
            while let Err(error) = storage.write(&batch) {
                told.errors += 1;
                if !matches!(error, StorageError::Io(_)) {
                    return Err(format!("a disk that fails is not {error}"));
                }
                drop(storage);
                match (0..MAX_FAILED_SYNCS).find_map(|_| self.open().ok()) {
                    Some(opened) => storage = opened,
                    None => return Ok(Some(batch)),
                }
            }
            told.batches += 1;
            self.reference.write(&batch).unwrap();
        }
        Ok(None)
    }

    fn open(&self) -> Result<Sqlite, StorageError> {
        let files = Some(files(self.vfs, Some(self.disk.clone())));
        let options = SqliteOptions { files, durability: self.durability, exclusive: true };
        Sqlite::open(Path::new("players"), &options, Purpose::Writing).map(|(storage, _)| storage)
    }

    /// Checks the content after a power failure.
    fn look(&mut self, under_way: Option<Vec<Write>>, told: &mut Told) -> Result<(), String> {
        let mut storage = self.open().map_err(|error| format!("it cannot be opened: {error}"))?;
        storage.check().map_err(|error| error.to_string())?;
        let there = contents(&mut storage).map_err(|error| error.to_string())?;
        if there == contents(&mut self.reference).unwrap() {
            told.in_doubt_lost += u64::from(under_way.is_some());
            return Ok(());
        }
        let Some(batch) = under_way else { return Err("what was acknowledged is not there".into()) };
        self.reference.write(&batch).unwrap();
        told.in_doubt_kept += 1;
        match there == contents(&mut self.reference).unwrap() {
            true => Ok(()),
            false => Err("something acknowledged is missing, or half of a batch is there".into()),
        }
    }
}

/// The file system of a database; memory has nothing to rewrite.
fn files(name: &str, disk: Option<CrashDisk>) -> OtherFiles {
    let rewrite = move |path: &Path| match &disk {
        Some(disk) => disk.rewrite(path.to_str().expect("it has a plain name")),
        None => Ok(()),
    };
    OtherFiles { name: name.to_owned(), rewrite: Arc::new(rewrite) }
}

/// It ends with both rooms: rows of a missing room cannot be looked up.
fn draw_batch(rng: &mut Rng) -> Vec<Write> {
    let mut batch: Vec<_> = (0..=rng.below(60)).map(|_| draw(rng)).collect();
    batch.extend(CODES.map(|code| draw_place(rng, code)));
    batch
}

fn draw_place(rng: &mut Rng, code: &str) -> Write {
    Write::Place {
        place: PlaceId::of("arena", code),
        game: "arena".into(),
        code: code.into(),
        setup: vec![7; rng.below(5_000) as usize],
        seats: 8,
        seed: rng.next_u64(),
        listed: true,
        unix_ms: rng.below(1 << 30),
    }
}

fn draw_checkpoint(rng: &mut Rng) -> Write {
    loop {
        if let write @ Write::Checkpoint { .. } = draw(rng) {
            return write;
        }
    }
}

fn draw(rng: &mut Rng) -> Write {
    let player = PlayerId(rng.below(PLAYERS).into());
    let code = CODES[rng.below(2) as usize];
    let place = PlaceId::of("arena", code);
    let kept = Kept::new(&rng.next_u64().to_le_bytes().repeat(1 + rng.below(32) as usize)).unwrap();
    let number = rng.below(1 << 30);
    match rng.below(40) {
        0..20 => Write::Checkpoint { place, player, seat: 1, tick: number as u32, kept, unix_ms: number },
        20..30 => Write::Part { place, key: rng.below(50) as u32, kept: rng.chance(4, 5).then_some(kept) },
        30 => Write::Forget { place },
        31..33 => draw_place(rng, code),
        33..36 => Write::Token { hash: token(rng.below(20)).hash(), player, expires_unix_s: FAR_FUTURE_S },
        36 => Write::Retire { hash: token(rng.below(20)).hash() },
        37 => Write::Player { player, name: number.to_string(), subject: None, unix_ms: number },
        _ => {
            let (game, character) = ("arena".into(), "rook".into());
            Write::Profile { player, game, character, kept, unix_ms: number }
        }
    }
}

fn token(number: u64) -> Token {
    Token::from_bytes(u128::from(number).to_be_bytes())
}

/// The answers to all possible questions.
fn contents(storage: &mut Sqlite) -> Result<Vec<Found>, StorageError> {
    let mut all = Vec::new();
    for code in CODES {
        let question = Question {
            game: "arena".into(),
            code: code.into(),
            with_place: true,
            now_unix_s: 1,
            ..Question::default()
        };
        for player in 0..PLAYERS {
            let player = Some(PlayerId(player.into()));
            all.push(storage.look_up(&Question { player, ..question.clone() })?);
        }
        for number in 0..20 {
            let token = Some(token(number).hash());
            all.push(storage.look_up(&Question { token, ..question.clone() })?);
        }
    }
    Ok(all)
}
