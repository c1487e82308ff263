//! The congestion window of bulk. It watches the round trip rather than loss: bulk backs off as soon as a queue builds
//! up somewhere on the path, so that it never delays inputs (after LEDBAT, RFC 6817).

use sametick_sim::Time;

use crate::packet::MAX_DATAGRAM;
use crate::rtt::{INITIAL_RTT_US, Rtt};

/// The window before the first measurement: about ten datagrams, as TCP does.
pub const INITIAL_WINDOW: u64 = 10 * MAX_DATAGRAM as u64;

/// The smallest window, however bad the path: bulk gets slow, never stuck.
pub const MIN_WINDOW: u64 = 4 * MAX_DATAGRAM as u64;

/// The largest window: 1 MiB a round trip is 5 MB/s at 200 ms.
pub const MAX_WINDOW: u64 = 1 << 20;

/// The queueing delay that bulk may cause. A tick at 60 Hz takes 17 ms.
pub const TARGET_DELAY_US: u64 = 15_000;

/// The most bytes that may leave at once when the pace allows more: a burst that the next hop's queue can take.
const BURST: u64 = 4 * MAX_DATAGRAM as u64;

/// Idle time beyond this earns no more credit: a burst is earned by then at any rate. A link may sleep for hours.
const MAX_EARNING_US: u64 = 10_000_000;

/// Less room than this counts as none.
const CRUMB: u64 = MAX_DATAGRAM as u64;

/// The bulk in flight on one link, its limit, and its pace.
#[derive(Clone, Debug)]
pub struct Window {
    limit: u64,
    max: u64,
    flying: u64,
    credit: u64,
    credited_at: Time,
    /// No second reduction before this: several losses in a round trip count once.
    spare_until: Time,
}

impl Window {
    /// An empty window that starts at `now`.
    pub const fn new(now: Time) -> Window {
        Window::up_to(MAX_WINDOW, now)
    }

    /// An empty window that never grows beyond `max` bytes.
    pub const fn up_to(max: u64, now: Time) -> Window {
        Window { limit: INITIAL_WINDOW, max, flying: 0, credit: BURST, credited_at: now, spare_until: now }
    }

    /// Bytes that may leave now: at least a datagram's worth, or none, so that bulk is not cut into tiny pieces.
    pub fn room(&self) -> u64 {
        let room = self.limit.saturating_sub(self.flying).min(self.credit);
        if room < CRUMB { 0 } else { room }
    }

    /// Earns credit for the time passed: one window a round trip, and a quarter more so that the pace is not the limit.
    pub fn tick(&mut self, now: Time, rtt: &Rtt) {
        let idle_us = now.micros_since(self.credited_at).min(MAX_EARNING_US);
        let earned = self.rate(rtt) * idle_us / 1_000_000;
        if earned > 0 {
            self.credit = (self.credit + earned).min(BURST);
            self.credited_at = now;
        }
    }

    /// When a datagram's worth of credit will be there, if only credit is missing.
    pub fn ready_at(&self, rtt: &Rtt) -> Option<Time> {
        if self.flying + CRUMB > self.limit {
            return None;
        }
        let wait_us = CRUMB.saturating_sub(self.credit) * 1_000_000 / self.rate(rtt);
        Some(self.credited_at.plus_micros(wait_us + 1))
    }

    /// Bytes a second.
    fn rate(&self, rtt: &Rtt) -> u64 {
        let round_trip_us = rtt.smoothed_us().unwrap_or(INITIAL_RTT_US).max(1_000);
        (self.limit * 1_250_000 / round_trip_us).max(1_000)
    }

    /// Whether bytes are in flight.
    pub const fn is_flying(&self) -> bool {
        self.flying > 0
    }

    /// Bytes have left.
    pub fn on_sent(&mut self, bytes: u64) {
        self.flying += bytes;
        self.credit = self.credit.saturating_sub(bytes);
    }

    /// Bytes have arrived, after the round trip that `rtt` sampled last.
    pub fn on_acked(&mut self, bytes: u64, rtt: &Rtt) {
        self.flying = self.flying.saturating_sub(bytes);
        let queueing_us = rtt.queueing_us();
        if queueing_us <= TARGET_DELAY_US {
            // Up to half a byte for each that arrived: the delay shows a round trip late, so doubling would overshoot.
            self.limit += bytes * (TARGET_DELAY_US - queueing_us) / (2 * TARGET_DELAY_US);
        } else {
            let over = (queueing_us - TARGET_DELAY_US).min(TARGET_DELAY_US);
            self.limit -= (bytes * over / TARGET_DELAY_US).min(self.limit / 2);
        }
        self.limit = self.limit.clamp(MIN_WINDOW, self.max);
    }

    /// Bytes were lost.
    pub fn on_lost(&mut self, now: Time, bytes: u64, rtt: &Rtt) {
        self.flying = self.flying.saturating_sub(bytes);
        if now >= self.spare_until {
            self.limit = (self.limit * 7 / 10).max(MIN_WINDOW);
            self.spare_until = now.plus_micros(rtt.smoothed_us().unwrap_or(INITIAL_RTT_US));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_was_idle_for_years_has_a_burst_to_spend() {
        let mut rtt = Rtt::default();
        rtt.sample(0);
        let mut window = Window::new(Time::ZERO);
        for _ in 0..10_000 {
            window.on_sent(2 * BURST);
            window.on_acked(2 * BURST, &rtt);
        }
        assert_eq!((window.limit, window.credit), (MAX_WINDOW, 0));
        window.tick(Time::from_micros(u64::MAX), &rtt);
        assert_eq!(window.credit, BURST);
    }

    #[test]
    fn the_slowest_window_earns_a_burst_before_the_idle_limit() {
        let slowest = 1_000;
        assert!(slowest * MAX_EARNING_US / 1_000_000 >= BURST);
    }
}
