//! Generates the committed seeds of the room's targets and compares them: `SEEDS=write cargo test --manifest-path
//! fuzz/Cargo.toml --test room_seeds` writes them anew after a change of the format.

#![allow(
    clippy::disallowed_methods,
    reason = "a test that writes files asks the environment whether it should"
)]

use std::fs;
use std::path::Path;

use sametick_fuzz::Craft;
use sametick_room::delta;
use sametick_room::models::Models;
use sametick_room::snapshot::{Layout, Mark, Snapshot};
use sametick_sim::replica::Entity;
use sametick_sim::{Quat, Tick, Vec2, Vec3};

#[test]
fn seeds_are_of_this_protocol() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/delta");
    let write = std::env::var_os("SEEDS").is_some_and(|what| what == "write");
    for (name, bytes) in [("flight", flight(6)), ("one", flight(1))] {
        let path = folder.join(name);
        if write {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|read| read == bytes), "delta/{name} differs");
    }
}

/// Craft spawn, fly, turn, change zones and leave.
fn flight(updates: u32) -> Vec<u8> {
    let layout = Layout::new(&[Craft::KIND]);
    let (mut base, mut models) = (Snapshot::new(&layout), Models::new(&layout));
    let mut all = vec![];
    for update in 1..=updates {
        let mut target = Snapshot::new(&layout);
        target.tick = Tick(update * 3);
        for id in (0..5).filter(|id| (id + update) % 7 != 0) {
            let (time, speed) = (update as f32, id as f32 + 0.5);
            let craft = Craft {
                at: Vec2::new(time * speed, 9.0),
                rotation: Quat::from_axis_angle(Vec3::new(0.0, 1.0, 0.0), time * 0.2),
                heading: (update * 9) as u8,
                fuel: (id != 3).then_some(100 - update as u16),
            };
            let mark = Mark { id: id * 10, zone: (update / 4) as u8, at: target.tick };
            craft.put(target.tables[0].push(mark));
        }
        let mut delta = vec![];
        delta::encode(&mut models, &base, &target, &mut delta);
        all.push(3);
        all.push(u8::try_from(delta.len()).expect("a short delta"));
        all.append(&mut delta);
        base = target;
    }
    all
}
