//! Tests of the commit in log headers, and of waiting for saves.

use sametick_pong::Pong;
use sametick_sim::{BuildId, Game, schema_hash_of};
use sametick_store::log::LogReader;
use sametick_store::saves::Retention;

use super::*;
use crate::games;

/// A commit of a game author's own repository.
const OWN: &str = "0123456789abcdef0123456789abcdef01234567";

fn a_folder() -> PathBuf {
    let name: [u8; 8] = sametick_transport::clock::random();
    std::env::temp_dir().join(format!("sametick-recorder-{}", u64::from_le_bytes(name)))
}

/// The facts of a session begun by a client that names the commit `browser`.
fn facts(build: BuildId) -> Facts {
    Facts {
        name: "den".into(),
        game: Pong::NAME.into(),
        build,
        commit: "browser".into(),
        schema: schema_hash_of::<Pong>(),
        setup: Vec::new(),
        seed: 0,
        rate: Pong::RATE,
        seats: 2,
        listed: false,
    }
}

/// The commit in the log header of such a session.
fn logged(games: Games, build: BuildId) -> String {
    let (folder, facts) = (a_folder(), facts(build));
    let mut recorder = Recorder::new(&folder, games);
    let place = Place::Room(RoomId(1));
    recorder.begin(place, &facts, 1);
    let (said, told) = channel();
    recorder.when_written(place, move || said.send(()).unwrap());
    told.recv().unwrap();
    let header = header_of(&facts, "", 1);
    let bytes = std::fs::read(folder.join(key_of(place, &header).log())).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    LogReader::open(&bytes[..]).unwrap().header().commit.clone()
}

#[test]
fn a_log_names_the_commit_of_the_program_that_has_the_game() {
    let games = games![Pong];
    let ours = games.commit();
    assert_eq!(logged(games.clone(), Pong::BUILD), if ours.is_empty() { "browser" } else { ours });
    assert_eq!(logged(games.with_commit(OWN), Pong::BUILD), OWN);
}

#[test]
fn a_log_of_an_unknown_game_names_the_clients_commit() {
    assert_eq!(logged(Games::default().with_commit(OWN), Pong::BUILD), "browser");
    assert_eq!(logged(games![Pong].with_commit(OWN), BuildId::from_bytes([1; 16])), "browser");
}

#[test]
fn waiting_for_a_session_save_skips_saves_of_rooms() {
    let folder = a_folder();
    std::fs::create_dir_all(&folder).unwrap();
    let mut recorder = Recorder::new(&folder, games![Pong]);
    let uploader = Uploader::start(&folder, None, Retention::default(), HubWaker::default()).unwrap();
    recorder.set_uploader(uploader);
    let (room, session) = (Place::Room(RoomId(1)), Place::Session(SessionId(2)));
    for (place, name) in [(room, "hall"), (session, "den")] {
        recorder.begin(place, &Facts { name: name.into(), ..facts(Pong::BUILD) }, 1);
        recorder.save(place, (Tick(0), StateHash::of_bytes(b"state")), b"state".to_vec(), Vec::new());
    }
    let patience = Duration::from_secs(60);
    assert_eq!(recorder.wait_saved(patience), Some((SessionId(2), Tick(0))));
    assert!(recorder.close(patience));
    std::fs::remove_dir_all(&folder).unwrap();
}
