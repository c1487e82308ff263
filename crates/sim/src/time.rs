//! Ticks, seats, rates, and `Time`, which drivers pass to pure crates instead of letting them read a clock.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

/// A moment on a monotonic clock, in microseconds since an origin chosen by the driver.
///
/// Pure code never reads a clock: the driver passes `Time` in, so a test can pass any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Time = Time(0);

    /// The moment `us` microseconds after the origin.
    pub const fn from_micros(us: u64) -> Time {
        Time(us)
    }

    /// The moment `ms` milliseconds after the origin.
    pub const fn from_millis(ms: u64) -> Time {
        Time(ms.saturating_mul(1_000))
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Microseconds from `earlier` to `self`, zero if `earlier` is in fact later.
    pub const fn micros_since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment, `us` microseconds later.
    pub const fn plus_micros(self, us: u64) -> Time {
        Time(self.0.saturating_add(us))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The number of a simulation step. Tick 0 is the state before any step.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Schema,
)]
pub struct Tick(pub u32);

impl Tick {
    /// The state before any step.
    pub const ZERO: Tick = Tick(0);

    /// The tick after this one.
    pub const fn next(self) -> Tick {
        Tick(self.0 + 1)
    }

    /// The ticks from `earlier` to `self`, zero if `earlier` is later.
    pub const fn ticks_since(self, earlier: Tick) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u32> for Tick {
    type Output = Tick;
    fn add(self, ticks: u32) -> Tick {
        Tick(self.0 + ticks)
    }
}

impl AddAssign<u32> for Tick {
    fn add_assign(&mut self, ticks: u32) {
        self.0 += ticks;
    }
}

impl Sub<u32> for Tick {
    type Output = Tick;
    fn sub(self, ticks: u32) -> Tick {
        Tick(self.0 - ticks)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A seat in a session. A player may leave it and another take it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Schema,
)]
pub struct Seat(pub u16);

impl Seat {
    /// The seat's index in an array of seats.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ticks per second of a game: between 1 and 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRate(u16);

impl TickRate {
    /// A rate of `per_second` ticks a second.
    ///
    /// # Panics
    /// If `per_second` is not between 1 and 1000; in a `const` that is a compile error.
    pub const fn hz(per_second: u16) -> TickRate {
        assert!(per_second >= 1 && per_second <= 1000, "a tick rate lies between 1 and 1000");
        TickRate(per_second)
    }

    /// Ticks a second.
    pub const fn per_second(self) -> u32 {
        self.0 as u32
    }

    /// The due time of `tick`, relative to tick 0. Exact: errors do not add up over ticks.
    pub const fn due_micros(self, tick: Tick) -> u64 {
        (tick.0 as u64 * 1_000_000).div_ceil(self.0 as u64)
    }

    /// The length of one tick in microseconds, rounded down.
    pub const fn tick_micros(self) -> u64 {
        1_000_000 / self.0 as u64
    }

    /// The length of one tick in seconds, for use in a step.
    pub const fn tick_seconds(self) -> f32 {
        1.0 / self.0 as f32
    }
}
