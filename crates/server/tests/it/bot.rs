//! `sametick bot pong` through `sametick relay`: real processes, sockets and players.

use crate::process::{Folder, Server, command, run};

fn play(url: &str, session: &str, args: &[&str]) -> (bool, serde_json::Value) {
    let mut bots = command(&["bot", "pong", "--connect", url, "--session", session, "--json"]);
    let output = run(bots.args(args));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), serde_json::from_str(&out).unwrap_or_else(|_| err.into()))
}

#[test]
fn players_agree_over_every_transport() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &[], None);
    for (number, url) in relay.urls.iter().enumerate() {
        let (ok, report) = play(url, &number.to_string(), &["--count", "2", "--seconds", "2"]);
        assert!(ok && report["agree"] == true, "{url}: {report}");
        assert!(report["compared"].as_u64().unwrap() > 20, "{url}: {report}");
        for bot in report["bots"].as_array().unwrap() {
            // Two seconds at 60 Hz; a busy machine may have stood still for some of it.
            assert!((30..=125).contains(&bot["tick"].as_u64().unwrap()), "{url}: {report}");
        }
    }
    relay.signal("-INT");
    assert!(relay.end().0);
}

#[test]
fn players_agree_on_a_bad_network() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &["--ticks-per-packet", "3"], Some("sesame"));
    let bad = ["--netem", "rtt=100ms,jitter=20ms,loss=5%", "--seed", "4", "--count", "4", "--seconds", "4"];
    let (ok, report) = play(relay.url("udp"), "bad", &bad);
    assert!(!ok && report.as_str().unwrap().contains("no answer"), "{report}");
    std::fs::write(folder.path().join("secret"), "sesame").unwrap();
    let secret = folder.path().join("secret");
    let (ok, report) =
        play(relay.url("udp"), "bad", &[&bad[..], &["--secret-file", secret.to_str().unwrap()]].concat());
    assert!(ok && report["agree"] == true, "{report}");
    assert_eq!(report["bots"].as_array().unwrap().len(), 4);
}

#[test]
fn a_full_session_and_a_ping_are_refused_with_a_reason() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &[], None);
    let output = run(&mut command(&["ping", relay.url("udp")]));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && err.contains("this is a relay: join a session"), "{err}");
    let url = relay.url("udp").to_owned();
    let first = std::thread::spawn(move || play(&url, "den", &["--count", "2", "--seconds", "3"]));
    // The second pair joins while the first is there, or finds the session free: the test repeats until one is refused.
    let refused = (0..20).any(|_| {
        let (ok, report) = play(relay.url("udp"), "den", &["--count", "2", "--seconds", "1"]);
        !ok && report.as_str().is_some_and(|text| text.contains("the session is full"))
    });
    assert!(refused || !first.join().unwrap().0);
}
