//! The sync-test finds violations of determinism, with the right tick and field.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use sametick_sim::sync_test::{Cause, Desync, Via, sync_test};
use sametick_sim::{BuildId, Game, Inputs, Rng, Schema, Seat, StateHash, Tick, TickRate};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A game with the given fields, first state and step over `u8` inputs.
macro_rules! game {
    ($name:ident { $($(#[$meta:meta])* $field:ident: $type:ty = $start:expr),* $(,)? }, $step:expr) => {
        #[derive(Clone, Serialize, Deserialize, Schema)]
        struct $name { $($(#[$meta])* $field: $type,)* }

        impl Game for $name {
            const NAME: &'static str = stringify!($name);
            const RATE: TickRate = TickRate::hz(60);
            const BUILD: BuildId = sametick_sim::BUILD;
            type Setup = u64;
            type Input = u8;

            fn new(_setup: &u64) -> Self {
                $name { $($field: $start,)* }
            }

            fn step(&mut self, inputs: &Inputs<u8>) {
                let step: fn(&mut $name, &Inputs<u8>) = $step;
                step(self, inputs);
            }
        }
    };
}

fn run<G: Game<Setup = u64, Input = u8>>(ticks: u32, depth: u32) -> Result<StateHash, Desync> {
    let mut rng = Rng::new(3);
    sync_test::<G>(&1, ticks, depth, |_, inputs| inputs.set(Seat(0), rng.below(4) as u8))
}

fn first_field(desync: &Desync) -> String {
    desync.differences.first().map(ToString::to_string).unwrap_or_default()
}

game!(Honest { rng: Rng = Rng::new(9), heat: f32 = 0.0, seen: Vec<u8> = vec![], }, |game, inputs| {
    for row in inputs {
        game.heat = sametick_sim::maths::sin(game.heat + f32::from(*row.input_or(&0)));
        game.seen.push(game.rng.below(9) as u8);
    }
});

#[test]
fn an_honest_game_passes_and_its_hash_can_be_pinned() {
    assert_eq!(run::<Honest>(100, 8), run::<Honest>(100, 3));
    assert_eq!(run::<Honest>(100, 8).unwrap().to_string(), "15f2a0d83c4d1af6");
    assert!(run::<Honest>(0, 0).is_ok());
}

/// A number that is serialised as nothing, also in its schema: only its effect in the game reveals it.
#[derive(Clone, Default)]
struct Hidden(u32);

impl Schema for Hidden {
    const SCHEMA: &'static sametick_sim::schema::NamedType = <()>::SCHEMA;
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Hidden(0))
    }
}

game!(Hiding { score: u32 = 0, combo: Hidden = Hidden(0) }, |game, _| {
    game.combo.0 += 1;
    // Shows only in every fifth tick: until then the hidden counter makes no difference.
    if game.combo.0 % 5 == 0 {
        game.score += game.combo.0;
    }
});

#[test]
fn unserialised_state_is_found_by_its_effects() {
    let desync = run::<Hiding>(100, 8).unwrap_err();
    assert_eq!(desync.tick, Tick(5));
    assert_eq!(desync.cause, Cause::Again { from: Tick(4), via: Via::Bytes });
    assert_eq!(first_field(&desync), "score: 5 != 0");
    assert!(desync.to_string().contains("part of the state is not serialised"), "{desync}");
}

game!(Late { score: u32 = 0, age: Hidden = Hidden(100) }, |game, _| {
    // Restored from bytes, the game has age zero; that shows three ticks later.
    game.age.0 += 1;
    game.score += u32::from(game.age.0 == 3);
});

#[test]
fn a_late_effect_needs_depth_to_be_found() {
    assert!(run::<Late>(100, 2).is_ok());
    let desync = run::<Late>(100, 3).unwrap_err();
    assert_eq!(desync.tick, Tick(3));
    assert_eq!(desync.cause, Cause::Again { from: Tick(0), via: Via::Bytes });
    assert_eq!(first_field(&desync), "score: 0 != 1");
}

static CALLS: AtomicU32 = AtomicU32::new(0);

game!(Global { ticks: u32 = 0, luck: Option<u32> = None, }, |game, _| {
    game.ticks += 1;
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    if game.ticks == 4 {
        game.luck = Some(calls);
    }
});

#[test]
fn a_step_that_uses_a_static_is_found() {
    let desync = run::<Global>(100, 6).unwrap_err();
    assert_eq!(desync.tick, Tick(4));
    assert_eq!(desync.cause, Cause::Again { from: Tick(3), via: Via::Clone });
    assert!(first_field(&desync).starts_with("luck?: "), "{desync}");
    assert!(desync.to_string().contains("something outside the state"), "{desync}");
}

/// A number behind a pointer that clones share.
#[derive(Clone, Default)]
struct Aliased(Rc<Cell<u32>>);

impl Schema for Aliased {
    const SCHEMA: &'static sametick_sim::schema::NamedType = u32::SCHEMA;
}

impl Serialize for Aliased {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Aliased {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Aliased(Rc::new(Cell::new(u32::deserialize(deserializer)?))))
    }
}

game!(Sharing { other: u8 = 0, count: Aliased = Aliased::default() }, |game, _| {
    game.count.0.set(game.count.0.get() + 1);
});

#[test]
fn clones_that_share_memory_are_found() {
    let desync = run::<Sharing>(10, 4).unwrap_err();
    assert_eq!(desync.tick, Tick(1));
    assert!(first_field(&desync).starts_with("count: 1 != "), "{desync}");
}

game!(
    Lossy {
        #[serde(with = "rounded")]
        heat: f32 = 0.5,
    },
    |game, _| game.heat += 0.25
);

mod rounded {
    //! Serialises less than the value.
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(heat: &f32, serializer: S) -> Result<S::Ok, S::Error> {
        heat.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
        Ok((f32::deserialize(deserializer)? * 2.0) as i32 as f32 / 2.0)
    }
}

#[test]
fn a_state_that_does_not_survive_a_save_is_found() {
    let desync = run::<Lossy>(10, 4).unwrap_err();
    assert_eq!((desync.tick, desync.cause.clone()), (Tick(1), Cause::RoundTrip));
    assert_eq!(first_field(&desync), "heat: 0.75 != 0.5");
}

static GAMES: AtomicU32 = AtomicU32::new(0);

game!(Numbered { number: u32 = GAMES.fetch_add(1, Ordering::Relaxed) }, |_, _| {});

#[test]
fn a_start_that_depends_on_more_than_the_setup_is_found() {
    let desync = run::<Numbered>(10, 4).unwrap_err();
    assert_eq!((desync.tick, desync.cause.clone()), (Tick(0), Cause::New));
    assert_eq!(first_field(&desync), "number: 0 != 1");
}

game!(NanBits { heat: f32 = 0.0, signs: u32 = 0 }, |game, _| {
    game.heat = f32::from_bits(0xffc0_0001);
    game.signs += game.heat.to_bits() >> 31;
});

game!(NanKeeper { heat: f32 = f32::from_bits(0xffc0_0001), signs: u32 = 0 }, |game, _| {
    game.signs += game.heat.to_bits() >> 31;
});

#[test]
fn a_game_that_looks_at_the_bits_of_a_kept_nan_is_found() {
    assert!(run::<NanBits>(10, 4).is_ok(), "bits that the game itself wrote are the same everywhere");
    let desync = run::<NanKeeper>(10, 4).unwrap_err();
    assert_eq!((desync.tick, first_field(&desync).as_str()), (Tick(1), "signs: 1 != 0"));
}
