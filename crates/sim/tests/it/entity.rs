//! Entities: encoding, interpolation and declarations.

use proptest::prelude::*;
use sametick_sim::replica::{Code, Entity, Kind, Motion, Plain, Scene, ViewId, markdown};
use sametick_sim::{Fixed, Quat, Seat, Tick, Vec2, Vec3};

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(
    name = "thing",
    feature = "movement",
    zone(near within 10.0 at 10 hz),
    zone(far within 1e3 at 2 hz)
)]
struct Thing {
    #[entity(place, step = 0.5)]
    at: Vec3,
    #[entity(step = 12, zones = "near")]
    rotation: Quat,
    #[entity(turn = 256)]
    heading: u8,
    #[entity(step = 10, hz = 5)]
    energy: u16,
    #[entity(owner)]
    secret: i32,
    on: bool,
    seat: Option<Seat>,
    since: Tick,
    height: Fixed,
    counts: [i8; 3],
    bits: u32,
}

fn thing(numbers: [i32; 8], reals: [f32; 7], on: bool) -> Thing {
    let [a, b, c, d, e, f, g, h] = numbers;
    let [x, y, z, p, q, r, s] = reals;
    Thing {
        at: Vec3::new(x, y, z),
        rotation: Quat { x: p, y: q, z: r, w: s }.normalised(),
        heading: a as u8,
        energy: b as u16,
        secret: c,
        on,
        seat: on.then_some(Seat(d as u8 as _)),
        since: Tick(e as u32),
        height: Fixed::from_bits(f),
        counts: [g as i8, g as i8 / 2, 3],
        bits: h as u32,
    }
}

fn codes(thing: &Thing) -> Vec<i32> {
    let mut slots = vec![0; Thing::KIND.width()];
    thing.put(&mut slots);
    slots
}

proptest! {
    #[test]
    fn decoded_entities_encode_to_the_same_codes(
        numbers in any::<[i32; 8]>(), reals in prop::array::uniform7(-1e6f32..1e6), on: bool,
    ) {
        let thing = thing(numbers, reals, on);
        let slots = codes(&thing);
        let read = Thing::take(&slots).unwrap();
        prop_assert_eq!(&slots[..3], &codes(&read)[..3]);
        prop_assert_eq!(&slots[7..], &codes(&read)[7..]);
        prop_assert!((read.at - thing.at).length() < 1.0);
        prop_assert!(read.rotation.dot(thing.rotation).abs() > 0.999);
        prop_assert!(read.energy.abs_diff(thing.energy) <= 5 || thing.energy > u16::MAX - 5);
        prop_assert_eq!(
            (read.heading, read.secret, read.on, read.seat, read.since, read.height, read.counts, read.bits),
            (thing.heading, thing.secret, thing.on, thing.seat, thing.since, thing.height, thing.counts, thing.bits)
        );
        prop_assert_eq!(read.place(), Some([read.at.x, read.at.y, read.at.z]));
        let plain: Vec<&str> = Thing::KIND.plain(&slots).map(|(name, _)| name).collect();
        prop_assert_eq!(plain.len(), Thing::KIND.fields.len());
    }

    #[test]
    fn any_codes_are_read_or_refused(slots in prop::collection::vec(any::<i32>(), 0..24)) {
        if let Some(thing) = Thing::take(&slots) {
            prop_assert_eq!(slots.len(), Thing::KIND.width());
            let _ = thing.between(&thing, 0.5);
        }
        let _ = Thing::KIND.plain(&slots).count();
    }
}

#[test]
fn a_declaration_says_everything() {
    let field = |name: &str| Thing::KIND.fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!((Thing::KIND.name, Thing::KIND.feature, Thing::KIND.zones.len()), ("thing", "movement", 2));
    assert_eq!((field("at").code, field("at").motion), (Code::Real { step: 0.5 }, Motion::Smooth));
    assert_eq!(
        (field("rotation").code, field("rotation").motion),
        (Code::Rotation { bits: 12 }, Motion::Rotation)
    );
    assert_eq!((field("rotation").zones, field("at").zones), (1, 2));
    assert_eq!((field("heading").motion, field("energy").hz), (Motion::Turn(256), Some(5)));
    assert!(field("secret").owner && !field("on").owner);
    let table = markdown(&[Thing::KIND]);
    assert!(
        table.contains("| thing | energy | steps of 10 | at once | near <10: 5 Hz, far <1000: 2 Hz | all |"),
        "{table}"
    );
}

#[test]
fn interpolation_stays_in_between() {
    let mut from = thing([250, 100, 1, 2, 3, 0, 4, 5], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], false);
    let to = Thing { heading: 6, at: Vec3::new(10.0, 0.0, -4.0), on: true, ..from.clone() };
    let middle = from.between(&to, 0.5);
    assert_eq!((middle.heading, middle.at, middle.on), (0, Vec3::new(5.0, 0.0, -2.0), false));
    assert_eq!(from.between(&to, 1.0), to);
    from.heading = 10;
    assert_eq!(from.between(&Thing { heading: 20, ..from.clone() }, 0.5).heading, 15);
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Other {
    at: u8,
}

static KINDS: &[Kind] = &[Other::KIND, Thing::KIND];

#[test]
fn scenes_keep_kinds_apart_and_numbers_in_order() {
    let mut scene = Scene::new(KINDS);
    scene.put(3, Some(ViewId(1)), &Other { at: 7 });
    scene.put(9, None, &Other { at: 8 });
    scene.put(3, None, &thing([0; 8], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], false));
    assert_eq!(scene.iter::<Other>().map(|(id, other)| (id, other.at)).collect::<Vec<_>>(), [(3, 7), (9, 8)]);
    assert_eq!(scene.get::<Other>(9), Some(Other { at: 8 }));
    assert_eq!(scene.get::<Other>(4), None);
    assert_eq!(scene.tables()[0].rows()[0].owner, Some(ViewId(1)));
    assert_eq!(Other::KIND.plain(&[5]).next(), Some(("at", Plain::Whole(5))));
    scene.clear();
    assert_eq!(scene.iter::<Other>().count(), 0);
    let _ = Vec2::ZERO;
}

#[test]
#[should_panic(expected = "in the order of their numbers")]
fn a_number_is_given_once() {
    let mut scene = Scene::new(KINDS);
    scene.put(3, None, &Other { at: 7 });
    scene.put(3, None, &Other { at: 8 });
}
