//! Tests that a relay or a host that is killed at any moment and restarted resumes its sessions. Real processes, real
//! packets.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sametick_sim::Rng;
use serde_json::Value;

use crate::everyone::{Socket, block_on};
use crate::process::{Folder, Server, command, run};
use crate::web::Up;

/// Kills in the test command; `SAMETICK_RELAY_KILLS` sets another number, and has times measured.
const KILLS: u64 = 20;

/// The time within which play resumes on an idle machine.
const BACK: Duration = Duration::from_secs(5);

/// A relay whose trace is read as it is written.
struct Traced {
    server: Server,
    lines: BufReader<File>,
    /// When it was started, in microseconds of Unix time.
    started_us: u128,
}

impl Traced {
    fn start(folder: &Folder, udp: &str) -> Traced {
        let trace = folder.path().join("trace");
        let started_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        // The relay blocks until the pipe has a reader.
        let lines = std::thread::spawn(move || BufReader::new(File::open(trace).unwrap()));
        let args = ["--data", "data", "--trace", "trace", "--udp", udp];
        let server = Server::start_as(&["relay"], folder, &args, None);
        Traced { server, lines: lines.join().unwrap(), started_us }
    }

    /// Waits until so many ticks are closed. Returns how long after the start the first one was.
    fn play(&mut self, ticks: u64) -> Duration {
        let (mut line, mut seen, mut first_us) = (String::new(), 0, 0u128);
        while seen < ticks {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the relay has ended");
            let said: Value = serde_json::from_str(&line).expect(&line);
            if said["kind"] == "closed" {
                first_us = if seen == 0 { said["unix_us"].as_u64().unwrap().into() } else { first_us };
                seen += 1;
            }
        }
        Duration::from_micros(u64::try_from(first_us.saturating_sub(self.started_us)).unwrap())
    }

    /// Ends it by a signal; its trace is not read any more. Returns whether it ended well.
    fn end(self, signal: &str) -> bool {
        let mut lines = self.lines;
        let rest = std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        self.server.signal(signal);
        let is_clean = self.server.end().0;
        rest.join().unwrap().unwrap();
        is_clean
    }
}

/// Four bots, and their report.
struct Bots {
    pid: u32,
    output: Receiver<Output>,
}

impl Bots {
    fn start(url: &str, folder: &Folder) -> Bots {
        let args = ["bot", "pong", "--count", "4", "--seconds", "86400", "--session", "den", "--json"];
        let mut bots = command(&[&args[..], &["--connect", url]].concat());
        bots.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let bots = bots.spawn().unwrap();
        let (pid, (ended, output)) = (bots.id(), channel());
        let trace = folder.path().join("trace");
        std::thread::spawn(move || {
            let output = bots.wait_with_output().unwrap();
            let said = format!("the bots have ended: {}\n", String::from_utf8_lossy(&output.stderr));
            ended.send(output).unwrap();
            // Opens the pipe so that a thread that waits for the bots' trace ends.
            std::fs::OpenOptions::new().write(true).open(trace)?.write_all(said.as_bytes())
        });
        Bots { pid, output }
    }

    fn end(self) -> Value {
        assert!(Command::new("kill").args(["-INT", &self.pid.to_string()]).status().unwrap().success());
        let output = self.output.recv().unwrap();
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&report).unwrap()
    }
}

/// The output of a log command about the only session.
fn about_log(folder: &Folder, words: &[&str]) -> Value {
    let builds = folder.path().join("data/sessions");
    let inside = |folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sessions: Vec<_> = inside(builds).flat_map(inside).collect();
    assert_eq!(sessions.len(), 1, "one session went on all the time: {sessions:?}");
    let output = run(&mut command(&[words, &[sessions[0].to_str().unwrap(), "--json"]].concat()));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap()
}

#[test]
fn a_relay_that_is_killed_resumes_where_its_players_are() {
    let asked = std::env::var("SAMETICK_RELAY_KILLS").ok();
    let kills = asked.as_ref().map_or(KILLS, |kills| kills.parse().unwrap());
    let (folder, mut rng) = (Folder::new(), Rng::new(kills));
    assert!(Command::new("mkfifo").arg(folder.path().join("trace")).status().unwrap().success());
    let mut relay = Traced::start(&folder, "0");
    let url = relay.server.url("udp").to_owned();
    let port = url.rsplit(':').next().unwrap().to_owned();
    let bots = Bots::start(&url, &folder);
    let mut times = Vec::new();
    for kill in 0..kills {
        let back = relay.play(1 + rng.below(120));
        times.extend((kill > 0).then_some(back));
        assert!(!relay.end("-KILL"));
        if kill > 0 && kill.is_multiple_of(100) {
            about_log(&folder, &["log", "verify"]);
            println!("{kill} kills, the longest way back {:?}", times.iter().max().unwrap());
        }
        relay = Traced::start(&folder, &port);
    }
    times.push(relay.play(120));
    let report = bots.end();
    assert!(report["agree"] == true && report["compared"].as_u64() > Some(0), "{report}");
    let seats = report["bots"].as_array().unwrap().iter().map(|bot| bot["seat"].as_u64());
    assert_eq!(seats.collect::<BTreeSet<_>>(), [0, 1, 2, 3].map(Some).into(), "everybody plays: {report}");
    let anew = report["bots"].as_array().unwrap().iter().filter(|bot| bot["restarts"] != 0).count();
    assert_eq!(anew, 0, "for everybody it was one session: {report}");
    assert!(relay.end("-TERM"));

    let info = about_log(&folder, &["log", "info"]);
    // A relay that is killed before it has logged its resumption leaves no trace of it, and no void ticks.
    let rewinds = info["rewinds"].as_u64().unwrap();
    assert!(rewinds <= kills && rewinds > kills / 2 && info["ended"] == true, "{info}");
    assert_eq!((&info["dissents"], &info["desyncs"]), (&0.into(), &0.into()), "{info}");
    assert!(info["checks"].as_u64() > Some(0), "{info}");
    about_log(&folder, &["log", "verify"]);
    about_log(&folder, &["replay"]);
    times.sort();
    let [half, most, longest] = [50, 99, 100].map(|percent| times[(times.len() - 1) * percent / 100]);
    println!(
        "{kills} kills: play is back {half:?} (p50), {most:?} (p99), {longest:?} (longest) after a start"
    );
    let came = info["players"].as_array().map_or(0, Vec::len);
    let (ticks, void) = (&info["ticks"], &info["void_ticks"]);
    println!("{rewinds} rewinds, {ticks} ticks, of them void {void}; players sat down {came} times");
    assert!(asked.is_none() || longest < BACK, "{longest:?}");
}

/// A script joins a room and receives so many updates. Returns its seat, the ticks of the first and the last, and its
/// token.
async fn look_on(up: &Up, token: Option<&str>, updates: u64) -> (Value, u64, u64, String) {
    let token = token.map(|token| format!("&token={token}")).unwrap_or_default();
    let mut ada =
        Socket::open(up, &format!("den/ws?name=Ada&setup=%7B%22bots%22:3%7D{token}")).await.unwrap();
    let seat = ada.hear_kind("welcome").await["seat"].clone();
    let (mut token, mut ticks) = (None, Vec::new());
    while token.is_none() || (ticks.len() as u64) < updates {
        let (message, _) = ada.hear().await.unwrap();
        match message["kind"].as_str() {
            Some("token") => token = message["token"].as_str().map(ToOwned::to_owned),
            Some("snapshot") => ticks.push(message["tick"].as_u64().unwrap()),
            _ => {}
        }
    }
    (seat, ticks[0], *ticks.last().unwrap(), token.unwrap())
}

#[test]
fn a_room_whose_server_is_killed_goes_on_with_the_same_state() {
    let asked = std::env::var("SAMETICK_RELAY_KILLS").ok();
    let kills: u64 = asked.map_or(5, |kills| kills.parse().unwrap());
    let (folder, mut rng) = (Folder::new(), Rng::new(kills));
    let (mut token, mut last) = (None::<String>, 0);
    for _ in 0..kills {
        let up = Up::start(&folder, &["--data", "data"], None);
        let updates = 2 + rng.below(100);
        let (seat, first, now, given) = block_on(look_on(&up, token.as_deref(), updates));
        assert_eq!(seat, 0, "the seat it had");
        // Unwritten ticks are lost: two seconds, or a little more on a busy machine.
        assert!(first + 150 > last, "it goes on after {last}, not after {first}");
        (token, last) = (Some(given), now);
        up.signal("-KILL");
        assert!(!up.end().0);
        assert!(!Up::log_in(&folder).contains("ERROR"), "{}", Up::log_in(&folder));
    }
    let up = Up::start(&folder, &["--data", "data"], None);
    block_on(look_on(&up, token.as_deref(), 2));
    up.signal("-TERM");
    assert!(up.end().0);
    let info = about_log(&folder, &["log", "info"]);
    assert_eq!((&info["rewinds"], &info["ended"]), (&kills.into(), &true.into()), "{info}");
    about_log(&folder, &["log", "verify"]);
    about_log(&folder, &["replay"]);
}
