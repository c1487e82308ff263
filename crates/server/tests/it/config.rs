//! Tests of `sametick config`, and of the commands that use the configuration.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use proptest::prelude::*;
use sametick::config::{Config, Key};

use crate::process::{Folder, Server, command};

/// Runs the command with a configuration of its own. Returns whether it succeeded, its output and its errors.
fn sametick(config: &Path, args: &[&str], stdin: &str) -> (bool, String, String) {
    sametick_with(config, args, stdin, None)
}

fn sametick_with(config: &Path, args: &[&str], stdin: &str, secret: Option<&str>) -> (bool, String, String) {
    let mut command = command(args);
    command.env("SAMETICK_CONFIG", config);
    secret.map(|secret| command.env("SAMETICK_SECRET", secret));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that does not read its input may have ended already, with an error message.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.success(), text(stdout), text(stderr))
}

fn config_in(folder: &Folder) -> PathBuf {
    folder.path().join("deep").join("config.toml")
}

#[test]
fn values_are_shown_but_never_the_passphrase() {
    let folder = Folder::new();
    let path = config_in(&folder);
    let (ok, out, _) = sametick(&path, &["config", "show"], "");
    assert!(ok && out.contains("name        none") && out.contains("passphrase  none"), "{out}");
    assert!(sametick(&path, &["config", "set", "name", "Ada \"the\" Ünal"], "").0);
    assert!(sametick(&path, &["config", "set", "passphrase"], "open sesame\nmore\n").0);
    assert!(sametick(&path, &["config", "set", "relay", "udp://127.0.0.1:7777"], "").0);
    let (ok, out, _) = sametick(&path, &["config", "show"], "");
    assert!(ok && out.contains("Ada \"the\" Ünal") && out.contains("udp://127.0.0.1:7777"), "{out}");
    assert!(out.contains("passphrase  remembered") && !out.contains("sesame"), "{out}");
    let (_, json, _) = sametick(&path, &["config", "show", "--json"], "");
    assert!(json.contains("\"has_passphrase\":true") && !json.contains("sesame"), "{json}");
    let config = Config::load_from(&path).unwrap();
    assert_eq!(config.value(Key::Passphrase), Some("open sesame"));
    assert!(sametick(&path, &["config", "set", "relay", ""], "").0);
    assert_eq!(Config::load_from(&path).unwrap().value(Key::Relay), None);
    assert_eq!(sametick(&path, &["config", "path"], "").1.trim_end(), path.to_str().unwrap());
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, "name = \"ada\"\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(sametick(&path, &["config", "set", "passphrase", "x"], "").0);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn unknown_keys_are_kept() {
    let folder = Folder::new();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, "theme = \"dark\"\n[window]\nwidth = 800\n").unwrap();
    assert!(sametick(&path, &["config", "set", "name", "bob"], "").0);
    let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
    assert_eq!((table["theme"].as_str(), table["window"]["width"].as_integer()), (Some("dark"), Some(800)));
    assert_eq!(table["name"].as_str(), Some("bob"));
}

#[test]
fn a_damaged_file_is_named_and_left_alone() {
    let folder = Folder::new();
    let path = folder.path().join("config.toml");
    for (text, words) in [
        (&b"name = \"ada\"\nrelay = ???\n"[..], "line 2"),
        (b"name = 7\n", "name is no text"),
        (b"\xff\xfe", "not UTF-8"),
    ] {
        std::fs::write(&path, text).unwrap();
        for args in [&["config", "show"][..], &["config", "set", "name", "bob"], &["bot", "pong"]] {
            let (ok, _, err) = sametick(&path, args, "");
            assert!(!ok && err.contains(words) && err.contains(path.to_str().unwrap()), "{args:?}: {err}");
            assert_eq!(err.lines().count(), 1, "{err}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }
    let (ok, _, err) = sametick(folder.path(), &["config", "show"], "");
    assert!(!ok && err.contains("cannot be read"), "{err}");
}

#[test]
fn an_invalid_value_is_refused() {
    let folder = Folder::new();
    let path = config_in(&folder);
    let long = "x".repeat(100);
    for (key, value) in [("relay", "nonsense"), ("name", &long), ("name", "two\nlines")] {
        let (ok, _, err) = sametick(&path, &["config", "set", key, value], "");
        assert!(!ok && err.contains(&format!("this is no {key}")) && err.lines().count() == 1, "{err}");
    }
    assert!(!path.exists());
}

#[test]
fn bots_use_the_configuration() {
    let folder = Folder::new();
    let path = config_in(&folder);
    let relay = Server::start_as(&["relay"], &folder, &[], Some("sesame"));
    let play = |args: &[&str], secret| {
        sametick_with(&path, &[&["bot", "pong", "--count", "1", "--seconds", "1"], args].concat(), "", secret)
    };
    let (ok, _, err) = play(&[], None);
    assert!(!ok && err.contains("--connect"), "{err}");
    let (ok, _, err) = play(&["--connect", relay.url("udp")], Some("sesame"));
    assert!(ok, "{err}");
    assert_eq!(Config::load_from(&path).unwrap().value(Key::Relay), Some(relay.url("udp")));
    assert!(sametick(&path, &["config", "set", "passphrase"], "sesame\n").0);
    let (ok, _, err) = play(&[], None);
    assert!(ok, "the relay and the passphrase are remembered: {err}");
    let (ok, _, err) = play(&[], Some("wrong"));
    assert!(!ok && err.contains("no answer"), "what is said counts more than what is remembered: {err}");
    assert_eq!(Config::load_from(&path).unwrap().value(Key::Relay), Some(relay.url("udp")));
}

proptest! {
    #[test]
    fn every_text_comes_back(name in "[^\r\n]{1,12}", passphrase in "[^\r\n]{0,60}") {
        let folder = Folder::new();
        let mut config = Config::load_from(&config_in(&folder)).unwrap();
        config.set(Key::Name, &name).unwrap();
        config.set(Key::Passphrase, &passphrase).unwrap();
        config.save().unwrap();
        let again = Config::load_from(&config_in(&folder)).unwrap();
        prop_assert_eq!(again.value(Key::Name), Some(&*name));
        prop_assert_eq!(again.value(Key::Passphrase).unwrap_or(""), passphrase);
    }
}
