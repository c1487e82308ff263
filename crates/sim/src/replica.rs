//! Replication: which parts of a state players see, as entities of declared kinds, with the precision, range, rate and
//! audience of each field. A [`Hosted`] game is one that a host can run for players who know only a part of it.
//!
//! A kind is declared once, with [`derive(Entity)`](derive@Entity). Encoding, deltas, interest management,
//! interpolation, the schema hash and the table in the documentation follow from that one declaration.
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

/// The most slots of an entity: its deltas are decoded into memory of this size.
pub const MAX_WIDTH: usize = 64;

/// The id of a view of the world: that of a player, or of a crew. All clients with the same id see the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewId(pub u16);

/// An entity of a declared kind: the replicated part of something in the game. Derived.
pub trait Entity: Clone + PartialEq + core::fmt::Debug + 'static {
    /// The declaration.
    const KIND: Kind;

    /// Writes its codes into [`Kind::width`] slots.
    fn put(&self, slots: &mut [i32]);

    /// The entity with these codes; none if they are invalid.
    fn take(slots: &[i32]) -> Option<Self>;

    /// Interpolates to another by `t`.
    fn between(&self, to: &Self, t: f32) -> Self;

    /// Its position, if it has one: an entity without a position is visible from everywhere.
    fn place(&self) -> Option<[f32; 3]>;
}

/// The declaration of a kind of entity.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name.
    pub name: &'static str,
    /// The feature whose channel it belongs to, for scripts.
    pub feature: &'static str,
    /// From the nearest to the farthest. Beyond the last one the entity is invisible; without zones it is always
    /// visible.
    pub zones: &'static [Zone],
    /// In the order of their slots.
    pub fields: &'static [Field],
}

/// A range of visibility, and the update rate in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// The name.
    pub name: &'static str,
    /// The radius around the eye, in the units of positions.
    pub within: f32,
    /// The most updates per second.
    pub hz: u16,
}

/// A field of an entity.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// The number of slots.
    pub slots: u16,
    /// The meaning of its codes.
    pub code: Code,
    /// How it changes.
    pub motion: Motion,
    /// The number of zones in which it is visible, from the nearest on.
    pub zones: u8,
    /// The most updates per second; those of the entity if none.
    pub hz: Option<u16>,
    /// Whether it is visible only to the view that owns the entity.
    pub owner: bool,
    /// Decodes its value without knowing its type.
    pub plain: fn(&Code, &[i32]) -> Option<Plain>,
}

/// The meaning of a code in a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// A whole number.
    Whole {
        /// The step; values in between are rounded.
        step: u32,
    },
    /// A real number.
    Real {
        /// The step; values in between are rounded.
        step: f32,
    },
    /// A rotation as its smallest three components.
    Rotation {
        /// The bits of each component, from 2 to 20.
        bits: u32,
    },
}

/// How a field changes over time: decides its prediction in deltas, and its interpolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// At once.
    Step,
    /// Gradually, often at the same speed.
    Smooth,
    /// Gradually around a circle of so many codes.
    Turn(u32),
    /// As a rotation: the index of the largest component, then the three others.
    Rotation,
}

impl Code {
    /// The same code with another step; for a rotation, with this many bits.
    ///
    /// # Panics
    /// If the step is invalid; in a `const` that is a compile error.
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
    /// The number of slots of an entity.
    pub const fn width(&self) -> usize {
        let (mut at, mut width) = (0, 0);
        while at < self.fields.len() {
            width += self.fields[at].slots as usize;
            at += 1;
        }
        width
    }

    /// Validates the declaration: an invalid one fails to compile, in a `const`.
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

    /// The names and values of its fields, without knowing their types.
    pub fn plain<'a>(&'a self, slots: &'a [i32]) -> impl Iterator<Item = (&'static str, Plain)> + 'a {
        let mut at = 0;
        self.fields.iter().filter_map(move |field| {
            let own = slots.get(at..at + usize::from(field.slots));
            at += usize::from(field.slots);
            Some((field.name, (field.plain)(&field.code, own?)?))
        })
    }
}

/// The command type of games without script commands.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub enum NoCommand {}

#[doc(hidden)]
pub use value::plain_of;
