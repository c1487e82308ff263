//! What a view holds at an update: all entities it knows of, as codes.

use alloc::vec::Vec;
use core::ops::Range;

use sametick_sim::Tick;
use sametick_sim::replica::{Entity, Hosted, Kind};

/// The kinds of a game's room in the order of their tables; what is predicted is the last.
#[derive(Clone, Debug)]
pub struct Layout {
    kinds: Vec<Kind>,
}

impl Layout {
    /// That of a game.
    pub fn of<G: Hosted>() -> Layout {
        Layout { kinds: G::KINDS.iter().copied().chain([G::Own::KIND]).collect() }
    }

    /// With these kinds.
    pub fn new(kinds: &[Kind]) -> Layout {
        Layout { kinds: kinds.to_vec() }
    }

    /// The kinds, one for each table.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }
}

/// What a view holds at an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The tick that the update was made after.
    pub tick: Tick,
    /// A table for each kind.
    pub tables: Vec<KnownEntities>,
}

/// The known entities of one kind, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownEntities {
    width: usize,
    marks: Vec<Mark>,
    slots: Vec<i32>,
}

/// An entity without its codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub id: u32,
    /// The zone it is in, from the nearest; 0 for what is nowhere.
    pub zone: u8,
    /// The tick that its codes are of.
    pub at: Tick,
}

impl Snapshot {
    /// Nothing is known.
    pub fn new(layout: &Layout) -> Snapshot {
        let table = |kind: &Kind| KnownEntities { width: kind.width(), ..KnownEntities::default() };
        Snapshot { tick: Tick::ZERO, tables: layout.kinds().iter().map(table).collect() }
    }

    /// Becomes a copy, in the memory it has.
    pub fn copy_from(&mut self, other: &Snapshot) {
        self.tick = other.tick;
        self.tables.resize_with(other.tables.len(), KnownEntities::default);
        for (to, from) in self.tables.iter_mut().zip(&other.tables) {
            to.width = from.width;
            to.marks.clone_from(&from.marks);
            to.slots.clone_from(&from.slots);
        }
    }

    /// Forgets every entity, but not the memory.
    pub fn clear(&mut self) {
        self.tick = Tick::ZERO;
        self.tables.iter_mut().for_each(KnownEntities::clear);
    }

    /// How many entities are known.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.marks.len()).sum()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl KnownEntities {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.marks.clear();
        self.slots.clear();
    }

    /// How many slots an entity has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The entities without their codes.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The same, to change; not their numbers.
    pub fn mark_mut(&mut self, index: usize) -> &mut Mark {
        &mut self.marks[index]
    }

    /// The codes of the entity at an index.
    ///
    /// # Panics
    /// If there is none.
    pub fn slots(&self, index: usize) -> &[i32] {
        &self.slots[index * self.width..(index + 1) * self.width]
    }

    /// The same, to change.
    ///
    /// # Panics
    /// If there is none.
    pub fn slots_mut(&mut self, index: usize) -> &mut [i32] {
        &mut self.slots[index * self.width..(index + 1) * self.width]
    }

    /// Adds an entity whose codes are zero, to be written.
    ///
    /// # Panics
    /// If its number is not higher than those before.
    pub fn push(&mut self, mark: Mark) -> &mut [i32] {
        let in_order = self.marks.last().is_none_or(|last| last.id < mark.id);
        assert!(in_order, "entities of a kind come in the order of their numbers");
        self.marks.push(mark);
        let at = self.slots.len();
        self.slots.resize(at + self.width, 0);
        &mut self.slots[at..]
    }

    /// Adds entities as another table has them. Their numbers are higher than those before.
    pub(crate) fn push_like(&mut self, other: &KnownEntities, rows: Range<usize>) {
        self.marks.extend_from_slice(&other.marks[rows.clone()]);
        self.slots.extend_from_slice(&other.slots[rows.start * self.width..rows.end * self.width]);
    }

    /// Adds an entity as it is in another table of the kind, after all others.
    pub(crate) fn push_copy(&mut self, from: &KnownEntities, index: usize) {
        self.marks.push(from.marks[index]);
        self.slots.extend_from_slice(from.slots(index));
    }

    /// The last entity, to change.
    pub(crate) fn last_mut(&mut self) -> (&mut Mark, &mut [i32]) {
        let at = self.slots.len() - self.width;
        (self.marks.last_mut().expect("there is one"), &mut self.slots[at..])
    }

    /// The index of an entity, or where it would be.
    pub fn find(&self, id: u32) -> Result<usize, usize> {
        self.marks.binary_search_by_key(&id, |mark| mark.id)
    }
}
