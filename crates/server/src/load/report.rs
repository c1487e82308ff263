//! The report of a load test.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::report::Percentiles;

/// Measurements over many sessions.
#[derive(Default)]
pub(super) struct Tally {
    pub created: u64,
    pub joined: u64,
    pub played: u64,
    pub cut: u64,
    pub resumed: u64,
    pub games_resumed: u64,
    pub failures: BTreeMap<String, u64>,
    pub resume_us: Vec<u64>,
    pub create_us: Vec<u64>,
    pub join_us: Vec<u64>,
    pub start_us: Vec<u64>,
    pub game_us: Vec<u64>,
}

/// The result of a load test.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// The duration of the test.
    pub seconds: f64,
    /// Sessions that were created.
    pub created: u64,
    /// Places in sessions that were taken.
    pub joined: u64,
    /// Games that were played to their end.
    pub played: u64,
    /// Connections to sessions that were cut.
    pub cut: u64,
    /// Cut connections that were resumed: their players were back on their seats.
    pub resumed: u64,
    /// Times a bot was back in its game after the link to it was lost.
    pub games_resumed: u64,
    /// Sessions created a second.
    pub created_per_second: f64,
    /// Failures and how often each happened.
    pub failures: BTreeMap<String, u64>,
    /// Time from the request for a session to being in it.
    pub create: Option<Percentiles>,
    /// Time from the request for a place to being in it.
    pub join: Option<Percentiles>,
    /// Time from the start to being in the game.
    pub start: Option<Percentiles>,
    /// Time from then to the game's end.
    pub game: Option<Percentiles>,
    /// Time from a cut to being back.
    pub resume: Option<Percentiles>,
}

impl Tally {
    pub fn fail(&mut self, why: &str) {
        *self.failures.entry(why.to_owned()).or_default() += 1;
    }

    pub fn report(&self, took: Duration) -> LoadReport {
        let seconds = took.as_secs_f64();
        LoadReport {
            seconds,
            created: self.created,
            joined: self.joined,
            played: self.played,
            cut: self.cut,
            resumed: self.resumed,
            games_resumed: self.games_resumed,
            created_per_second: self.created as f64 / seconds,
            failures: self.failures.clone(),
            create: Percentiles::of(&self.create_us),
            join: Percentiles::of(&self.join_us),
            start: Percentiles::of(&self.start_us),
            game: Percentiles::of(&self.game_us),
            resume: Percentiles::of(&self.resume_us),
        }
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadReport { seconds, created, joined, played, created_per_second, .. } = self;
        writeln!(
            f,
            "{created} sessions created in {seconds:.1} s ({created_per_second:.1} a second), {joined} places taken, {played} games played"
        )?;
        if self.cut + self.games_resumed > 0 {
            let LoadReport { cut, resumed, games_resumed, .. } = self;
            writeln!(
                f,
                "  {cut} connections cut, {resumed} resumed; {games_resumed} links to games resumed"
            )?;
        }
        let rows = [
            ("created and in", &self.create),
            ("joined and in", &self.join),
            ("started", &self.start),
            ("game", &self.game),
            ("cut and back", &self.resume),
        ];
        for (name, times) in rows {
            if let Some(times) = times {
                writeln!(f, "  {name:<15}{times}")?;
            }
        }
        for (why, times) in &self.failures {
            writeln!(f, "  failed {times} times: {why}")?;
        }
        write!(f, "  {}", if self.failures.is_empty() { "nothing failed" } else { "SOMETHING FAILED" })
    }
}
