//! Tests of the data folder: one process at a time writes to it, the file size limit ends no server, and lost data is
//! reported.

use std::fs;

use sametick_store::players::{PlayerId, Purpose, Sqlite, SqliteOptions, Storage, Write};

use crate::process::{Folder, Server, command, run};
use crate::web::Up;

#[test]
fn no_other_role_starts_on_a_folder_that_is_in_use() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let holder = format!("is in use by `sametick up` (process {}): end that first", up.pid());
    for role in [&["relay"][..], &["ping", "serve"], &["up"], &["gateway"]] {
        let output = run(command(role).current_dir(folder.path()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(&holder), "{role:?}: {said}");
        assert!(said.contains("--data"), "{said}");
    }
    up.signal("-KILL");
    up.end();
    // A killed process holds no lock.
    let relay = Server::start_as(&["relay"], &folder, &[], None);
    let output = run(command(&["up"]).current_dir(folder.path()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("is in use by `sametick relay` (process "), "{said}");
    relay.signal("-INT");
    assert!(relay.end().0);
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_ends_no_server() {
    const LIMIT_BLOCKS: u64 = 100;
    let folder = Folder::new();
    let program = command(&[]).get_program().to_str().unwrap().to_owned();
    let script = format!(
        "ulimit -f {LIMIT_BLOCKS}; exec {program} relay --udp 0 --quic off --ws off --wt off --trace trace"
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder.path());
    let mut relay = Server::spawn(&mut shell);
    let play = |seconds| {
        let url = relay.url("udp");
        run(&mut command(&["bot", "pong", "--connect", url, "--count", "4", "--seconds", seconds, "--json"]))
    };
    let output = play("3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = fs::metadata(folder.path().join("trace")).unwrap().len();
    assert_eq!(trace, LIMIT_BLOCKS * 512, "it was filled up to the limit");
    let output = play("1");
    assert!(output.status.success(), "games go on: {}", String::from_utf8_lossy(&output.stderr));
    relay.await_log("(ulimit -f)");
    relay.signal("-INT");
    let (is_clean, _, log) = relay.end();
    assert!(is_clean, "{log}");
    assert!(!log.contains("(ulimit -f)"), "it is said once: {log}");
}

#[test]
fn lost_data_of_players_is_reported_at_the_start() {
    let folder = Folder::new();
    let path = folder.path().join("sametick-data").join("players.sqlite");
    let player = |number: u128| Write::Player {
        player: PlayerId(number),
        name: format!("player {number}"),
        subject: None,
        unix_ms: 1,
    };
    let (mut storage, _) = Sqlite::open(&path, &SqliteOptions::default(), Purpose::Writing).unwrap();
    storage.write(&(0..3).map(player).collect::<Vec<_>>()).unwrap();
    drop(storage);
    // The first start makes a backup.
    let up = Up::start(&folder, &[], None);
    assert!(!up.greeting.contains("attention"), "{}", up.greeting);
    let backup = path.with_extension("sqlite.backup-1");
    while !backup.exists() {
        std::thread::yield_now();
    }
    up.signal("-INT");
    assert!(up.end().0);
    let (mut storage, _) = Sqlite::open(&path, &SqliteOptions::default(), Purpose::Writing).unwrap();
    storage.write(&(3..5).map(player).collect::<Vec<_>>()).unwrap();
    drop(storage);
    fs::write(&path, "").unwrap();
    let up = Up::start(&folder, &[], None);
    let said = format!("{} {}", up.greeting, Up::log_in(&folder));
    for words in
        ["attention", "the file is empty", "There are now: 3 players", "Lost: 2 players", "backup-1 gave 3"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    up.signal("-INT");
    assert!(up.end().0);
    let up = Up::start(&folder, &[], None);
    assert!(!up.greeting.contains("attention"), "it is said once: {}", up.greeting);
}
