//! Tests that processes end without leaving anything behind.

use serde_json::json;

use super::table::{Place, Visitor, two_play, until};
use crate::everyone::block_on;
use crate::process::{command, run};

#[test]
fn a_server_ends_its_hosts_and_keeps_their_sessions() {
    let mut place = Place::start(21_100);
    let session = block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        let hosts = place.hosts();
        assert!(hosts.len() >= 2, "{hosts:?}");
        place.up.as_ref().unwrap().signal("-INT");
        for one in [&mut ada, &mut bob] {
            assert_eq!(one.socket.hear_kind("closing").await["closing"], "suspended");
        }
        let (is_clean, out) = place.up.take().unwrap().end();
        assert!(is_clean && out.ends_with("the logs are written\n"), "{out}");
        assert_eq!(place.hosts(), Vec::<u32>::new(), "all have ended before it");
        assert_eq!(place.stored().len(), 1);
        place.start_gateway(&[]);
        // The host is started again because it has a session, and waits for its players for a minute.
        let mut ada = ada.resume().await.unwrap();
        assert_eq!((ada.seat_of(&bob.you), &ada.view["phase"]), (Some(1), &"running".into()));
        let bob = bob.resume().await.unwrap();
        ada.does("kick", json!({"player": bob.you, "ban": true})).await;
        let banned = Visitor::come(&place).await;
        assert_ne!(banned.player, bob.you);
        ada.session
    });
    assert_eq!(session.len(), 32);
}

#[test]
fn processes_run_on_without_a_reader_of_their_output() {
    let mut place = Place::on("21340-21359");
    place.start_unread();
    block_on(async {
        let (mut ada, _bob) = two_play(&place).await;
        let hosts = place.hosts();
        place.kill_gateway();
        // The host logs that the gateway is gone, to a closed pipe.
        ada.does("chat", json!({"line": "still here"})).await;
        place.start_unread();
        let mut cyd = Visitor::come(&place).await;
        until("the gateway knows the session", || {
            place.up.as_ref().unwrap().api("/api/lobby")["sessions"] != json!([])
        });
        let answer = cyd.join(&ada.session, "Cyd", None).await;
        assert_eq!(answer, json!({"refused": "full"}), "its host has said so");
        assert!(hosts.iter().all(|pid| place.hosts().contains(pid)), "the same processes");
    });
    place.up.as_ref().unwrap().signal("-INT");
    assert!(place.up.take().unwrap().end().0);
    assert_eq!(place.hosts(), Vec::<u32>::new(), "all have ended before it");
}

#[test]
fn a_data_folder_has_one_gateway() {
    let place = Place::start_with(21_360, &["--spare-hosts", "0"]);
    let mut second = command(&["up", "--listen", "127.0.0.1:0", "--udp", "0", "--quic", "0"]);
    let output = run(second.args(place.place()).current_dir(place.folder.path()));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("is in use by `sametick up` (process "), "{said}");
}
