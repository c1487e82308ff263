//! Session copies for the browser's storage: the bytes of a save, which native tools read as well (docs/saves.md).

use sametick_client::SessionCopy;
use sametick_lockstep::rows::Table;
use sametick_lockstep::session::{self, Facts};
use sametick_sim::StateHash;
use sametick_store::log::Header;
use sametick_store::save::{MAX_SAVE_BYTES, Save, SaveInfo, SessionKey};
use serde::Serialize;

/// The description of a save for a page.
#[derive(Debug, Serialize)]
pub struct PageSave {
    game: String,
    /// The id of the session in stores.
    id: String,
    session: String,
    build: String,
    tick: u32,
    seats: u16,
    started_unix_ms: u64,
    saved_unix_ms: u64,
}

/// Encodes a copy that is stored at this time.
pub fn to_bytes(copy: &SessionCopy, saved_unix_ms: u64) -> Option<Vec<u8>> {
    let SessionCopy { facts, started_unix_ms, save } = copy;
    let header = Header {
        commit: facts.commit.clone(),
        build: facts.build,
        schema: facts.schema,
        setup: facts.setup.clone(),
        seed: facts.seed,
        rate: facts.rate,
        seats: facts.seats,
        listed: facts.listed,
        started_unix_ms: *started_unix_ms,
        ..Header::new(&*facts.game, &*facts.name)
    };
    let key = SessionKey::of(facts.build, &facts.name, *started_unix_ms);
    let (tick, hash) = (save.tick, save.hash);
    let info = SaveInfo { tick, hash, saved_unix_ms, ..SaveInfo::of_log(&header, key.id()) };
    let save = Save { info, state: save.state.clone(), table: save.table.to_bytes() };
    save.to_bytes().ok()
}

fn read(bytes: &[u8]) -> Result<Save, String> {
    if bytes.len() > MAX_SAVE_BYTES {
        return Err(format!(
            "the file has {} bytes, and no save has more than {MAX_SAVE_BYTES}",
            bytes.len()
        ));
    }
    let save = Save::from_bytes(bytes).map_err(|error| error.to_string())?;
    let SaveInfo { build, session, started_unix_ms, session_id, .. } = &save.info;
    if SessionKey::of(*build, session, *started_unix_ms).id() != session_id {
        return Err("this is a save of a room; only sessions in lockstep can be brought".into());
    }
    let found = StateHash::of_bytes(&save.state);
    if found != save.info.hash {
        return Err(format!(
            "the save is damaged: its state hashes to {found}, and it says {}",
            save.info.hash
        ));
    }
    Ok(save)
}

/// Describes a save from its bytes; a sentence if they are invalid.
pub fn describe(bytes: &[u8]) -> Result<PageSave, String> {
    let SaveInfo { game, session_id, session, build, tick, seats, started_unix_ms, saved_unix_ms, .. } =
        read(bytes)?.info;
    let (build, tick) = (build.to_string(), tick.0);
    Ok(PageSave { game, id: session_id, session, build, tick, seats, started_unix_ms, saved_unix_ms })
}

/// Decodes a copy; a sentence if the bytes are invalid.
pub fn from_bytes(bytes: &[u8]) -> Result<SessionCopy, String> {
    let Save { info, state, table } = read(bytes)?;
    let table = Table::from_bytes(&table).map_err(|_| "the save does not say who sat where")?;
    let SaveInfo { game, session, build, commit, schema, setup, seed, rate, seats, listed, .. } = info;
    let facts = Facts { name: session, game, build, commit, schema, setup, seed, rate, seats, listed };
    let save = session::Save { tick: info.tick, hash: info.hash, state, table };
    Ok(SessionCopy { facts, started_unix_ms: info.started_unix_ms, save })
}

#[cfg(test)]
mod tests {
    use sametick_pong::{Pong, Setup};
    use sametick_sim::{Game, Tick, schema_hash_of, to_canonical};

    use super::*;

    fn copy() -> SessionCopy {
        let setup = Setup { seed: 7, ..Setup::default() };
        let state = to_canonical(&Pong::new(&setup)).unwrap();
        let facts = Facts {
            name: "den".into(),
            game: Pong::NAME.into(),
            build: Pong::BUILD,
            commit: "browser".into(),
            schema: schema_hash_of::<Pong>(),
            setup: to_canonical(&setup).unwrap(),
            seed: 7,
            rate: Pong::RATE,
            seats: 2,
            listed: true,
        };
        let hash = StateHash::of_bytes(&state);
        let save = session::Save { tick: Tick(90), hash, state, table: Table::default() };
        SessionCopy { facts, started_unix_ms: 1_800_000_000_000, save }
    }

    #[test]
    fn a_copy_round_trips_and_describes_its_session() {
        let bytes = to_bytes(&copy(), 1_800_000_009_000).unwrap();
        assert_eq!(from_bytes(&bytes).unwrap(), copy());
        let page = describe(&bytes).unwrap();
        assert_eq!((page.id.as_str(), page.tick, page.seats), ("den-1800000000000", 90, 2));
        assert_eq!((page.game.as_str(), page.session.as_str()), ("pong", "den"));
        assert_eq!((page.started_unix_ms, page.saved_unix_ms), (1_800_000_000_000, 1_800_000_009_000));
        assert_eq!(from_bytes(&bytes).unwrap().check::<Pong>("den"), Ok(()));
    }

    #[test]
    fn invalid_bytes_are_refused_with_a_reason() {
        let bytes = to_bytes(&copy(), 5).unwrap();
        let why = |bytes: &[u8]| describe(bytes).unwrap_err();
        assert!(why(b"dear diary").contains("not a save"));
        assert!(why(&bytes[..bytes.len() - 3]).contains("cut off"));
        assert!(why(&vec![0; MAX_SAVE_BYTES + 1]).contains("no save has more than"));
        let mut wrong = copy();
        wrong.save.hash = StateHash(1);
        assert!(why(&to_bytes(&wrong, 5).unwrap()).contains("damaged"));
    }
}
