//! The length of a log, and how little of it has to be read.

use std::cell::Cell;
use std::io;

use sametick_sim::{Rng, Tick};
use sametick_store::disk::Source;
use sametick_store::log::{LogReader, TickInputs};

use crate::sessions::{Play, played};

const HOUR: u32 = 60 * 60 * 60;

/// Bytes per player and hour.
fn bytes(how: Play, players: u16) -> usize {
    played(how, players, HOUR).len() / usize::from(players)
}

#[test]
fn an_hour_takes_less_than_100_kb_per_player() {
    let four = bytes(Play::Buttons, 4);
    let two = bytes(Play::Buttons, 2);
    let one = bytes(Play::Buttons, 1);
    let idle = bytes(Play::Idle, 4);
    let sticks = bytes(Play::Sticks, 4);
    println!("four {four}, two {two}, one {one}, idle {idle}, sticks {sticks} bytes per player-hour");
    assert!(four <= 42_000 && two <= 65_000, "four players {four}, two players {two}");
    assert!(one <= 100_000, "one player alone: {one}");
    assert!(idle <= 25_000 && sticks <= 500_000, "idle {idle}, sticks {sticks}");
}

/// A source that counts the bytes read from it.
struct Counted<'a>(&'a [u8], &'a Cell<usize>);

impl Source for Counted<'_> {
    fn byte_len(&mut self) -> io::Result<u64> {
        self.0.byte_len()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read_at(offset, out)?;
        self.1.set(self.1.get() + count);
        Ok(count)
    }
}

#[test]
fn any_tick_of_an_hour_is_found_by_reading_less_than_64_kib() {
    let bytes = played(Play::Buttons, 4, HOUR);
    let mut rng = Rng::new(1);
    let random = (0..200).map(|_| Tick(1 + rng.below(u64::from(HOUR)) as u32));
    for tick in random.chain([Tick(1), Tick(HOUR)]) {
        let read = Cell::new(0);
        let mut reader = LogReader::open(Counted(&bytes, &read)).unwrap();
        assert!(reader.find(tick).is_some());
        assert_eq!(reader.ticks_from(tick).next().unwrap().map(TickInputs::tick), Some(tick));
        assert!(read.get() < 64 * 1024, "{} bytes read for tick {tick}", read.get());
    }
}
