//! `sametick ping` against `sametick ping serve`.

use std::process::Output;

use crate::process::{Folder, Server, command, run};

fn text(output: &Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn ping(url: &str, args: &[&str], secret: Option<&str>) -> (bool, String, String) {
    let mut ping = command(&["ping", url, "--rate", "200"]);
    ping.args(args);
    if !args.contains(&"--count") {
        ping.args(["--count", "10"]);
    }
    secret.map(|secret| ping.env("SAMETICK_SECRET", secret));
    text(&run(&mut ping))
}

#[test]
fn every_transport_is_measured() {
    let folder = Folder::new();
    let mut server = Server::start(&folder, &[], None);
    assert_eq!(server.urls.len(), 4);
    for url in &server.urls.clone() {
        let (ok, out, err) = ping(url, &["--json"], None);
        assert!(ok, "{url}: {err}");
        server.await_log("a client has come");
        server.await_log("closed from the other side: done");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["url"], **url);
        assert_eq!((&report["sent"], &report["received"]), (&10.into(), &10.into()), "{out}");
        assert!(
            report["handshake_us"].as_u64().unwrap() > 0 && report["rtt"]["p50_us"].as_u64().unwrap() > 0
        );
        assert!(report["bytes_sent"].as_u64().unwrap() > 250, "{out}");
        let (ok, out, _) = ping(url, &[], None);
        assert!(ok && out.contains("handshake") && out.contains("0 of 10 pings (0.0 %)"), "{out}");
        server.await_log("a client has come");
        server.await_log("closed from the other side: done");
    }
    server.signal("-INT");
    let (clean, out, log) = server.end();
    assert!(clean && out.contains("stopping"), "{out}");
    assert!(!log.contains("a client"), "all have gone before: {log}");
}

#[test]
fn a_bad_network_shows_in_the_figures() {
    let folder = Folder::new();
    let server = Server::start(&folder, &[], None);
    for url in &server.urls {
        let bad = ["--json", "--netem", "rtt=60ms,loss=20%", "--seed", "5", "--count", "100"];
        let (ok, out, err) = ping(url, &bad, None);
        assert!(ok, "{url}: {err}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert!(report["rtt"]["min_us"].as_u64().unwrap() >= 60_000, "{out}");
        let received = report["received"].as_u64().unwrap();
        // 20 % each way. On a WebSocket's extra sockets nothing is lost, but late messages have been overtaken.
        let expected = if url.starts_with("ws") { 10..=100 } else { 40..=90 };
        assert!(expected.contains(&received), "{url}: {received}");
        assert_eq!(report["netem"], "latency=30ms,loss=20%");
    }
}

#[test]
fn the_passphrase_is_asked_for_and_can_be_changed_while_running() {
    let folder = Folder::new();
    let secret = folder.path().join("secret.txt");
    std::fs::write(&secret, "first\n").unwrap();
    let mut server = Server::start(&folder, &["--secret-file", "secret.txt"], None);
    let url = server.url("udp").to_owned();
    assert!(ping(&url, &[], Some("first")).0);
    std::fs::write(&secret, "second\n").unwrap();
    server.signal("-HUP");
    server.await_log("the passphrase has been read again");
    assert!(ping(&url, &["--secret-file", secret.to_str().unwrap()], Some("not this one")).0);
    let (ok, _, err) = ping(&url, &[], Some("first"));
    assert!(!ok && err.contains("no answer") && err.contains("--secret-file"), "{err}");
    std::fs::write(&secret, "\n").unwrap();
    server.signal("-HUP");
    server.await_log("the old passphrase stays");
    assert!(ping(&url, &[], Some("second")).0);
    assert!(ping(server.url("quic"), &[], Some("second")).0);
}

#[test]
fn a_passphrase_from_the_environment_is_asked_for() {
    let folder = Folder::new();
    let server = Server::start(&folder, &[], Some("sesame"));
    let (ok, _, err) = ping(server.url("ws"), &[], None);
    assert!(!ok && err.contains("no answer"), "{err}");
    assert!(ping(server.url("ws"), &[], Some("sesame")).0);
}

#[test]
fn the_certificate_stays_the_same_over_a_restart() {
    let folder = Folder::new();
    let certs = |server: &Server| -> Vec<String> {
        server.urls.iter().filter_map(|url| Some(url.split_once("cert=")?.1.to_owned())).collect()
    };
    let first = Server::start(&folder, &[], None);
    let before = certs(&first);
    first.signal("-TERM");
    assert!(first.end().0);
    let second = Server::start(&folder, &[], None);
    assert_eq!(certs(&second), before);
    assert_eq!(before.len(), 2);
    assert!(ping(second.url("quic"), &[], None).0);
}

#[test]
fn a_configured_certificate_is_used() {
    let folder = Folder::new();
    // The kept certificate of another server stands for one from an authority.
    let other = Server::start(&folder, &[], None);
    let cert = other.url("quic").split_once('?').unwrap().1.to_owned();
    drop(other);
    let pem = |name: &str| folder.path().join("sametick-data").join(name).to_str().unwrap().to_owned();
    let args =
        ["--tls-cert", &pem("native.cert.pem"), "--tls-key", &pem("native.key.pem"), "--data", "other"];
    let server = Server::start(&folder, &args, None);
    for scheme in ["quic", "wss", "wt"] {
        let url = server.url(scheme);
        assert!(!url.contains("cert="), "an authority vouches for it: {url}");
        assert!(ping(&format!("{url}?{cert}"), &[], None).0, "{url}");
        assert!(!ping(url, &[], None).0, "{url}: no authority vouches for this one");
    }
}

#[test]
fn errors_are_one_line_with_advice() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--data", "held"], None);
    let port = server.url("udp").rsplit_once(':').unwrap().1.to_owned();
    let cases: &[(&[&str], &[&str])] = &[
        (&["ping", "serve", "--udp", &port], &["Address already in use", "choose another port with --udp"]),
        (&["ping", "serve", "--data", "/proc/nowhere"], &["data folder /proc/nowhere", "--data"]),
        (&["ping", "serve", "--secret-file", "missing"], &["passphrase file missing cannot be read"]),
        (&["ping", "serve", "--listen", "192.0.2.1"], &["192.0.2.1:7779", "see --listen"]),
        (
            &["ping", "serve", "--udp", "off", "--quic", "off", "--ws", "off", "--wt", "off"],
            &["nothing to listen on"],
        ),
        (
            &["ping", "serve", "--tls-cert", "missing", "--tls-key", "missing"],
            &["missing should be a PEM file"],
        ),
        (&["ping", "serve", "--tls-cert", "missing"], &["--tls-key"]),
        (&["ping", "serve", "--ws", "x"], &["a number up to 65535"]),
        (&["ping", "http://example.org"], &["should begin with udp://"]),
        (&["ping", "udp://127.0.0.1:7777", "--netem", "rtt=x"], &["rtt"]),
        (&["ping", "udp://127.0.0.1:7777", "--size", "2000"], &["8 to 1000 bytes"]),
        (&["ping", "ws://127.0.0.1:1"], &["ws://127.0.0.1:1", "refused"]),
        (&["ping", "udp://no.such.host.invalid"], &["udp://no.such.host.invalid:7777"]),
        (&["ping"], &["<URL>"]),
    ];
    for (args, words) in cases {
        let (ok, out, err) = text(&run(command(args).current_dir(folder.path())));
        assert!(!ok && out.is_empty(), "{args:?}: {out}");
        for word in *words {
            assert!(err.contains(word), "{args:?}: {err}");
        }
        assert!(!err.contains("panicked"), "{err}");
    }
}

#[test]
fn help_teaches_by_example() {
    for args in [&["--help"][..], &["ping", "--help"], &["ping", "serve", "--help"]] {
        let (ok, out, _) = text(&run(&mut command(args)));
        assert!(ok && out.contains("Examples:"), "{out}");
    }
}
