//! Context models of the coder: the probability of every kind of bit, and the motion of every entity. Both ends keep
//! the models in their state after each packet, so that a delta is decoded with the models of its base.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use sametick_sim::replica::{Code, Field, Kind, Motion};

use crate::learnt::{Learnt, Pages};
use crate::odds::{LENGTHS, Number, Odds, Tops};
use crate::snapshot::Layout;
use crate::spin::Scale;
use crate::track::{Head, Lane, Pull};

/// Classes of the usual prediction error of a slot, each of twice the size of the one before, with two separate ones.
pub(crate) const NOISES: usize = 10;
/// After those, the classes of slots that have just been a surprise, by how much.
pub(crate) const JOLTS: usize = 5;
/// The class of resting slots.
pub(crate) const RESTING: usize = NOISES + JOLTS;
/// The class of new slots.
pub(crate) const FRESH: usize = RESTING + 1;
const CLASSES: usize = FRESH + 1;
/// Fields that change in steps have two classes: known before, and new.
const STEP_CLASSES: usize = 2;

/// Finer contexts of a class: the distance of the prediction from a whole code, or the speed.
pub(crate) const SHADES: usize = 4;

/// The distribution of the residuals of a class, by whether an earlier slot of the entity was a surprise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) zero: [[Odds; SHADES]; 2],
    pub(crate) sign: [[Odds; SHADES]; 2],
    pub(crate) lengths: [[Odds; LENGTHS]; 2],
}

impl Class {
    const NEW: Class = Class {
        zero: [[Odds::NEW; SHADES]; 2],
        sign: [[Odds::NEW; SHADES]; 2],
        lengths: [[Odds::NEW; LENGTHS]; 2],
    };
}

/// Models of a field as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldOdds {
    /// Whether it changes, by whether it changed the last time, rests, and the field before it changed.
    pub(crate) changed: [Odds; 8],
    /// Whether the code is one that the field's motion allows.
    pub(crate) regular: Odds,
    /// Whether the largest component is the predicted one, by how clearly it is the largest.
    pub(crate) largest: [Odds; 4],
    /// Which component is the largest instead.
    pub(crate) other: [Odds; 4],
}

impl FieldOdds {
    const NEW: FieldOdds = FieldOdds {
        changed: [Odds::NEW; 8],
        regular: Odds::NEW,
        largest: [Odds::NEW; 4],
        other: [Odds::NEW; 4],
    };
}

/// Contexts for whether an active entity is unchanged.
pub(crate) const REST_AGES: usize = 8;

/// Models of the entities of a kind, besides numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOdds {
    /// Whether an entity is unchanged, by its time since the last change, and by whether the two entities before it
    /// changed.
    pub(crate) same: [[Odds; 4]; REST_AGES],
    pub(crate) gone: [Odds; 2],
    /// Whether another quiet entity changed.
    pub(crate) stirred: Odds,
    /// Whether the id of a new entity is higher than all known ones.
    pub(crate) beyond: Odds,
    /// Whether an entity's values are older than the snapshot, and whether its zone has changed.
    pub(crate) aged: Odds,
    pub(crate) rezoned: Odds,
}

impl TableOdds {
    const NEW: TableOdds = TableOdds {
        same: [[Odds::NEW; 4]; REST_AGES],
        gone: [Odds::NEW; 2],
        stirred: Odds::NEW,
        beyond: Odds::NEW,
        aged: Odds::NEW,
        rezoned: Odds::NEW,
    };
}

/// The numbers that are coded for a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// Unchanged quiet entities before a changed one.
    Quiet,
    /// New entities.
    Fresh,
    /// The distances between the ids of new entities.
    PredictionError,
    /// The age of an entity's values.
    Age,
    Zone,
}

/// The number of variants of [`Count`].
const COUNTS: usize = Count::Zone as usize + 1;

/// How a field is coded.
#[derive(Clone, Debug)]
pub(crate) struct FieldPlan {
    pub(crate) slots: Range<usize>,
    pub(crate) way: Way,
    /// The lanes of the field among those of its table.
    pub(crate) lanes: Range<usize>,
    pub(crate) classes: Range<usize>,
}

/// How a field is predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// It stays the same.
    Step,
    /// It moves on, modulo a circle if given.
    Smooth(Option<i32>),
    /// It turns on.
    Rotation(Scale),
}

/// How a table is coded.
#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    pub(crate) width: usize,
    pub(crate) fields: Vec<FieldPlan>,
    pub(crate) lanes: usize,
    classes: usize,
}

impl TablePlan {
    fn new(kind: &Kind) -> TablePlan {
        let mut plan = TablePlan { width: kind.width(), fields: Vec::new(), lanes: 0, classes: 0 };
        let mut at = 0;
        for field in kind.fields {
            let slots = at..at + usize::from(field.slots);
            at = slots.end;
            let way = Way::of(field);
            let (lanes, classes) = match way {
                Way::Step => (0, STEP_CLASSES),
                Way::Smooth(_) | Way::Rotation(_) => (slots.len(), CLASSES),
            };
            let lanes = plan.lanes..plan.lanes + lanes;
            let classes = plan.classes..plan.classes + classes;
            (plan.lanes, plan.classes) = (lanes.end, classes.end);
            plan.fields.push(FieldPlan { slots, way, lanes, classes });
        }
        plan
    }
}

impl Way {
    fn of(field: &Field) -> Way {
        match (field.motion, field.code) {
            (Motion::Smooth, _) => Way::Smooth(None),
            (Motion::Turn(circle), _) => Way::Smooth(i32::try_from(circle).ok().filter(|circle| *circle > 0)),
            // An optional rotation has five slots, and is not predicted.
            (Motion::Rotation, Code::Rotation { bits }) if field.slots == 4 => {
                Way::Rotation(Scale::with_bits(bits))
            }
            (Motion::Step | Motion::Rotation, _) => Way::Step,
        }
    }
}

/// The motion of the entities of a table, in the order of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracks {
    pub(crate) heads: Vec<Head>,
    pub(crate) lanes: Vec<Lane>,
    /// The pull on every entity, by lane.
    pub(crate) pulls: Vec<Pull>,
}

impl Tracks {
    /// Removes all entities, and sets the pulls.
    pub(crate) fn begin(&mut self, pulls: &[Pull]) {
        self.heads.clear();
        self.lanes.clear();
        self.pulls.clear();
        self.pulls.extend_from_slice(pulls);
    }
}

/// A family of models of one layout that are copied from each other: a copy transfers only what was learnt since a
/// common ancestor.
#[derive(Clone, Debug)]
pub struct Family(Arc<Kin>);

#[derive(Debug)]
struct Kin {
    plan: Vec<TablePlan>,
    /// The number of deltas coded with models of this family.
    deltas: AtomicU64,
}

impl Family {
    /// A family for the deltas of a layout.
    pub fn new(layout: &Layout) -> Family {
        let plan = layout.kinds().iter().map(TablePlan::new).collect();
        Family(Arc::new(Kin { plan, deltas: AtomicU64::new(0) }))
    }

    /// A number that no delta of the family had before; never zero.
    fn next_delta(&self) -> u64 {
        self.0.deltas.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The models of one layout's deltas. Encoder and decoder begin with the models in their state after the base's packet,
/// or with new ones if the base is empty.
#[derive(Clone, Debug)]
pub struct Models {
    family: Family,
    tables: Vec<TableOdds>,
    numbers: Learnt<Number>,
    fields: Vec<FieldOdds>,
    tops: Learnt<Tops>,
    classes: Learnt<Class>,
    /// The tracks of each table. They are never changed, so that models may share them.
    tracks: Arc<[Tracks]>,
    /// Memory for the tracks of the next delta.
    next: Option<Arc<[Tracks]>>,
    scratch: Scratch,
}

/// Scratch memory for coding a delta.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) fates: Vec<crate::delta::Fate>,
    pub(crate) fresh: Vec<u32>,
}

/// The models of one table.
pub(crate) struct Part<'a> {
    pub(crate) plan: &'a TablePlan,
    pub(crate) table: &'a mut TableOdds,
    /// One model for every [`Count`].
    pub(crate) numbers: Pages<'a, Number>,
    pub(crate) fields: &'a mut [FieldOdds],
    /// Models of the residuals of every field.
    pub(crate) tops: Pages<'a, Tops>,
    pub(crate) classes: Pages<'a, Class>,
    /// The tracks as of the base.
    pub(crate) before: &'a Tracks,
    pub(crate) tracks: &'a mut Tracks,
    pub(crate) scratch: &'a mut Scratch,
}

impl Models {
    /// New models for the deltas of a layout.
    pub fn new(layout: &Layout) -> Models {
        Models::of(&Family::new(layout))
    }

    /// New models in this family.
    pub fn of(family: &Family) -> Models {
        let plan = &family.0.plan;
        let fields = plan.iter().map(|table| table.fields.len()).sum();
        let classes = plan.iter().map(|table| table.classes).sum();
        Models {
            tables: alloc::vec![TableOdds::NEW; plan.len()],
            numbers: Learnt::new(plan.len() * COUNTS, Number::NEW),
            fields: alloc::vec![FieldOdds::NEW; fields],
            tops: Learnt::new(fields, Tops::NEW),
            classes: Learnt::new(classes, Class::NEW),
            tracks: no_tracks(plan),
            next: None,
            scratch: Scratch::default(),
            family: family.clone(),
        }
    }

    /// Resets everything but the layout and the memory.
    pub fn reset(&mut self) {
        self.tables.fill(TableOdds::NEW);
        self.numbers.reset(Number::NEW);
        self.fields.fill(FieldOdds::NEW);
        self.tops.reset(Tops::NEW);
        self.classes.reset(Class::NEW);
        match Arc::get_mut(&mut self.tracks) {
            Some(tracks) => tracks.iter_mut().zip(&self.family.0.plan).for_each(|(tracks, plan)| {
                tracks.begin(&[]);
                tracks.pulls.resize(plan.lanes, Pull::default());
            }),
            None => self.tracks = no_tracks(&self.family.0.plan),
        }
    }

    /// Copies from other models, reusing memory.
    pub fn copy_from(&mut self, other: &Models) {
        if !Arc::ptr_eq(&self.family.0, &other.family.0) {
            // Another family numbers its deltas differently, so pages cannot be compared by number.
            *self = other.clone();
            return;
        }
        self.tables.copy_from_slice(&other.tables);
        self.numbers.follow(&other.numbers);
        self.fields.copy_from_slice(&other.fields);
        self.tops.follow(&other.tops);
        self.classes.follow(&other.classes);
        let mut own = core::mem::replace(&mut self.tracks, Arc::clone(&other.tracks));
        if self.next.is_none() && Arc::get_mut(&mut own).is_some() {
            self.next = Some(own);
        }
        debug_assert!(self == other);
    }

    /// Calls a function with the models of each table, in order.
    pub(crate) fn for_each_part<E>(
        &mut self,
        mut f: impl FnMut(usize, Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (plan, delta) = (&self.family.0.plan, self.family.next_delta());
        // Shared tracks are not reused.
        let next = self.next.take().filter(|next| Arc::strong_count(next) == 1);
        let mut next = next.unwrap_or_else(|| no_tracks(plan));
        let mut result = Ok(());
        if let Some(tracks) = Arc::get_mut(&mut next) {
            let mut fields = &mut self.fields[..];
            let (mut numbers, mut tops) = (self.numbers.pages(delta), self.tops.pages(delta));
            let mut classes = self.classes.pages(delta);
            let tables = self.tables.iter_mut().zip(self.tracks.iter().zip(tracks));
            for (at, (plan, (table, (before, tracks)))) in plan.iter().zip(tables).enumerate() {
                let (own_fields, rest) = fields.split_at_mut(plan.fields.len());
                fields = rest;
                let part = Part {
                    plan,
                    table,
                    numbers: numbers.take(COUNTS),
                    fields: own_fields,
                    tops: tops.take(plan.fields.len()),
                    classes: classes.take(plan.classes),
                    before,
                    tracks,
                    scratch: &mut self.scratch,
                };
                result = result.and_then(|()| f(at, part));
            }
        }
        let mut before = core::mem::replace(&mut self.tracks, next);
        if Arc::get_mut(&mut before).is_some() {
            self.next = Some(before);
        }
        result
    }
}

fn no_tracks(plan: &[TablePlan]) -> Arc<[Tracks]> {
    let none =
        |table: &TablePlan| Tracks { pulls: alloc::vec![Pull::default(); table.lanes], ..Tracks::default() };
    plan.iter().map(none).collect()
}

/// Compares the learnt state.
impl PartialEq for Models {
    fn eq(&self, other: &Models) -> bool {
        self.tables == other.tables
            && self.numbers == other.numbers
            && self.fields == other.fields
            && self.tops == other.tops
            && self.classes == other.classes
            && self.tracks == other.tracks
    }
}
