//! A game with a mistake that only servers make: hosts fail in its 60th tick, as often as a file says.

use std::fs;
use std::io::Write;

use postcard_schema::Schema;
use sametick_sim::contest::{Contest, Outcome, SeatGroup, Wanted};
use sametick_sim::{BuildId, Game, Inputs, TickRate};
use serde::{Deserialize, Serialize};

/// How often it is to fail, as a number, in the folder in which the host was started.
pub const TIMES: &str = "times";

/// A byte for each time that it has failed, there.
pub const FAILED: &str = "failed";

/// The tick in which it fails.
pub const TICK: u32 = 60;

/// Counts its ticks.
#[derive(Clone, Serialize, Deserialize, Schema)]
pub struct Brittle(u32);

impl Game for Brittle {
    const NAME: &'static str = "brittle";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([9; BuildId::LEN]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Brittle {
        Brittle(0)
    }

    fn step(&mut self, _: &Inputs<u8>) {
        self.0 += 1;
        if self.0 == TICK && std::env::args().any(|word| word == "host") {
            fail();
        }
    }
}

fn fail() {
    let times = fs::read_to_string(TIMES).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let failed = fs::metadata(FAILED).map_or(0, |file| file.len());
    if failed < times {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(FAILED).unwrap();
        file.write_all(b".").unwrap();
        panic!("a mistake in the game");
    }
}

impl Contest for Brittle {
    const GROUPS: &'static [SeatGroup] = &[SeatGroup { name: "All", seats: &["only"] }];
    const SCENARIOS: &'static [&'static str] = &[];

    fn setup(_: &Wanted<'_>) {}

    fn outcome(&self) -> Option<Outcome> {
        None
    }
}
