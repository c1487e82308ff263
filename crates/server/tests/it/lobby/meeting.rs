//! Tests that players find each other's sessions, and resume them after a host or a gateway is killed.

use serde_json::{Value, json};

use super::table::{Place, Seated, Visitor, address_of, settings, two_play, until};
use crate::everyone::block_on;

#[test]
fn strangers_meet_behind_a_password_and_begin_a_game() {
    let place = Place::start(21_000);
    block_on(async {
        let (mut ada, mut bob) = (Visitor::come(&place).await, Visitor::come(&place).await);
        let none = bob.ask("list", &json!({"filter": {}, "follow": true})).await;
        assert_eq!(none["sessions"]["sessions"], json!([]));
        let answer = ada.create("Ada", &settings("Tuesday"), Some("open sesame")).await;
        let (mut first, _) = Seated::arrive(&answer).await;
        // A client that follows the list sees the session, and the URL of its page.
        let is_there = |message: &Value| message["answer"]["sessions"]["sessions"][0]["players"] == 1;
        let told = bob.socket.hear_of(is_there).await["answer"]["sessions"]["sessions"][0].clone();
        assert_eq!((&told["locked"], &told["settings"]["name"]), (&true.into(), &"Tuesday".into()));
        until("it is listed", || {
            place.up.as_ref().unwrap().api("/api/lobby?game=pong&locked")["sessions"][0] == told
        });
        let other = place.up.as_ref().unwrap().api("/api/lobby?game=arena");
        assert_eq!(other["sessions"], json!([]));

        let session = first.session.clone();
        let wrong = bob.join(&session, "Bob", Some("open barley")).await;
        let nothing = bob.join(&session, "Bob", None).await;
        let unknown = bob.join(&format!("{}{:016x}", &session[..16], 7), "Bob", Some("open sesame")).await;
        for answer in [&wrong, &nothing, &unknown] {
            assert_eq!(*answer, json!({"refused": "not_found"}));
        }
        let answer = bob.join(&session, "Ada", Some("open sesame")).await;
        let (mut second, _) = Seated::arrive(&answer).await;
        assert_eq!(second.you, bob.player);
        let names: Vec<&Value> =
            second.view["people"].as_array().unwrap().iter().map(|person| &person["name"]).collect();
        assert!(names.contains(&&"Ada 2".into()), "{names:?}");

        first.does("take", json!({"seat": 0})).await;
        assert_eq!(second.wish("take", &json!({"seat": 0})).await, "seat_taken");
        second.does("take", json!({"seat": 1})).await;
        assert_eq!(second.wish("start", &json!({})).await, "not_creator");
        assert_eq!(first.wish("start", &json!({})).await, "not_ready");
        second.does("ready", json!({"ready": true})).await;
        second.does("chat", json!({"line": "  go \u{202e}on "})).await;
        assert_eq!(first.event("chat").await["line"], "go on");
        first.does("start", json!({})).await;
        let (here, there) = (first.event("play").await, second.event("play").await);
        assert_eq!((&here["seat"], &there["seat"]), (&0.into(), &1.into()));
        assert_eq!((&here["place"], &here["mode"]), (&there["place"], &"lockstep".into()));
        assert_eq!((&here["websocket"], here["pass"] == there["pass"]), (&first.port().into(), false));
    });
}

#[test]
fn a_killed_host_recovers_its_members_twice_but_not_thrice() {
    let place = Place::start(21_020);
    block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        for _ in 0..2 {
            place.kill_host(ada.port());
            (ada, bob) = (ada.resume().await.unwrap(), bob.resume().await.unwrap());
            assert_eq!((ada.seat_of(&ada.you), ada.seat_of(&bob.you)), (Some(0), Some(1)));
            assert_eq!((&bob.view["phase"], &bob.view["round"]), (&"running".into(), &1.into()));
            assert_eq!(bob.event("play").await["seat"], 1);
        }
        place.kill_host(ada.port());
        let told = ada.resume().await.err().unwrap();
        assert_eq!(told["closing"], json!({"over": "quarantined"}), "{told}");
        let again = Visitor::come(&place).await.join(&ada.session, "Eve", None).await;
        assert_eq!(again, json!({"refused": "quarantined"}));
    });
}

#[test]
fn games_go_on_without_a_gateway_and_it_recovers_all_sessions() {
    let mut place = Place::start(21_040);
    block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        let hosts = place.hosts();
        place.kill_gateway();
        ada.does("chat", json!({"line": "still here"})).await;
        assert_eq!(bob.event("chat").await["line"], "still here");
        place.start_gateway(&[]);
        let listed = place.up.as_ref().unwrap().api("/api/lobby");
        assert_eq!(listed["sessions"][0]["session"], *ada.session, "at once, from its file");
        let mut eve = Visitor::come(&place).await;
        assert_eq!(
            eve.join(&ada.session, "Eve", None).await,
            json!({"refused": "full"}),
            "the host has said so"
        );
        bob.does("leave", json!({})).await;
        let mut third = eve.enter(&ada.session, "Eve").await;
        assert_eq!(third.event("play").await["seat"], Value::Null, "one watches, and chooses a seat");
        third.does("take", json!({"seat": 1})).await;
        assert_eq!(third.event("play").await["seat"], 1);
        assert!(hosts.iter().all(|pid| place.hosts().contains(pid)), "the same processes");
    });
}

#[test]
fn a_token_resumes_its_own_player_only() {
    let place = Place::start_with(21_060, &["--spare-hosts", "1"]);
    block_on(async {
        let ada = Visitor::come(&place).await;
        let again = Visitor::come_as(&place, Some(&ada.token)).await;
        assert_eq!((&again.player, &again.token), (&ada.player, &ada.token));
        let other = Visitor::come(&place).await;
        assert_ne!(other.player, ada.player);
        assert_ne!(other.player, ada.token, "the id tells nothing of the token");
    });
}

#[test]
fn a_host_that_stops_hands_its_sessions_to_another() {
    let place = Place::start(21_080);
    block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        place.signal(ada.port(), "-INT");
        let (here, there) = (ada.event("moved").await, bob.event("moved").await);
        assert_eq!(here["session"], there["session"]);
        assert_ne!(here["address"], format!(":{}", ada.port()));
        let closing = ada.socket.hear_kind("closing").await;
        assert_eq!(closing["closing"], json!({"over": "moved"}));
        let (first, _) = Seated::arrive(&json!({ "go": here })).await;
        let (mut second, _) = Seated::arrive(&json!({ "go": there })).await;
        assert_eq!((first.seat_of(&ada.you), second.seat_of(&bob.you)), (Some(0), Some(1)));
        assert_eq!(second.view["phase"], "running");
        assert_eq!(second.event("play").await["seat"], 1);
        // For a while a client with the old link is told the new address, by the old host if it is back.
        assert_eq!(first.address, address_of(here["address"].as_str().unwrap()));
    });
}
