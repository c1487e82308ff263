//! Tests that a server does not start with an incomplete or inconsistent configuration of identity.

use sametick::identity::Algorithm;

use super::issuer::{Key, published};
use crate::process::{Folder, command, run};

#[test]
fn inconsistent_options_are_an_error_of_one_line_with_advice() {
    let folder = Folder::new();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("rsa.json", &published(&[&Key::new("k", Algorithm::Rs256)]));
    file("no.json", "<html>");
    file("empty", "\n");
    file("unknown.toml", "[identity]\nissuer = 'a'\nissues = 'b'\n");
    file("half.toml", "[identity]\nissuer = 'a'\n");
    file("outside.toml", "issuer = 'a'\n");
    file("deep.toml", "[identity.inner]\nissuer = 'a'\n");
    let no_file = "No such file or directory (os error 2)";
    let names =
        "jwks-url, jwks-file, issuer, audience, authorized-party, jwt-algorithm, status-url, status-key-file";
    let https = "https:// is needed: only on this machine itself is http:// safe";
    let flag = |name: &str, value: &str, why: &str| {
        format!("error: invalid value '{value}' for '--{name}': {why}\n\nFor more information, try '--help'.")
    };
    let cases = [
        (
            "--jwks-file rsa.json",
            "whose tokens are good? Name their issuer with --issuer, exactly as they have it (iss)".into(),
        ),
        (
            "--issuer a",
            "--issuer is for signed tokens, which need a key: add --jwks-url or --jwks-file".into(),
        ),
        (
            "--jwt-algorithm ES256",
            "--jwt-algorithm is for signed tokens, which need a key: add --jwks-url or --jwks-file".into(),
        ),
        (
            "--config half.toml",
            "--issuer is for signed tokens, which need a key: add --jwks-url or --jwks-file".into(),
        ),
        (
            "--issuer a --jwks-file rsa.json --jwks-url https://a.example/",
            "--jwks-url and --jwks-file are two places for one thing: leave one of them out".into(),
        ),
        ("--issuer a --jwks-file missing.json", format!("the file missing.json cannot be read: {no_file}")),
        ("--issuer a --jwks-file no.json", "no.json: this is no JWKS: JSON with a list `keys`".into()),
        (
            "--issuer a --jwks-file rsa.json --jwt-algorithm ES256",
            "rsa.json: the JWKS has no key for ES256".into(),
        ),
        (
            "--issuer a --jwks-file rsa.json --status-key-file empty",
            "--status-key-file is for --status-url, which is not given".into(),
        ),
        (
            "--issuer a --jwks-file rsa.json --status-url https://a/{sid} --status-key-file empty",
            "the file empty is empty: put the key on its first line".into(),
        ),
        (
            "--issuer a --jwks-file rsa.json --status-url https://a/{sid} --status-key-file missing",
            format!("the file missing cannot be read: {no_file}"),
        ),
        (
            "--config unknown.toml",
            format!("unknown.toml line 3: there is no setting \"issues\" in [identity]; there are {names}"),
        ),
        (
            "--config deep.toml",
            format!("deep.toml line 1: there is no setting \"inner\" in [identity]; there are {names}"),
        ),
        (
            "--jwks-url http://issuer.example/jwks",
            flag("jwks-url <URL>", "http://issuer.example/jwks", https),
        ),
        ("--jwks-url http://127.0.0.1.example/", flag("jwks-url <URL>", "http://127.0.0.1.example/", https)),
        ("--status-url http://a.example/{sid}", flag("status-url <URL>", "http://a.example/{sid}", https)),
        (
            "--status-url https://a.example/",
            flag(
                "status-url <URL>",
                "https://a.example/",
                "it has to hold {sid}, where the name of the session goes",
            ),
        ),
        (
            "--jwt-algorithm HS256",
            flag("jwt-algorithm <ALGORITHM>", "HS256", "an algorithm is RS256, ES256 or EdDSA"),
        ),
        (
            "--jwt-algorithm none",
            flag("jwt-algorithm <ALGORITHM>", "none", "an algorithm is RS256, ES256 or EdDSA"),
        ),
    ];
    for (args, said) in cases {
        let mut up =
            command(&["up", "--listen", "127.0.0.1:0", "--udp", "off", "--quic", "off", "--wt", "off"]);
        let output = run(up.args(args.split(' ')).current_dir(folder.path()));
        assert!(!output.status.success() && output.stdout.is_empty(), "{args}: {output:?}");
        let said =
            if said.starts_with("error: ") { format!("{said}\n") } else { format!("sametick: {said}\n") };
        assert_eq!(String::from_utf8_lossy(&output.stderr), said, "{args}");
    }
    let outside = run(command(&["up", "--config", "outside.toml"]).current_dir(folder.path()));
    let outside = String::from_utf8(outside.stderr).unwrap();
    assert!(outside.ends_with("behind-proxy, and the section [identity]\n"), "{outside}");
}

#[test]
fn the_section_is_printed_as_it_is_read() {
    let folder = Folder::new();
    let text = "udp = 1\n[identity]\njwks-url = 'https://a.example/jwks'\nissuer = 'https://a.example'\n\
                authorized-party = ['https://b.example', 'https://c.example']\n";
    std::fs::write(folder.path().join("up.toml"), text).unwrap();
    let print = |file: &str| {
        let printed = run(command(&["up", "--config", file, "--audience", "x", "--print-config"])
            .current_dir(folder.path()));
        String::from_utf8(printed.stdout).unwrap()
    };
    let printed = print("up.toml");
    let (before, section) = printed.split_once("\n[identity]\n").unwrap();
    assert!(before.contains("udp = 1\n") && !before.contains("issuer"), "{printed}");
    for line in [
        "jwks-url = \"https://a.example/jwks\"",
        "issuer = \"https://a.example\"",
        "audience = \"x\"",
        "authorized-party = [\"https://b.example\", \"https://c.example\"]",
        "# jwt-algorithm = \"RS256\"",
    ] {
        assert!(section.lines().any(|printed| printed == line), "{line}: {printed}");
    }
    std::fs::write(folder.path().join("again.toml"), &printed).unwrap();
    assert_eq!(print("again.toml"), printed);
}
