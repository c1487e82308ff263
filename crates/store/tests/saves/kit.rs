//! Saves to test with.

use sametick_sim::{BuildId, SchemaHash, StateHash, Tick, TickRate, Time};
use sametick_store::saves::{ObjectStore, Outcome, Save, SaveInfo, SaveSync, SessionKey, Todo, at_once};

pub fn key() -> SessionKey {
    SessionKey::of(BuildId::from_bytes([0x11; 16]), "den", 1_800_000_000_000)
}

/// A save of this tick, whose state names its tick and its maker.
pub fn save(tick: u32, maker: u64) -> Save {
    let state = [u64::from(tick).to_le_bytes(), maker.to_le_bytes()].concat();
    let info = SaveInfo {
        game: "pong".into(),
        session_id: key().id().into(),
        session: "den".into(),
        build: key().build(),
        commit: "0123abc".into(),
        schema: SchemaHash::from_bytes([0x22; 32]),
        setup: vec![1, 2, 3],
        seed: 7,
        rate: TickRate::hz(60),
        seats: 4,
        tick: Tick(tick),
        hash: StateHash::of_bytes(&state),
        started_unix_ms: 1_800_000_000_000,
        saved_unix_ms: 1_800_000_015_000 + maker,
        listed: true,
    };
    Save { info, state, table: vec![9, 8] }
}

/// Uploads a save to a store that answers at once. Time is virtual: waiting takes no time.
pub fn bring(save: &Save, seed: u64, store: &dyn ObjectStore) -> Outcome {
    let (mut sync, bytes) = (SaveSync::new(save.info.clone(), seed), save.to_bytes().unwrap());
    let mut now = Time::ZERO;
    loop {
        while at_once(sync.advance(store, &key().save(), &bytes, &|| now)) {}
        match sync.todo(now) {
            Todo::WaitUntil(until) => now = until,
            Todo::Done(outcome) => return outcome,
            _ => unreachable!("it was advanced"),
        }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
