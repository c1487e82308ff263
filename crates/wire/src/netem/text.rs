//! The text form of a [`Profile`], as given on a command line: parsing and printing. Everything is exact: no float is
//! involved.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use super::{Bandwidth, Chance, Loss, Profile, Reorder};

/// Every key, in the order errors list them.
const KEYS: &str = "rtt, latency, jitter, loss, burst, dup, reorder, late, corrupt, rate, queue";

/// The text of the perfect network; the empty text means the same.
const PERFECT: &str = "perfect";

/// The text of a queue without limit.
const UNLIMITED: &str = "unlimited";

/// The default of `late`: a few to some dozen packets at game rates.
const DEFAULT_LATE_US: (u64, u64) = (10_000, 50_000);

/// The default of `queue`: a common size of a home router's buffer.
const DEFAULT_QUEUE_BYTES: u64 = 64_000;

const DURATION_UNITS: [Unit; 3] = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
const SIZE_UNITS: [Unit; 3] = [("B", 1), ("kB", 1_000), ("MB", 1_000_000)];
const BIT_UNITS: [Unit; 4] = [("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000), ("bit", 1)];

const DURATION: &str = "a duration like 20ms, 1.5s or 250us";
const SHARE: &str = "a share like 2% or 0.02, at most 100%";
const PACKETS: &str = "a number of packets, at least 1";
const LATENESS: &str = "two durations like 10ms..50ms, the smaller one first";
const RATE: &str = "bits or bytes per second like 1mbit or 125kB, at least 1 byte";
const SIZE: &str = "a size like 64kB, 1500B or 1MB, or \"unlimited\"";

/// A unit's name and value.
type Unit = (&'static str, u64);

/// Why a text is not a [`Profile`]. Its message says what is wrong where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// A part is not of the form `key=value`.
    NotAPair(String),
    /// There is no such key.
    UnknownKey(String),
    /// A key is given twice.
    Repeated(&'static str),
    /// A key's value cannot be read.
    BadValue {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// A key needs another one, which is missing.
    Needs {
        /// The key given.
        key: &'static str,
        /// The key missing.
        needs: &'static str,
    },
    /// Two keys contradict each other.
    Conflict(&'static str, &'static str),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPair(part) => write!(f, "{part:?} is not key=value; the keys are {KEYS}"),
            Self::UnknownKey(key) => write!(f, "there is no key {key:?}; the keys are {KEYS}"),
            Self::Repeated(key) => write!(f, "{key} is given twice"),
            Self::BadValue { key, value, expected } => write!(f, "{key}={value}: expected {expected}"),
            Self::Needs { key, needs } => write!(f, "{key} is given without {needs}"),
            Self::Conflict(one, other) => write!(f, "{one} and {other} are both given; use one of them"),
        }
    }
}

impl core::error::Error for ProfileError {}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Profile, ProfileError> {
        let text = text.trim();
        let mut given = Given::default();
        if !text.is_empty() && text != PERFECT {
            text.split(',').try_for_each(|part| given.take(part.trim()))?;
        }
        given.profile()
    }
}

/// The value of each key, before keys that belong together are combined.
#[derive(Default)]
struct Given {
    rtt_us: Option<u64>,
    latency_us: Option<u64>,
    jitter_us: Option<u64>,
    loss: Option<Chance>,
    burst_packets: Option<u32>,
    duplicate: Option<Chance>,
    reorder: Option<Chance>,
    late_us: Option<(u64, u64)>,
    corrupt: Option<Chance>,
    bytes_per_second: Option<u64>,
    queue_bytes: Option<Option<u64>>,
}

impl Given {
    fn take(&mut self, part: &str) -> Result<(), ProfileError> {
        let (key, value) = part.split_once('=').ok_or_else(|| ProfileError::NotAPair(part.to_owned()))?;
        let value = value.trim();
        match key.trim() {
            "rtt" => put(&mut self.rtt_us, "rtt", value, duration, DURATION),
            "latency" => put(&mut self.latency_us, "latency", value, duration, DURATION),
            "jitter" => put(&mut self.jitter_us, "jitter", value, duration, DURATION),
            "loss" => put(&mut self.loss, "loss", value, share, SHARE),
            "burst" => put(&mut self.burst_packets, "burst", value, packets, PACKETS),
            "dup" => put(&mut self.duplicate, "dup", value, share, SHARE),
            "reorder" => put(&mut self.reorder, "reorder", value, share, SHARE),
            "late" => put(&mut self.late_us, "late", value, lateness, LATENESS),
            "corrupt" => put(&mut self.corrupt, "corrupt", value, share, SHARE),
            "rate" => put(&mut self.bytes_per_second, "rate", value, rate, RATE),
            "queue" => put(&mut self.queue_bytes, "queue", value, queue, SIZE),
            unknown => Err(ProfileError::UnknownKey(unknown.to_owned())),
        }
    }

    fn profile(self) -> Result<Profile, ProfileError> {
        let latency_us = match (self.rtt_us, self.latency_us) {
            (Some(_), Some(_)) => return Err(ProfileError::Conflict("rtt", "latency")),
            (Some(rtt_us), None) => rtt_us / 2,
            (None, latency_us) => latency_us.unwrap_or(0),
        };
        let loss = match (self.loss, self.burst_packets) {
            (None, Some(_)) => return Err(ProfileError::Needs { key: "burst", needs: "loss" }),
            (None, None) => Loss::None,
            (Some(mean), None) => Loss::Uniform(mean),
            (Some(mean), Some(burst_packets)) => Loss::Burst { mean, burst_packets },
        };
        let reorder = match (self.reorder, self.late_us) {
            (None, Some(_)) => return Err(ProfileError::Needs { key: "late", needs: "reorder" }),
            (chance, late_us) => {
                let (min_us, max_us) = late_us.unwrap_or(DEFAULT_LATE_US);
                chance.map(|chance| Reorder { chance, min_us, max_us })
            }
        };
        let bandwidth = match (self.bytes_per_second, self.queue_bytes) {
            (None, Some(_)) => return Err(ProfileError::Needs { key: "queue", needs: "rate" }),
            (bytes_per_second, queue_bytes) => {
                let queue_bytes = queue_bytes.unwrap_or(Some(DEFAULT_QUEUE_BYTES));
                bytes_per_second.map(|bytes_per_second| Bandwidth { bytes_per_second, queue_bytes })
            }
        };
        Ok(Profile {
            latency_us,
            jitter_us: self.jitter_us.unwrap_or(0),
            loss,
            duplicate: self.duplicate.unwrap_or_default(),
            reorder,
            corrupt: self.corrupt.unwrap_or_default(),
            bandwidth,
        })
    }
}

fn put<V>(
    place: &mut Option<V>,
    key: &'static str,
    value: &str,
    read: fn(&str) -> Option<V>,
    expected: &'static str,
) -> Result<(), ProfileError> {
    if place.is_some() {
        return Err(ProfileError::Repeated(key));
    }
    *place = read(value);
    let bad_value = || ProfileError::BadValue { key, value: value.to_owned(), expected };
    if place.is_some() { Ok(()) } else { Err(bad_value()) }
}

fn duration(text: &str) -> Option<u64> {
    with_unit(text, &DURATION_UNITS)
}

fn share(text: &str) -> Option<Chance> {
    let always = u64::from(Chance::ALWAYS.ppm());
    let ppm = match text.strip_suffix('%') {
        Some(percent) => decimal(percent.trim_end(), always / 100)?,
        None => decimal(text, always)?,
    };
    let ppm = u32::try_from(ppm).ok()?;
    (ppm <= Chance::ALWAYS.ppm()).then_some(Chance::from_ppm(ppm))
}

fn packets(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&packets| packets >= 1)
}

fn lateness(text: &str) -> Option<(u64, u64)> {
    let (min, max) = text.split_once("..")?;
    let (min_us, max_us) = (duration(min)?, duration(max)?);
    (min_us <= max_us).then_some((min_us, max_us))
}

fn rate(text: &str) -> Option<u64> {
    let bits = with_unit(&text.to_ascii_lowercase(), &BIT_UNITS);
    let bytes_per_second = bits.map(|bits| bits / 8).or_else(|| with_unit(text, &SIZE_UNITS))?;
    (bytes_per_second >= 1).then_some(bytes_per_second)
}

fn queue(text: &str) -> Option<Option<u64>> {
    if text == UNLIMITED { Some(None) } else { with_unit(text, &SIZE_UNITS).map(Some) }
}

/// Reads a decimal number followed by one of `units`, in units of one.
fn with_unit(text: &str, units: &[Unit]) -> Option<u64> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits_end);
    let &(_, worth) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    decimal(number, worth)
}

/// Reads `12.5` as 12.5 × `worth`, where `worth` is a power of ten; refuses what would need rounding.
fn decimal(text: &str, worth: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if whole.is_empty() || fraction.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for digit in whole.bytes() {
        value = value.checked_mul(10)?.checked_add(digit_value(digit)?)?;
    }
    value = value.checked_mul(worth)?;
    let mut worth = worth;
    for digit in fraction.bytes() {
        let digit = digit_value(digit)?;
        if worth < 10 && digit != 0 {
            return None;
        }
        worth /= 10;
        value = value.checked_add(digit * worth)?;
    }
    Some(value)
}

fn digit_value(digit: u8) -> Option<u64> {
    char::from(digit).to_digit(10).map(u64::from)
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Profile::default() {
            return f.write_str(PERFECT);
        }
        let mut list = List { f, started: false };
        if self.latency_us > 0 {
            list.item("latency", Scaled(self.latency_us, &DURATION_UNITS))?;
        }
        if self.jitter_us > 0 {
            list.item("jitter", Scaled(self.jitter_us, &DURATION_UNITS))?;
        }
        match self.loss {
            Loss::None => {}
            Loss::Uniform(mean) => list.item("loss", mean)?,
            Loss::Burst { mean, burst_packets } => {
                list.item("loss", mean)?;
                list.item("burst", burst_packets)?;
            }
        }
        if self.duplicate != Chance::NEVER {
            list.item("dup", self.duplicate)?;
        }
        if let Some(Reorder { chance, min_us, max_us }) = self.reorder {
            list.item("reorder", chance)?;
            let (min, max) = (Scaled(min_us, &DURATION_UNITS), Scaled(max_us, &DURATION_UNITS));
            list.item("late", format_args!("{min}..{max}"))?;
        }
        if self.corrupt != Chance::NEVER {
            list.item("corrupt", self.corrupt)?;
        }
        self.bandwidth.map_or(Ok(()), |bandwidth| list.bandwidth(bandwidth))
    }
}

/// Writes `key=value` with commas between.
struct List<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    started: bool,
}

impl List<'_, '_> {
    fn item(&mut self, key: &str, value: impl fmt::Display) -> fmt::Result {
        let separator = if self.started { "," } else { "" };
        self.started = true;
        write!(self.f, "{separator}{key}={value}")
    }

    fn bandwidth(&mut self, Bandwidth { bytes_per_second, queue_bytes }: Bandwidth) -> fmt::Result {
        self.item("rate", Scaled(bytes_per_second, &SIZE_UNITS))?;
        match queue_bytes {
            Some(bytes) => self.item("queue", Scaled(bytes, &SIZE_UNITS)),
            None => self.item("queue", UNLIMITED),
        }
    }
}

/// A number in the largest of its units that needs no decimals. The units ascend, the first being worth one.
struct Scaled(u64, &'static [Unit]);

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&&(_, worth): &&Unit| self.0.is_multiple_of(worth) && self.0 >= worth;
        let &(name, worth) = self.1.iter().rev().find(fits).unwrap_or(&self.1[0]);
        write!(f, "{}{name}", self.0 / worth)
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ppm_per_percent = Chance::ALWAYS.ppm() / 100;
        let (percent, mut rest) = (self.ppm() / ppm_per_percent, self.ppm() % ppm_per_percent);
        write!(f, "{percent}")?;
        if rest > 0 {
            let mut digits = 4;
            while rest.is_multiple_of(10) {
                rest /= 10;
                digits -= 1;
            }
            write!(f, ".{rest:0digits$}")?;
        }
        f.write_str("%")
    }
}
