//! Tests of `sametick play pong` on a terminal: a pseudo-terminal of `script`, parsed as a terminal does.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sametick_sim::Tick;
use sametick_store::saves::Save;
use sametick_transport::clock::Clock;
use serde_json::Value;

use crate::process::{Folder, Server, command, run};
use crate::screen::Screen;

const PATIENCE_US: u64 = 30_000_000;
const LEAVE: &str = "\x1b[?1049l";

/// A terminal of 80 columns and 24 rows in which a player plays.
struct Terminal {
    script: Child,
    folder: Folder,
    output: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    /// How many of the bytes were fed to the screen.
    fed: usize,
    screen: Screen,
}

impl Terminal {
    /// `answer` is the terminal's reply to the query for its features.
    fn play(url: &str, args: &str, answer: &str) -> Terminal {
        let folder = Folder::new();
        let pid = folder.path().join("pid");
        let program = env!("CARGO_BIN_EXE_sametick");
        let pid = pid.display();
        let play = format!(
            "stty rows 24 cols 80; echo $$ > '{pid}'; exec '{program}' play pong --connect '{url}' {args}"
        );
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--flush", "--command", &play, "/dev/null"]);
        script.env_remove("SAMETICK_SECRET").env("SHELL", "/bin/sh").env("TERM", "xterm-256color");
        script.env("SAMETICK_CONFIG", folder.path().join("config.toml"));
        let mut script =
            script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, output) = channel();
        let mut stdout = script.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut buf = [0; 4096];
            while let Some(len) = stdout.read(&mut buf).ok().filter(|len| *len > 0) {
                if sender.send(buf[..len].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut terminal =
            Terminal { script, folder, output, bytes: Vec::new(), fed: 0, screen: Screen::new(80, 24) };
        terminal.wait("the question what it can do", |terminal| terminal.text().contains("\x1b[c"));
        terminal.press(answer);
        terminal
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.script.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Reads the output, and feeds it to the screen while the game's own screen is active.
    fn read(&mut self) -> bool {
        let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(50)) else { return false };
        self.bytes.extend(bytes);
        let (mut end, whole) = (self.bytes.len(), self.text());
        if let Some(left) = whole.find(LEAVE) {
            end = left;
        }
        while let Err(error) = std::str::from_utf8(&self.bytes[self.fed.min(end)..end]) {
            end = self.fed + error.valid_up_to();
        }
        if self.fed < end {
            let fresh = String::from_utf8_lossy(&self.bytes[self.fed..end]).into_owned();
            self.screen.feed(&fresh);
            self.fed = end;
        }
        true
    }

    fn wait(&mut self, what: &str, is_so: impl Fn(&Terminal) -> bool) {
        let clock = Clock::start();
        while !is_so(self) {
            self.read();
            assert!(
                clock.now().as_micros() < PATIENCE_US,
                "{what} never came:\n{}\n{}",
                self.shown(),
                self.text()
            );
        }
    }

    fn wait_for(&mut self, text: &str) {
        self.wait(text, |terminal| terminal.shown().contains(text));
    }

    fn shown(&self) -> String {
        self.screen.lines().join("\n")
    }

    /// The tick in the status line; zero if there is none.
    fn tick(&self) -> u32 {
        let shown = self.shown();
        let digits = shown.split(" · tick ").nth(1).and_then(|rest| rest.split(' ').next());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The rows of the left paddle.
    fn paddle(&self) -> Vec<usize> {
        let lines = self.screen.lines();
        let wall = lines[12].chars().position(|glyph| glyph == '┊').unwrap_or(0);
        let is_paddle =
            |line: &String| line.chars().skip(wall + 1).take(3).any(|glyph| "█▀▄".contains(glyph));
        (3..21).filter(|row| is_paddle(&lines[*row])).collect()
    }

    /// Waits for the end. Returns whether the command succeeded, and what it wrote after restoring the terminal.
    fn end(mut self) -> (bool, String) {
        let clock = Clock::start();
        let status = loop {
            self.read();
            if let Some(status) = self.script.try_wait().unwrap() {
                break status;
            }
            assert!(clock.now().as_micros() < PATIENCE_US, "it does not end:\n{}", self.shown());
        };
        while self.read() {}
        let text = self.text();
        let parts: Vec<&str> = text.split(LEAVE).collect();
        assert_eq!(parts.len(), 2, "the terminal is given back once: {text:?}");
        assert!(parts[0].contains("\x1b[?1049h") && parts[0].ends_with("\x1b[?25h"), "{text:?}");
        (status.success(), parts[1].trim().to_owned())
    }

    fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.folder.path().join("pid")).unwrap();
        assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// Replies of terminals without and with reports of releases.
const PLAIN: &str = "\x1b[?62c";
const KITTY: &str = "\x1b[?0u\x1b[?62c";

#[test]
fn a_player_plays_against_a_bot_and_leaves() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &[], None);
    let trace = folder.path().join("messages.jsonl");
    let args = format!("--session den --name Ada --trace '{}'", trace.display());
    let mut terminal = Terminal::play(relay.url("udp"), &args, PLAIN);
    terminal.wait_for("[← Ada 0]");
    terminal.wait_for("1 of 2 here. Space begins");
    terminal.wait_for("tap or hold ↑↓ · space serve");
    terminal.press(" ");
    terminal.wait("a ball", |terminal| !terminal.shown().contains("Space begins"));
    let before = terminal.paddle();
    terminal.press("\x1b[B\x1b[B");
    terminal.wait("a nudge", |terminal| terminal.paddle().last() > before.last());
    terminal.press("d");
    terminal.wait_for("the last second");
    terminal.press("g");
    terminal.wait("some ticks", |terminal| terminal.tick() > 20);
    terminal.press("k");
    terminal.wait_for(" a copy of session den at tick ");
    let saves = terminal.folder.path().join("saves");
    let kept = || std::fs::read_dir(&saves).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept().find(|path| path.extension().is_some_and(|it| it == "save")).expect("it was kept");
    terminal.press("q");
    terminal.wait("the end", |terminal| terminal.text().contains("left session den at tick "));
    let copy = Save::from_bytes(&std::fs::read(kept).unwrap()).unwrap();
    assert!(copy.is_true() && copy.info.session == "den" && copy.info.tick > Tick(20), "{:?}", copy.info);
    let (ok, words) = terminal.end();
    assert!(words.starts_with(&format!("left session den at tick {},", copy.info.tick)), "{words}");
    assert!(ok && words.starts_with("left session den at tick "), "{words}");
    let told = words.lines().nth(1).unwrap_or_default();
    assert!(told.starts_with("a copy of session den at tick ") && told.contains("saves/den-"), "{words}");
    // The trace has every message that it sent and received, from the first on.
    let lines = std::fs::read_to_string(trace).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["direction"], &lines[0]["kind"]), (&"send".into(), &"join".into()));
    let has = |direction, kind| {
        lines.iter().any(|line| line["direction"] == direction && line["kind"] == kind && line["seat"] == 0)
    };
    assert!(has("send", "inputs") && has("recv", "ticks"), "{lines:?}");
}

#[test]
fn a_held_key_moves_and_a_kill_restores_the_terminal() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &[], None);
    let mut terminal = Terminal::play(relay.url("ws"), "--players 2 --netem rtt=40ms", KITTY);
    terminal.wait_for("[← player 0]");
    terminal.wait_for(" ↑↓ move");
    terminal.press("\x1b[1;1:1B");
    terminal.wait("the lowest row", |terminal| terminal.paddle().last() == Some(&20));
    terminal.press("\x1b[1;1:3B\x1b[119;1:1u");
    terminal.wait("the highest row", |terminal| terminal.paddle().first() == Some(&3));
    assert!(terminal.screen.modes.contains(&"[>3u".to_owned()), "{:?}", terminal.screen.modes);
    terminal.signal("-TERM");
    let text = terminal.end();
    assert!(text.0 && text.1.starts_with("left session pong"), "{text:?}");
}

#[test]
fn a_refused_or_cut_off_player_gets_terminal_and_reason() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &[], None);
    let url = relay.url("udp").to_owned();
    let mut players = ["Ada", "Grace"].map(|name| Terminal::play(&url, &format!("--name {name}"), PLAIN));
    for player in &mut players {
        player.wait_for("[←");
        player.wait("a tick", |player| player.tick() > 0);
    }
    let (ok, words) = Terminal::play(&url, "--name Edsger", PLAIN).end();
    assert!(!ok && words.contains("session pong: the session is full"), "{words}");
    let mut spectator = Terminal::play(&url, "--watch", PLAIN);
    spectator.wait_for("watching");
    spectator.wait("a tick", |spectator| spectator.tick() > 0);
    relay.signal("-INT");
    assert!(relay.end().0);
    for mut terminal in players.into_iter().chain([spectator]) {
        // The server may come back: the player decides how long to wait for it.
        terminal.wait_for("Connection lost: the server stops");
        terminal.press("q");
        let (ok, words) = terminal.end();
        assert!(ok && words.starts_with("left session pong"), "{words}");
        // The server may never come back: every client keeps a copy, a spectator too.
        assert!(words.replace('\r', "").contains("\na copy of session pong at tick "), "{words:?}");
    }
}

#[test]
fn a_wrong_passphrase_gets_no_answer_and_the_error_says_so() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &[], Some("sesame"));
    let mut terminal = Terminal::play(relay.url("udp"), "", PLAIN);
    terminal.wait_for("Calling udp://");
    let (ok, words) = terminal.end();
    assert!(
        !ok && words.ends_with("no answer: nobody listens there, or the passphrase is another one"),
        "{words}"
    );
}

#[test]
fn without_a_terminal_the_error_names_the_bot_command() {
    let output = run(&mut command(&["play", "pong", "--connect", "udp://127.0.0.1:9"]));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains("`sametick bot pong`"), "{err}");
    assert_eq!((err.lines().count(), output.stdout.len()), (1, 0), "{err}");
}
