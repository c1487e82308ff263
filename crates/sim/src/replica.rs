//! What of a state others may see: entities of declared kinds, how coarse each field is, how far and how often it is
//! seen, and by whom. A [`Hosted`] game is one that a host can run for players who know only a part of it.
//!
//! A kind is declared once, with [`derive(Entity)`](derive@Entity). Encoding, deltas, interest, interpolation, the schema
//! hash and the table in the documentation follow from that one declaration.
//!
//! ```
//! use sametick_sim::{Vec2, replica::{Entity, Scene}};
//!
//! #[derive(Clone, Debug, PartialEq, Entity)]
//! #[entity(name = "ship", zone(near within 100.0 at 10 hz), zone(far within 500.0 at 2 hz))]
//! struct Ship {
//!     #[entity(place, step = 0.01)]
//!     at: Vec2,
//!     #[entity(turn = 256)]
//!     heading: u8,
//!     #[entity(zones = "near")]
//!     shields: u8,
//!     #[entity(owner)]
//!     cargo: u16,
//! }
//!
//! static KINDS: &[sametick_sim::replica::Kind] = &[Ship::KIND];
//! let mut scene = Scene::new(KINDS);
//! let ship = Ship { at: Vec2::new(1.0, 2.5), heading: 64, shields: 9, cargo: 3 };
//! scene.put(7, None, &ship);
//! assert_eq!(scene.get::<Ship>(7), Some(ship));
//! ```

mod hosted;
mod kept;
mod scene;
mod table;
mod value;

pub use hosted::{
    Audience, Blend, Events, Hosted, PredictionError, Promise, Told, hosted_description_of, hosted_schema_of,
};
pub use kept::{MAX_KEPT, Parts, parts_in, put_part};
pub use sametick_derive::Entity;
pub use scene::{Row, Scene, Table};
pub use table::markdown;
pub use value::{Plain, Value};

/// The most slots an entity has: its deltas are read into memory of this size.
pub const MAX_WIDTH: usize = 64;

/// Who shares a view of the world: a player, or a crew. Everyone with the same number sees the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewId(pub u16);

/// An entity of a declared kind: what travels of a thing in the game. Derived.
pub trait Entity: Clone + PartialEq + core::fmt::Debug + 'static {
    /// The declaration.
    const KIND: Kind;

    /// Writes its codes into [`Kind::width`] slots.
    fn put(&self, slots: &mut [i32]);

    /// The entity with these codes; none if no entity has them.
    fn take(slots: &[i32]) -> Option<Self>;

    /// What it looks like a share `t` of the way to another.
    fn between(&self, to: &Self, t: f32) -> Self;

    /// Where it is, if it is anywhere: what is nowhere is seen from everywhere.
    fn place(&self) -> Option<[f32; 3]>;
}

/// The declaration of a kind of entity.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// Which feature's channel it belongs to, for those who join with a script.
    pub feature: &'static str,
    /// From the nearest to the farthest. Beyond the last one nothing is seen; without any, everything always is.
    pub zones: &'static [Zone],
    /// In the order of their slots.
    pub fields: &'static [Field],
}

/// How far an entity is seen, and how often it is looked at there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// What it is called.
    pub name: &'static str,
    /// Up to this distance from the eye, in the units of places.
    pub within: f32,
    /// How many times a second, at most.
    pub hz: u16,
}

/// A field of an entity.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// What it is called.
    pub name: &'static str,
    /// How many slots it has.
    pub slots: u16,
    /// What a code means.
    pub code: Code,
    /// How it changes.
    pub motion: Motion,
    /// How many zones see it, from the nearest on.
    pub zones: u8,
    /// How many times a second it is looked at, at most; as often as the entity if none.
    pub hz: Option<u16>,
    /// Only the view that owns the entity sees it.
    pub owner: bool,
    /// Its value, for those who know no types.
    pub plain: fn(&Code, &[i32]) -> Option<Plain>,
}

/// What a code in a slot means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// A whole number, in steps of so many.
    Whole {
        /// Values in between are rounded.
        step: u32,
    },
    /// A real number, in steps of so much.
    Real {
        /// Values in between are rounded.
        step: f32,
    },
    /// A rotation as its smallest three components, of so many bits each.
    Rotation {
        /// From 2 to 20.
        bits: u32,
    },
}

/// How a field changes from one moment to the next: what is predicted of it, and what a screen shows in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// At once.
    Step,
    /// Gradually, often going on as it went.
    Smooth,
    /// Gradually around a circle of so many codes.
    Turn(u32),
    /// As a rotation: the place of the largest component, then the three others.
    Rotation,
}

impl Code {
    /// The same in other steps; of a rotation, with so many bits.
    ///
    /// # Panics
    /// If there can be no such steps; in a `const` that is a compile error.
    #[must_use]
    pub const fn with_step(self, step: f32) -> Code {
        match self {
            Code::Real { .. } => {
                assert!(step > 0.0, "a step is positive");
                Code::Real { step }
            }
            Code::Whole { .. } => {
                assert!(step >= 1.0, "the step of a whole number is 1 or more");
                Code::Whole { step: step as u32 }
            }
            Code::Rotation { .. } if step == 1.0 => self,
            Code::Rotation { .. } => {
                assert!(step >= 2.0 && step <= 20.0, "a component has 2 to 20 bits");
                Code::Rotation { bits: step as u32 }
            }
        }
    }
}

impl Kind {
    /// How many slots an entity has.
    pub const fn width(&self) -> usize {
        let (mut at, mut width) = (0, 0);
        while at < self.fields.len() {
            width += self.fields[at].slots as usize;
            at += 1;
        }
        width
    }

    /// Fails to compile, in a `const`, if something about it makes no sense.
    pub const fn checked(self) -> Kind {
        assert!(self.width() <= MAX_WIDTH, "an entity has at most 64 slots");
        assert!(self.zones.len() <= 8, "a kind has at most 8 zones");
        let mut at = 1;
        while at < self.zones.len() {
            assert!(self.zones[at - 1].within < self.zones[at].within, "zones go from near to far");
            at += 1;
        }
        self
    }

    /// The names and values of its fields, for those who know no types.
    pub fn plain<'a>(&'a self, slots: &'a [i32]) -> impl Iterator<Item = (&'static str, Plain)> + 'a {
        let mut at = 0;
        self.fields.iter().filter_map(move |field| {
            let own = slots.get(at..at + usize::from(field.slots));
            at += usize::from(field.slots);
            Some((field.name, (field.plain)(&field.code, own?)?))
        })
    }
}

/// For games in which scripts can do nothing.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub enum NoCommand {}

#[doc(hidden)]
pub use value::plain_of;
