//! Logger on standard error with rate limits. Peers and strangers can cause many lines of the log; each kind of line
//! has its own token bucket, and lines over the limit are counted instead of written. This holds for every line, so
//! that none can be forgotten.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sametick_wire::Time;
use sametick_wire::rate_limit::{RateLimit, TokenBucket};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, callsite};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{self, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, SubscriberBuilder};
use tracing_subscriber::registry::LookupSpan;

/// Lines of one kind that are written at once, and per second after that. A server with many visitors writes some of
/// them each second; a hundred kinds of line at this rate are 30 kB a second.
const LIMIT: RateLimit = RateLimit::per_second(2, 60);

/// How often the number of unwritten lines is logged.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// An event of this target only writes the counts that are due.
const COUNTS: &str = "sametick::log::counts";

/// Starts logging, at the level in `SAMETICK_LOG`.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("SAMETICK_LOG");
    let filter = filter.unwrap_or_else(|_| "sametick=info,sametick_transport=info".into());
    builder(io::stderr().is_terminal()).with_env_filter(filter).with_writer(io::stderr).init();
}

/// Logs how many lines were not written since the last such report.
pub(crate) fn tell_unwritten() {
    tracing::error!(target: COUNTS, "");
}

type Builder = SubscriberBuilder<format::DefaultFields, Limited<format::Format>>;

fn builder(is_colourful: bool) -> Builder {
    let limited = Limited { inner: format::format().with_target(false), lines: Mutex::default() };
    // The reader of the log may be gone; an internal error about that would end the process.
    tracing_subscriber::fmt().with_ansi(is_colourful).log_internal_errors(false).event_format(limited)
}

/// A format that leaves out lines over the limit.
struct Limited<F> {
    inner: F,
    lines: Mutex<Lines>,
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (now, is_order) = (Instant::now(), event.metadata().target() == COUNTS);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let is_written = !is_order && lines.take(now, event.metadata().callsite(), || message_of(event));
        let due = lines.due(now, is_order);
        drop(lines);
        for (message, count) in due {
            SystemTime.format_time(&mut writer)?;
            writeln!(writer, "  WARN {count} more lines were not written: {message}")?;
        }
        if is_written { self.inner.format_event(context, writer, event) } else { Ok(()) }
    }
}

/// The message of an event, without its fields.
fn message_of(event: &Event<'_>) -> String {
    struct Message(String);
    impl Visit for Message {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            if field.name() == "message" {
                self.0 = format!("{value:?}");
            }
        }
    }
    let mut message = Message(String::new());
    event.record(&mut message);
    message.0
}

/// One kind of line: one place in the source.
struct Line {
    bucket: TokenBucket,
    /// How many were not written since the last report.
    unwritten: u64,
    message: String,
}

/// The state of all kinds of lines.
#[derive(Default)]
struct Lines {
    kinds: HashMap<callsite::Identifier, Line>,
    told_at: Option<Instant>,
    began: Option<Instant>,
}

impl Lines {
    /// Whether a line is written; otherwise it is counted.
    fn take(&mut self, now: Instant, kind: callsite::Identifier, message: impl FnOnce() -> String) -> bool {
        let began = *self.began.get_or_insert(now);
        let passed_us = now.saturating_duration_since(began).as_micros() as u64;
        let fresh = || Line { bucket: TokenBucket::default(), unwritten: 0, message: String::new() };
        let line = self.kinds.entry(kind).or_insert_with(fresh);
        let is_written = line.bucket.try_take(Time::from_micros(passed_us), LIMIT);
        if !is_written {
            if line.unwritten == 0 {
                line.message = message();
            }
            line.unwritten += 1;
            self.told_at.get_or_insert(now);
        }
        is_written
    }

    /// The counts of unwritten lines, if they are due or `is_wanted`.
    fn due(&mut self, now: Instant, is_wanted: bool) -> Vec<(String, u64)> {
        let is_due = |at: Instant| is_wanted || now.duration_since(at) >= TELL_EVERY;
        if !self.told_at.is_some_and(is_due) {
            return Vec::new();
        }
        self.told_at = None;
        let unwritten = self.kinds.values_mut().filter(|line| line.unwritten > 0);
        unwritten.map(|line| (line.message.clone(), std::mem::take(&mut line.unwritten))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Collects what is written, for tests.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_repeat_are_counted_and_others_are_written() {
        let paper = Paper::default();
        let to = paper.clone();
        let log = builder(false).with_writer(move || to.clone()).finish();
        tracing::subscriber::with_default(log, || {
            for number in 0..10_000 {
                tracing::warn!(number, "a stranger knocks");
            }
            tracing::info!("something else");
            tell_unwritten();
            tell_unwritten();
        });
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        let written = text.matches("a stranger knocks number=").count();
        assert!((60..200).contains(&written), "{text}");
        assert_eq!(text.matches("something else").count(), 1);
        let counted = format!("WARN {} more lines were not written: a stranger knocks\n", 10_000 - written);
        assert_eq!(text.matches(&counted).count(), 1, "{text}");
        assert_eq!(text.lines().count(), written + 2);
    }

    #[test]
    fn a_kind_of_line_has_a_burst_and_a_rate() {
        let kind = {
            use tracing::Callsite as _;
            static SITE: callsite::DefaultCallsite = {
                static META: tracing::Metadata<'static> = tracing::metadata! {
                    name: "line",
                    target: "test",
                    level: tracing::Level::INFO,
                    fields: &[],
                    callsite: &SITE,
                    kind: tracing::metadata::Kind::EVENT
                };
                callsite::DefaultCallsite::new(&META)
            };
            SITE.metadata().callsite()
        };
        let (mut lines, start) = (Lines::default(), Instant::now());
        let mut written = |at: Instant, count: usize| {
            (0..count).filter(|_| lines.take(at, kind.clone(), || "line".into())).count()
        };
        assert_eq!(written(start, 1_000), 60);
        assert_eq!(written(start + Duration::from_secs(3), 1_000), 6);
        assert_eq!(written(start + Duration::from_secs(3_600), 1_000), 60);
        assert_eq!(lines.due(start, false), []);
        let told = lines.due(start + Duration::from_secs(10), false);
        assert_eq!(told, [("line".to_owned(), 3_000 - 126)]);
        assert_eq!(lines.due(start + Duration::from_secs(3_600), true), []);
    }
}
