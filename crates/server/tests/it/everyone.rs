//! Tests of rooms with scripts over real WebSockets to `sametick up`.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use futures_util::{SinkExt, StreamExt};
use sametick_transport::clock::unix_seconds;
use sametick_wire::access::AccessKey;
use sametick_wire::hex::to_hex;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::process::{Folder, command, run};
use crate::web::{IN_VAIN, Up};

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A script's WebSocket, driven by hand.
pub struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub async fn open(up: &Up, path: &str) -> Result<Socket, Error> {
        Socket::at(up.addr, &format!("/api/rooms/{path}")).await
    }

    /// Connects to any address.
    pub async fn at(addr: SocketAddr, path: &str) -> Result<Socket, Error> {
        let stream = TcpStream::connect(addr).await?;
        Ok(Socket(tokio_tungstenite::client_async(format!("ws://{addr}{path}"), stream).await?.0))
    }

    pub async fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn say_packed(&mut self, message: &Value) {
        self.0.send(Message::binary(rmp_serde::to_vec_named(message).unwrap())).await.unwrap();
    }

    /// The next message, and whether it was MessagePack; `None` at the end.
    pub async fn hear(&mut self) -> Option<(Value, bool)> {
        loop {
            match tokio::time::timeout(IN_VAIN, self.0.next()).await.expect("something is said")? {
                Ok(Message::Text(text)) => return Some((serde_json::from_str(&text).unwrap(), false)),
                Ok(Message::Binary(bytes)) => return Some((rmp_serde::from_slice(&bytes).unwrap(), true)),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next message for which `is_it` holds.
    pub async fn hear_of(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (message, _) = self.hear().await.expect("the connection is open");
            if is_it(&message) {
                return message;
            }
        }
    }

    pub async fn hear_kind(&mut self, kind: &str) -> Value {
        self.hear_of(|message| message["kind"] == kind).await
    }
}

fn walk(seq: u64) -> Value {
    json!({"v": 2, "kind": "command", "seq": seq, "feature": "movement", "action": "input_batch",
        "payload": {"inputs": [{"right": true}, {"down": true}]}})
}

#[test]
fn scripts_of_both_encodings_meet_in_a_room_and_come_back() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    assert_eq!(up.get("/api/rooms/den").status, 404);
    block_on(async {
        let mut ada = Socket::open(&up, "den/ws?name=Ada&setup=%7B%22bots%22:0%7D").await.unwrap();
        let welcome = ada.hear_kind("welcome").await;
        assert_eq!((&welcome["room"], &welcome["seat"]), (&"den".into(), &0.into()), "{welcome}");
        assert_eq!(ada.hear_kind("snapshot").await["mode"], "full");
        let mut bob = Socket::open(&up, "den/ws?name=Bob&game=arena").await.unwrap();
        bob.say_packed(&json!({"v": 2, "kind": "ping", "seq": 1})).await;
        let pong = bob.hear_kind("pong").await;
        assert_eq!(pong["seq"], 1);
        assert_eq!(bob.hear().await.map(|(_, packed)| packed), Some(true));
        let both = |message: &Value| message["players"].as_array().is_some_and(|players| players.len() == 2);
        let seen = ada.hear_of(both).await;
        assert_eq!(seen["players"][1]["name"], "Bob", "{seen}");
        ada.say(&walk(5)).await;
        assert_eq!(ada.hear_kind("ack").await["seq"], 5);
        ada.hear_of(|message| message["ackSeq"] == 5).await;
        bob.hear_of(|message| message["features"]["movement"]["avatar"]["0"].is_object()).await;

        let room = loop {
            let answer = up.get("/api/rooms/den?game=arena");
            if answer.status == 200 && answer.json()["players"].as_array().unwrap().len() == 2 {
                break answer.json();
            }
        };
        assert_eq!(
            (&room["game"], &room["mode"], &room["name"]),
            (&"arena".into(), &"room".into(), &"den".into())
        );
        assert!(room["tick"].as_u64().unwrap() > 0);

        let token = welcome["resumeToken"].as_str().unwrap();
        drop(ada);
        let mut ada = Socket::open(&up, &format!("den/ws?name=Ada&resumeToken={token}")).await.unwrap();
        assert_eq!(ada.hear_kind("welcome").await["seat"], 0);
        up.signal("-TERM");
        let told = ada.hear_kind("error").await;
        assert_eq!((&told["code"], &told["message"]), (&"closed".into(), &"the server stops".into()));
        assert!(ada.hear().await.is_none());
    });
    let (clean, out) = up.end();
    assert!(clean && out.ends_with("the logs are written\n"), "{out}");
}

#[test]
fn a_script_that_breaks_the_rules_is_told_and_alone_affected() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let url = up.native("quic");
    let bots = std::thread::spawn(move || {
        run(&mut command(&["bot", "arena", "--room", "den", "--connect", &url, "--seconds", "6"]))
    });
    block_on(async {
        let open = async || {
            let mut socket = Socket::open(&up, "den/ws").await.unwrap();
            socket.hear_kind("welcome").await;
            socket
        };
        let mut flood = open().await;
        for _ in 0..500 {
            if flood.0.send(Message::text("{}")).await.is_err() {
                break;
            }
        }
        flood.hear_of(|message| message["code"] == "too_many_messages").await;
        while flood.hear().await.is_some() {}

        for large in [Message::text("x".repeat(20_000)), Message::binary(vec![0x91; 20_000])] {
            let mut socket = open().await;
            let _ = socket.0.send(large).await;
            socket.hear_of(|message| message["code"] == "too_large").await;
        }

        let mut wrong = open().await;
        let cases = [
            (json!({"v": 7, "kind": "ping"}), "bad_version"),
            (json!({"v": 2, "kind": "command", "seq": 1, "feature": "x", "action": "y"}), "unknown_feature"),
            (
                json!({"v": 2, "kind": "command", "seq": 1, "feature": "build", "action": "y"}),
                "unknown_action",
            ),
            (
                json!({"v": 2, "kind": "command", "seq": 1, "feature": "build", "action": "place"}),
                "bad_payload",
            ),
        ];
        for (said, code) in cases {
            wrong.say(&said).await;
            assert_eq!(wrong.hear_kind("error").await["code"], code);
            wrong.say_packed(&said).await;
            assert_eq!(wrong.hear_kind("error").await["code"], code);
        }
        wrong.say(&walk(9)).await;
        assert_eq!(wrong.hear_kind("ack").await["seq"], 9, "it goes on");
    });
    let bots = bots.join().unwrap();
    assert!(bots.status.success(), "{}", String::from_utf8_lossy(&bots.stderr));
}

#[test]
fn connections_that_are_not_allowed_are_refused() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], Some("sesame"));
    let status = |path: String| {
        block_on(async {
            match Socket::open(&up, &path).await {
                Ok(_) => 101,
                Err(Error::Http(response)) => response.status().as_u16(),
                Err(error) => panic!("{error}"),
            }
        })
    };
    let proof = |passphrase| to_hex(&AccessKey::from_passphrase(passphrase).page_proof(unix_seconds() / 60));
    assert_eq!(status("den/ws".into()), 401);
    assert_eq!(status(format!("den/ws?proof={}", proof("sesam"))), 401);
    assert_eq!(status(format!("den/ws?name=Ada&proof={}", proof("sesame"))), 101);
    assert_eq!(up.get("/api/rooms/den").status, 401);
    block_on(async {
        let mut socket =
            Socket::open(&up, &format!("den/ws?game=chess&proof={}", proof("sesame"))).await.unwrap();
        let told = socket.hear_kind("error").await;
        assert_eq!(told["code"], "not_allowed");
        assert_eq!(told["message"], "no game \"chess\" is played in rooms here; there are: arena");
        assert!(socket.hear().await.is_none());
    });
}

#[test]
fn malformed_addresses_and_queries_are_refused_in_words() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    block_on(async {
        for (path, words) in [
            ("/api/rooms//ws", "a script comes in at /api/rooms/CODE/ws"),
            ("/api/rooms/a/b/ws", "a script comes in at /api/rooms/CODE/ws"),
            ("/api/rooms/den", "a script comes in at /api/rooms/CODE/ws"),
            ("/api/rooms/den/ws/", "a script comes in at /api/rooms/CODE/ws"),
            ("/api/rooms/d%E2%80%AEen/ws", "printable text"),
            ("/api/rooms/den/ws?name=%0a", "a name has no control or direction characters"),
            ("/api/rooms/den/ws?watch=maybe", "`watch` is 0 or 1"),
            ("/api/rooms/den/ws?seats=0", "a room of this game has 1 to 1000 seats, not 0"),
            ("/api/rooms/den/ws?seats=99999", "a room of this game has 1 to 1000 seats, not 99999"),
            ("/api/rooms/den/ws?setup=%7B", "`setup`: this is no JSON: it ends too early"),
            (
                "/api/rooms/den/ws?setup=%7B%22bots%22:99999%7D",
                "a whole number from 0 to 255 is expected, not 99999",
            ),
        ] {
            let mut socket = Socket::at(up.addr, path).await.unwrap();
            let told = socket.hear_kind("error").await;
            assert!(told["message"].as_str().unwrap().contains(words), "{path}: {told}");
            assert!(socket.hear().await.is_none(), "{path}");
        }
        for path in ["/api/room/den/ws", "/api/nothing"] {
            let Err(Error::Http(answer)) = Socket::at(up.addr, path).await else { panic!("{path} is taken") };
            assert_eq!(answer.status(), 404, "{path}");
        }
    });
    assert_eq!(up.api("/api/sessions")["sessions"], json!([]), "none of them began a room");
}

/// A Python with the library that the example needs, if there is one.
fn python() -> Option<&'static str> {
    let has = |python: &&str| {
        let mut import = Command::new(python);
        import.args(["-c", "import websockets"]).stdout(Stdio::null()).stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has)
}

#[test]
fn the_python_example_walks_and_sees_the_players() {
    let Some(python) = python() else {
        println!("skipped: there is no python3 with the package websockets; `cargo xtask setup` brings both");
        return;
    };
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let join = |name: &str, seconds: &str| {
        let mut join = Command::new(python);
        join.args([
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/join.py"),
            &format!("ws://{}", up.addr),
        ]);
        join.args(["den", "--name", name, "--seconds", seconds]).stdin(Stdio::null());
        join.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (ada, bob) = (join("Ada", "8"), join("Bob", "8"));
    for (script, me, other) in [(ada, "Ada", "Bob"), (bob, "Bob", "Ada")] {
        let output = script.wait_with_output().unwrap();
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && wrong.is_empty(), "{said}\n{wrong}");
        assert!(said.contains(&format!("in room den of arena as {me}, seat ")), "{said}");
        assert!(said.contains("round trip: "), "{said}");
        // Whether they see each other depends on chance; that both are there does not.
        assert!(said.lines().any(|line| line.starts_with("I am at ")), "{said}");
        assert!(said.lines().any(|line| line.starts_with("in the room: ") && line.contains(other)), "{said}");
    }
}
