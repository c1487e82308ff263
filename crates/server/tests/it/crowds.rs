//! Test of one address with many rooms full of bots, beside players of the relay on the same thread. Real processes and
//! sockets.

use serde_json::Value;

use crate::everyone::{Socket, block_on};
use crate::process::{Folder, command, run};
use crate::web::Up;

/// How many rooms, and for how many seconds others play beside them: in `cargo xtask long attacks` a multiple of 256
/// rooms, with which the problem was found.
fn size() -> (usize, &'static str) {
    match std::env::var("SAMETICK_ATTACK_TIMES") {
        Ok(times) => (256 * times.parse::<usize>().expect("a number of times"), "30"),
        Err(_) => (120, "5"),
    }
}

/// Plays pong for a while. Returns how many ticks all players played, and how many of their inputs came too late.
fn play(url: &str, session: &str) -> (u64, u64) {
    let seconds = size().1;
    let args = ["bot", "pong", "--connect", url, "--session", session, "--count", "4", "--seconds", seconds];
    let args = [&args[..], &["--json"]].concat();
    let output = run(&mut command(&args));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let sum =
        |what: &str| report["bots"].as_array().unwrap().iter().filter_map(|bot| bot[what].as_u64()).sum();
    (sum("tick"), sum("omissions"))
}

#[test]
fn a_crowd_of_rooms_leaves_the_relay_its_time() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let url = up.native("udp");
    let (rooms, _) = size();
    let (ticks_before, late_before) = play(&url, "before");
    let (ticks, late, slowest) = block_on(async {
        let mut sockets = Vec::new();
        for room in 0..rooms {
            let path = format!("crowd-{room}/ws?game=arena&name=x&setup=%7B%22bots%22:255%7D");
            // One address may have so many connections, and no more.
            let Ok(mut socket) = Socket::open(&up, &path).await else { continue };
            let is_told =
                |said: &Value| said["kind"] == "welcome" || said.to_string().contains("more of this server");
            socket.hear_of(is_told).await;
            sockets.push(socket);
        }
        let mut first = sockets.swap_remove(0);
        // The others must be read as well, or the server would disconnect them.
        let readers: Vec<_> = { sockets.into_iter() }
            .map(|mut socket| tokio::spawn(async move { while socket.hear().await.is_some() {} }))
            .collect();
        let slowest = first.hear_kind("pace").await["percent"].as_u64().unwrap();
        let first = tokio::spawn(async move { while first.hear().await.is_some() {} });
        let played = tokio::task::spawn_blocking(move || play(&url, "during")).await.unwrap();
        readers.iter().chain([&first]).for_each(tokio::task::JoinHandle::abort);
        (played.0, played.1, slowest)
    });
    println!(
        "{late_before} of {ticks_before} inputs late before, {late} of {ticks} beside {rooms} rooms at {slowest} %"
    );
    assert!(slowest < 100);
    assert!(ticks * 10 >= ticks_before * 8, "{ticks} ticks, {ticks_before} before");
    // A busy machine makes some inputs late; a thread that the rooms have to themselves makes nearly all of them late.
    // On an idle machine none may be late.
    let most = if std::env::var_os("SAMETICK_ATTACK_TIMES").is_some() { ticks / 500 } else { ticks / 2 };
    assert!(late <= late_before + most, "{late} of {ticks} inputs came too late, {late_before} before");
}
