//! What goes wrong on purpose: kinds of faults, how often each is drawn, and how they are counted.

use sametick_sim::Rng;
use sametick_wire::netem::{Bandwidth, Chance, Loss, Profile, Reorder};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Fault {
    /// One client's network becomes another one.
    Network,
    /// Everybody's network becomes another one.
    Weather,
    /// One client's network carries nothing, in one direction or both.
    Partition,
    /// Nobody's network carries anything.
    Blackout,
    /// A client is gone without a word, and comes back with a new link.
    Crash,
    /// A client's carrier is gone, and the next one too, perhaps; the client knows at once and connects anew.
    Roaming,
    /// A client leaves, and comes back later.
    Leave,
    /// Everybody leaves, for so long that the session ends; they come back one by one, or others in their place.
    Recess,
    /// A client's process does nothing for a while.
    Stall,
    /// The relay's process does nothing for a while.
    RelayStall,
    /// The relay is killed, with what its disk had not synced, and started again after a while.
    RelayCrash,
    /// A client's clock jumps ahead.
    ClockJump,
    /// The disk is full for a while.
    DiskFull,
    /// The disk loses what it should sync.
    FailedSync,
    /// The disk does nothing for a while.
    SlowDisk,
    /// What would be left of the log if the power failed now?
    PowerCut,
    /// A bit of a client's state is flipped.
    FlippedBit,
}

impl Fault {
    /// Every kind, its name, and how often it is drawn in comparison with the others.
    const TABLE: [(Fault, &'static str, u64); 17] = [
        (Fault::Network, "network", 20),
        (Fault::Weather, "weather", 5),
        (Fault::Partition, "partition", 14),
        (Fault::Blackout, "blackout", 3),
        (Fault::Crash, "crash", 10),
        (Fault::Roaming, "roaming", 10),
        (Fault::Leave, "leave", 8),
        (Fault::Recess, "recess", 3),
        (Fault::Stall, "stall", 10),
        (Fault::RelayStall, "relay stall", 4),
        (Fault::RelayCrash, "relay crash", 6),
        (Fault::ClockJump, "clock jump", 5),
        (Fault::DiskFull, "disk full", 3),
        (Fault::FailedSync, "failed sync", 3),
        (Fault::SlowDisk, "slow disk", 3),
        (Fault::PowerCut, "power cut", 2),
        (Fault::FlippedBit, "flipped bit", 10),
    ];

    /// How many kinds there are.
    pub const KINDS: usize = Fault::TABLE.len();

    /// Every kind.
    pub fn all() -> impl Iterator<Item = Fault> {
        Fault::TABLE.iter().map(|(fault, ..)| *fault)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        Fault::TABLE[self as usize].1
    }

    /// One of them.
    pub fn draw(rng: &mut Rng) -> Fault {
        let total = Fault::TABLE.iter().map(|(_, _, weight)| weight).sum();
        let mut at = rng.below(total);
        for (fault, _, weight) in Fault::TABLE {
            if at < weight {
                return fault;
            }
            at -= weight;
        }
        Fault::Network
    }

    /// Whether it can keep a client from coming back quickly after the relay was killed.
    pub fn disturbs(self) -> bool {
        let is_quiet =
            matches!(self, Fault::DiskFull | Fault::FailedSync | Fault::SlowDisk | Fault::PowerCut);
        !is_quiet && self != Fault::RelayCrash
    }

    /// Whether it can keep a client from saying what its state is. Such faults wait while a flipped bit is looked for:
    /// a state that most players have is the right one, and those who could tell must not go away.
    pub fn silences(self) -> bool {
        matches!(
            self,
            Fault::Partition
                | Fault::Blackout
                | Fault::Crash
                | Fault::Roaming
                | Fault::Leave
                | Fault::Recess
                | Fault::Stall
                | Fault::RelayStall
                | Fault::RelayCrash
                | Fault::ClockJump
                | Fault::FlippedBit
        )
    }
}

/// How often each kind of fault happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; Fault::KINDS]);

impl FaultCounts {
    /// One more.
    pub fn note(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How often it happened.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds those of another world.
    pub fn add(&mut self, other: &FaultCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

/// A time between these, short ones more often than long ones.
pub fn draw_us(rng: &mut Rng, least_us: u64, most_us: u64) -> u64 {
    let span = most_us - least_us;
    let (one, other) = (rng.below(span + 1), rng.below(span + 1));
    least_us + (one as u128 * other as u128 / span.max(1) as u128) as u64
}

/// A network: usually bearable, sometimes terrible.
pub fn draw_profile(rng: &mut Rng) -> Profile {
    let severity = 1 + rng.below(4);
    let latency_us = draw_us(rng, 500, 40_000 * severity);
    let mut profile = Profile { latency_us, ..Profile::default() };
    if rng.chance(2, 3) {
        profile.jitter_us = rng.below(latency_us.min(15_000 * severity) + 1);
    }
    if rng.chance(2, 3) {
        let mean = Chance::from_ppm(draw_us(rng, 1_000, 75_000 * severity) as u32);
        let burst_packets = 2 + rng.below(6) as u32;
        profile.loss =
            if rng.chance(1, 4) { Loss::Burst { mean, burst_packets } } else { Loss::Uniform(mean) };
    }
    if rng.chance(1, 3) {
        profile.duplicate = Chance::from_ppm(draw_us(rng, 1_000, 125_000 * severity) as u32);
    }
    if rng.chance(1, 3) {
        let chance = Chance::from_ppm(draw_us(rng, 1_000, 50_000 * severity) as u32);
        profile.reorder = Some(Reorder { chance, min_us: 1_000, max_us: 30_000 * severity });
    }
    if rng.chance(1, 4) {
        profile.corrupt = Chance::from_ppm(draw_us(rng, 1_000, 12_500 * severity) as u32);
    }
    if rng.chance(1, 10) {
        let bytes_per_second = 20_000 + rng.below(200_000);
        profile.bandwidth = Some(Bandwidth { bytes_per_second, queue_bytes: Some(64_000) });
    }
    profile
}

/// Whether everything works on a network.
pub fn is_clean(profile: &Profile) -> bool {
    let Profile { latency_us, jitter_us, .. } = *profile;
    latency_us <= MAX_CLEAN_US && *profile == Profile { latency_us, jitter_us, ..Profile::default() }
}

/// A clean network has no more latency.
const MAX_CLEAN_US: u64 = 30_000;

/// A network on which everything works.
pub fn draw_clean(rng: &mut Rng) -> Profile {
    Profile {
        latency_us: 5_000 + rng.below(MAX_CLEAN_US - 5_000),
        jitter_us: rng.below(2_000),
        ..Profile::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_every_fault_is_drawn() {
        for (index, fault) in Fault::all().enumerate() {
            assert_eq!(fault as usize, index);
        }
        let (mut rng, mut counts) = (Rng::new(1), FaultCounts::default());
        (0..10_000).for_each(|_| counts.note(Fault::draw(&mut rng)));
        assert!(Fault::all().all(|fault| counts.of(fault) > 50));
        assert_eq!(counts.total(), 10_000);
    }
}
