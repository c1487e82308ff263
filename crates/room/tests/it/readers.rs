//! The Python reader in docs/room-updates.md decodes what this crate encodes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use sametick_room::delta;
use sametick_room::models::Models;
use sametick_room::snapshot::{KnownEntities, Layout, Mark, Snapshot};
use sametick_sim::maths::{Quat, Vec2};
use sametick_sim::replica::{Code, Entity, Field, Motion};
use sametick_sim::{Rng, Tick};

const DOCUMENT: &str = include_str!("../../../../docs/room-updates.md");

/// A field of every kind of motion.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "craft", zone(near within 1000.0 at 10 hz), zone(far within 3000.0 at 2 hz))]
struct Craft {
    #[entity(place, step = 0.01)]
    at: Vec2,
    #[entity(step = 9.0)]
    rotation: Quat,
    #[entity(turn = 256)]
    heading: u8,
    fuel: Option<u16>,
}

/// An entity that rests for long.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "stone")]
struct Stone {
    at: [i16; 2],
    kind: u8,
}

/// Reads all updates, each with the models of its base, and compares.
const DRIVER: &str = r#"
class F: pass
class Plan: pass
def plan_of(fields):
    plan, slot, lane = Plan(), 0, 0
    plan.fields = []
    for slots, way in fields:
        f = F()
        f.way, f.first, f.last, f.first_lane = way, slot, slot + slots, lane
        lane += 0 if way == "step" else slots
        slot, f.last_lane = slot + slots, lane
        plan.fields.append(f)
    plan.width, plan.lanes = slot, lane
    return plan
from copy import deepcopy
plans = [plan_of(fields) for fields in FIELDS]
fresh = lambda: [(TableModels([f.way for f in plan.fields]), [], [Pull() for _ in range(plan.lanes)]) for plan in plans]
kept = {0: fresh()}
for tick, base, data, expected in UPDATES:
    coder, tables = Coder(data), []
    for plan, (models, rows, pulls) in zip(plans, kept[base]):
        models, pulls = deepcopy(models), deepcopy(pulls)
        tables.append((models, read_table(coder, models, plan, rows, pulls, base, tick), pulls))
    assert not coder.overrun() and coder.taken >= len(data), (tick, coder.taken, len(data))
    read = [[(row.number, row.zone, row.at, row.slots) for row in rows] for _, rows, _ in tables]
    assert read == expected, f"tick {tick} from {base}: {read} is not {expected}"
    kept[tick] = tables
print("read", len(UPDATES))
"#;

fn way_of(field: &Field) -> String {
    match (field.motion, field.code) {
        (Motion::Step, _) => "\"step\"".into(),
        (Motion::Smooth, _) => "\"smooth\"".into(),
        (Motion::Turn(circle), _) => format!("(\"turn\", {circle})"),
        (Motion::Rotation, Code::Rotation { bits }) => format!("(\"rotation\", {bits})"),
        (Motion::Rotation, _) => panic!("{field:?}"),
    }
}

fn table_as_python(table: &KnownEntities) -> String {
    let rows = table.marks().iter().enumerate();
    rows.fold("[".to_owned(), |mut out, (index, Mark { id, zone, at })| {
        write!(out, "({id}, {zone}, {}, {:?}),", at.0, table.slots(index)).unwrap();
        out
    }) + "]"
}

/// The entities some ticks later.
fn later(rng: &mut Rng, was: &Snapshot, tick: Tick, layout: &Layout) -> Snapshot {
    let mut now = Snapshot::new(layout);
    now.tick = tick;
    for (at, table) in now.tables.iter_mut().enumerate() {
        let (known, moves) = (&was.tables[at], at == 0);
        for id in 0..12u32 {
            let found = known.find(id);
            let stays = if found.is_ok() { rng.below(40) > 0 } else { rng.below(6) == 0 };
            if !stays {
                continue;
            }
            let before = found.ok().map(|index| (known.marks()[index], known.slots(index).to_vec()));
            let is_calm = rng.below(if moves { 4 } else { 30 }) != 0 && !moves || rng.below(5) == 0;
            if let Some((mark, slots)) = before.as_ref().filter(|_| is_calm) {
                table.push(*mark).copy_from_slice(slots);
                continue;
            }
            let zone = if moves { rng.below(2) as u8 } else { 0 };
            let slots = table.push(Mark { id, zone, at: tick });
            if let Some((_, before)) = &before {
                slots.copy_from_slice(before);
            }
            change(rng, moves, slots, before.is_none(), tick);
        }
    }
    now
}

fn change(rng: &mut Rng, moves: bool, slots: &mut [i32], is_new: bool, tick: Tick) {
    let mut random = |wide: u64| rng.below(2 * wide + 1) as i32 - wide as i32;
    if !moves {
        slots.iter_mut().for_each(|slot| *slot = random(200));
        return;
    }
    if is_new {
        (slots[0], slots[1]) = (random(100_000), random(100_000));
        slots[2..6].copy_from_slice(&[random(1).abs(), random(60), random(60), random(60)]);
    }
    // Mostly straight on, sometimes a jump.
    let leap = if random(10) == 0 { 5_000 } else { 2 };
    slots[0] += 30 + random(leap);
    slots[1] += (tick.0 % 20) as i32 - random(2);
    for slot in &mut slots[3..6] {
        *slot = (*slot + 3 + random(2)).clamp(-100, 100);
    }
    slots[6] = (slots[6] + 5 + random(1)).rem_euclid(256);
    (slots[7], slots[8]) = if random(3) == 0 { (0, 0) } else { (1, random(50).abs()) };
}

#[test]
fn the_reader_of_the_docs_reads_what_is_written() {
    if !Command::new("python3").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    {
        println!("skipped: there is no python3; `cargo xtask setup` brings it");
        return;
    }
    let layout = Layout::new(&[Craft::KIND, Stone::KIND]);
    let mut script: String =
        DOCUMENT.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let fields = |kind: &sametick_sim::replica::Kind| {
        let fields = kind.fields.iter().map(|field| format!("({}, {}),", field.slots, way_of(field)));
        format!("[{}],", fields.collect::<String>())
    };
    writeln!(script, "FIELDS = [{}]", layout.kinds().iter().map(fields).collect::<String>()).unwrap();
    script += "UPDATES = [\n";
    let mut rng = Rng::new(7);
    let mut kept = vec![(Snapshot::new(&layout), Models::new(&layout))];
    for _ in 0..60 {
        let (newest, _) = kept.last().unwrap();
        let tick = newest.tick + 1 + rng.below(6) as u32;
        let target = later(&mut rng, newest, tick, &layout);
        let back =
            if rng.below(20) == 0 { kept.len() } else { 1 + rng.below(kept.len().min(4) as u64) as usize };
        let (base, models) = &kept[kept.len() - back];
        let (mut models, mut bytes) = (models.clone(), Vec::new());
        delta::encode(&mut models, base, &target, &mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let tables: String = target.tables.iter().map(|table| table_as_python(table) + ",").collect();
        writeln!(script, "({}, {}, bytes.fromhex(\"{hex}\"), [{tables}]),", tick.0, base.tick.0).unwrap();
        kept.push((target, models));
    }
    script += "]\n";
    script += DRIVER;
    let mut python = Command::new("python3")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let told = python.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&told.stdout),
        "read 60\n",
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );
}
