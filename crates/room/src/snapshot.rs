//! Snapshots: all entities that a view knows at an update, as codes.

use alloc::vec::Vec;
use core::ops::Range;

use sametick_sim::Tick;
use sametick_sim::replica::{Entity, Hosted, Kind};

/// The kinds of a game's room in the order of their tables; the predicted kind is the last.
#[derive(Clone, Debug)]
pub struct Layout {
    kinds: Vec<Kind>,
}

impl Layout {
    /// The layout of a game's room.
    pub fn of<G: Hosted>() -> Layout {
        Layout { kinds: G::KINDS.iter().copied().chain([G::Own::KIND]).collect() }
    }

    /// A layout with these kinds.
    pub fn new(kinds: &[Kind]) -> Layout {
        Layout { kinds: kinds.to_vec() }
    }

    /// The kinds, one for each table.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }
}

/// All entities that a view knows at an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The tick of the update.
    pub tick: Tick,
    /// One table for each kind.
    pub tables: Vec<KnownEntities>,
}

/// The known entities of one kind, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownEntities {
    width: usize,
    marks: Vec<Mark>,
    slots: Vec<i32>,
}

/// An entity without its codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its id.
    pub id: u32,
    /// The zone it is in, 0 for the nearest and for entities without a position.
    pub zone: u8,
    /// The tick of its codes.
    pub at: Tick,
}

impl Snapshot {
    /// An empty snapshot.
    pub fn new(layout: &Layout) -> Snapshot {
        let table = |kind: &Kind| KnownEntities { width: kind.width(), ..KnownEntities::default() };
        Snapshot { tick: Tick::ZERO, tables: layout.kinds().iter().map(table).collect() }
    }

    /// Copies from another, reusing memory.
    pub fn copy_from(&mut self, other: &Snapshot) {
        self.tick = other.tick;
        self.tables.resize_with(other.tables.len(), KnownEntities::default);
        for (to, from) in self.tables.iter_mut().zip(&other.tables) {
            to.width = from.width;
            to.marks.clone_from(&from.marks);
            to.slots.clone_from(&from.slots);
        }
    }

    /// Removes every entity, keeping the memory.
    pub fn clear(&mut self) {
        self.tick = Tick::ZERO;
        self.tables.iter_mut().for_each(KnownEntities::clear);
    }

    /// The number of entities.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.marks.len()).sum()
    }

    /// Whether there are no entities.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl KnownEntities {
    /// Removes every entity, keeping the memory.
    pub fn clear(&mut self) {
        self.marks.clear();
        self.slots.clear();
    }

    /// The number of slots of an entity.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The entities without their codes.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// A mutable mark; its id must not be changed.
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

    /// The mutable codes of the entity at an index.
    ///
    /// # Panics
    /// If there is none.
    pub fn slots_mut(&mut self, index: usize) -> &mut [i32] {
        &mut self.slots[index * self.width..(index + 1) * self.width]
    }

    /// Appends an entity with zeroed codes, and returns them for writing.
    ///
    /// # Panics
    /// If its id is not higher than those before.
    pub fn push(&mut self, mark: Mark) -> &mut [i32] {
        let in_order = self.marks.last().is_none_or(|last| last.id < mark.id);
        assert!(in_order, "entities of a kind come in the order of their numbers");
        self.marks.push(mark);
        let at = self.slots.len();
        self.slots.resize(at + self.width, 0);
        &mut self.slots[at..]
    }

    /// Appends entities from another table. Their ids are higher than those before.
    pub(crate) fn push_like(&mut self, other: &KnownEntities, rows: Range<usize>) {
        self.marks.extend_from_slice(&other.marks[rows.clone()]);
        self.slots.extend_from_slice(&other.slots[rows.start * self.width..rows.end * self.width]);
    }

    /// Appends an entity from another table of the kind.
    pub(crate) fn push_copy(&mut self, from: &KnownEntities, index: usize) {
        self.marks.push(from.marks[index]);
        self.slots.extend_from_slice(from.slots(index));
    }

    /// The last entity, mutable.
    pub(crate) fn last_mut(&mut self) -> (&mut Mark, &mut [i32]) {
        let at = self.slots.len() - self.width;
        (self.marks.last_mut().expect("there is one"), &mut self.slots[at..])
    }

    /// The index of an entity, or the index for inserting it.
    pub fn find(&self, id: u32) -> Result<usize, usize> {
        self.marks.binary_search_by_key(&id, |mark| mark.id)
    }
}
