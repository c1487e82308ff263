//! Test of a game that panics: its players are told, and others in the same process are not disturbed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sametick::bot::{BotError, BotsReport, Crowd, LockstepPlan, play_lockstep};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::MAX_PASS;
use sametick_wire::hex::read_hex;
use serde_json::{Value, json};

use super::table::{Place, Seated, Visitor, settings, two_play};
use crate::everyone::block_on;
use crate::process::{command, command_of};

#[path = "../../../examples/brittle/game.rs"]
mod brittle;

use brittle::{Brittle, FAILED, TICK, TIMES};

/// The port on which the gateway listens for hosts.
const PORT: u16 = 21_400;

/// Whether a program is newer than all its sources, by the list that cargo writes beside it.
fn is_fresh(program: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let sources = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let mut sources = sources.split_whitespace().skip(1).map(Path::new).peekable();
    sources.peek().is_some() && sources.all(|source| written(source) <= written(program))
}

/// The command with a game that panics. A run of all tests builds it; a run of these tests alone builds it here.
fn program() -> PathBuf {
    let product = Path::new(env!("CARGO_BIN_EXE_sametick"));
    let program = product.with_file_name("examples").join("brittle");
    if is_fresh(&program) {
        return program;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "sametick", "--example", "brittle"]);
    let is_release = product.parent().is_some_and(|folder| folder.ends_with("release"));
    cargo.args(is_release.then_some("--release")).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.status().unwrap().success());
    program
}

/// A player in a session of their own, whose game has begun.
async fn alone(place: &Place) -> Seated {
    let mut visitor = Visitor::come(place).await;
    let mut settings = settings("Mistakes");
    settings["game"] = json!("brittle");
    let answer = visitor.create("Cyd", &settings, None).await;
    let (mut seated, _) = Seated::arrive(&answer).await;
    seated.does("take", json!({"seat": 0})).await;
    seated.does("ready", json!({"ready": true})).await;
    seated.does("start", json!({})).await;
    seated
}

/// Plays for two seconds, or until the game fails.
async fn play(told: &Value) -> Result<BotsReport, BotError> {
    let text = |name: &str| told[name].as_str().unwrap();
    let url = format!("ws://127.0.0.1:{}", told["websocket"]).parse().unwrap();
    let pass = read_hex(text("pass"), MAX_PASS);
    let plan = LockstepPlan::<Brittle> {
        session: text("place").to_owned(),
        crowd: Crowd { count: 1, seconds: 2, netem: None, patience: 0, pass, trace: None, commit: "" },
        setup: (),
        seed: 0,
        seats: 1,
        autopilot: |_, _| 0,
        flip: None,
        bring: None,
        keep: None,
    };
    play_lockstep(&url, &AccessKey::open(), plan).await
}

#[test]
fn a_panicking_game_restarts_and_the_third_panic_ends_it() {
    let place = Place::start_with(21_420, &["--spare-hosts", "0", "--hosts", &format!("127.0.0.1:{PORT}")]);
    let host = command_of(&program(), &["host", "--data", "machine"]);
    let _host = place.start_host(host, PORT + 1, PORT);
    let file = |name: &str| place.folder.path().join(name);
    block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        let told = bob.event("play").await;
        let (at, text) =
            (format!("ws://127.0.0.1:{}", told["websocket"]), |name: &str| told[name].as_str().unwrap());
        let args = ["bot", "pong", "--connect", &at, "--session", text("place"), "--pass", text("pass")];
        let mut bot = command(&[&args[..], &["--seconds", "8", "--json"]].concat());
        let bot = bot.stdout(Stdio::piped()).spawn().unwrap();

        std::fs::write(file(TIMES), "1").unwrap();
        let mut cyd = alone(&place).await;
        assert_eq!((ada.port(), cyd.port()), (PORT + 1, PORT + 1), "all in one process");
        let told = cyd.event("play").await;
        assert!(play(&told).await.is_err(), "it fails, and so does the link");
        cyd.socket.hear_of(|message| message["event"].get("play").is_some_and(Value::is_null)).await;
        let told = cyd.event("play").await;
        let tick = play(&told).await.unwrap().bots[0].tick;
        assert!(tick > TICK + 30, "it has gone on to {tick}");
        assert_eq!(std::fs::read(file(FAILED)).unwrap(), b".");

        std::fs::write(file(TIMES), "100").unwrap();
        let mut dan = alone(&place).await;
        let mut told = dan.event("play").await;
        let mut times = 0;
        let closing = loop {
            assert!(play(&told).await.is_err());
            times += 1;
            let is_news =
                |message: &Value| message["kind"] == "closing" || message["event"]["play"].is_object();
            let news = dan.socket.hear_of(is_news).await;
            if news["kind"] == "closing" {
                break news["closing"].clone();
            }
            told = news["event"]["play"].clone();
        };
        assert_eq!((times, closing), (3, json!({"over": "quarantined"})));

        ada.does("chat", json!({"line": "what was that?"})).await;
        let output = bot.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let bot = &report["bots"][0];
        assert_eq!(
            (&bot["losses"], &bot["restarts"]),
            (&json!(0), &json!(0)),
            "nobody else noticed: {report}"
        );
        assert!(bot["tick"].as_u64().unwrap() > 240, "{report}");
    });
}
