//! Tests of every game in every mode, from the lobby to its results: with native players, and with a script if it is a
//! room.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::table::{Place, Seated, Visitor, settings};
use crate::attacks::asked;
use crate::everyone::{Socket, block_on};
use crate::process::{command, run};
use crate::web::Up;

/// Longer than any game takes; bots end with it.
const SECONDS: &str = "240";

/// How often a member who waits for the end of a game sends a message.
const PING_EVERY: Duration = Duration::from_secs(10);

/// A short game: pong to five against the worst of bots, arena to three on a bare field with ten of them.
fn short(game: &str, mode: &str) -> Value {
    let mut settings = settings(&format!("{game} in {mode}"));
    settings["game"] = json!(game);
    settings["mode"] = json!(mode);
    let (scenario, difficulty) = if game == "pong" { ("short", 1) } else { ("field", 11) };
    settings["scenario"] = json!(scenario);
    settings["difficulty"] = json!(difficulty);
    settings
}

/// A seated member whose game has begun, and the address of the game.
async fn begun(place: &Place, settings: &Value) -> (Seated, Value) {
    let mut visitor = Visitor::come(place).await;
    let answer = visitor.create("Ada", settings, None).await;
    let (mut seated, _) = Seated::arrive(&answer).await;
    seated.does("take", json!({"seat": 0})).await;
    seated.does("ready", json!({"ready": true})).await;
    seated.does("start", json!({})).await;
    let told = seated.event("play").await;
    assert_eq!((&told["game"], &told["mode"]), (&settings["game"], &settings["mode"]));
    (seated, told)
}

/// A native player of such a game.
fn bot(told: &Value) -> Child {
    let text = |name: &str| told[name].as_str().unwrap();
    let at = format!("ws://127.0.0.1:{}", told["websocket"]);
    let place = if told["mode"] == "room" { "--room" } else { "--session" };
    let args = ["bot", text("game"), "--connect", &at, place, text("place"), "--pass", text("pass")];
    let mut bot = command(&[&args[..], &["--seconds", SECONDS, "--patience", "0"]].concat());
    bot.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The scores of the game that a member's session has played.
async fn results(seated: &mut Seated) -> Vec<Value> {
    let is_over = |message: &Value| message["event"]["phase"]["phase"] == "results";
    let over = loop {
        match tokio::time::timeout(PING_EVERY, seated.socket.hear_of(is_over)).await {
            Ok(over) => break over,
            // A member who says nothing for half a minute is cut off.
            Err(_) => seated.socket.say(&json!({"v": 2, "kind": "ping", "seq": 1})).await,
        }
    };
    let results = over["event"]["phase"]["results"].as_str().unwrap().to_owned();
    let results: Value = serde_json::from_str(&results).unwrap();
    results["scores"].as_array().unwrap().clone()
}

#[test]
fn every_game_in_every_mode_is_played_to_its_results() {
    let place = Place::start_on("21440-21459", &[]);
    block_on(async {
        let mut playing = Vec::new();
        for (game, mode) in [("pong", "lockstep"), ("arena", "lockstep"), ("arena", "room")] {
            let (seated, told) = begun(&place, &short(game, mode)).await;
            playing.push((seated, bot(&told)));
        }
        for (mut seated, mut bot) in playing {
            let scores = results(&mut seated).await;
            assert!(scores.iter().any(|score| score["seat"] == 0), "{scores:?}");
            bot.wait().unwrap();
        }
    });
    // The end of a game must not log a warning.
    let log = Up::log_in(&place.folder);
    assert!(log.contains("a player's link has ended") && !log.contains("a player was closed"), "{log}");
}

#[test]
fn a_script_with_a_pass_finds_and_plays_the_sessions_room() {
    let place = Place::start_on("21460-21479", &[]);
    block_on(async {
        let (mut ada, told) = begun(&place, &short("arena", "room")).await;
        let text = |name: &str| told[name].as_str().unwrap();
        let path = |pass: &str| format!("/api/rooms/{}/ws?name=Eve{pass}", text("place"));
        let with_pass = path(&format!("&pass={}", text("pass")));

        // The gateway redirects to it by the pass, or by the name of the game alone.
        for path in [with_pass.clone(), path("")] {
            let mut lost = Socket::at(place.gateway(), &path).await.unwrap();
            let error = lost.hear_kind("error").await;
            let address = format!(":{}", ada.port());
            assert_eq!(
                (&error["code"], &error["address"]),
                (&"elsewhere".into(), &address.into()),
                "{error}"
            );
            assert!(lost.hear().await.is_none());
        }
        assert_eq!(place.up.as_ref().unwrap().get(&format!("/api/rooms/{}", text("place"))).status, 404);

        // A native player who asks the gateway is redirected, too.
        let at = format!("ws://{}", place.gateway());
        let args = ["bot", "arena", "--connect", &at, "--room", text("place"), "--pass", text("pass")];
        let refused = run(&mut command(&[&args[..], &["--patience", "0"]].concat()));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("which is played at its host"), "{said}");

        // No other script is let in.
        for path in [path(""), path(&format!("&pass={}", "07".repeat(48)))] {
            let mut stranger = Socket::at(ada.address, &path).await.unwrap();
            let error = stranger.hear_kind("error").await;
            assert_eq!(error["code"], "not_allowed", "{error}");
            assert!(stranger.hear().await.is_none());
        }

        let mut script = Socket::at(ada.address, &with_pass).await.unwrap();
        let welcome = script.hear_kind("welcome").await;
        assert_eq!((&welcome["seat"], &welcome["name"]), (&0.into(), &"Ada".into()), "as the pass says");
        assert_eq!(script.hear_kind("snapshot").await["mode"], "full");
        let walk = json!({"v": 2, "kind": "command", "seq": 5, "feature": "movement", "action": "input_batch",
            "payload": {"inputs": [{"right": true}, {"down": true}]}});
        script.say(&walk).await;
        script.hear_of(|message| message["ackSeq"] == 5).await;

        // The script resumes over another connection, and the earlier one is closed.
        let mut again = Socket::at(ada.address, &with_pass).await.unwrap();
        assert_eq!(again.hear_kind("welcome").await["seat"], 0);
        assert_eq!(script.hear_kind("error").await["code"], "closed");

        // A native player with the same pass takes the seat over; and the game goes on to its end.
        let mut bot = bot(&told);
        assert_eq!(again.hear_kind("error").await["code"], "closed");
        let scores = results(&mut ada).await;
        assert!(scores.iter().any(|score| score["seat"] == 0), "{scores:?}");
        bot.wait().unwrap();
    });
}

#[test]
fn a_lockstep_session_admits_no_scripts() {
    let place = Place::start_on("21480-21499", &[]);
    block_on(async {
        let (ada, told) = begun(&place, &short("pong", "lockstep")).await;
        let text = |name: &str| told[name].as_str().unwrap();
        let path = format!("/api/rooms/{}/ws?pass={}", text("place"), text("pass"));
        let error = Socket::at(ada.address, &path).await.unwrap().hear_kind("error").await;
        assert_eq!(error["code"], "not_allowed");
        assert!(error["message"].as_str().unwrap().contains("lockstep"), "{error}");
    });
}

#[test]
fn invalid_settings_of_a_session_are_named() {
    let place = Place::start_on("21500-21519", &[]);
    block_on(async {
        let mut visitor = Visitor::come(&place).await;
        let good = short("pong", "lockstep");
        for (field, wrong, words) in [
            ("game", "chess", "no sessions of \"chess\" here; there are sessions of pong, arena"),
            ("mode", "room", "pong is not played in rooms"),
            ("mode", "duel", "there is no \"duel\"; there are lockstep and room"),
            ("scenario", "marathon", "pong has no scenario \"marathon\"; there are "),
        ] {
            let mut settings = good.clone();
            settings[field] = wrong.into();
            let create =
                json!({"key": "0".repeat(32), "name": "Ada", "settings": settings, "password": null});
            let told = visitor.say("create", &create).await;
            assert_eq!((&told["kind"], &told["code"]), (&"error".into(), &"bad_payload".into()), "{told}");
            assert!(told["message"].as_str().unwrap().contains(words), "{told}");
        }
        // A change of a session's settings gets the same error, and the session stays as it is.
        let mut ada = visitor.found("den").await;
        let mut settings = settings("den");
        settings["scenario"] = "marathon".into();
        assert_eq!(ada.wish("settings", &json!({ "settings": settings })).await, "bad_payload");
        // A host answers to its own names only, as the gateway does.
        let (status, why) = asked(ada.address, "/api/health", "Host: evil.example\r\n");
        assert!(status == 421 && why.contains("--origin"), "{status} {why}");
    });
}
