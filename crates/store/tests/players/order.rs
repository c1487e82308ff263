//! However writes are coalesced, the database is as if all of them had been made in order.

use sametick_sim::Rng;
use sametick_store::players::{
    Found, Kept, PlaceId, PlayerId, PlayerWriterOptions, Purpose, Question, Sqlite, SqliteOptions, Storage,
    Token, TokenState, Write,
};
use std::time::Duration;

use crate::kit::{FAR_FUTURE_S, GAME, Kit, Strings, folder, with_token};

const PLAYERS: u64 = 3;
const CODES: [&str; 2] = ["one", "two"];
const CHARACTERS: [&str; 2] = ["knight", "rook"];

#[test]
fn a_token_is_retired_after_its_creation_in_any_queue() {
    let (_folder, path) = folder();
    let strings = Strings::default();
    let options = PlayerWriterOptions { queue: 2, ..PlayerWriterOptions::default() };
    let mut kit = Kit::start(strings.sqlite(&path), options);
    let token = |number: u8| Token::from_bytes([number; 16]);
    strings.stop();
    for number in 0..50 {
        let (hash, player) = (token(number).hash(), PlayerId(number.into()));
        kit.writer.save(Write::Token { hash, player, expires_unix_s: FAR_FUTURE_S });
        if number % 2 == 0 {
            kit.writer.save(Write::Retire { hash });
        }
        if number % 3 == 0 {
            kit.writer.save(Write::RetireAll { player });
        }
        // A player who is signed out everywhere may get a new token at the same moment.
        let hash = token(number + 100).hash();
        kit.writer.save(Write::Token { hash, player, expires_unix_s: FAR_FUTURE_S });
    }
    strings.go();
    kit.flush();
    for number in 0..50 {
        let is_retired = number % 2 == 0 || number % 3 == 0;
        let expected = if is_retired { TokenState::Retired } else { TokenState::Good };
        let found = kit.ask(&with_token(&token(number))).unwrap();
        assert_eq!(found.token, expected, "token {number}");
        assert_eq!(found.player.is_some(), !is_retired, "a token that is not good says nothing of a player");
        let new = kit.ask(&with_token(&token(number + 100))).unwrap();
        assert_eq!(new.token, TokenState::Good, "the new token of {number}");
    }
}

/// Found by the simulator: a sync fails, but the batch was stored, and is written again.
#[test]
fn a_batch_written_twice_is_equivalent_to_once() {
    for seed in 0..40 {
        let (_folder, path) = folder();
        let open =
            |name| Sqlite::open(&path.with_extension(name), &SqliteOptions::default(), Purpose::Writing);
        let (mut once, mut twice) = (open("once").unwrap().0, open("twice").unwrap().0);
        let mut rng = Rng::new(seed);
        for _ in 0..4 {
            // The result of a repair depends on the existing rows.
            let all = (0..30).map(|_| draw(&mut rng));
            let all = all.filter(|write| !matches!(write, Write::Mend { .. }));
            let batch: Vec<_> = all.chain(CODES.map(room)).collect();
            once.write(&batch).unwrap();
            twice.write(&batch).unwrap();
            twice.write(&batch).unwrap();
        }
        assert_eq!(contents(&mut once), contents(&mut twice), "seed {seed}");
    }
}

#[test]
fn coalesced_writes_are_equivalent_to_all_of_them() {
    for seed in 0..60 {
        let (_folder, path) = folder();
        let (mut direct, _) =
            Sqlite::open(&path.with_extension("direct"), &SqliteOptions::default(), Purpose::Writing)
                .unwrap();
        let strings = Strings::default();
        let mut rng = Rng::new(seed);
        let queue = 2 + rng.below(8) as usize;
        let options =
            PlayerWriterOptions { queue, usual: Duration::from_secs(3600), ..PlayerWriterOptions::default() };
        let mut kit = Kit::start(strings.sqlite(&path), options);
        let mut all = Vec::new();
        for _ in 0..400 {
            match rng.below(40) {
                0 => strings.stop(),
                1 => strings.go(),
                2 => drop(kit.writer.flush()),
                3..8 => kit.writer.tend(),
                _ => {
                    let write = draw(&mut rng);
                    kit.writer.save(write.clone());
                    all.push(write);
                }
            }
        }
        for write in CODES.map(room) {
            kit.writer.save(write.clone());
            all.push(write);
        }
        strings.go();
        kit.flush();
        direct.write(&all).unwrap();
        let (mut read, _) = Sqlite::open(&path, &SqliteOptions::default(), Purpose::Reading).unwrap();
        assert_eq!(contents(&mut read), contents(&mut direct), "seed {seed}");
    }
}

/// Writes to few keys, so that they often collide.
fn draw(rng: &mut Rng) -> Write {
    let player = PlayerId(rng.below(PLAYERS).into());
    let place = PlaceId::of(GAME, CODES[rng.below(2) as usize]);
    let hash = token(rng.below(4)).hash();
    let kept = Kept::new(&rng.next_u64().to_le_bytes()).unwrap();
    let character = CHARACTERS[rng.below(2) as usize].to_owned();
    let (game, number) = (GAME.to_owned(), rng.below(1 << 30));
    match rng.below(20) {
        0..4 => Write::Checkpoint { place, player, seat: 1, tick: number as u32, kept, unix_ms: number },
        4..7 => Write::Part { place, key: rng.below(3) as u32, kept: rng.chance(2, 3).then_some(kept) },
        7..9 => room(CODES[rng.below(2) as usize]),
        9 => Write::Forget { place },
        10 => Write::Player { player, name: number.to_string(), subject: None, unix_ms: number },
        11..14 => Write::Token { hash, player, expires_unix_s: FAR_FUTURE_S + number },
        14 => Write::Retire { hash },
        15 => Write::RetireAll { player },
        16 => Write::Profile { player, game, character, kept, unix_ms: number },
        17 | 18 => Write::Active { player, game, character },
        _ => Write::Mend { player, game },
    }
}

/// A room: rows of a missing room cannot be looked up.
fn room(code: &str) -> Write {
    let (place, game, code) = (PlaceId::of(GAME, code), GAME.to_owned(), code.to_owned());
    Write::Place { place, game, code, setup: vec![1; 3], seats: 8, seed: 1, listed: true, unix_ms: 1 }
}

fn token(number: u64) -> Token {
    Token::from_bytes(u128::from(number).to_be_bytes())
}

/// The answers to all possible questions.
fn contents(storage: &mut dyn Storage) -> Vec<Found> {
    let mut questions = Vec::new();
    for code in CODES {
        let question = Question {
            game: GAME.into(),
            code: code.into(),
            with_place: true,
            now_unix_s: 1,
            ..Question::default()
        };
        for player in 0..PLAYERS {
            questions.push(Question { player: Some(PlayerId(player.into())), ..question.clone() });
        }
        for number in 0..4 {
            questions.push(Question { token: Some(token(number).hash()), ..question.clone() });
        }
    }
    questions.iter().map(|question| storage.look_up(question).unwrap()).collect()
}
