//! The faults of a simulated world: their kinds, frequencies and counters.

use sametick_sim::Rng;
use sametick_wire::netem::{Bandwidth, Chance, Loss, Profile, Reorder};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Fault {
    /// One client's network gets another profile.
    Network,
    /// Every network gets another profile.
    Weather,
    /// One client's network carries nothing, in one direction or both.
    Partition,
    /// No network carries anything.
    Blackout,
    /// A client disappears silently, and comes back with a new link.
    Crash,
    /// A client's carrier ends, perhaps the next one too; the client knows at once and reconnects.
    Roaming,
    /// A client leaves, and comes back later.
    Leave,
    /// All players leave until the session ends; they come back one by one, or others in their place.
    Recess,
    /// A client's process stalls for a while.
    Stall,
    /// The relay's process stalls for a while.
    RelayStall,
    /// The relay is killed, with its unsynced data, and started again after a while.
    RelayCrash,
    /// A client's clock jumps ahead.
    ClockJump,
    /// The disk is full for a while.
    DiskFull,
    /// Syncs of the disk fail and lose their data.
    FailedSync,
    /// The disk stalls for a while.
    SlowDisk,
    /// Checks what would remain of the log if the power failed now.
    PowerCut,
    /// A bit of a client's state is flipped.
    FlippedBit,
}

impl Fault {
    /// Every kind, its name, and its relative frequency.
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

    /// The number of kinds.
    pub const KINDS: usize = Fault::TABLE.len();

    /// Every kind.
    pub fn all() -> impl Iterator<Item = Fault> {
        Fault::TABLE.iter().map(|(fault, ..)| *fault)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        Fault::TABLE[self as usize].1
    }

    /// Draws a kind.
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

    /// Whether it can delay a client's return after the relay was killed.
    pub fn disturbs(self) -> bool {
        let is_quiet =
            matches!(self, Fault::DiskFull | Fault::FailedSync | Fault::SlowDisk | Fault::PowerCut);
        !is_quiet && self != Fault::RelayCrash
    }

    /// Whether it can keep a client from reporting its state hash. Such faults wait while a flipped bit is undetected:
    /// the state of the majority is the right one, and the peers that decide must not go away.
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

/// Counts each kind of fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; Fault::KINDS]);

impl FaultCounts {
    /// Counts one more.
    pub fn note(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// The count of a kind.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// The count of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &FaultCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

/// Draws a duration between these, short ones more often than long ones.
pub fn draw_us(rng: &mut Rng, least_us: u64, most_us: u64) -> u64 {
    let span = most_us - least_us;
    let (one, other) = (rng.below(span + 1), rng.below(span + 1));
    least_us + (one as u128 * other as u128 / span.max(1) as u128) as u64
}

/// Draws a network profile: usually bearable, sometimes terrible.
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

/// Whether a network needs no tolerance from the checkers.
pub fn is_clean(profile: &Profile) -> bool {
    let Profile { latency_us, jitter_us, .. } = *profile;
    latency_us <= MAX_CLEAN_US && *profile == Profile { latency_us, jitter_us, ..Profile::default() }
}

/// The latency limit of a clean network.
const MAX_CLEAN_US: u64 = 30_000;

/// Draws a clean network.
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
