//! Tests of scripts in a room: their commands, the messages they receive, and the limits on them.

use sametick::rooms::envelope::{Code, Encoding};
use sametick::rooms::script::Input;
use sametick_arena::{Arena, Avatar, Setup, UNIT};
use sametick_sim::replica::{Hosted, Scene, ViewId};
use sametick_sim::{Rng, Seat};
use serde_json::{Value, json};

use crate::stage::Stage;

const QUIET: Setup = Setup { seed: 3, size: 32, bots: 0, seats: 8, points: 0, rocks: true, rounds: false };

fn command(seq: u64, feature: &str, action: &str, payload: Value) -> Value {
    let mut said = json!({"v": 2, "kind": "command", "seq": seq, "feature": feature, "action": action});
    said["payload"] = payload;
    said
}

fn walk(seq: u64, keys: &[&str]) -> Value {
    let inputs: Vec<Value> = keys.iter().map(|key| json!({ *key: true })).collect();
    command(seq, "movement", "input_batch", json!({ "inputs": inputs }))
}

#[test]
fn a_script_is_welcomed_walks_and_sees_itself_walk() {
    let mut stage = Stage::new(QUIET);
    let ada = stage.enter("Ada");
    stage.run_millis(500);
    let welcome = stage.actors[ada].next("welcome");
    assert_eq!((&welcome["room"], &welcome["game"]), (&"den".into(), &"arena".into()));
    assert_eq!(
        (&welcome["playerId"], &welcome["seat"], &welcome["name"]),
        (&"1".into(), &1.into(), &"Ada".into())
    );
    assert_eq!(welcome["rates"], json!({"step": 30, "update": 10}));
    assert_eq!(welcome["features"]["movement"], json!({"avatar": ["at", "aim", "health", "shielded"]}));
    assert_eq!(welcome["resumeToken"].as_str().unwrap().len(), 48);
    let first = stage.actors[ada].next("snapshot");
    assert_eq!((&first["mode"], &first["ackSeq"]), (&"full".into(), &Value::Null));
    let names: Vec<&str> =
        first["players"].as_array().unwrap().iter().map(|who| who["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["native", "Ada"]);

    let before = stage.actors[ada].known["features"]["movement"]["avatar"]["1"]["at"].clone();
    stage.say(ada, &walk(42, &["right"; 10]));
    stage.run_millis(1_000);
    let ack = stage.actors[ada].next("ack");
    assert_eq!(ack["seq"], 42);
    let known = &stage.actors[ada].known;
    assert_eq!(known["ackSeq"], 42);
    let after = &known["features"]["movement"]["avatar"]["1"]["at"];
    assert!(after[0].as_i64() > before[0].as_i64() && after[1] == before[1], "{before} {after}");
    assert_eq!(known["own"]["at"], *after, "what only oneself knows");
    let snapshots = stage.actors[ada].all("snapshot");
    assert!(snapshots.len() >= 8 && snapshots.iter().all(|snapshot| snapshot["mode"] == "delta"));
    assert!(
        snapshots.iter().all(|snapshot| snapshot["features"].get("build").is_none()),
        "what stands is told once"
    );
}

#[test]
fn ack_seq_is_sent_when_a_command_is_complete() {
    let mut stage = Stage::new(QUIET);
    let ada = stage.enter("Ada");
    stage.run_millis(500);
    stage.actors[ada].told.clear();
    stage.say(ada, &walk(7, &["up"; 30]));
    stage.say(ada, &command(8, "movement", "input_batch", json!({"inputs": []})));
    stage.run_millis(500);
    assert_eq!(stage.actors[ada].known["ackSeq"], Value::Null, "it is not done yet");
    stage.run_millis(1_500);
    let told: Vec<Value> = stage.actors[ada].told.drain(..).map(|(_, message)| message).collect();
    let acks: Vec<&Value> = told.iter().filter(|message| message["kind"] == "ack").collect();
    assert_eq!((&acks[0]["seq"], &acks[1]["seq"], acks.len()), (&7.into(), &8.into(), 2));
    let begun = acks[0]["tick"].as_u64().unwrap();
    let done = told.iter().find(|message| message["kind"] == "snapshot" && message["ackSeq"] != Value::Null);
    let done = done.unwrap()["tick"].as_u64().unwrap();
    // The last input is 29 ticks later, and every third tick has a snapshot.
    assert!((begun + 29..begun + 32).contains(&done), "{begun} {done}");
    assert_eq!(stage.actors[ada].known["ackSeq"], 8);
}

#[test]
fn json_and_message_pack_scripts_share_a_room() {
    let mut stage = Stage::new(QUIET);
    let (ada, bob) = (stage.enter("Ada"), stage.enter("Bob"));
    stage.run_millis(500);
    stage.actors[bob].told.clear();
    let starts =
        [("1", ada), ("2", bob)].map(|(id, actor)| (stage.actors[actor].known["own"]["at"].clone(), id));
    stage.say(ada, &walk(1, &["left"; 5]));
    stage.say_packed(bob, &json!({"v": 2, "kind": "ping", "seq": 9, "clientTime": 12.5}));
    let (encoding, pong) = stage.actors[bob].told.pop_front().unwrap();
    assert_eq!((encoding, &pong["kind"], &pong["seq"]), (Encoding::MessagePack, &"pong".into(), &9.into()));
    assert_eq!(pong["clientTime"], 12.5);
    assert!(pong["serverTime"].as_f64().unwrap() > 500.0);
    stage.say_packed(bob, &walk(1, &["right"; 5]));
    stage.run_millis(1_000);
    for (me, other) in [(ada, bob), (bob, ada)] {
        let seen = &stage.actors[me].known["features"]["movement"]["avatar"];
        assert_eq!(seen.as_object().unwrap().keys().collect::<Vec<_>>(), ["0", "1", "2"]);
        let (start, id) = &starts[other];
        assert_ne!(seen[id]["at"], *start, "who walks is seen to walk");
    }
    assert!(stage.actors[bob].told.iter().all(|(encoding, _)| *encoding == Encoding::MessagePack));
    assert!(stage.actors[ada].told.iter().all(|(encoding, _)| *encoding == Encoding::Json));
}

#[test]
fn deltas_add_up_to_the_full_snapshot() {
    for seed in 0..4 {
        let mut stage = Stage::new(Setup { seed, bots: 6, ..QUIET });
        let actors = [stage.enter("Ada"), stage.enter("Bob")];
        stage.run_millis(300);
        let mut rng = Rng::new(seed);
        for round in 0..30 {
            for actor in actors {
                let said = match rng.below(5) {
                    0 => command(round, "projectile", "fire", json!({"angle": rng.below(63) as f64 / 10.0})),
                    1 => {
                        let at = &stage.actors[actor].known["own"]["at"];
                        let tile = |axis: usize| at[axis].as_i64().unwrap_or(0) / i64::from(UNIT) + 1;
                        command(round, "build", "place", json!({"x": tile(0), "y": tile(1), "kind": "crate"}))
                    }
                    key => walk(round, &[["up", "down", "left"][key as usize - 2]; 8]),
                };
                stage.say(actor, &said);
            }
            stage.run_millis(200);
        }
        for actor in actors {
            let merged = stage.actors[actor].known.clone();
            stage.say(actor, &json!({"v": 2, "kind": "resync"}));
            let full = &stage.actors[actor].known;
            let entities = |known: &Value| {
                let mut features = known["features"].clone();
                let kinds = features.as_object_mut().unwrap().values_mut();
                kinds.for_each(|kinds| kinds.as_object_mut().unwrap().retain(|_, those| those != &json!({})));
                // A feature may be empty, such as shots in a quiet moment.
                features.as_object_mut().unwrap().retain(|_, kinds| kinds != &json!({}));
                features
            };
            assert_eq!(entities(&merged), entities(full), "seed {seed}");
            assert_eq!((&merged["own"], &merged["players"]), (&full["own"], &full["players"]));
            assert!(full["features"]["build"]["structure"].as_object().unwrap().len() > 3);
        }
    }
}

#[test]
fn commands_of_one_tick_run_in_their_order() {
    let mut stage = Stage::new(QUIET);
    let ada = stage.enter("Ada");
    stage.run_millis(600);
    let timed = |seq: u64, ms: f64, angle: f64| {
        let mut said = command(seq, "movement", "aim", json!({ "angle": angle }));
        said["clientTime"] = ms.into();
        said
    };
    // The first command measures the offset between the clocks.
    stage.say(ada, &timed(1, 1_000.0, 0.0));
    stage.run_millis(200);
    stage.actors[ada].told.clear();
    for said in [timed(4, 1_150.0, 1.0), timed(2, 1_120.0, 2.0), timed(3, 1_120.0, 3.0)] {
        stage.say(ada, &said);
    }
    stage.run_millis(500);
    let order: Vec<u64> =
        stage.actors[ada].all("ack").iter().map(|ack| ack["seq"].as_u64().unwrap()).collect();
    assert_eq!(order, [2, 3, 4]);
    let aim = (1.0 / std::f64::consts::TAU * 256.0).round() as u64;
    assert_eq!(stage.actors[ada].known["own"]["aim"].as_u64(), Some(aim));
}

#[test]
fn a_script_that_sends_in_every_tick_does_not_fall_behind() {
    let mut stage = Stage::new(QUIET);
    let ada = stage.enter("Ada");
    stage.run_millis(600);
    let mut seq = 0;
    for tick in 0..300 {
        for said in
            [walk(seq, &["left"]), command(seq + 1, "movement", "aim", json!({"angle": f64::from(tick % 6)}))]
        {
            stage.say(ada, &said);
            seq += 1;
        }
        stage.run_millis(33);
    }
    stage.run_millis(600);
    assert_eq!(stage.actors[ada].known["ackSeq"], seq - 1);
    assert!(stage.actors[ada].find("error").is_none());
}

#[test]
fn too_many_inputs_are_dropped_with_an_error() {
    let mut stage = Stage::new(QUIET);
    let ada = stage.enter("Ada");
    stage.run_millis(600);
    (1..=4).for_each(|seq| stage.say(ada, &walk(seq, &["left"; 60])));
    stage.run_millis(100);
    let fault = stage.actors[ada].next("error");
    assert_eq!((&fault["code"], &fault["seq"]), (&"too_many_inputs".into(), &3.into()), "{fault}");
    stage.run_millis(4_500);
    assert_eq!(stage.actors[ada].known["ackSeq"], 2);
}

#[test]
fn mistakes_are_answered_and_disturb_no_other_player() {
    let mut stage = Stage::new(QUIET);
    let (ada, bob) = (stage.enter("Ada"), stage.enter("Bob"));
    stage.run_millis(1_000);
    let before = stage.native();
    let wrong = [
        (json!({"v": 1, "kind": "ping"}), "bad_version"),
        (json!({"v": 2, "kind": "dance"}), "unknown_kind"),
        (command(5, "magic", "cast", json!({})), "unknown_feature"),
        (command(6, "movement", "fly", json!({})), "unknown_action"),
        (command(7, "movement", "aim", json!({"angle": "north"})), "bad_payload"),
        (command(8, "build", "place", json!({"x": 1, "y": 2})), "bad_payload"),
        (command(9, "build", "place", json!({"x": 1e9, "y": 2, "kind": "wall"})), "bad_payload"),
        (json!("hello"), "bad_message"),
    ];
    for (said, code) in wrong {
        for packed in [false, true] {
            if packed {
                stage.say_packed(ada, &said);
            } else {
                stage.say(ada, &said);
            }
            let fault = stage.actors[ada].next("error");
            assert_eq!(fault["code"], code, "{fault}");
            assert_eq!(fault.get("seq"), said.get("seq"), "{fault}");
            assert!(fault["message"].as_str().unwrap().len() > 10, "{fault}");
        }
        stage.run_millis(50);
    }
    let mut rng = Rng::new(1);
    for _ in 0..400 {
        let garbage: Vec<u8> = (0..rng.below(40)).map(|_| rng.below(256) as u8).collect();
        let encoding = if rng.below(2) == 0 { Encoding::Json } else { Encoding::MessagePack };
        stage.say_bytes(ada, encoding, &garbage);
        let fault = stage.actors[ada].next("error");
        assert!(fault["code"] == "bad_message" || fault["code"] == "bad_version", "{fault}");
        stage.run_millis(20);
    }
    stage.say(ada, &walk(10, &["up"; 3]));
    stage.run_millis(1_000);
    assert_eq!(stage.actors[ada].known["ackSeq"], 10, "it goes on as if nothing had been");
    assert!(stage.actors[bob].find("error").is_none());
    let after = stage.native();
    assert_eq!((after.omissions, after.lost), (before.omissions, before.lost));
    assert!(after.updates > before.updates + 80);
}

#[test]
fn floods_and_broken_rules_end_only_their_connection() {
    let mut stage = Stage::new(QUIET);
    let (ada, bob) = (stage.enter("Ada"), stage.enter("Bob"));
    stage.run_millis(1_000);
    let before = stage.native();
    let ping = json!({"v": 2, "kind": "ping"});
    for _ in 0..120 * 5 {
        stage.say(bob, &ping);
        stage.run_millis(9);
    }
    assert!(stage.actors[bob].find("error").is_none(), "so many are fine for ever");
    stage.actors[ada].told.clear();
    (0..200).for_each(|_| stage.say(ada, &ping));
    let told = &stage.actors[ada].told;
    assert_eq!(told.back().unwrap().1["code"], "too_many_messages");
    assert!(stage.actors[ada].hung_up && told.len() < 100, "{}", told.len());
    stage.tell(bob, Input::Broke(Code::TooLarge, "at most 16384 bytes are taken"));
    assert_eq!(stage.actors[bob].told.back().unwrap().1["code"], "too_large");
    stage.run_millis(300);
    assert_eq!(stage.host.participants().count(), 1);
    let after = stage.native();
    assert_eq!((after.omissions, after.lost), (before.omissions, before.lost));
}

#[test]
fn a_rejoin_with_the_token_has_the_same_seat() {
    let mut stage = Stage::new(QUIET);
    let [_, ada, _] = ["Eve", "Ada", "Bob"].map(|name| stage.enter(name));
    stage.run_millis(500);
    let welcome = stage.actors[ada].next("welcome");
    let (seat, mut token) = (welcome["seat"].clone(), welcome["resumeToken"].as_str().unwrap().to_owned());
    assert_eq!(seat, 2);
    let mut old = ada;
    for pause_ms in [0, 700] {
        stage.leave(old);
        stage.run_millis(pause_ms);
        let back = stage.enter_with("Ada", Some(&token), false);
        stage.run_millis(200);
        let welcome = stage.actors[back].next("welcome");
        assert_eq!(welcome["seat"], seat, "after {pause_ms} ms");
        let next = welcome["resumeToken"].as_str().unwrap().to_owned();
        assert_ne!(next, token, "each is good for one link");
        token = next;
        assert_eq!(stage.actors[back].next("snapshot")["mode"], "full");
        old = back;
    }
    // Over another link, while the old one still seems to be alive.
    let back = stage.enter_with("Ada", Some(&token), false);
    stage.run_millis(200);
    assert_eq!(stage.actors[back].next("welcome")["seat"], seat);
    let told = stage.actors[old].next("error");
    assert_eq!((&told["code"], stage.actors[old].hung_up), (&"closed".into(), true), "{told}");
    assert!(told["message"].as_str().unwrap().contains("come back"), "{told}");
}

#[test]
fn a_resume_token_of_no_player_is_refused() {
    let mut stage = Stage::new(QUIET);
    let ada = stage.enter("Ada");
    stage.run_millis(500);
    let used = stage.actors[ada].next("welcome")["resumeToken"].as_str().unwrap().to_owned();
    stage.leave(ada);
    let back = stage.enter_with("Ada", Some(&used), false);
    stage.run_millis(200);
    stage.actors[back].next("welcome");
    let joined = stage.joined;
    let forged = format!("{}{}", &used[..16], "0".repeat(32));
    let of_another_room = "7".repeat(48);
    for token in [used, forged, of_another_room] {
        let refused = stage.enter_with("Ada", Some(&token), false);
        stage.run_millis(200);
        let told = stage.actors[refused].next("error");
        assert_eq!(
            (&told["code"], stage.actors[refused].hung_up),
            (&"bad_resume_token".into(), true),
            "{told}"
        );
    }
    assert_eq!(stage.joined, joined, "no seat was given away on the way");
    stage.run_millis(200);
    assert_eq!(stage.host.participants().count(), 2, "the native player and Ada");
}

#[test]
fn the_welcome_comes_first_and_has_the_tick() {
    let mut stage = Stage::new(QUIET);
    stage.run_millis(1_000);
    let present = u64::from(stage.host.tick().0);
    let ada = stage.enter("Ada");
    // Sent before the script is let in.
    stage.say(ada, &json!({"v": 2, "kind": "ping", "seq": 1}));
    stage.say(ada, &json!({"v": 2, "kind": "hop"}));
    stage.run_millis(500);
    let kinds: Vec<&str> =
        stage.actors[ada].told.iter().filter_map(|(_, told)| told["kind"].as_str()).collect();
    assert_eq!(kinds[..3], ["welcome", "pong", "error"], "{kinds:?}");
    let tick = stage.actors[ada].next("welcome")["tick"].as_u64().unwrap();
    assert!(present > 20 && (present..=present + 1).contains(&tick), "{tick} of {present}");
}

#[test]
fn a_full_room_refuses_and_a_spectator_cannot_act() {
    let mut stage = Stage::new(Setup { seats: 2, ..QUIET });
    stage.enter("Ada");
    let bob = stage.enter("Bob");
    stage.run_millis(10);
    let told = stage.actors[bob].next("error");
    assert_eq!((&told["code"], stage.actors[bob].hung_up), (&"room_full".into(), true), "{told}");
    let eve = stage.enter_with("Eve", None, true);
    stage.run_millis(500);
    let welcome = stage.actors[eve].next("welcome");
    assert_eq!((&welcome["seat"], &welcome["playerId"]), (&Value::Null, &Value::Null));
    assert_eq!(stage.actors[eve].next("snapshot")["own"], Value::Null);
    stage.say(eve, &walk(1, &["up"]));
    assert_eq!(stage.actors[eve].next("error")["code"], "not_allowed");
}

#[test]
fn a_script_receives_nothing_that_is_out_of_sight() {
    let setup = Setup { seed: 11, size: 200, bots: 30, seats: 8, points: 0, rocks: true, rounds: false };
    let mut stage = Stage::new(setup);
    let ada = stage.enter("Ada");
    stage.run_millis(500);
    // The view reaches 48 tiles, and a tenth more for entities that were already visible.
    let limit = 48.0 * 1.1 * UNIT as f32 + 1.0;
    let (mut told, mut hidden, mut last) = (0, 0, Value::Null);
    for ms in 0..20_000 {
        if ms % 330 == 0 {
            stage.say(ada, &walk(ms, &[["up", "right"][ms as usize / 10_000]; 10]));
        }
        stage.run_millis(1);
        let known = &stage.actors[ada].known;
        // Compared as soon as the update arrives: a respawned player is elsewhere at once.
        if last == known["tick"] || known["tick"] != stage.host.tick().0 {
            continue;
        }
        last = known["tick"].clone();
        let eye = stage.host.state().eye(ViewId(1)).unwrap();
        let mut scene = Scene::new(Arena::KINDS);
        stage.host.state().show(&mut scene);
        let avatars = known["features"]["movement"]["avatar"].as_object().unwrap();
        for (id, avatar) in scene.iter::<Avatar>() {
            let [x, y] = [avatar.at[0] as f32 - eye[0], avatar.at[1] as f32 - eye[1]];
            let away = (x * x + y * y).sqrt();
            let is_known = avatars.contains_key(&id.to_string());
            assert!(!is_known || away <= limit, "avatar {id} is {away} away");
            (told, hidden) = (told + u32::from(is_known), hidden + u32::from(!is_known));
        }
    }
    assert!(told > 100 && hidden > 100, "{told} {hidden}");
    assert!(stage.host.state().at_seat(Seat(1)).is_some());
}

#[test]
fn game_events_are_sent_as_events() {
    let mut stage = Stage::new(QUIET);
    let ada = stage.enter("Ada");
    stage.run_millis(500);
    stage.say(ada, &command(1, "projectile", "fire", json!({"angle": 0.0})));
    stage.run_millis(600);
    let event = stage.actors[ada].next("event");
    assert_eq!(event["event"]["shot"]["by"], 1, "{event}");
    assert!(event["tick"].as_u64().unwrap() > 0);
}
