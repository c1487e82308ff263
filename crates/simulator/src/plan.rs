//! What a world is made of, drawn from its seed alone.

use sametick_lockstep::compaction::CompactionConfig;
use sametick_sim::Rng;

use crate::faults::Fault;

const SECOND_US: u64 = 1_000_000;

/// Faults stop for this long at the end before anything is measured: time-outs, new links and checks take their time.
pub const SETTLE_US: u64 = 45 * SECOND_US;

/// Then, for this long, nothing may be omitted.
pub const MEASURE_US: u64 = 15 * SECOND_US;

/// Where sessions are saved so seldom, whoever comes late has thousands of ticks to catch up with.
pub const SELDOM_US: u64 = 1_800 * SECOND_US;

/// Which game is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Title {
    /// The game whose state never heals, at so many ticks a second.
    Sum(u16),
    /// Pong, at 60.
    Pong,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Which game.
    pub title: Title,
    /// How many clients.
    pub clients: usize,
    /// How many seats.
    pub seats: u16,
    /// With how many players a session begins.
    pub wait_for: u16,
    /// How many closed ticks the relay sends together.
    pub ticks_per_packet: Option<u32>,
    /// After how much session time it is saved at the latest.
    pub save_every_us: u64,
    /// Whether saves are stored, which takes its time.
    pub has_store: bool,
    /// How long there are faults.
    pub faulty_us: u64,
    /// How far apart faults are on average.
    pub gap_us: u64,
    /// Whether networks are bad from the beginning, or only when a fault makes them so.
    pub bad_networks: bool,
    /// Only these faults happen; any, if none are given.
    pub only: Option<&'static [Fault]>,
    /// How much faster each client's clock runs.
    pub drifts_ppm: Vec<i64>,
}

impl Plan {
    /// The plan of a seed. The generator goes on to make everything else.
    pub fn draw(seed: u64) -> (Plan, Rng) {
        let mut rng = Rng::new(seed);
        // Most simulated time is spent at low rates, where an hour is cheap: faults do not depend on the rate.
        let title = match rng.below(100) {
            0..50 => Title::Sum(10),
            50..78 => Title::Sum(20),
            78..90 => Title::Sum(30),
            90..96 => Title::Sum(60),
            _ => Title::Pong,
        };
        let clients = match rng.below(100) {
            0..5 => 2,
            5..10 => 3,
            10..65 => 4,
            65..80 => 5,
            80..90 => 6,
            90..95 => 7,
            _ => 8,
        };
        let seats = clients as u16 + if rng.chance(1, 2) { 0 } else { rng.below(3) as u16 };
        let ticks_per_packet = rng.chance(1, 2).then(|| 1 + rng.below(4) as u32);
        let drifts_ppm = (0..clients).map(|_| i64::from(rng.between(-500, 500))).collect();
        let plan = Plan {
            seed,
            title,
            clients,
            seats,
            wait_for: rng.below(3) as u16,
            ticks_per_packet,
            save_every_us: if rng.chance(1, 4) { SELDOM_US } else { (8 + rng.below(60)) * SECOND_US },
            has_store: rng.chance(1, 2),
            faulty_us: (2 + rng.below(18)) * 60 * SECOND_US,
            gap_us: (5 + rng.below(30)) * SECOND_US,
            only: None,
            bad_networks: rng.chance(2, 3),
            drifts_ppm,
        };
        (plan, rng)
    }

    /// The next fault, if there are any.
    pub fn draw_fault(&self, rng: &mut Rng) -> Option<Fault> {
        match self.only {
            Some(faults) => rng.pick(faults).copied(),
            None => Some(Fault::draw(rng)),
        }
    }

    /// When sessions are saved: mostly far more often than for people, so that most who come late begin with a save.
    pub fn compaction(&self) -> CompactionConfig {
        CompactionConfig {
            every_us: self.save_every_us,
            hot_ticks: 20_000,
            join_hot_us: if self.save_every_us == SELDOM_US { SELDOM_US } else { 5 * SECOND_US },
            not_before_us: 3 * SECOND_US,
            has_store: self.has_store,
            has_keeper: false,
        }
    }

    /// How long the world lives.
    pub fn total_us(&self) -> u64 {
        self.faulty_us + SETTLE_US + MEASURE_US
    }
}
