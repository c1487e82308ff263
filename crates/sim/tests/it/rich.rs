//! A type that uses all of serde's data model, with a proptest strategy for its values.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use sametick_sim::{Fixed, Quat, Schema, Seat, Tick, Vec2, Vec3};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Rich {
    pub flag: bool,
    pub small: (i8, u8, i16, u16),
    pub wide: (i32, u32, i64, u64),
    pub widest: (i128, u128),
    pub floats: (f32, f64),
    pub letter: char,
    pub text: String,
    pub maybe: Option<Option<u8>>,
    pub unit: (),
    pub empty: Empty,
    pub shapes: Vec<Shape>,
    pub nested: Vec<Vec<u16>>,
    pub named: BTreeMap<String, Vec2>,
    pub by_seat: BTreeMap<Seat, Pair>,
    pub by_pair: BTreeMap<(u8, bool), Tick>,
    pub set: BTreeSet<i32>,
    pub array: [i16; 3],
    pub turn: (Vec3, Quat, Fixed),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Empty;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Pair(pub u32, pub String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub enum Shape {
    Nothing,
    Circle(f32),
    Line(Vec2, Vec2),
    Box { min: Vec2, max: Vec2 },
}

fn vec2() -> impl Strategy<Value = Vec2> + Clone {
    (number(), number()).prop_map(|(x, y)| Vec2 { x, y })
}

/// Any float but NaN, which postcard does not write canonically.
fn number() -> impl Strategy<Value = f32> + Clone {
    use prop::num::f32::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Nothing),
        number().prop_map(Shape::Circle),
        (vec2(), vec2()).prop_map(|(a, b)| Shape::Line(a, b)),
        (vec2(), vec2()).prop_map(|(min, max)| Shape::Box { min, max }),
    ]
}

type Scalars = ((i8, u8, i16, u16), (i32, u32, i64, u64), (i128, u128), [i16; 3], char, bool);

pub fn rich() -> impl Strategy<Value = Rich> {
    let scalars = any::<Scalars>();
    let floats = (number(), number().prop_map(f64::from), vec2());
    let lists = (vec(shape(), 0..4), vec(vec(any::<u16>(), 0..4), 0..4), btree_set(any::<i32>(), 0..4));
    let maps = (
        btree_map(".{0,5}", vec2(), 0..4),
        btree_map(any::<u16>().prop_map(Seat), (any::<u32>(), ".{0,5}").prop_map(|(n, s)| Pair(n, s)), 0..4),
        btree_map(any::<(u8, bool)>(), any::<u32>().prop_map(Tick), 0..4),
    );
    (scalars, floats, lists, maps, any::<Option<Option<u8>>>(), ".{0,200}").prop_map(
        |(scalars, floats, lists, maps, maybe, text)| {
            let (small, wide, widest, array, letter, flag) = scalars;
            let turn = (
                Vec3::new(floats.0, 1.5, floats.2.x),
                Quat { x: floats.2.y, ..Quat::IDENTITY },
                Fixed::from_bits(wide.0),
            );
            Rich {
                flag,
                small,
                wide,
                widest,
                floats: (floats.0, floats.1),
                letter,
                text,
                maybe,
                unit: (),
                empty: Empty,
                shapes: lists.0,
                nested: lists.1,
                named: maps.0,
                by_seat: maps.1,
                by_pair: maps.2,
                set: lists.2,
                array,
                turn,
            }
        },
    )
}

/// One value of the type, always the same.
pub fn sample() -> Rich {
    let at = Vec2 { x: 1.5, y: -2.0 };
    Rich {
        flag: true,
        small: (-1, 255, -300, 300),
        wide: (i32::MIN, u32::MAX, i64::MIN, u64::MAX),
        widest: (i128::MIN, u128::MAX),
        floats: (0.1, -0.0),
        letter: 'ß',
        text: "tick".into(),
        maybe: Some(None),
        unit: (),
        empty: Empty,
        shapes: vec![Shape::Nothing, Shape::Circle(2.0), Shape::Box { min: at, max: Vec2::ZERO }],
        nested: vec![vec![1, 2], vec![], vec![3]],
        named: [("a".to_string(), at), ("b".to_string(), -at)].into(),
        by_seat: [(Seat(3), Pair(9, "nine".into()))].into(),
        by_pair: [((1, true), Tick(7))].into(),
        set: [5, -5].into(),
        array: [1, 2, 3],
        turn: (Vec3::new(1.0, 2.0, 3.0), Quat::IDENTITY, Fixed::ONE),
    }
}
