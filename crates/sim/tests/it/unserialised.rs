//! The sync-test reports declared fields that are not serialised, however late they matter, and no others.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use sametick_sim::sync_test::{Cause, Desync, Subject, sync_test};
use sametick_sim::{BuildId, Game, Inputs, Schema, Seat, Tick, TickRate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::rich::Rich;

/// A type that a test uses as state or input.
trait Part: Clone + Serialize + DeserializeOwned + Schema + 'static {
    fn first() -> Self;
    fn after(&mut self, _ticks: u32) {}
}

/// A game with this state and a constant input of this type.
#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(bound(deserialize = "P: DeserializeOwned"))]
struct Keeping<P, I = ()> {
    ticks: u32,
    part: P,
    #[serde(skip)]
    input: PhantomData<I>,
}

impl<P: Part, I: Part + PartialEq> Game for Keeping<P, I> {
    const NAME: &'static str = "keeping";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = sametick_sim::BUILD;
    type Setup = P;
    type Input = I;

    fn new(part: &P) -> Self {
        Keeping { ticks: 0, part: part.clone(), input: PhantomData }
    }

    fn step(&mut self, _: &Inputs<I>) {
        self.ticks += 1;
        self.part.after(self.ticks);
    }
}

/// The report for a game with this state, in so few ticks that no hidden field of it matters.
fn find<P: Part, I: Part + PartialEq>() -> Option<(Subject, Tick, Vec<String>)> {
    let result = sync_test::<Keeping<P, I>>(&P::first(), 8, 3, |_, inputs| inputs.set(Seat(0), I::first()));
    let Desync { tick, cause, differences } = result.err()?;
    let Cause::Unserialised { of, fields } = cause else { panic!("{cause}: {differences:?}") };
    Some((of, tick, fields))
}

/// The reported fields of a state.
fn fields<P: Part>() -> Vec<String> {
    let (of, tick, fields) = find::<P, ()>().expect("a field is not serialised");
    assert_eq!((of, tick), (Subject::State, Tick(0)));
    fields
}

impl Part for () {
    fn first() {}
}

#[derive(Clone, PartialEq, Serialize, Deserialize, Schema)]
struct Player {
    x: i16,
    #[serde(skip)]
    aim: u8,
}

impl Part for Player {
    fn first() -> Player {
        Player { x: 1, aim: 2 }
    }
}

#[test]
fn a_skipped_field_is_named_though_it_never_matters() {
    assert_eq!(fields::<Player>(), ["part.aim"]);
}

#[test]
fn the_message_names_the_field_and_says_what_to_do() {
    let result = sync_test::<Keeping<Player>>(&Player::first(), 1, 1, |_, _| {});
    assert_eq!(
        result.unwrap_err().to_string(),
        "tick 0: the state has fields that are not serialised: part.aim. They are not saved, hashed or sent, so players \
         lose them on a rollback or a late join; remove #[serde(skip)] and its relatives"
    );
}

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Nested {
    players: Vec<Player>,
    by_name: BTreeMap<String, Option<Player>>,
    pair: (u8, [Player; 2]),
}

impl Part for Nested {
    fn first() -> Nested {
        // The lists are empty, and stay so.
        Nested { players: vec![], by_name: BTreeMap::new(), pair: (0, [Player::first(), Player::first()]) }
    }
}

#[test]
fn skipped_fields_of_structs_in_empty_lists_are_named() {
    assert_eq!(fields::<Nested>(), ["part.players[].aim", "part.by_name[]?.aim", "part.pair[][].aim"]);
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[expect(dead_code, reason = "the test is about what is declared")]
enum Phase {
    Waiting,
    Countdown(#[serde(skip)] u8),
    Running {
        round: u8,
        #[serde(skip)]
        clock: u32,
    },
    Over(Box<Player>),
    Scored(u8, #[serde(skip)] u16),
    #[serde(skip)]
    Paused,
}

impl Part for Phase {
    fn first() -> Phase {
        Phase::Waiting
    }
}

#[test]
fn unreached_skipped_variants_and_fields_are_named() {
    let mut found = fields::<Phase>();
    found.sort();
    assert_eq!(
        found,
        [
            "part::Countdown.0",
            "part::Over.aim",
            "part::Paused",
            "part::Running.clock",
            "part::Scored (1 of its 2 places)",
        ]
    );
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[expect(dead_code, reason = "the test is about what is declared")]
struct Conditional {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shots: Vec<u8>,
    #[serde(skip_serializing)]
    #[serde(default)]
    seen: u8,
    health: u8,
}

impl Part for Conditional {
    fn first() -> Conditional {
        Conditional { target: Some(1), shots: vec![1], seen: 1, health: 3 }
    }
}

#[test]
fn fields_that_are_left_out_under_a_condition_are_named() {
    let mut found = fields::<Conditional>();
    found.sort();
    assert_eq!(found, ["part.seen", "part.shots", "part.target"]);
}

/// A type that refuses every sample: only values of the session show which fields are missing.
#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "u32", into = "Written")]
struct Picky {
    number: u32,
    hidden: u32,
}

#[derive(Serialize)]
struct Written {
    number: u32,
}

impl From<Picky> for Written {
    fn from(picky: Picky) -> Written {
        Written { number: picky.number }
    }
}

impl TryFrom<u32> for Picky {
    type Error = &'static str;

    fn try_from(number: u32) -> Result<Picky, &'static str> {
        if number < 1_000 { Err("too small") } else { Ok(Picky { number, hidden: 0 }) }
    }
}

impl Part for Picky {
    fn first() -> Picky {
        Picky { number: 1_000, hidden: 0 }
    }

    fn after(&mut self, _: u32) {
        self.hidden += 1;
    }
}

#[test]
fn a_type_that_refuses_samples_is_looked_at_in_the_session() {
    let (of, tick, fields) = find::<Picky, ()>().unwrap();
    assert_eq!((of, tick, fields), (Subject::Setup, Tick(0), vec!["hidden".to_owned()]));
}

#[test]
fn skipped_fields_of_inputs_are_named() {
    let (of, _, fields) = find::<(), Player>().unwrap();
    assert_eq!((of, fields), (Subject::Input, vec!["aim".to_owned()]));
}

/// All serde attributes that change the serialised form of a type without losing data.
#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct Formed {
    first_name: u8,
    #[serde(rename = "x")]
    place: u8,
    #[serde(with = "as_number")]
    point: Point,
    kind: Kind,
    whole: Whole,
    #[serde(skip)]
    marker: PhantomData<u8>,
    rich: Rich,
}

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Point {
    x: u8,
    y: u8,
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    TheFirst,
    TheSecond(u8),
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(from = "(u8, u8)", into = "(u8, u8)")]
struct Whole {
    x: u8,
    y: u8,
}

impl From<(u8, u8)> for Whole {
    fn from((x, y): (u8, u8)) -> Whole {
        Whole { x, y }
    }
}

impl From<Whole> for (u8, u8) {
    fn from(whole: Whole) -> (u8, u8) {
        (whole.x, whole.y)
    }
}

mod as_number {
    //! A point as one number.
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Point;

    pub fn serialize<S: Serializer>(point: &Point, serializer: S) -> Result<S::Ok, S::Error> {
        (u16::from(point.x) << 8 | u16::from(point.y)).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Point, D::Error> {
        let [x, y] = u16::deserialize(deserializer)?.to_be_bytes();
        Ok(Point { x, y })
    }
}

impl Part for Formed {
    fn first() -> Formed {
        Formed {
            first_name: 1,
            place: 2,
            point: Point { x: 3, y: 4 },
            kind: Kind::TheSecond(5),
            whole: Whole { x: 6, y: 7 },
            marker: PhantomData,
            rich: crate::rich::sample(),
        }
    }

    fn after(&mut self, ticks: u32) {
        self.kind = if ticks.is_multiple_of(2) { Kind::TheFirst } else { Kind::TheSecond(ticks as u8) };
    }
}

#[test]
fn other_forms_of_a_type_are_no_false_alarm() {
    assert_eq!(find::<Formed, ()>(), None);
}
