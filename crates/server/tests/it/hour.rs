//! Test of a late join: a relay restores a session of an hour from its log alone, and a joining player is in sync at
//! once, with few bytes.

use std::fs;
use std::path::Path;
use std::time::Instant;

use sametick::games::AnyGame;
use sametick::{games, games::Games};
use sametick_pong::{Pong, Setup, autopilot};
use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::{Game, Inputs, Row, Seat, Tick, from_canonical, to_canonical};
use sametick_store::disk::FsDisk;
use sametick_store::log::{Header, LogWriter};
use sametick_store::saves::SessionKey;
use serde_json::Value;

use crate::process::{Folder, Server, command, run};

const HOUR: u32 = 60 * 60 * 60;
const SEATS: u16 = 4;

/// Writes the log of four players who have played for an hour.
fn play_for_an_hour(data: &Path) {
    let games: Games = games![Pong => autopilot];
    let game: &dyn AnyGame = games.named("pong").unwrap();
    let setup = Setup { players: SEATS as u8, seed: 1, ..Setup::default() };
    let header = Header {
        build: Pong::BUILD,
        schema: game.schema(),
        setup: to_canonical(&setup).unwrap(),
        seed: 1,
        seats: SEATS,
        listed: true,
        started_unix_ms: 1_800_000_000_000,
        ..Header::new("pong", "hour")
    };
    let key = SessionKey::of(header.build, &header.session, header.started_unix_ms);
    let path = data.join(key.log());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // In memory: two thousand waits for a disk would take too long.
    let mut log = LogWriter::new(sametick_store::disk::MemDisk::new(), &header).unwrap();
    let (mut pong, mut rows, mut inputs) = (Pong::new(&setup), TickInputs::new(), Inputs::new());
    for tick in (1..=HOUR).map(Tick) {
        let (joined, left) = (tick == Tick(1), tick == Tick(HOUR));
        rows.clear(tick);
        for seat in (0..SEATS).map(Seat) {
            if joined {
                let (name, commit) = (format!("player {seat}"), String::new());
                log.push(&Record::Joined { tick, seat, name, commit }).unwrap();
            }
            if left {
                log.push(&Record::Left { tick, seat, why: Leaving::Left }).unwrap();
            }
            let input = to_canonical(&autopilot(&pong, seat)).unwrap();
            rows.push(Row { seat, joined, left, input: Some(&input) });
        }
        log.push_inputs(&rows).unwrap();
        rows.decode(&mut inputs);
        pong.step(&inputs);
    }
    log.push(&Record::End).unwrap();
    log.flush().unwrap();
    let mut file = FsDisk::create(&path).unwrap();
    sametick_store::disk::Disk::append(&mut file, log.disk().bytes()).unwrap();
    let again: Setup = from_canonical(&header.setup).unwrap();
    assert_eq!(again, setup);
}

#[test]
fn a_late_join_after_an_hour_is_in_sync_at_once() {
    let folder = Folder::new();
    play_for_an_hour(&folder.path().join("data"));
    let mut relay = Server::start_as(&["relay"], &folder, &["--data", "data"], None);
    let url = relay.url("udp").to_owned();
    let play = move |args: &[&str]| {
        let bot = ["bot", "pong", "--session", "hour", "--json", "--connect", &url];
        let output = run(&mut command(&[&bot[..], args].concat()));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_str(&said).unwrap();
        report["bots"][0].clone()
    };
    let start = Instant::now();
    let first = std::thread::spawn({
        let play = play.clone();
        move || play(&["--count", "1", "--seconds", "6"])
    });
    relay.await_log("a session goes on");
    println!("found again after {:?}", start.elapsed());
    // A player is in the session when the next one joins, who is in sync within the second that the first one stays.
    let start = Instant::now();
    let late = play(&["--count", "1", "--seconds", "2"]);
    println!("joined and left again after {:?}, with {} bytes", start.elapsed(), late["bytes_received"]);
    for bot in [&late, &first.join().unwrap()] {
        assert!(bot["tick"].as_u64() > Some(u64::from(HOUR)), "{bot}");
        assert!(bot["bytes_received"].as_u64() < Some(32 << 10), "{bot}");
        assert_eq!(bot["resyncs"], 0, "{bot}");
    }
    relay.signal("-TERM");
    let (clean, _, log) = relay.end();
    assert!(clean && !log.contains("ERROR"), "{log}");
}
