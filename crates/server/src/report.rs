//! Formats percentiles and figures as text and as JSON.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use sametick_sim::diff::Difference;
use serde::Serialize;

/// Prints a report as text, or as one line of JSON.
pub fn print<R: Serialize + fmt::Display>(report: &R, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json { print_json(&mut out, report) } else { writeln!(out, "{report}") }
}

/// Prints one line of JSON.
pub fn print_json<R: Serialize + ?Sized>(out: &mut impl Write, report: &R) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(report).map_err(io::Error::other)?)
}

/// A field in which two states differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The field's path.
    pub path: String,
    /// Its value in the first state; `None` if the field is missing there.
    pub first: Option<String>,
    /// Its value in the second state.
    pub second: Option<String>,
}

impl From<&Difference> for Field {
    fn from(difference: &Difference) -> Field {
        let Difference { path, ours, theirs } = difference.clone();
        Field { path, first: ours, second: theirs }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "state" } else { &self.path };
        let [first, second] = [&self.first, &self.second].map(|side| side.as_deref().unwrap_or("nothing"));
        write!(f, "{path}: {first} and {second}")
    }
}

/// Percentiles of measured times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// The minimum.
    pub min_us: u64,
    /// The median.
    pub p50_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The maximum.
    pub max_us: u64,
}

impl Percentiles {
    /// The percentiles of these times; `None` if there are no times.
    pub fn of(times_us: &[u64]) -> Option<Percentiles> {
        let mut sorted = times_us.to_vec();
        sorted.sort_unstable();
        let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)];
        (!sorted.is_empty()).then(|| Percentiles {
            min_us: at(0),
            p50_us: at(50),
            p90_us: at(90),
            p99_us: at(99),
            max_us: at(100),
        })
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Percentiles { min_us, p50_us, p90_us, p99_us, max_us } = *self;
        write!(
            f,
            "min {}  p50 {}  p90 {}  p99 {}  max {}",
            Ms(min_us),
            Ms(p50_us),
            Ms(p90_us),
            Ms(p99_us),
            Ms(max_us)
        )
    }
}

/// A count with its noun: `1 check`, `2 checks`.
pub struct Count(pub u64, pub &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(count, noun) = self;
        write!(f, "{count} {noun}{}", if *count == 1 { "" } else { "s" })
    }
}

/// A number of bytes in readable form.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes @ ..1_000 => write!(f, "{bytes} B"),
            bytes @ ..1_000_000 => write!(f, "{:.1} kB", bytes as f64 / 1e3),
            bytes @ ..1_000_000_000 => write!(f, "{:.1} MB", bytes as f64 / 1e6),
            bytes => write!(f, "{:.1} GB", bytes as f64 / 1e9),
        }
    }
}

/// A moment in milliseconds of Unix time, in readable form.
pub struct Date(pub u64);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0 / 1_000).unwrap_or(i64::MAX);
        match time::OffsetDateTime::from_unix_timestamp(seconds) {
            Ok(at) => {
                let (date, hour, minute, second) = (at.date(), at.hour(), at.minute(), at.second());
                let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
                write!(f, "{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
            }
            Err(_) => f.write_str("a time that cannot be"),
        }
    }
}

/// Microseconds, shown as milliseconds with a fitting number of digits.
pub struct Ms(pub u64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = Duration::from_micros(self.0).as_secs_f64() * 1_000.0;
        if ms < 10.0 { write!(f, "{ms:.2} ms") } else { write!(f, "{ms:.1} ms") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_times() {
        let times: Vec<u64> = (1..=1_000).rev().collect();
        let percentiles = Percentiles::of(&times).unwrap();
        assert_eq!(
            percentiles,
            Percentiles { min_us: 1, p50_us: 501, p90_us: 901, p99_us: 991, max_us: 1_000 }
        );
        assert_eq!(Percentiles::of(&[]), None);
        assert_eq!(Percentiles::of(&[7]).unwrap().p99_us, 7);
    }
}
