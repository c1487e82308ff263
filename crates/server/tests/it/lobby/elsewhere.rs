//! Test of a session that moves between two machines that share only a store.

use serde_json::{Value, json};

use super::table::{Place, Seated, two_play};
use crate::cloud::Cloud;
use crate::everyone::block_on;
use crate::process::{Server, command, run};
use crate::stand::{Stand, Wrongs};

/// The port on which the gateway listens for hosts; the hosts listen for players on the ports after it.
const PORT: u16 = 21_320;

/// The hosts by their ports, each with a data folder of its own.
struct Machines<'a> {
    place: &'a Place,
    store: String,
    hosts: Vec<(u16, Server)>,
}

impl Machines<'_> {
    fn start(&mut self, port: u16) {
        let mut host = command(&["host", "--data", &format!("machine-{port}"), "--store", &self.store]);
        host.envs(Stand::environment());
        self.hosts.push((port, self.place.start_host(host, port, PORT)));
    }

    /// Ends a host without waiting for its games.
    fn interrupt(&self, port: u16) {
        self.hosts.iter().find(|(other, _)| *other == port).unwrap().1.signal("-INT");
    }

    fn end(&mut self, port: u16) {
        let at = self.hosts.iter().position(|(other, _)| *other == port).unwrap();
        let (_, out, log) = self.hosts.remove(at).1.end();
        assert!(!log.contains("panicked"), "{out}{log}");
    }
}

/// Plays for a member with a pass, and returns the place and the last tick of the game.
async fn play(who: &mut Seated) -> (String, u64) {
    let told = who.event("play").await;
    let (place, pass) = (told["place"].as_str().unwrap(), told["pass"].as_str().unwrap());
    let at = format!("ws://127.0.0.1:{}", told["websocket"]);
    let args =
        ["bot", "pong", "--connect", &at, "--session", place, "--pass", pass, "--seconds", "2", "--json"];
    let output = run(&mut command(&args));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let bot = &report["bots"][0];
    assert_eq!((&bot["seat"], &bot["restarts"]), (&told["seat"], &json!(0)), "{report}");
    (place.to_owned(), bot["tick"].as_u64().unwrap())
}

#[test]
fn a_game_moves_to_another_machine_once_the_store_has_it() {
    let cloud = Cloud::start(1, Wrongs::default());
    let place = Place::start_with(21_300, &["--spare-hosts", "0", "--hosts", &format!("127.0.0.1:{PORT}")]);
    let mut machines = Machines { place: &place, store: cloud.stand.place(), hosts: Vec::new() };
    machines.start(PORT + 1);
    machines.start(PORT + 2);
    block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        let here = ada.port();
        assert!([PORT + 1, PORT + 2].contains(&here), "nobody has started others");
        let (game, first) = play(&mut ada).await;
        assert!(first > 60, "{first}");

        cloud.stand.set_wrongs(Wrongs { unavailable: 1_000, ..Wrongs::default() });
        machines.interrupt(here);
        for one in [&mut ada, &mut bob] {
            assert_eq!(one.socket.hear_kind("closing").await["closing"], "suspended");
        }
        machines.end(here);
        cloud.stand.set_wrongs(Wrongs::default());
        machines.start(here);
        let (mut ada, mut bob) = (ada.resume().await.unwrap(), bob.resume().await.unwrap());
        let (same, second) = play(&mut bob).await;
        assert!(same == game && second > first + 60, "{first} {second}");

        machines.interrupt(here);
        let (to, too) = (ada.event("moved").await, bob.event("moved").await);
        let (mut ada, _) = Seated::arrive(&json!({ "go": to })).await;
        let (bob, _) = Seated::arrive(&json!({ "go": too })).await;
        assert!(ada.port() != here && ada.port() == bob.port());
        let (same, third) = play(&mut ada).await;
        assert!(same == game && third > second + 60, "{second} {third}");
        assert_eq!(place.hosts(), Vec::<u32>::new(), "the gateway has started none of its own");
        machines.end(here);
    });
}
