//! The plan of a world, drawn from its seed alone.

use sametick_lockstep::compaction::CompactionConfig;
use sametick_sim::Rng;

use crate::faults::Fault;

const SECOND_US: u64 = 1_000_000;

/// How long faults have stopped before anything is measured: time-outs, new links and checks take their time.
pub const SETTLE_US: u64 = 45 * SECOND_US;

/// How long nothing may be omitted after that.
pub const MEASURE_US: u64 = 15 * SECOND_US;

/// With saves this rare, a late joiner has thousands of ticks to catch up.
pub const SELDOM_US: u64 = 1_800 * SECOND_US;

/// The game of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Title {
    /// The game whose state never heals, at so many ticks a second.
    Sum(u16),
    /// Pong, at 60.
    Pong,
}

/// The parameters of a world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The game.
    pub title: Title,
    /// The number of clients.
    pub clients: usize,
    /// The number of seats.
    pub seats: u16,
    /// The number of players that start a session.
    pub wait_for: u16,
    /// How many closed ticks the relay sends together.
    pub ticks_per_packet: Option<u32>,
    /// The longest session time between saves.
    pub save_every_us: u64,
    /// Whether saves are stored, with a delay.
    pub has_store: bool,
    /// How long faults happen.
    pub faulty_us: u64,
    /// The mean time between faults.
    pub gap_us: u64,
    /// Whether networks are bad from the beginning, or only by faults.
    pub bad_networks: bool,
    /// The only kinds of faults; `None` allows all.
    pub only: Option<&'static [Fault]>,
    /// The drift of each client's clock.
    pub drifts_ppm: Vec<i64>,
}

impl Plan {
    /// Draws the plan of a seed. The generator then draws everything else.
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

    /// Draws the next fault, if there are any.
    pub fn draw_fault(&self, rng: &mut Rng) -> Option<Fault> {
        match self.only {
            Some(faults) => rng.pick(faults).copied(),
            None => Some(Fault::draw(rng)),
        }
    }

    /// When sessions are saved: mostly far more often than in production, so that most late joiners start from a save.
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

    /// The lifetime of the world.
    pub fn total_us(&self) -> u64 {
        self.faulty_us + SETTLE_US + MEASURE_US
    }
}
