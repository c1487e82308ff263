//! The bytes of a save: golden, round-tripped, cut, flipped, invented.

use proptest::prelude::*;
use sametick_sim::{BuildId, SchemaHash, StateHash, Tick, TickRate};
use sametick_store::saves::{
    BadSave, MAX_PREFIX_BYTES, MAX_STATE_BYTES, MAX_TABLE_BYTES, Save, SaveInfo, SessionKey,
};

use crate::kit::{hex, save};

const DOCS: &str = include_str!("../../../../docs/saves.md");

#[test]
fn golden_bytes() {
    let bytes = hex(&save(900, 0).to_bytes().unwrap());
    let golden: String = GOLDEN.map(|(_, bytes)| bytes).concat();
    assert_eq!(bytes, golden);
    for (field, bytes) in GOLDEN {
        let row = format!("| {field} | `{bytes}` |");
        assert!(DOCS.contains(&row), "docs/saves.md has the row {row}");
    }
}

/// Every field of a save, as in the table of the documentation.
const GOLDEN: [(&str, &str); 24] = [
    ("magic", "73616d657469636b2d73617665"),
    ("version: 1", "0100"),
    ("length of the head: 117", "75000000"),
    ("game: pong", "04706f6e67"),
    ("session id: den-1800000000000", "1164656e2d31383030303030303030303030"),
    ("session: den", "0364656e"),
    ("build", "11111111111111111111111111111111"),
    ("commit: 0123abc", "0730313233616263"),
    ("schema", "2222222222222222222222222222222222222222222222222222222222222222"),
    ("setup: 1 2 3", "03010203"),
    ("seed: 7", "07"),
    ("rate_hz: 60", "3c"),
    ("seats: 4", "04"),
    ("tick: 900", "8407"),
    ("hash", "ecf8f6f9c0fc838cd301"),
    ("started_unix_ms", "80a0f1c2b134"),
    ("saved_unix_ms", "9895f2c2b134"),
    ("listed: yes", "01"),
    ("length of the state: 16", "10"),
    ("length of the table: 2", "02"),
    ("crc of the head", "69c8342d"),
    ("state", "84030000000000000000000000000000"),
    ("table", "0908"),
    ("crc of all", "3f4c9246"),
];

fn any_save() -> impl Strategy<Value = Save> {
    let texts = ("[a-z]{0,64}", "[a-z0-9-]{0,255}", "\\PC{0,60}", "[0-9a-f]{0,40}");
    let numbers = (any::<u64>(), 1..=1000u16, any::<u16>(), any::<u32>(), any::<[u64; 3]>(), any::<bool>());
    let bytes = |max| proptest::collection::vec(any::<u8>(), 0..max);
    let ids = (any::<[u8; 16]>(), any::<[u8; 32]>());
    (texts, numbers, ids, bytes(40), bytes(300), bytes(100)).prop_map(
        |(texts, numbers, ids, setup, state, table)| {
            let (game, session_id, session, commit) = texts;
            let (seed, rate, seats, tick, [hash, started_unix_ms, saved_unix_ms], listed) = numbers;
            let info = SaveInfo {
                game,
                session_id,
                session,
                build: BuildId::from_bytes(ids.0),
                commit,
                schema: SchemaHash::from_bytes(ids.1),
                setup,
                seed,
                rate: TickRate::hz(rate),
                seats,
                tick: Tick(tick),
                hash: StateHash(hash),
                started_unix_ms,
                saved_unix_ms,
                listed,
            };
            Save { info, state, table }
        },
    )
}

proptest! {
    #[test]
    fn a_save_comes_back_as_it_was(save in any_save()) {
        let bytes = save.to_bytes().unwrap();
        prop_assert_eq!(SaveInfo::from_prefix(&bytes), Ok(save.info.clone()));
        prop_assert_eq!(Save::from_bytes(&bytes), Ok(save));
    }

    #[test]
    fn any_save_bytes_are_refused_or_understood(bytes: Vec<u8>, at in 0..200usize) {
        let _ = Save::from_bytes(&bytes);
        let whole = save(900, 0).to_bytes().unwrap();
        let spoiled = [&whole[..at.min(whole.len())], &bytes].concat();
        prop_assert_eq!(Save::from_bytes(&spoiled).is_ok(), spoiled == whole);
    }
}

#[test]
fn every_cut_is_refused_and_reported_as_a_cut() {
    let bytes = save(900, 0).to_bytes().unwrap();
    for len in 0..bytes.len() {
        assert!(matches!(Save::from_bytes(&bytes[..len]), Err(BadSave::Cut { found, .. }) if found == len));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Save::from_bytes(&longer), Err(BadSave::TooLong { extra: 1 }));
}

#[test]
fn every_flipped_bit_is_refused() {
    let whole = save(900, 0).to_bytes().unwrap();
    let mut bytes = whole.clone();
    for bit in 0..8 * bytes.len() {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = Save::from_bytes(&bytes).expect_err("a flipped bit");
        let said = match bit / 8 {
            0..13 => error == BadSave::NotASave,
            13..15 => matches!(error, BadSave::Version { .. }),
            // A wrong length makes the head end elsewhere, or nowhere.
            15..19 => !matches!(error, BadSave::NotASave | BadSave::Version { .. }),
            _ => matches!(error, BadSave::Damaged { .. }),
        };
        assert!(said, "bit {bit}: {error}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(bytes == whole);
}

#[test]
fn nonsense_with_a_right_checksum_is_refused() {
    let good = save(900, 0).to_bytes().unwrap();
    let head = |head: &[u8]| {
        let mut bytes = [&good[..15], &(head.len() as u32).to_le_bytes(), head].concat();
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    };
    let nonsense = Err(BadSave::Nonsense("its head is none"));
    assert_eq!(SaveInfo::from_prefix(&head(&[])), nonsense);
    assert_eq!(SaveInfo::from_prefix(&head(&[0xff; 200])), nonsense);
    let len = u32::from_le_bytes(good[15..19].try_into().unwrap()) as usize;
    assert!(SaveInfo::from_prefix(&head(&good[19..19 + len])).is_ok());
    let longer = [&good[19..19 + len], &[0]].concat();
    assert_eq!(SaveInfo::from_prefix(&head(&longer)), nonsense);
    // A huge length is refused before anything is allocated for it.
    let claim = [&good[..15], &u32::MAX.to_le_bytes()].concat();
    assert_eq!(SaveInfo::from_prefix(&claim), Err(BadSave::Nonsense("its head is too long")));
}

#[test]
fn limits_are_kept_and_the_longest_prefix_is_long_enough() {
    let mut largest = save(900, 0);
    largest.info.setup = vec![1; 64 * 1024];
    largest.info.session = "s".repeat(255);
    largest.info.session_id = "s".repeat(255);
    largest.info.game = "g".repeat(64);
    largest.info.commit = "c".repeat(64);
    largest.state = vec![1; MAX_STATE_BYTES];
    largest.table = vec![1; MAX_TABLE_BYTES];
    let bytes = largest.to_bytes().unwrap();
    assert_eq!(SaveInfo::from_prefix(&bytes[..MAX_PREFIX_BYTES]).as_ref(), Ok(&largest.info));
    assert_eq!(Save::from_bytes(&bytes).unwrap(), largest);
    largest.state.push(1);
    let error = largest.to_bytes().unwrap_err().to_string();
    assert_eq!(error, "the state of a save takes at most 8388608 bytes");
}

#[test]
fn a_state_with_another_hash_is_detected() {
    let mut save = save(900, 0);
    assert!(save.is_true());
    save.state[0] ^= 1;
    let read = Save::from_bytes(&save.to_bytes().unwrap()).unwrap();
    assert!(!read.is_true(), "whole, but not true");
}

#[test]
fn keys_name_their_session_and_nothing_else_is_a_key() {
    let key = SessionKey::of(BuildId::from_bytes([0xab; 16]), "../söme where/x", 17);
    assert_eq!(key.id(), "___s_me_where_x-17");
    let build = "ab".repeat(16);
    assert_eq!(key.segment(Tick(1201), 0), format!("sessions/{build}/{}/log.1201", key.id()));
    assert_eq!(key.segment(Tick(1201), 2), format!("sessions/{build}/{}/log.1201.2", key.id()));
    for object in [key.save(), key.log(), key.segment(Tick(1), 0)] {
        let (session, name) = SessionKey::of_object(&object).unwrap();
        assert_eq!((&session, &*session.prefix()), (&key, object.strip_suffix(name).unwrap()));
    }
    for wrong in ["", "sessions/", "sessions/ab/x/save", &format!("sessions/{build}/../save"), &key.prefix()]
    {
        assert_eq!(SessionKey::of_object(wrong), None, "{wrong}");
    }
}
