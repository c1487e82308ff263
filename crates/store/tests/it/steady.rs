//! No allocation per tick in steady state: neither where ticks are closed nor where they are read.

use sametick_sim::Tick;
use sametick_store::log::{LogEncoder, LogReader};

use crate::sessions::{Play, header, play, played};

const MINUTE: u32 = 60 * 60;

#[test]
fn encoding_allocates_nothing_per_tick() {
    let mut encoder = LogEncoder::new(&header()).unwrap();
    let mut frame = Vec::with_capacity(64 * 1024);
    let (mut first, mut last, mut frames) = (0, 0, 0);
    play(Play::Buttons, 4, 5 * MINUTE, |record| {
        let pushed = allocation_counter::measure(|| {
            encoder.push(record).unwrap();
            while encoder.poll_frame(&mut frame).is_some() {
                frames += 1;
            }
        });
        let warm = encoder.next_tick() > Tick(2 * MINUTE);
        *(if warm { &mut last } else { &mut first }) += pushed.count_total;
    });
    assert!(first > 0 && frames > 150, "the counter counts");
    assert_eq!(last, 0, "allocations in three minutes, group starts included");
}

#[test]
fn decoding_allocates_nothing_per_tick() {
    let bytes = played(Play::Sticks, 4, 3 * MINUTE);
    let mut reader = LogReader::open(&bytes[..]).unwrap();
    let mut ticks = reader.ticks();
    let mut read = |count: u32| {
        let run =
            || (0..count).for_each(|_| assert!(ticks.next().unwrap().is_some_and(|tick| tick.len() == 4)));
        allocation_counter::measure(run).count_total
    };
    assert!(read(MINUTE) > 0, "the counter counts");
    // A group's first frame is read into memory of its own, a handful of pieces a minute.
    assert!(read(2 * MINUTE - 10) <= 100);
}
