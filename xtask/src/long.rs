//! The long versions of tests, with a chosen size. Results go to docs/benchmarks.md.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::workspace::Workspace;
use crate::{crowd, deny, fuzz, races, shell, web};

const HELP: &str = "\
Run a proof for longer than the test command does. The result is worth writing down in docs/benchmarks.md.

Usage: cargo xtask long PROOF [--amount N]     (for players also --kills N)

Proofs:
  pairs     conversations of two links on a terrible network     N seeds      (default 100000)
  pace      four players at 60 Hz for a minute, no late input   N seeds      (default 1000)
  bots      four bots through a real relay, three networks      N seconds each (default 60)
  simulator relay, players and disks with faults, in virtual time  N hours      (default 2000)
  players   a writer of players killed, and its disk's power cut  N kills      (default 10000)
  saves     saves brought by racing clients, some killed; S3 and folder  N operations (default 200000)
  logs      logs cut at every byte, every bit of their tails flipped  N logs       (default 100)
  relays    a relay killed again and again while four bots play  N kills      (default 500)
  rooms     hosts and views on terrible networks, in virtual time  N seeds      (default 20000)
  sessions  gateway, hosts and players with crashes and a lossy network  N histories  (default 100000)
  lobby     fifty sessions at once, played by bots and ended, over and over  N seconds    (default 600)
  silence   first packets of strangers against live listeners    N packets    (default 1000000)
  attacks   what strangers did to memory, disk and journal while two play  N times the size (default 10)
  sockets   four bots over UDP and WebSocket on a line that loses 5 % of IP packets; needs root  N seconds each (default 60)
  arena     a room of 10 to 1000 bots on a server with a core of its own  N seconds each (default 62)
  locked    a room of 200 bots whose database another program locks        N seconds (default 62)
  e2e       browser stories that failed by chance once, then all stories three times, beside a busy core  N times (default 20)
  fuzz      every fuzz target                                    N seconds each (default 600)
  races     the queue of players under ThreadSanitizer (rustup's nightly, x86-64 or ARM64 Linux)  N rounds (default 3)
  deny      licences, bans and sources of all dependencies, and advisories where their database can be had; installs
            cargo-deny into target/tools (minutes); N is ignored

Examples:
  cargo xtask long pairs
  cargo xtask long silence --amount 10000000
";

struct Proof {
    name: &'static str,
    amount: u64,
    run: fn(&Workspace, u64) -> Result<()>,
}

const PROOFS: &[Proof] = &[
    Proof { name: "pairs", amount: 100_000, run: pairs },
    Proof { name: "pace", amount: 1_000, run: pace },
    Proof { name: "bots", amount: 60, run: bots },
    Proof { name: "simulator", amount: 2_000, run: simulator },
    Proof { name: "players", amount: 10_000, run: players },
    Proof { name: "saves", amount: 200_000, run: saves },
    Proof { name: "logs", amount: 100, run: logs },
    Proof { name: "relays", amount: 500, run: relays },
    Proof { name: "rooms", amount: 20_000, run: rooms },
    Proof { name: "sessions", amount: 100_000, run: sessions },
    Proof { name: "lobby", amount: 600, run: lobby },
    Proof { name: "silence", amount: 1_000_000, run: silence },
    Proof { name: "attacks", amount: 10, run: attacks },
    Proof { name: "sockets", amount: 60, run: sockets },
    Proof { name: "arena", amount: 62, run: crowd::run },
    Proof { name: "locked", amount: 62, run: crowd::run_locked },
    Proof { name: "e2e", amount: 20, run: web::end_to_end_long },
    Proof { name: "fuzz", amount: 600, run: fuzz_all },
    Proof { name: "races", amount: 3, run: races::run },
    Proof { name: "deny", amount: 1, run: |workspace, _| deny::run_long(workspace) },
];

pub fn command(words: &[String]) -> Result<()> {
    let mut arguments = Arguments::new(words);
    let name = arguments.word();
    if arguments.help() || name.is_none() {
        print!("{HELP}");
        return Ok(());
    }
    let kills: Option<u64> = arguments.value("--kills")?;
    let amount = arguments.value("--amount")?.or(kills);
    arguments.finish()?;
    let proof = PROOFS.iter().find(|proof| Some(proof.name) == name.as_deref());
    let proof = proof.with_context(|| format!("no such proof\n\n{HELP}"))?;
    let amount = amount.unwrap_or(proof.amount);
    let start = Instant::now();
    (proof.run)(&Workspace::load()?, amount)?;
    println!("\n{} {amount}: held, in {:.0} s", proof.name, start.elapsed().as_secs_f64());
    Ok(())
}

fn pairs(workspace: &Workspace, seeds: u64) -> Result<()> {
    release_test(workspace, &["-p", "sametick-wire", "--test", "pair"], "SAMETICK_SEEDS", seeds)
}

fn pace(workspace: &Workspace, seeds: u64) -> Result<()> {
    let test = ["-p", "sametick-lockstep", "--test", "world", "no_input_is_late"];
    release_test(workspace, &test, "SAMETICK_SEEDS", seeds)
}

fn bots(workspace: &Workspace, seconds: u64) -> Result<()> {
    let test = ["-p", "sametick", "--test", "it", "bots_agree_on_every_network"];
    release_test(workspace, &test, "SAMETICK_BOT_SECONDS", seconds)
}

fn simulator(workspace: &Workspace, hours: u64) -> Result<()> {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["run", "--release", "-p", "sametick-simulator", "--", "--hours"]);
    shell::run(cargo.arg(hours.to_string()))
}

fn players(workspace: &Workspace, kills: u64) -> Result<()> {
    let test = ["-p", "sametick-store", "--test", "players", "kills::"];
    release_test(workspace, &test, "SAMETICK_KILLS", kills)?;
    let test = ["-p", "sametick-simulator", "--test", "it", "players::"];
    release_test(workspace, &test, "SAMETICK_SEEDS", kills / 2)?;
    let mut cargo = shell::cargo(&workspace.root);
    shell::run(cargo.args(["bench", "-p", "sametick-store", "--bench", "players", "--", "ratios"]))
}

fn saves(workspace: &Workspace, operations: u64) -> Result<()> {
    let tests = ["-p", "sametick-store", "--test", "saves"];
    let run =
        |test, variable, amount| release_test(workspace, &[&tests[..], &[test]].concat(), variable, amount);
    run("s3::", "SAMETICK_OPERATIONS", operations)?;
    run("folders::", "SAMETICK_KILLS", operations / 100)?;
    run("races::", "SAMETICK_SEEDS", operations / 10)
}

fn logs(workspace: &Workspace, logs: u64) -> Result<()> {
    for tests in ["it", "saves"] {
        let test = ["-p", "sametick-store", "--test", tests, "damage::"];
        release_test(workspace, &test, "SAMETICK_LOGS", logs)?;
    }
    Ok(())
}

fn relays(workspace: &Workspace, kills: u64) -> Result<()> {
    let test = ["-p", "sametick", "--test", "it", "killed::a_relay"];
    release_test(workspace, &test, "SAMETICK_RELAY_KILLS", kills)
}

fn rooms(workspace: &Workspace, seeds: u64) -> Result<()> {
    let field = ["-p", "sametick-room", "--test", "it", "every_view_converges"];
    release_test(workspace, &field, "SAMETICK_SEEDS", seeds)?;
    for tests in ["rooms::", "returns::"] {
        let arena = ["-p", "sametick-simulator", "--test", "it", tests];
        release_test(workspace, &arena, "SAMETICK_SEEDS", seeds / 10)?;
    }
    Ok(())
}

fn sessions(workspace: &Workspace, histories: u64) -> Result<()> {
    for tests in ["world::", "random::"] {
        let test = ["-p", "sametick-session", "--test", "it", tests];
        release_test(workspace, &test, "SAMETICK_SEEDS", histories)?;
    }
    Ok(())
}

fn lobby(workspace: &Workspace, seconds: u64) -> Result<()> {
    let test = ["-p", "sametick", "--test", "it", "lobby::crowd"];
    release_test(workspace, &test, "SAMETICK_LOBBY_SECONDS", seconds)
}

fn silence(workspace: &Workspace, packets: u64) -> Result<()> {
    let test = ["-p", "sametick-transport", "--test", "it", "silence"];
    release_test(workspace, &test, "SAMETICK_SILENCE_PACKETS", packets)
}

fn attacks(workspace: &Workspace, times: u64) -> Result<()> {
    let test = ["-p", "sametick", "--test", "it", "--", "attacks::", "crowds::", "--test-threads", "1"];
    release_test(workspace, &test, "SAMETICK_ATTACK_TIMES", times)
}

fn sockets(workspace: &Workspace, seconds: u64) -> Result<()> {
    shell::run(shell::cargo(&workspace.root).args(["build", "--release", "-p", "sametick"]))?;
    println!("| line | over | omissions of a player | input round trip |\n|---|---|---|---|");
    let program = workspace.target.join("release/sametick");
    let mut failed = Vec::new();
    for rtt in ["20", "50", "100", "150"] {
        let mut line = Command::new("python3");
        line.current_dir(&workspace.root).arg("bench/lossy_line.py").arg(&program);
        line.args(["--rtt", rtt, "--loss", "5", "--seconds", &seconds.to_string()]);
        failed.extend(shell::run(&mut line).err());
    }
    ensure!(failed.is_empty(), "too many omissions on {} of the lines", failed.len());
    Ok(())
}

fn fuzz_all(_: &Workspace, seconds: u64) -> Result<()> {
    fuzz::command(&["--seconds".to_owned(), seconds.to_string()])
}

/// Runs a test that takes its size from the environment, optimised.
fn release_test(workspace: &Workspace, test: &[&str], variable: &str, amount: u64) -> Result<()> {
    let mut cargo = shell::cargo(&workspace.root);
    let separator = if test.contains(&"--") { &[][..] } else { &["--"] };
    cargo.args(["test", "--release"]).args(test).args(separator).arg("--nocapture");
    println!("{variable}={amount}");
    shell::run(cargo.env(variable, amount.to_string()))
}
