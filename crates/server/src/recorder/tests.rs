//! Which commit logs name.

use sametick_pong::Pong;
use sametick_sim::{BuildId, Game, schema_hash_of};
use sametick_store::log::LogReader;

use super::*;
use crate::games;

/// A commit of a game author's repository.
const OWN: &str = "0123456789abcdef0123456789abcdef01234567";

/// The commit in the header of the log of a session that a player began who said `browser`.
fn logged(games: Games, build: BuildId) -> String {
    let name: [u8; 8] = sametick_transport::clock::random();
    let folder = std::env::temp_dir().join(format!("sametick-recorder-{}", u64::from_le_bytes(name)));
    let facts = Facts {
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
    };
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
fn a_log_of_a_game_that_the_program_has_not_names_what_its_player_said() {
    assert_eq!(logged(Games::default().with_commit(OWN), Pong::BUILD), "browser");
    assert_eq!(logged(games![Pong].with_commit(OWN), BuildId::from_bytes([1; 16])), "browser");
}
