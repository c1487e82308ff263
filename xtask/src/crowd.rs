//! Measures tick durations of a crowded room: a real server on a core of its own, and light bots on the others.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell;
use crate::workspace::Workspace;

/// The numbers of players, from a few to too many.
const CURVE: [u32; 6] = [10, 50, 100, 200, 500, 1_000];

/// The crowd whose ticks must be short: p99 under a third of a tick of 30 Hz.
const PROVEN: u32 = 200;
const BUDGET_US: u64 = 33_333 / 3;

/// Bots per process: a process polls all of its sockets.
const BUNCH: u32 = 50;

/// The pause between starting two processes: an address may send 256 first packets at once, and 32 a second after that.
const BETWEEN: Duration = Duration::from_secs(3);

/// The server's statistics cover between half a minute and a minute: older ticks are gone by then.
const FORGOTTEN_S: u64 = 62;

/// How long the CPU time is measured at the end. Bots end only after it.
const MEASURED: Duration = Duration::from_secs(10);

/// Clock ticks of `/proc` per second.
const CPU_HZ: f64 = 100.0;

/// Measures every crowd, and prints a table for docs/benchmarks.md.
pub fn run(workspace: &Workspace, seconds: u64) -> Result<()> {
    shell::run(shell::cargo(&workspace.root).args([
        "build",
        "--release",
        "-p",
        "sametick",
        "--bin",
        "sametick",
    ]))?;
    let program = workspace.target.join("release/sametick");
    let folder = workspace.target.join("crowd");
    let is_pinned = shell::succeeds(Command::new("taskset").arg("--version"));
    if !is_pinned {
        println!("taskset is not here: the server shares its core with the bots");
    }
    let seconds = seconds.max(FORGOTTEN_S);
    let mut lines = Vec::new();
    let mut proven = None;
    for players in CURVE {
        let crowd = measure(&program, &folder, players, seconds, is_pinned)
            .with_context(|| format!("{players} players"))?;
        println!("{}", crowd.line());
        lines.push(crowd.line());
        if players == PROVEN {
            proven = Some(crowd.p99_us);
        }
    }
    println!("\n{HEAD}\n{}", lines.join("\n"));
    ensure!(
        proven.is_some_and(|p99_us| p99_us < BUDGET_US),
        "{PROVEN} players take more than a third of a tick"
    );
    Ok(())
}

/// Tick durations while another program locks the players database, beside those without the lock.
pub fn run_locked(workspace: &Workspace, seconds: u64) -> Result<()> {
    let mut cargo = shell::cargo(&workspace.root);
    shell::run(cargo.args(["build", "--release", "-p", "sametick", "--bin", "sametick"]))?;
    let mut cargo = shell::cargo(&workspace.root);
    shell::run(cargo.args(["build", "-p", "sametick-store", "--features", "players", "--example", "hold"]))?;
    let seconds = seconds.max(FORGOTTEN_S);
    let holder = workspace.target.join("debug/examples/hold");
    let folder = workspace.target.join("crowd");
    let is_pinned = shell::succeeds(Command::new("taskset").arg("--version"));
    let program = workspace.target.join("release/sametick");
    let mut server = start(&program, &folder, is_pinned)?;
    let url = url_of(&mut server.0)?;
    let bots = crowd(&program, &folder, &url, PROVEN, 2 * seconds + MEASURED.as_secs(), is_pinned)?;
    let status = folder.join("status.json");
    sleep(Duration::from_secs(seconds));
    let before: Value = serde_json::from_str(&fs::read_to_string(&status)?)?;
    let mut hold = Command::new(holder);
    hold.arg(folder.join("data/players.sqlite")).arg(seconds.to_string()).stdout(Stdio::null());
    let mut hold = Process(hold.spawn()?);
    sleep(Duration::from_secs(seconds));
    let locked: Value = serde_json::from_str(&fs::read_to_string(&status)?)?;
    ensure!(hold.0.wait()?.success(), "the database could not be locked");
    sleep(Duration::from_secs(5));
    let after: Value = serde_json::from_str(&fs::read_to_string(&status)?)?;
    drop(bots);
    println!("| {PROVEN} players | tick p50 | tick p99 | longest | errors | waiting in memory |");
    println!("|---|---|---|---|---|---|");
    for (name, told) in [("database works", &before), ("locked", &locked), ("works again", &after)] {
        let (times, players) = (&told["rooms"][0]["tick_times"], &told["players"]);
        let ms = |name: &str| format!("{:.2} ms", times[name].as_f64().unwrap_or(f64::NAN) / 1_000.0);
        let (p50, p99, max) = (ms("p50_us"), ms("p99_us"), ms("max_us"));
        let waiting =
            players["queue_depth"].as_u64().unwrap_or(0) + players["overflowing"].as_u64().unwrap_or(0);
        println!("| {name} | {p50} | {p99} | {max} | {} | {waiting} |", players["errors"]);
    }
    ensure!(locked["players"]["errors"].as_u64() > Some(0), "the database was not locked");
    ensure!(after["players"]["overflowing"] == 0, "what waited was not written");
    Ok(())
}

const HEAD: &str = "\
| players | tick p50 | tick p99 | longest | with sending p99 | core | bytes/s to each | updates missed | inputs late | rows a flush | flush, longest |
|---|---|---|---|---|---|---|---|---|---|---|";

/// The measurements of one crowd.
struct Crowd {
    players: u32,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    turn_p99_us: u64,
    core: f64,
    bytes_each: u64,
    lost: f64,
    late: f64,
    rows: u64,
    flush_us: u64,
}

impl Crowd {
    fn line(&self) -> String {
        let ms = |us: u64| format!("{:.2} ms", us as f64 / 1_000.0);
        format!(
            "| {} | {} | {} | {} | {} | {:.0} % | {} | {:.2} % | {:.2} % | {} | {} |",
            self.players,
            ms(self.p50_us),
            ms(self.p99_us),
            ms(self.max_us),
            ms(self.turn_p99_us),
            self.core * 100.0,
            self.bytes_each,
            self.lost * 100.0,
            self.late * 100.0,
            self.rows,
            ms(self.flush_us),
        )
    }
}

/// A child process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, pinned to these cores where possible.
fn on_cores(program: &Path, cores: Option<&str>) -> Command {
    let mut command = match cores {
        Some(cores) => {
            let mut command = Command::new("taskset");
            command.args(["-c", cores]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn measure(program: &Path, folder: &Path, players: u32, seconds: u64, is_pinned: bool) -> Result<Crowd> {
    let mut server = start(program, folder, is_pinned)?;
    let url = url_of(&mut server.0)?;
    let bots = crowd(program, folder, &url, players, seconds, is_pinned)?;
    sleep(Duration::from_secs(seconds).saturating_sub(BETWEEN));
    let (before, began) = (cpu_seconds(server.0.id())?, Instant::now());
    sleep(MEASURED.saturating_sub(Duration::from_secs(3)));
    let core = (cpu_seconds(server.0.id())? - before) / began.elapsed().as_secs_f64();
    let told: Value = serde_json::from_str(&fs::read_to_string(folder.join("status.json"))?)?;
    let reports = bots.into_iter().map(report_of).collect::<Result<Vec<_>>>()?;
    summary(players, core, &told, &reports)
}

/// A server on a core of its own, without data of an earlier run.
fn start(program: &Path, folder: &Path, is_pinned: bool) -> Result<Process> {
    // Data of an earlier run is useless.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let mut server = on_cores(program, is_pinned.then_some("0"));
    server.args(["up", "--listen", "127.0.0.1:0", "--udp", "0", "--quic", "off", "--wt", "off"]);
    // All bots connect from this machine.
    server.args(["--per-address", "2000"]);
    server.arg("--status").arg(folder.join("status.json")).arg("--data").arg(folder.join("data"));
    Ok(Process(server.spawn()?))
}

/// So many bots on the other cores, for so many seconds once all have joined.
fn crowd(
    program: &Path,
    folder: &Path,
    url: &str,
    players: u32,
    seconds: u64,
    is_pinned: bool,
) -> Result<Vec<Process>> {
    let last_core = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
    let rest = format!("1-{last_core}");
    let bunches = players.div_ceil(BUNCH);
    let mut bots = Vec::new();
    for bunch in 0..bunches {
        let count = BUNCH.min(players - bunch * BUNCH);
        let after = BETWEEN * (bunches - 1 - bunch) + MEASURED;
        let mut command = on_cores(program, (is_pinned && last_core > 0).then_some(&rest[..]));
        command.args(["bot", "arena", "--room", "crowd", "--light", "--json", "--house-bots", "0"]);
        command.args(["--connect", url, "--count", &count.to_string(), "--players", &players.to_string()]);
        command.args(["--seconds", &(seconds + after.as_secs()).to_string()]);
        command.env("SAMETICK_CONFIG", folder.join("config.toml"));
        bots.push(Process(command.spawn()?));
        sleep(BETWEEN);
    }
    Ok(bots)
}

/// The URL for bots, from what a server prints.
fn url_of(server: &mut Child) -> Result<String> {
    let output = server.stdout.take().context("standard output was piped")?;
    let mut lines = BufReader::new(output).lines();
    let url = lines.find_map(|line| {
        let line = line.ok()?;
        line.split_whitespace().find(|word| word.starts_with("udp://")).map(str::to_owned)
    });
    url.context("the server did not say where it is")
}

/// The CPU time of a process.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")))?;
    // After the name, which may contain anything: the 12th and the 13th field.
    let rest = text.rsplit_once(')').context("a name stands in brackets")?.1;
    let fields: Vec<f64> =
        rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    Ok(fields.iter().sum::<f64>() / CPU_HZ)
}

fn report_of(mut bots: Process) -> Result<Value> {
    let output = bots.0.stdout.take().context("standard output was piped")?;
    let line =
        BufReader::new(output).lines().next().context("bots did not report: they could not play")??;
    Ok(serde_json::from_str(&line)?)
}

fn summary(players: u32, core: f64, told: &Value, reports: &[Value]) -> Result<Crowd> {
    let room = &told["rooms"][0];
    let there = room["players"].as_array().map_or(0, Vec::len);
    ensure!(there == players as usize, "only {there} were there");
    let bots: Vec<&Value> = reports.iter().flat_map(|report| report["bots"].as_array()).flatten().collect();
    let sum = |name: &str| bots.iter().filter_map(|bot| bot[name].as_u64()).sum::<u64>();
    let (updates, lost, late) = (sum("updates"), sum("updates_lost"), sum("omissions"));
    let update_bytes: u64 = bots.iter().filter_map(|bot| bot["update_bytes"].as_u64()).sum();
    let number = |value: &Value| value.as_u64().context("the server tells its times");
    Ok(Crowd {
        players,
        p50_us: number(&room["tick_times"]["p50_us"])?,
        p99_us: number(&room["tick_times"]["p99_us"])?,
        max_us: number(&room["tick_times"]["max_us"])?,
        turn_p99_us: number(&told["turns"]["p99_us"])?,
        core,
        // Ten updates a second, less the missed ones: lost in the network, or never sent by an overloaded host.
        bytes_each: update_bytes * 10 * updates / ((updates + lost).max(1) * bots.len().max(1) as u64),
        lost: lost as f64 / (updates + lost).max(1) as f64,
        // Three inputs for each update.
        late: late as f64 / (3 * (updates + lost)).max(1) as f64,
        rows: number(&told["players"]["mean_rows"])?,
        flush_us: number(&told["players"]["max_flush_us"])?,
    })
}
