//! Tests of `sametick up`: what it serves, its errors, and how it ends.

use std::process::Stdio;

use sametick_transport::clock::unix_seconds;
use sametick_wire::access::AccessKey;
use serde_json::Value;

use crate::process::{Folder, command, run};
use crate::web::Up;

#[test]
fn the_api_reports_health_version_and_players() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    assert!(up.greeting.contains("data        sametick-data"), "{}", up.greeting);
    assert!(up.greeting.contains("passphrase  none"), "{}", up.greeting);
    let health = up.api("/api/health");
    assert_eq!((&health["status"], &health["sessions"]), (&"ok".into(), &0.into()), "{health}");
    let server = up.api("/api/server");
    assert_eq!((&server["locked"], &server["websocket"]["path"]), (&false.into(), &"/ws".into()));
    let pong = &server["games"][0];
    assert_eq!((&pong["name"], &pong["seats"]), (&"pong".into(), &serde_json::json!([2, 4])), "{server}");
    assert_eq!((pong["build"].as_str().unwrap().len(), pong["schema"].as_str().unwrap().len()), (32, 64));
    assert_eq!(server["webtransport"]["cert"].as_str().unwrap().len(), 64);
    assert!(server["native"][0].as_str().unwrap().starts_with("udp://127.0.0.1:"), "{server}");
    assert_eq!(up.api("/api/sessions"), serde_json::json!({ "sessions": [] }));

    // Bots play over UDP and over the WebSocket of the same port, and are listed.
    for (name, url) in [("one", up.native("udp")), ("two", format!("ws://{}", up.addr))] {
        let bots = std::thread::spawn(move || {
            run(&mut command(&["bot", "pong", "--connect", &url, "--seconds", "2", "--session", name]))
        });
        let there = loop {
            let sessions = up.api("/api/sessions")["sessions"].take();
            let found = sessions.as_array().unwrap().iter().find(|session| session["name"] == name).cloned();
            match found {
                Some(found) if found["players"].as_array().unwrap().len() == 2 => break found,
                _ => std::thread::yield_now(),
            }
        };
        let seated =
            |at: usize| (there["players"][at]["seat"].as_u64(), there["players"][at]["name"].as_str());
        let ((Some(0), Some(one)), (Some(1), Some(other))) = (seated(0), seated(1)) else {
            panic!("{there}")
        };
        assert!(one.starts_with("bot ") && other.starts_with("bot ") && one != other, "{there}");
        assert_eq!(
            (&there["game"], &there["seats"], &there["watchers"]),
            (&"pong".into(), &2.into(), &0.into())
        );
        assert_eq!(there["build"], pong["build"]);
        assert!(bots.join().unwrap().status.success());
        while up.api("/api/health")["players"] != 0 {
            std::thread::yield_now();
        }
    }
    up.signal("-INT");
    let (clean, out) = up.end();
    assert!(clean && out.starts_with("stopping\n") && out.ends_with("the logs are written\n"), "{out}");
}

#[test]
fn errors_are_json_and_other_methods_are_not_allowed() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    for (answer, status) in [
        (up.get("/api/nothing"), 404),
        (up.get("/api"), 404),
        (up.ask("POST", "/api/health", "Content-Length: 0\r\n"), 405),
        (up.ask("DELETE", "/", ""), 405),
        (up.get("/missing.js"), 404),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json()["error"].as_str().is_some_and(|why| !why.is_empty()), "{answer:?}");
        assert_eq!(answer.headers["content-type"], "application/json");
    }
    assert_eq!(up.ask("POST", "/", "").headers["allow"], "GET, HEAD");
}

#[test]
fn pages_are_small_guarded_and_not_sent_twice() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let page = up.get("/");
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert!(page.headers["content-security-policy"].contains("frame-ancestors 'none'"));
    assert!(page.headers["content-security-policy"].contains("script-src 'self' 'wasm-unsafe-eval'"));
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    assert_eq!(page.headers["cache-control"], "no-cache");
    assert!(page.body.starts_with(b"<!doctype html>"), "{page:?}");
    assert_eq!(
        up.get("/play/pong/amber-otter-4821?watch").body,
        page.body,
        "the app finds out what it means"
    );

    let same = up.ask("GET", "/", &format!("If-None-Match: {}\r\n", page.headers["etag"]));
    assert_eq!((same.status, same.body.len()), (304, 0));
    let head = up.ask("HEAD", "/", "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.headers["content-length"], page.body.len().to_string());
    for coding in ["br", "gzip"] {
        let small = up.ask("GET", "/", &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(small.headers["content-encoding"], coding);
        assert!(small.body.len() < page.body.len());
        assert_ne!(small.headers["etag"], page.headers["etag"]);
    }
    for path in ["/../Cargo.toml", "/..%2f..%2fCargo.toml", "/%2e%2e/x.toml", "//x.js"] {
        assert_eq!(up.get(path).status, 404, "{path}");
    }
}

#[test]
fn an_unknown_address_is_a_404_with_the_app() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let page = up.get("/");
    let session = format!("/s/{}", "0".repeat(32));
    for path in ["/", "/lobby", "/lobby?new", "/play/arena/den?watch", &session] {
        assert_eq!(up.get(path).status, 200, "{path}");
        assert_eq!(up.ask("HEAD", path, "").status, 200, "{path}");
    }
    let etag = format!("If-None-Match: {}\r\n", page.headers["etag"]);
    for path in
        ["/admin", "/wp-login", "/lobby/x", "/s/unknown", "/play", "/play/chess/den", "/play/pong/a/b"]
    {
        let answer = up.ask("GET", path, &etag);
        assert_eq!((answer.status, &answer.body), (404, &page.body), "{path}");
        assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
        assert!(answer.headers["content-security-policy"].contains("frame-ancestors 'none'"));
        let head = up.ask("HEAD", path, &etag);
        assert_eq!((head.status, head.body.len()), (404, 0), "{path}");
        assert_eq!(head.headers["content-length"], page.body.len().to_string());
    }
}

#[test]
fn a_passphrase_is_asked_for_before_sessions_are_shown() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], Some("sesame"));
    assert!(up.greeting.contains("passphrase  asked for"), "{}", up.greeting);
    assert_eq!(up.api("/api/server")["locked"], true);
    assert_eq!(up.get("/api/health").status, 200);
    let minute = unix_seconds() / 60;
    let ask = |proof: [u8; 32]| {
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        up.ask("GET", "/api/sessions", &format!("Authorization: Sametick {hex}\r\n"))
    };
    let right = AccessKey::from_passphrase("sesame");
    assert_eq!(ask(right.page_proof(minute)).status, 200);
    for wrong in [
        right.page_proof(minute - 10),
        right.page_proof(minute + 10),
        AccessKey::from_passphrase("sesam").page_proof(minute),
        AccessKey::open().page_proof(minute),
    ] {
        let answer = ask(wrong);
        assert_eq!(answer.status, 401);
        assert!(answer.json()["error"].as_str().unwrap().contains("passphrase"));
    }
    assert_eq!(up.get("/api/sessions").status, 401);
    assert_eq!(up.ask("GET", "/api/sessions", "Authorization: Sametick x\r\n").status, 401);
}

#[test]
fn options_override_a_config_file_of_the_same_settings() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("up.toml"), "data = 'kept'\nwt = 'off'\nudp = 1\n").unwrap();
    let up = Up::start(&folder, &["--config", "up.toml"], None);
    assert!(up.greeting.contains("data        kept"), "{}", up.greeting);
    assert_eq!(up.api("/api/server")["webtransport"], Value::Null);
    assert!(!up.native("udp").ends_with(":1"));
    assert!(folder.path().join("kept").is_dir());
    let printed =
        run(command(&["up", "--config", "up.toml", "--quic", "off", "--print-config"])
            .current_dir(folder.path()));
    let printed = String::from_utf8(printed.stdout).unwrap();
    for line in
        ["data = \"kept\"", "wt = \"off\"", "udp = 1", "quic = \"off\"", "# listen = \"127.0.0.1:8080\""]
    {
        assert!(printed.lines().any(|printed| printed == line), "{line}: {printed}");
    }
}

#[test]
fn a_configured_certificate_makes_the_pages_https() {
    let folder = Folder::new();
    // The kept certificate of another server stands for one from an authority.
    let other = Up::start(&folder, &[], None);
    let pin = other.api("/api/server")["webtransport"]["cert"].as_str().unwrap().to_owned();
    drop(other);
    let pem = |name: &str| folder.path().join("sametick-data").join(name).to_str().unwrap().to_owned();
    let (cert, key) = (pem("browsers.cert.pem"), pem("browsers.key.pem"));
    let up = Up::start(&folder, &["--data", "other", "--tls-cert", &cert, "--tls-key", &key], None);
    assert!(up.greeting.contains("https://127.0.0.1:"), "{}", up.greeting);
    let hash = up.greeting.lines().find(|line| line.contains("quic://")).unwrap();
    assert!(!hash.contains("cert="), "an authority vouches for it: {hash}");
    let url = format!("wss://{}?cert={pin}", up.addr);
    assert!(run(&mut command(&["bot", "pong", "--connect", &url, "--seconds", "1"])).status.success());
}

#[test]
fn startup_errors_are_one_line_with_advice() {
    let folder = Folder::new();
    let up = Up::start(&folder, &["--data", "held"], None);
    let (taken, next) = (up.addr.to_string(), format!("127.0.0.1:{}", up.addr.port() + 1));
    let udp = up.native("udp").rsplit_once(':').unwrap().1.to_owned();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("file", "in the way");
    file("unknown.toml", "# settings\n\nlisten = '127.0.0.1:0'\nport = 8080\n");
    file("bad.toml", "udp = 'x'\n");
    file("word.toml", "hold = 'a'\n");
    file("broken.toml", "listen = \n");
    file("cert.pem", "nonsense");
    let in_use = "Address already in use (os error 98); another program has it: choose another port with";
    let no_file = "No such file or directory (os error 2)";
    let free = "--listen 127.0.0.1:0 --udp off";
    let cases = [
        (
            format!("--listen {taken} --udp off"),
            format!("http: cannot listen on {taken}: {in_use} --listen {next}"),
        ),
        (
            format!("--listen 127.0.0.1:0 --udp {udp}"),
            format!("udp: cannot listen on 127.0.0.1:{udp}: {in_use} --udp PORT"),
        ),
        (
            format!("{free} --data file/data"),
            "cannot write to the data folder file/data: Not a directory (os error 20); choose another with --data"
                .into(),
        ),
        (
            "--config unknown.toml".into(),
            "unknown.toml line 4: there is no setting \"port\"; there are listen, udp, quic, wt, data, tls-cert, \
             tls-key, origin, per-address, secret-file, hold, token-days, backup-every, rooms-per-address, bots-per-address, sessions-per-address, ticks-per-packet, store, keeper, keep-sessions, status, trace, hosts, host-ports, spare-hosts, host-address, behind-proxy, and the \
             section [identity]"
                .into(),
        ),
        (
            "--config bad.toml".into(),
            "bad.toml line 1: udp cannot be x: a port is a number up to 65535, or \"off\"".into(),
        ),
        (
            "--config word.toml".into(),
            "word.toml line 1: hold cannot be a: a whole number is expected".into(),
        ),
        (
            "--config missing.toml".into(),
            format!("the configuration missing.toml cannot be read: {no_file}"),
        ),
        (
            "--tls-cert cert.pem".into(),
            "--tls-cert and --tls-key go together: name a file for --tls-key as well".into(),
        ),
        (
            format!("{free} --tls-cert cert.pem --tls-key cert.pem"),
            "cert.pem should be a PEM file with a certificate chain: no items found".into(),
        ),
        (
            format!("{free} --secret-file missing"),
            format!("the passphrase file missing cannot be read: {no_file}"),
        ),
    ];
    for (args, said) in cases {
        let mut up = command(&["up", "--quic", "off", "--wt", "off"]);
        let output = run(up.args(args.split(' ')).current_dir(folder.path()));
        assert!(!output.status.success() && output.stdout.is_empty(), "{args}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("sametick: {said}\n"), "{args}");
    }
    let broken = run(command(&["up", "--config", "broken.toml"]).current_dir(folder.path()));
    let broken = String::from_utf8(broken.stderr).unwrap();
    assert!(broken.starts_with("sametick: broken.toml line 1: ") && broken.lines().count() == 1, "{broken}");
}

#[test]
fn players_are_told_when_it_stops() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let url = up.native("udp");
    let bots = std::thread::spawn(move || {
        run(&mut command(&["bot", "pong", "--connect", &url, "--seconds", "60", "--patience", "1"]))
    });
    while up.api("/api/health")["players"] != 2 {
        std::thread::yield_now();
    }
    up.signal("-TERM");
    let (clean, out) = up.end();
    assert!(clean && out.ends_with("the logs are written\n"), "{out}");
    let bots = bots.join().unwrap();
    let told = String::from_utf8_lossy(&bots.stderr).into_owned();
    assert!(!bots.status.success() && told.contains("the server stops"), "{told}");
}

#[test]
fn help_of_up_teaches_by_example() {
    let output = run(&mut command(&["up", "--help"]));
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Examples:") && help.contains("--behind-proxy") && help.contains("--print-config"));
}

#[test]
fn a_stop_during_games_logs_no_warning() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let url = up.native("udp");
    let mut bots = ["--session", "--room"].map(|place| {
        let game = if place == "--room" { "arena" } else { "pong" };
        let args = ["bot", game, "--connect", &url, place, "meeting", "--seconds", "60", "--patience", "0"];
        command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    while up.api("/api/health")["players"] != 4 {
        std::thread::yield_now();
    }
    up.signal("-INT");
    let (clean, out) = up.end();
    for bot in &mut bots {
        bot.wait().unwrap();
    }
    let log = Up::log_in(&folder);
    assert!(clean && out.ends_with("the logs are written\n"), "{out}{log}");
    let is_loud = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    let loud: Vec<&str> =
        log.lines().filter(is_loud).filter(|line| !line.contains("no key is configured")).collect();
    assert!(loud.is_empty(), "{loud:?}");
}
