//! Estimates the round-trip time and its jitter from samples.

/// What is assumed before the first sample: an intercontinental path.
pub const INITIAL_RTT_US: u64 = 200_000;

/// The least time before unacknowledged data is sent again: below this, scheduling noise dominates.
pub const MIN_RETRY_US: u64 = 20_000;

/// The longest delay of an ack on its own. A 60 Hz game never waits: acks are in its packets.
pub const MAX_ACK_DELAY_US: u64 = 20_000;

/// The longest delay of the ack of non-urgent packets on a side that sends regularly, so that its own next packet
/// carries the ack: a relay that sends 15 times a second sends no packet for an ack alone.
pub const MAX_HELD_ACK_US: u64 = 100_000;

/// Smoothed estimates over the samples so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    latest_us: u64,
    smoothed_us: u64,
    deviation_us: u64,
    jitter_x16_us: u64,
    min_us: u64,
    samples: u64,
}

impl Rtt {
    /// Takes one measured round trip.
    pub fn sample(&mut self, rtt_us: u64) {
        if self.samples == 0 {
            (self.smoothed_us, self.deviation_us, self.min_us) = (rtt_us, rtt_us / 2, rtt_us);
        } else {
            let change = rtt_us.abs_diff(self.latest_us);
            self.jitter_x16_us = self.jitter_x16_us - self.jitter_x16_us / 16 + change;
            self.deviation_us = (3 * self.deviation_us + rtt_us.abs_diff(self.smoothed_us)) / 4;
            self.smoothed_us = (7 * self.smoothed_us + rtt_us) / 8;
            self.min_us = self.min_us.min(rtt_us);
        }
        self.latest_us = rtt_us;
        self.samples += 1;
    }

    /// The smoothed round trip, if there has been a sample.
    pub fn smoothed_us(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.smoothed_us)
    }

    /// The shortest round trip seen, if there has been a sample.
    pub fn min_us(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.min_us)
    }

    /// The queueing delay: how much longer than the shortest round trip the last one took.
    pub const fn queueing_us(&self) -> u64 {
        self.latest_us.saturating_sub(self.min_us)
    }

    /// The smoothed difference between one round trip and the next (as in RFC 3550).
    pub const fn jitter_us(&self) -> u64 {
        self.jitter_x16_us / 16
    }

    /// The number of samples.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// How long to wait for the ack of a non-urgent packet.
    pub fn held_retry_us(&self) -> u64 {
        self.retry_us() + (MAX_HELD_ACK_US - MAX_ACK_DELAY_US)
    }

    /// How long to wait for the ack of an urgent packet.
    pub fn retry_us(&self) -> u64 {
        let smoothed = self.smoothed_us().unwrap_or(INITIAL_RTT_US);
        let spread = if self.samples == 0 { INITIAL_RTT_US } else { 4 * self.deviation_us };
        smoothed + spread.max(MIN_RETRY_US) + MAX_ACK_DELAY_US
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_steady_path_has_no_jitter() {
        let mut rtt = Rtt::default();
        (0..100).for_each(|_| rtt.sample(50_000));
        assert_eq!((rtt.smoothed_us(), rtt.jitter_us(), rtt.min_us()), (Some(50_000), 0, Some(50_000)));
        assert_eq!(rtt.retry_us(), 50_000 + MIN_RETRY_US + MAX_ACK_DELAY_US);
    }

    proptest! {
        #[test]
        fn estimates_stay_within_the_samples(samples in prop::collection::vec(0u64..10_000_000, 1..50)) {
            let mut rtt = Rtt::default();
            samples.iter().for_each(|sample| rtt.sample(*sample));
            let (low, high) = (samples.iter().min().copied(), samples.iter().max().copied());
            prop_assert!(rtt.smoothed_us() >= low && rtt.smoothed_us() <= high);
            prop_assert!(Some(rtt.jitter_us()) <= high);
            prop_assert_eq!(rtt.min_us(), low);
        }
    }
}
