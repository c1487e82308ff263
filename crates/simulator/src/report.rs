//! The printed report on many worlds, as text and JSON.

use std::fmt::Write as _;

use crate::faults::Fault;
use crate::outcome::{Figures, Outcome};
use crate::run::Total;

/// How often an event happened in a simulated minute.
fn per_minute(count: u64, figures: &Figures) -> f64 {
    count as f64 * 6e7 / figures.simulated_us.max(1) as f64
}

/// Simulated hours in a second of wall time.
fn speed(total: &Total) -> f64 {
    total.hours() * 1e6 / total.took.as_micros().max(1) as f64
}

/// Speed and totals so far, in one line.
pub fn progress(total: &Total) -> String {
    let (hours, seconds) = (total.hours(), total.took.as_secs_f64());
    format!(
        "{hours:.1} simulated hours in {seconds:.0} s ({:.2} a second), {} worlds, {} faults, {} failed",
        speed(total),
        total.figures.worlds,
        total.faults.total(),
        total.failed.len()
    )
}

/// The whole report as text.
pub fn text(total: &Total) -> String {
    let (figures, mut out) = (&total.figures, String::new());
    let clients = figures.client_us as f64 / figures.simulated_us.max(1) as f64;
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<28} {value}");
    };
    line("worlds", figures.worlds.to_string());
    line("simulated hours", format!("{:.2}", total.hours()));
    line("  with at least 4 clients", format!("{:.2}", figures.crowded_us as f64 / 3.6e9));
    line("  a second of wall time", format!("{:.3}", speed(total)));
    line("clients on average", format!("{clients:.2}"));
    line("sessions, joins", format!("{}, {}", figures.sessions, figures.joins));
    line("came back", format!("{} ({} by takeover)", figures.back, figures.takeovers));
    line("  ticks spared by that", figures.spared.to_string());
    line("saves, begun with one", format!("{}, {}", figures.saves, figures.late_joins));
    line("sessions taken up again", format!("{} ({} taken back)", figures.restarts, figures.rewinds));
    line("  lost rewinds nobody knew", figures.revived.to_string());
    line("  clients back within 5 s", figures.in_time.to_string());
    let [both, log, save] = figures.resumed;
    line("  after they had ended", format!("{both} with log and save, {log} log, {save} save"));
    line("  clients gone back", figures.rewound.to_string());
    line("  ticks given, inputs again", format!("{}, {}", figures.given, figures.sent_again));
    line("time-outs of links", figures.time_outs.to_string());
    line("ticks closed", figures.ticks.to_string());
    line("inputs in their ticks", figures.inputs.to_string());
    line("inputs omitted", figures.omissions.to_string());
    line("states compared", figures.states.to_string());
    line("ticks simulated again", figures.resimulated.to_string());
    line("ticks read from logs", figures.logged.to_string());
    line("flipped bits mended", figures.mended.to_string());
    let faults = total.faults.total();
    line("faults", format!("{faults} ({:.2} a simulated minute)", per_minute(faults, figures)));
    for fault in Fault::all() {
        line(&format!("  {}", fault.name()), total.faults.of(fault).to_string());
    }
    line("violations", total.failed.len().to_string());
    for outcome in &total.failed {
        out += &failure(outcome);
    }
    out
}

/// The violation of a seed, and how to reproduce it.
pub fn failure(outcome: &Outcome) -> String {
    let Some(violation) = &outcome.violation else { return String::new() };
    let seed = outcome.seed;
    format!(
        "seed {seed}: {violation}\n    again: cargo run --release -p sametick-simulator -- --seed {seed}\n"
    )
}

/// The whole report, as one line of JSON.
pub fn json(total: &Total) -> String {
    let figures = &total.figures;
    let mut out = String::from("{");
    let mut put = |name: &str, value: String| {
        let comma = if out.len() > 1 { "," } else { "" };
        let _ = write!(out, "{comma}\"{name}\":{value}");
    };
    put("worlds", figures.worlds.to_string());
    put("hours", format!("{:.4}", total.hours()));
    put("crowded_hours", format!("{:.4}", figures.crowded_us as f64 / 3.6e9));
    put("seconds", format!("{:.3}", total.took.as_secs_f64()));
    put("sessions", figures.sessions.to_string());
    put("joins", figures.joins.to_string());
    put("back", figures.back.to_string());
    put("takeovers", figures.takeovers.to_string());
    put("spared", figures.spared.to_string());
    put("saves", figures.saves.to_string());
    put("late_joins", figures.late_joins.to_string());
    put("restarts", figures.restarts.to_string());
    put("rewinds", figures.rewinds.to_string());
    put("revived", figures.revived.to_string());
    put("in_time", figures.in_time.to_string());
    put("resumed", format!("{:?}", figures.resumed));
    put("rewound", figures.rewound.to_string());
    put("given", figures.given.to_string());
    put("sent_again", figures.sent_again.to_string());
    put("time_outs", figures.time_outs.to_string());
    put("ticks", figures.ticks.to_string());
    put("inputs", figures.inputs.to_string());
    put("omissions", figures.omissions.to_string());
    put("states", figures.states.to_string());
    put("resimulated", figures.resimulated.to_string());
    put("logged", figures.logged.to_string());
    put("mended", figures.mended.to_string());
    let faults: Vec<String> =
        Fault::all().map(|fault| format!("\"{}\":{}", fault.name(), total.faults.of(fault))).collect();
    put("faults", format!("{{{}}}", faults.join(",")));
    let failed: Vec<String> = total.failed.iter().filter_map(failure_json).collect();
    put("failed", format!("[{}]", failed.join(",")));
    out.push('}');
    out
}

fn failure_json(outcome: &Outcome) -> Option<String> {
    let violation = outcome.violation.as_ref()?;
    let (seed, checker) = (outcome.seed, violation.checker.name());
    let (at_us, what) = (violation.at.as_micros(), &violation.what);
    Some(format!("{{\"seed\":{seed},\"checker\":\"{checker}\",\"at_us\":{at_us},\"what\":{what:?}}}"))
}
