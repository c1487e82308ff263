//! Tracks how regularly a side sends on its own, to decide whether an ack can wait for its next packet.

use sametick_sim::Time;

use crate::rtt::MAX_HELD_ACK_US;

/// Beyond this the next packet is too far away to wait for: with a quarter more it would be too late for an ack.
const MAX_INTERVAL_US: u64 = MAX_HELD_ACK_US * 4 / 5;

/// Packets closer together than this are one occasion.
const MIN_INTERVAL_US: u64 = 1_000;

/// The longest recent pause between two packets. It decays slowly, because the question is when the next packet will
/// have left, not when it may leave.
#[derive(Clone, Copy, Debug)]
pub struct Cadence {
    last: Time,
    longest_us: u64,
}

impl Cadence {
    /// Nothing has been sent, and nothing is expected.
    pub const fn new(now: Time) -> Cadence {
        Cadence { last: now, longest_us: 2 * MAX_INTERVAL_US }
    }

    /// A packet leaves that the application wanted sent.
    pub fn on_sent(&mut self, now: Time) {
        let pause_us = now.micros_since(self.last).min(2 * MAX_INTERVAL_US);
        if pause_us >= MIN_INTERVAL_US {
            self.longest_us = pause_us.max(self.longest_us - self.longest_us / 8);
        }
        self.last = now;
    }

    /// When the next packet will have left, if packets leave regularly. In the past if they no longer do.
    pub fn next_by(&self) -> Option<Time> {
        let regular = self.longest_us <= MAX_INTERVAL_US;
        regular.then(|| self.last.plus_micros(self.longest_us + self.longest_us / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_sender_is_expected_again_a_quarter_late() {
        let mut cadence = Cadence::new(Time::ZERO);
        assert_eq!(cadence.next_by(), None);
        (1..40).for_each(|n| cadence.on_sent(Time::from_millis(40 * n)));
        assert_eq!(cadence.next_by(), Some(Time::from_millis(40 * 39 + 50)));
        // Several packets on one occasion change nothing.
        (0..40).for_each(|us| cadence.on_sent(Time::from_micros(40 * 39_000 + us)));
        assert_eq!(cadence.next_by(), Some(Time::from_micros(40 * 39_000 + 39 + 50_000)));
    }

    #[test]
    fn a_pause_is_remembered_for_some_packets() {
        let mut cadence = Cadence::new(Time::ZERO);
        (1..40).for_each(|n| cadence.on_sent(Time::from_millis(16 * n)));
        assert!(cadence.next_by().is_some());
        let after = (1..).take_while(|n| {
            cadence.on_sent(Time::from_millis(9_984 + 16 * n));
            cadence.next_by().is_none()
        });
        assert_eq!(after.count(), 6);
    }

    #[test]
    fn a_sender_at_ten_hertz_is_not_waited_for() {
        let mut cadence = Cadence::new(Time::ZERO);
        (1..40).for_each(|n| cadence.on_sent(Time::from_millis(100 * n)));
        assert_eq!(cadence.next_by(), None);
    }
}
