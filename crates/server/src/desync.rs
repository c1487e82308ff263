//! Writes the folder of a desync report: both states, the log up to that tick, and the fields that differ.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use sametick_lockstep::inquiry::{Decided, Report, Witness};
use sametick_lockstep::message::MAX_DIFFERENCES;
use sametick_lockstep::session::Facts;
use sametick_sim::StateHash;
use sametick_sim::diff::Difference;
use serde_json::json;

use crate::games::Games;

/// The folder's name for a report.
pub fn folder_name(report: &Report) -> String {
    format!("desync-{}", report.tick.0)
}

/// Writes the folder. Returns a summary in one line.
pub fn write(folder: &Path, log: &Path, facts: &Facts, report: &Report, games: &Games) -> io::Result<String> {
    fs::create_dir_all(folder)?;
    let fields = fields(facts, report, games);
    for (witness, file) in report.witnesses.iter().zip(state_files(report)) {
        if let Some(state) = &witness.state {
            fs::write(folder.join(file), &state.bytes)?;
        }
    }
    if let Some(state) = &report.replayed {
        fs::write(folder.join("state-replayed.bin"), state)?;
    }
    fs::copy(log, folder.join("log"))?;
    fs::write(
        folder.join("report.json"),
        to_json(facts, games.commit_of(facts), report, &fields).to_string() + "\n",
    )?;
    fs::write(folder.join("report.txt"), to_text(facts, games.commit_of(facts), report, &fields))?;
    Ok(summary(report, &fields))
}

/// The fields that differ, `ours` being the desynced peer's: computed here if the game is known, otherwise as that peer
/// reported them.
fn fields(facts: &Facts, report: &Report, games: &Games) -> Vec<Difference> {
    let [good, odd] = [0, 1].map(|side| report.witnesses[side].state.as_ref());
    let computed =
        games.find(&facts.game, facts.build).ok().zip(odd.zip(good)).and_then(|(game, (odd, good))| {
            game.differences(&odd.bytes, &good.bytes, MAX_DIFFERENCES).ok().filter(|_| odd.tick == good.tick)
        });
    computed.unwrap_or_else(|| report.fields.clone())
}

fn state_files(report: &Report) -> [String; 2] {
    let name = |witness: &Witness| match witness.seat {
        Some(seat) => format!("seat{}", seat.0),
        None => format!("spectator{}", witness.member.0),
    };
    let [one, other] = &report.witnesses;
    [one, other]
        .map(|witness| format!("state-{}{}.bin", name(witness), if witness.odd { "-odd" } else { "" }))
}

fn who(witness: &Witness) -> String {
    match witness.seat {
        Some(seat) => format!("seat {} ({})", seat.0, witness.name),
        None => format!("a spectator ({})", witness.name),
    }
}

const fn decided(report: &Report) -> &'static str {
    match report.decided {
        Decided::Open => "nobody could say who is right; both states are kept and the session is disputed",
        Decided::ByMajority => "the other players agree with each other",
        Decided::ByReplay => "a replay of the log decided",
    }
}

fn summary(report: &Report, fields: &[Difference]) -> String {
    let [one, other] = &report.witnesses;
    let odd: Vec<String> = report.witnesses.iter().filter(|witness| witness.odd).map(who).collect();
    let what = fields.first().map_or_else(
        || report.parts().first().map_or(String::new(), |part| format!(", in {part}")),
        |field| format!(", in {field}"),
    );
    let tick = report.tick.0;
    match odd.is_empty() {
        true => format!("desync at tick {tick} between {} and {}{what}", who(one), who(other)),
        false => format!("desync at tick {tick}: {} went wrong{what}", odd.join(" and ")),
    }
}

fn to_text(facts: &Facts, commit: &str, report: &Report, fields: &[Difference]) -> String {
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format_args!("{}", summary(report, fields)));
    line(format_args!(""));
    line(format_args!("game     {} (build {}, commit {})", facts.game, facts.build, commit));
    line(format_args!("session  {}", facts.name));
    line(format_args!("found    by the check of tick {}", report.check.0));
    line(format_args!("first bad tick  {}", report.tick.0));
    line(format_args!("decided  {}", decided(report)));
    line(format_args!("mended   {}", if report.resynced { "yes, with the good state" } else { "no" }));
    for (witness, file) in report.witnesses.iter().zip(state_files(report)) {
        let (role, state) = (if witness.odd { "odd" } else { "good" }, witness.state.as_ref());
        let role = if report.decided == Decided::Open { "in doubt" } else { role };
        let hash = state.map_or("no state".into(), |state| {
            format!("tick {}, hash {}, {file}", state.tick.0, StateHash::of_bytes(&state.bytes))
        });
        line(format_args!("{role:<8} {}: {hash}", who(witness)));
    }
    line(format_args!(""));
    line(format_args!("parts that differ: {}", report.parts().join(", ")));
    line(format_args!("fields that differ (the odd one's value, then the good one's):"));
    fields.iter().for_each(|field| line(format_args!("  {field}")));
    line(format_args!(""));
    line(format_args!("The log up to then lies beside this file:"));
    line(format_args!("  sametick replay log --to {} --state", report.tick.0));
    line(format_args!("  sametick replay log --twice"));
    text
}

fn to_json(facts: &Facts, commit: &str, report: &Report, fields: &[Difference]) -> serde_json::Value {
    let witness = |(witness, file): (&Witness, String)| {
        json!({
            "seat": witness.seat.map(|seat| seat.0),
            "name": witness.name,
            "odd": witness.odd,
            "state": witness.state.as_ref().map(|state| json!({
                "tick": state.tick.0,
                "hash": StateHash::of_bytes(&state.bytes).to_string(),
                "file": file,
                "parts": state.parts.iter().map(|part| json!({"path": part.path, "hash": part.hash.to_string()}))
                    .collect::<Vec<_>>(),
            })),
            "first_hash_tick": witness.hashes.as_ref().map(|(first, _)| first.0),
            "hashes": witness.hashes.as_ref().map(|(_, hashes)| {
                hashes.iter().map(ToString::to_string).collect::<Vec<_>>()
            }),
        })
    };
    json!({
        "game": facts.game,
        "build": facts.build.to_string(),
        "commit": commit,
        "session": facts.name,
        "check": report.check.0,
        "tick": report.tick.0,
        "decided": match report.decided {
            Decided::Open => "open",
            Decided::ByMajority => "majority",
            Decided::ByReplay => "replay",
        },
        "resynced": report.resynced,
        "parts": report.parts(),
        "fields": fields,
        "witnesses": report.witnesses.iter().zip(state_files(report)).map(witness).collect::<Vec<_>>(),
    })
}
