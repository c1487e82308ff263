//! Test harness: a gateway with hosts, and clients that are driven by hand.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::everyone::Socket;
use crate::process::{Folder, Server};
use crate::web::Up;

/// Longer than any step takes on a busy machine.
pub const IN_VAIN: Duration = Duration::from_secs(60);

/// `sametick up`, and the hosts that it starts on ports of its own.
pub struct Place {
    pub folder: Folder,
    ports: String,
    pub up: Option<Up>,
}

impl Place {
    /// Each test has ports of its own.
    pub fn start(first_port: u16) -> Place {
        Place::start_with(first_port, &[])
    }

    pub fn start_with(first_port: u16, args: &[&str]) -> Place {
        Place::start_on(&format!("{first_port}-{}", first_port + 19), args)
    }

    pub fn start_on(ports: &str, args: &[&str]) -> Place {
        let mut place = Place::on(ports);
        place.start_gateway(args);
        place
    }

    /// A place on which no process runs yet.
    pub fn on(ports: &str) -> Place {
        Place { folder: Folder::new(), ports: ports.into(), up: None }
    }

    pub fn start_gateway(&mut self, args: &[&str]) {
        self.up = Some(Up::start(&self.folder, &[&self.place()[..], args].concat(), None));
    }

    /// Starts it; the output of the gateway and its hosts is not read.
    pub fn start_unread(&mut self) {
        self.up = Some(Up::start_unread(&self.folder, &self.place()));
    }

    /// The arguments that give a gateway its ports.
    pub fn place(&self) -> [&str; 4] {
        ["--host-ports", &self.ports, "--data", "data"]
    }

    /// Starts a host by hand at a port, for the gateway that listens for hosts at another.
    pub fn start_host(&self, mut host: Command, port: u16, gateway: u16) -> Server {
        host.args(["--listen", &format!("127.0.0.1:{port}"), "--gateway", &format!("127.0.0.1:{gateway}")]);
        host.arg("--gateway-key").arg(self.folder.path().join("data/hosts/key")).args(["--capacity", "4"]);
        let mut server = Server::spawn(host.current_dir(self.folder.path()));
        server.await_log("a gateway is there");
        server
    }

    pub fn gateway(&self) -> SocketAddr {
        self.up.as_ref().unwrap().addr
    }

    /// Kills the gateway; hosts go on.
    pub fn kill_gateway(&mut self) {
        drop(self.up.take());
    }

    pub fn home(&self, port: u16) -> PathBuf {
        self.folder.path().join("data/hosts").join(port.to_string())
    }

    /// The process of the host at a port.
    pub fn pid(&self, port: u16) -> String {
        let lock = std::fs::read_to_string(self.home(port).join("lock")).unwrap();
        pid_of(&lock).to_owned()
    }

    pub fn signal(&self, port: u16, name: &str) {
        assert!(Command::new("kill").args([name, &self.pid(port)]).status().unwrap().success());
    }

    /// Kills the host at a port, and waits until it runs again.
    pub fn kill_host(&self, port: u16) {
        let before = self.pid(port);
        self.signal(port, "-KILL");
        until("the host runs again", || {
            let now = std::fs::read_to_string(self.home(port).join("lock")).unwrap_or_default();
            !pid_of(&now).is_empty() && pid_of(&now) != before
        });
    }

    /// The processes of hosts that are alive.
    pub fn hosts(&self) -> Vec<u32> {
        let folder = std::fs::read_dir(self.folder.path().join("data/hosts")).unwrap();
        let pids = folder.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("lock")).ok());
        let pids = pids.filter_map(|text| pid_of(&text).parse().ok());
        pids.filter(|pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"host")
        })
        .collect()
    }

    /// The files of sessions that are stored.
    pub fn stored(&self) -> Vec<PathBuf> {
        let hosts = std::fs::read_dir(self.folder.path().join("data/hosts")).unwrap();
        let sessions = hosts.filter_map(|host| std::fs::read_dir(host.ok()?.path().join("sessions")).ok());
        sessions.flatten().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill_gateway();
        for pid in self.hosts() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
    }
}

/// Waits for a condition that no message reports.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < IN_VAIN, "in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

pub fn settings(name: &str) -> Value {
    json!({"name": name, "game": "pong", "mode": "lockstep", "scenario": null, "difficulty": 1, "groups": 1,
        "listed": true})
}

fn command(seq: u64, feature: &str, action: &str, payload: &Value) -> Value {
    json!({"v": 2, "kind": "command", "seq": seq, "feature": feature, "action": action, "payload": payload})
}

/// A client in the lobby.
pub struct Visitor {
    pub socket: Socket,
    seq: u64,
    pub player: String,
    pub token: String,
}

impl Visitor {
    pub async fn come(place: &Place) -> Visitor {
        Visitor::come_as(place, None).await
    }

    pub async fn come_as(place: &Place, token: Option<&str>) -> Visitor {
        let mut socket = Socket::at(place.gateway(), "/api/lobby/ws").await.unwrap();
        socket.say(&command(1, "lobby", "hello", &json!({ "token": token }))).await;
        let you = socket.hear_kind("answer").await["answer"]["you"].clone();
        let text = |name: &str| you[name].as_str().unwrap().to_owned();
        Visitor { seq: 1, player: text("player"), token: text("token"), socket }
    }

    /// The payload of the answer to a request.
    pub async fn ask(&mut self, action: &str, payload: &Value) -> Value {
        self.say(action, payload).await["answer"].clone()
    }

    /// The whole answer to a request.
    pub async fn say(&mut self, action: &str, payload: &Value) -> Value {
        self.seq += 1;
        let seq = self.seq;
        self.socket.say(&command(seq, "lobby", action, payload)).await;
        self.socket.hear_of(|message| message["seq"] == seq).await
    }

    pub async fn create(&mut self, name: &str, settings: &Value, password: Option<&str>) -> Value {
        let key = format!("{:032x}", rand());
        self.ask("create", &json!({"key": key, "name": name, "settings": settings, "password": password}))
            .await
    }

    pub async fn join(&mut self, session: &str, name: &str, password: Option<&str>) -> Value {
        let wish = json!({"session": session, "name": name, "password": password, "seat": null});
        self.ask("join", &wish).await
    }

    /// Founds a session and joins it.
    pub async fn found(&mut self, name: &str) -> Seated {
        let answer = self.create(name, &settings(name), None).await;
        Seated::arrive(&answer).await.0
    }

    pub async fn enter(&mut self, session: &str, name: &str) -> Seated {
        let answer = self.join(session, name, None).await;
        Seated::arrive(&answer).await.0
    }
}

fn rand() -> u128 {
    u128::from_le_bytes(sametick_transport::clock::random())
}

/// A client in a session.
pub struct Seated {
    pub socket: Socket,
    seq: u64,
    pub session: String,
    pub address: SocketAddr,
    pub you: String,
    pub token: String,
    pub view: Value,
    /// Messages received meanwhile.
    told: Vec<Value>,
}

impl Seated {
    /// Connects to the address in the gateway's answer.
    pub async fn arrive(answer: &Value) -> (Seated, String) {
        let go = &answer["go"];
        let text = |name: &str| go[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        let address = address_of(&text("address"));
        let entry = command(1, "session", "arrive", &json!({"ticket": text("ticket")}));
        let seated = Seated::come(address, &entry).await.unwrap_or_else(|closing| panic!("{closing}"));
        (seated, text("ticket"))
    }

    /// Resumes with the token.
    pub async fn resume(&self) -> Result<Seated, Value> {
        Seated::resume_as(self.address, &self.session, &self.you, &self.token).await
    }

    pub async fn resume_as(
        address: SocketAddr,
        session: &str,
        player: &str,
        token: &str,
    ) -> Result<Seated, Value> {
        let payload = json!({"session": session, "player": player, "token": token});
        Seated::come(address, &command(1, "session", "resume", &payload)).await
    }

    /// Joins, or returns the refusal.
    pub async fn come(address: SocketAddr, entry: &Value) -> Result<Seated, Value> {
        let began = Instant::now();
        // A host that is being restarted may not listen yet.
        let mut socket = loop {
            match Socket::at(address, "/api/session/ws").await {
                Ok(socket) => break socket,
                Err(error) => assert!(began.elapsed() < IN_VAIN, "{error}"),
            }
            tokio::task::yield_now().await;
        };
        socket.say(entry).await;
        let said = socket.hear_of(|message| message["kind"] != "pong").await;
        let welcome = &said["event"]["welcome"];
        if welcome.is_null() {
            return Err(said);
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Ok(Seated {
            seq: 1,
            session: text(&welcome["view"]["session"]),
            address,
            you: text(&welcome["you"]),
            token: text(&welcome["resumeToken"]),
            view: welcome["view"].clone(),
            told: Vec::new(),
            socket,
        })
    }

    /// Sends a request; the answer is `ack`, or the code of the error.
    pub async fn wish(&mut self, action: &str, payload: &Value) -> String {
        self.seq += 1;
        let seq = self.seq;
        self.socket.say(&command(seq, "session", action, payload)).await;
        let answer = loop {
            let message = self.socket.hear_of(|_| true).await;
            if message["seq"] == seq {
                break message;
            }
            self.told.push(message);
        };
        let word = if answer["kind"] == "error" { &answer["code"] } else { &answer["kind"] };
        word.as_str().unwrap().to_owned()
    }

    pub async fn does(&mut self, action: &str, payload: Value) {
        assert_eq!(self.wish(action, &payload).await, "ack", "{action} {payload}");
    }

    /// The next event of this kind.
    pub async fn event(&mut self, name: &str) -> Value {
        let is_it = |message: &Value| !message["event"][name].is_null();
        let message = match self.told.iter().position(is_it) {
            Some(at) => self.told.remove(at),
            None => self.socket.hear_of(is_it).await,
        };
        message["event"][name].clone()
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The seat of a player, as of the welcome.
    pub fn seat_of(&self, player: &str) -> Option<u64> {
        let people = self.view["people"].as_array().unwrap();
        people.iter().find(|person| person["player"] == player).and_then(|person| person["seat"].as_u64())
    }
}

/// An address as the gateway sends it: here all have the same host name.
pub fn address_of(text: &str) -> SocketAddr {
    format!("127.0.0.1{text}").parse().unwrap()
}

/// Two seated players whose game has begun.
pub async fn two_play(place: &Place) -> (Seated, Seated) {
    let (mut ada, mut bob) = (Visitor::come(place).await, Visitor::come(place).await);
    let mut first = ada.found("Ada").await;
    let mut second = bob.enter(&first.session, "Bob").await;
    first.does("take", json!({"seat": 0})).await;
    second.does("take", json!({"seat": 1})).await;
    second.does("ready", json!({"ready": true})).await;
    first.does("start", json!({})).await;
    second.event("phase").await;
    (first, second)
}

/// The process number in the text of a lock.
fn pid_of(lock: &str) -> &str {
    lock.split_whitespace().next().unwrap_or_default()
}
