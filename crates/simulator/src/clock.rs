//! The clock of one machine: drifts, and jumps at times.

use sametick_sim::Time;

const MILLION: i64 = 1_000_000;

/// The offset of a machine's clock from the time of the world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    drift_ppm: i64,
    jumped_us: u64,
}

impl Clock {
    /// A clock that is so many millionths too fast.
    pub fn new(drift_ppm: i64) -> Clock {
        Clock { drift_ppm, jumped_us: 0 }
    }

    /// The clock jumps ahead, as it does after a suspend.
    pub fn jump(&mut self, us: u64) {
        self.jumped_us += us;
    }

    /// The machine's time at this moment.
    pub fn local(&self, now: Time) -> Time {
        let us = now.as_micros() as i64;
        Time::from_micros((us + us * self.drift_ppm / MILLION) as u64 + self.jumped_us)
    }

    /// The first moment at which the machine's clock shows at least `local`.
    pub fn moment(&self, local: Time) -> Time {
        let us = local.as_micros().saturating_sub(self.jumped_us).min(i64::MAX as u64 / 2) as i128;
        let guess = us * MILLION as i128 / (MILLION + self.drift_ppm) as i128;
        let mut at = Time::from_micros(guess as u64);
        while self.local(at) < local {
            at = at.plus_micros(1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_the_time_that_was_waited_for() {
        for drift_ppm in [-500, -1, 0, 3, 500] {
            let mut clock = Clock::new(drift_ppm);
            for step in 0..2_000 {
                let local = clock.local(Time::from_micros(step * 1_234_567)).plus_micros(step * 7);
                let at = clock.moment(local);
                assert!(clock.local(at) >= local && clock.local(at) <= local.plus_micros(2));
                if step == 1_000 {
                    clock.jump(77_777);
                }
            }
        }
    }
}
