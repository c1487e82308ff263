//! A scene: all entities at one tick, as codes.

use alloc::vec::Vec;

use super::{Entity, Kind, ViewId};

/// All entities at one tick, one table per kind. Made once and reused, it allocates nothing per tick.
#[derive(Clone, Debug)]
pub struct Scene {
    kinds: &'static [Kind],
    tables: Vec<Table>,
}

/// The entities of one kind, in the order of their ids.
#[derive(Clone, Debug)]
pub struct Table {
    width: usize,
    rows: Vec<Row>,
    slots: Vec<i32>,
}

/// An entity without its codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Its id, unique within its kind while it exists.
    pub id: u32,
    /// The view that sees the owner-only fields.
    pub owner: Option<ViewId>,
    /// Its position, if it has one.
    pub place: Option<[f32; 3]>,
}

impl Scene {
    /// A scene without entities.
    pub fn new(kinds: &'static [Kind]) -> Scene {
        let table = |kind: &Kind| Table { width: kind.width(), rows: Vec::new(), slots: Vec::new() };
        Scene { kinds, tables: kinds.iter().map(table).collect() }
    }

    /// Removes all entities, keeping the memory.
    pub fn clear(&mut self) {
        for table in &mut self.tables {
            table.clear();
        }
    }

    /// Adds an entity.
    ///
    /// # Panics
    /// If its kind is none of the scene's, or its id is not higher than those before of its kind.
    pub fn put<E: Entity>(&mut self, id: u32, owner: Option<ViewId>, entity: &E) {
        self.put_at(id, owner, entity.place(), entity);
    }

    /// Adds an entity with this position instead of its own; without a position if none is given.
    ///
    /// # Panics
    /// As [`put`](Scene::put).
    pub fn put_at<E: Entity>(&mut self, id: u32, owner: Option<ViewId>, place: Option<[f32; 3]>, entity: &E) {
        let number = self.number_of::<E>().expect("a scene has entities of declared kinds only");
        entity.put(self.tables[number].push(Row { id, owner, place }));
    }

    /// The entities of a type, lowest id first; those with invalid codes are left out.
    pub fn iter<E: Entity>(&self) -> impl Iterator<Item = (u32, E)> + '_ {
        let table = self.number_of::<E>().and_then(|number| self.tables.get(number));
        table.into_iter().flat_map(Table::iter).filter_map(|(row, slots)| Some((row.id, E::take(slots)?)))
    }

    /// An entity.
    pub fn get<E: Entity>(&self, id: u32) -> Option<E> {
        let table = self.tables.get(self.number_of::<E>()?)?;
        E::take(table.slots_at(table.find(id).ok()?))
    }

    /// The kinds of its tables.
    pub fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    /// The tables, in the order of the kinds.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The table of a kind, for filling.
    ///
    /// # Panics
    /// If there is no such kind.
    pub fn table_mut(&mut self, kind: usize) -> &mut Table {
        &mut self.tables[kind]
    }

    fn number_of<E: Entity>(&self) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.name == E::KIND.name)
    }
}

impl Table {
    /// Removes all entities, keeping the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.slots.clear();
    }

    /// Appends an entity with zeroed codes, and returns them for writing.
    ///
    /// # Panics
    /// If its id is not higher than those before.
    pub fn push(&mut self, row: Row) -> &mut [i32] {
        let in_order = self.rows.last().is_none_or(|last| last.id < row.id);
        assert!(in_order, "entities of a kind come in the order of their numbers");
        self.rows.push(row);
        let at = self.slots.len();
        self.slots.resize(at + self.width, 0);
        &mut self.slots[at..]
    }

    /// The number of slots of an entity.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The entities without their codes.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The codes of the entity at an index.
    ///
    /// # Panics
    /// If there is none.
    pub fn slots_at(&self, index: usize) -> &[i32] {
        &self.slots[index * self.width..(index + 1) * self.width]
    }

    /// The entities and their codes.
    pub fn iter(&self) -> impl Iterator<Item = (&Row, &[i32])> {
        (0..)
            .map(|index| index * self.width)
            .zip(&self.rows)
            .map(|(at, row)| (row, &self.slots[at..at + self.width]))
    }

    /// The index of an entity, or the index for inserting it.
    pub fn find(&self, id: u32) -> Result<usize, usize> {
        self.rows.binary_search_by_key(&id, |row| row.id)
    }
}
