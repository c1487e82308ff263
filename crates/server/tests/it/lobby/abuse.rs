//! Tests that clients that break the rules are refused and do not disturb others.

use std::net::{SocketAddr, TcpStream};

use futures_util::{SinkExt, StreamExt};
use sametick_pong::Pong;
use sametick_sim::{BuildId, Game, schema_hash_of};
use sametick_transport::clock::{random, unix_seconds};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Answer, Hello, Identity, Intent, MAX_PASS, Refusal, Stamp};
use sametick_wire::hex::read_hex;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::table::{Place, Seated, Visitor, settings, two_play};
use crate::everyone::{Socket, block_on};

/// Silent connections: more than one address may have.
const HALF_OPEN: usize = 700;

#[test]
fn tickets_and_tokens_are_valid_for_their_player_only() {
    let place = Place::start(21_140);
    block_on(async {
        let mut ada = Visitor::come(&place).await;
        let answer = ada.create("Ada", &settings("Ada"), None).await;
        let (seated, ticket) = Seated::arrive(&answer).await;
        let arrive = |ticket: &str| json!({"v": 2, "kind": "command", "seq": 1, "feature": "session", "action": "arrive", "payload": {"ticket": ticket}});
        let forged = format!("{}0", &ticket[..ticket.len() - 1]);
        for bad in [ticket.as_str(), &forged, "", "zz", &"0".repeat(600)] {
            let told = Seated::come(seated.address, &arrive(bad)).await.err().unwrap();
            assert_eq!(told["closing"], "bad_ticket", "{bad}");
        }
        let mut bob = Visitor::come(&place).await;
        let other = bob.enter(&seated.session, "Bob").await;
        for (player, token) in [(&other.you, &seated.token), (&seated.you, &other.token)] {
            let told = Seated::resume_as(seated.address, &seated.session, player, token).await.err().unwrap();
            assert_eq!(told["closing"], "bad_token");
        }
        assert!(seated.resume().await.is_ok(), "one's own is good");
    });
}

/// Sends the hello of this build to a game, with a pass.
async fn hello(told: &Value, build: BuildId) -> Answer {
    let text = |name: &str| told[name].as_str().unwrap().to_owned();
    let to = SocketAddr::from(([127, 0, 0, 1], u16::try_from(told["websocket"].as_u64().unwrap()).unwrap()));
    let hello = Hello {
        identity: Identity { build, schema: schema_hash_of::<Pong>() },
        intent: Intent::Join { session: text("place") },
        name: String::new(),
        pass: read_hex(&text("pass"), MAX_PASS),
    };
    let stamp = Stamp { unix_s: unix_seconds(), nonce: random() };
    let hello = hello.to_bytes(&AccessKey::open(), stamp).unwrap();
    let stream = tokio::net::TcpStream::connect(to).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(format!("ws://{to}/ws"), stream).await.unwrap();
    socket.send(Message::binary(hello)).await.unwrap();
    Answer::from_bytes(&socket.next().await.unwrap().unwrap().into_data()).unwrap()
}

#[test]
fn a_pass_is_valid_for_one_game_while_its_holder_is_a_member() {
    let place = Place::start(21_380);
    block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        let told = bob.event("play").await;
        assert_eq!(hello(&told, Pong::BUILD).await, Answer::Welcome);
        let other = BuildId::from_bytes([7; BuildId::LEN]);
        let refusal = Refusal::Build { server: Pong::BUILD, client: other };
        assert_eq!(hello(&told, other).await, Answer::Refused(refusal), "it would be another game");
        ada.does("kick", json!({"player": bob.you, "ban": false})).await;
        assert!(matches!(hello(&told, Pong::BUILD).await, Answer::Refused(Refusal::Other(_))));
    });
}

#[test]
fn guesses_and_floods_are_refused_and_names_are_cleaned() {
    let place = Place::start(21_160);
    block_on(async {
        let (mut ada, mut bob) = (Visitor::come(&place).await, Visitor::come(&place).await);
        let answer = ada.create("Ada", &settings("Locked"), Some("a long one")).await;
        let (mut seated, _) = Seated::arrive(&answer).await;
        let mut answers = Vec::new();
        for guess in 0..14 {
            let word = format!("guess {guess}");
            answers.push(bob.join(&seated.session, "Bob", Some(&word)).await["refused"].clone());
        }
        assert_eq!(answers[0], "not_found");
        assert_eq!(answers[13], "too_many_guesses", "{answers:?}");
        // The member in the session is not disturbed.
        let mut floods = Vec::new();
        for line in 0..20 {
            floods.push(seated.wish("chat", &json!({"line": format!("line {line}")})).await);
        }
        assert_eq!((floods[0].as_str(), floods[19].as_str()), ("ack", "too_fast"), "{floods:?}");
        seated.does("take", json!({"seat": 0})).await;
        for (name, code) in [
            ("x".repeat(25), "bad_payload"),
            ("\u{200b}\u{202e}".into(), "bad_payload"),
            (String::new(), "bad_payload"),
        ] {
            assert_eq!(seated.wish("rename", &json!({ "name": name })).await, code, "{name:?}");
        }
        seated.does("rename", json!({"name": "\u{202e}<b>Ar\u{0}te\u{301}\u{301}\u{301}mis</b>"})).await;
        assert_eq!(seated.event("group").await["name"], "Sides", "a captain has come");
        let group = seated.event("group").await;
        assert_eq!(
            group["name"], "<b>Art\u{e9}\u{301}\u{301}mis</b>",
            "tidy, and escaped by the page that shows it"
        );
    });
}

#[test]
fn garbage_and_silent_connections_disturb_no_player() {
    let place = Place::start(21_180);
    block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        let crowd: Vec<TcpStream> = (0..HALF_OPEN)
            .flat_map(|at| {
                let addr = if at % 2 == 0 { place.gateway() } else { ada.address };
                TcpStream::connect(addr).ok()
            })
            .collect();
        assert!(crowd.len() > HALF_OPEN / 2);
        let mut stranger = Socket::at(ada.address, "/api/session/ws").await.unwrap();
        stranger.say(&json!("nonsense")).await;
        assert_eq!(stranger.hear_kind("error").await["code"], "bad_message");
        let command = |action: &str, payload: Value| json!({"v": 2, "kind": "command", "seq": 1, "feature": "session", "action": action, "payload": payload});
        stranger.say(&command("take", json!({"seat": 0}))).await;
        assert_eq!(stranger.hear_kind("error").await["code"], "unknown_action", "a ticket comes first");
        ada.does("chat", json!({"line": "undisturbed"})).await;
        assert_eq!(bob.event("chat").await["line"], "undisturbed");
        assert_eq!(ada.wish("dance", &json!({})).await, "unknown_action");
        assert_eq!(ada.wish("take", &json!({"seat": "here"})).await, "bad_payload");
        for at in 0..60 {
            let code = bob.wish("stand", &json!({})).await;
            if code == "too_fast" {
                assert!(at > 20, "after {at}");
                return;
            }
        }
        panic!("nobody is too fast");
    });
}
