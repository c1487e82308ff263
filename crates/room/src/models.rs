//! What the coder expects: how likely every kind of bit is, and how every entity moved so far. Both ends keep the models
//! as they were after each packet, so that a delta is read with the models of the packet that it builds on.

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

/// How wrong what was predicted of a slot tends to be, in classes of twice the size each, and two that stand apart.
pub(crate) const NOISES: usize = 10;
/// Then those of what was just surprised, by how much.
pub(crate) const JOLTS: usize = 5;
/// The class of what rested.
pub(crate) const RESTING: usize = NOISES + JOLTS;
/// The class of what is new.
pub(crate) const FRESH: usize = RESTING + 1;
const CLASSES: usize = FRESH + 1;
/// What changes at once has two classes: known before, and new.
const STEP_CLASSES: usize = 2;

/// Finer contexts of a class: how far what was predicted lies from a whole code, or how fast it moves.
pub(crate) const SHADES: usize = 4;

/// How the residuals of a class are spread; by whether an earlier slot of the entity was a surprise.
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

/// What is expected of a field as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldOdds {
    /// By whether it changed the last time, rests, and the field before it changed.
    pub(crate) changed: [Odds; 8],
    /// Whether its code is one that its motion allows.
    pub(crate) regular: Odds,
    /// Whether the largest component is the predicted one, by how clearly it is.
    pub(crate) largest: [Odds; 4],
    /// Which it is instead.
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

/// Contexts for whether an active entity is as it was.
pub(crate) const REST_AGES: usize = 8;

/// What is expected of the entities of a kind, besides numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOdds {
    /// By how long it has been as it is, and by whether the two entities before it changed.
    pub(crate) same: [[Odds; 4]; REST_AGES],
    pub(crate) gone: [Odds; 2],
    /// Whether any other quiet entity changed.
    pub(crate) stirred: Odds,
    /// Whether the number of a new one is beyond all known.
    pub(crate) beyond: Odds,
    /// Whether what is said of an entity is older than the rest, and whether its zone is another.
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

/// The numbers that are expected of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// Quiet entities that did not change, before one that did.
    Quiet,
    /// New entities.
    Fresh,
    /// How far their numbers are apart.
    PredictionError,
    /// How old what is said of an entity is.
    Age,
    Zone,
}

/// How many of those there are.
const COUNTS: usize = Count::Zone as usize + 1;

/// How a field is coded.
#[derive(Clone, Debug)]
pub(crate) struct FieldPlan {
    pub(crate) slots: Range<usize>,
    pub(crate) way: Way,
    /// Among those of its table.
    pub(crate) lanes: Range<usize>,
    pub(crate) classes: Range<usize>,
}

/// What is predicted of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// That it stays.
    Step,
    /// That it goes on, modulo a circle if there is one.
    Smooth(Option<i32>),
    /// That it goes on turning.
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
            // One that may be absent has five slots, and is not predicted.
            (Motion::Rotation, Code::Rotation { bits }) if field.slots == 4 => {
                Way::Rotation(Scale::with_bits(bits))
            }
            (Motion::Step | Motion::Rotation, _) => Way::Step,
        }
    }
}

/// How the entities of a table moved, in the order of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracks {
    pub(crate) heads: Vec<Head>,
    pub(crate) lanes: Vec<Lane>,
    /// What pulls at every entity, by lane.
    pub(crate) pulls: Vec<Pull>,
}

impl Tracks {
    /// Forgets all entities, and becomes what pulls at them.
    pub(crate) fn begin(&mut self, pulls: &[Pull]) {
        self.heads.clear();
        self.lanes.clear();
        self.pulls.clear();
        self.pulls.extend_from_slice(pulls);
    }
}

/// Models of one layout that are copied from each other: what one has learnt since a common ancestor is all that is copied.
#[derive(Clone, Debug)]
pub struct Family(Arc<Kin>);

#[derive(Debug)]
struct Kin {
    plan: Vec<TablePlan>,
    /// How many deltas have been coded with models of this family.
    deltas: AtomicU64,
}

impl Family {
    /// For the deltas of a layout.
    pub fn new(layout: &Layout) -> Family {
        let plan = layout.kinds().iter().map(TablePlan::new).collect();
        Family(Arc::new(Kin { plan, deltas: AtomicU64::new(0) }))
    }

    /// A number that no delta of the family had before, and never zero.
    fn next_delta(&self) -> u64 {
        self.0.deltas.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Everything that is expected of one layout's deltas. Whoever encodes against a base, and whoever decodes, begins with
/// the models as they were after the packet that made the base, or with new ones if the base is empty.
#[derive(Clone, Debug)]
pub struct Models {
    family: Family,
    tables: Vec<TableOdds>,
    numbers: Learnt<Number>,
    fields: Vec<FieldOdds>,
    tops: Learnt<Tops>,
    classes: Learnt<Class>,
    /// Of each table. They are never changed, so that models may share them.
    tracks: Arc<[Tracks]>,
    /// Memory for those of the next delta.
    next: Option<Arc<[Tracks]>>,
    scratch: Scratch,
}

/// Memory that a delta is made in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) fates: Vec<crate::delta::Fate>,
    pub(crate) fresh: Vec<u32>,
}

/// What concerns one table.
pub(crate) struct Part<'a> {
    pub(crate) plan: &'a TablePlan,
    pub(crate) table: &'a mut TableOdds,
    /// One for every [`Count`].
    pub(crate) numbers: Pages<'a, Number>,
    pub(crate) fields: &'a mut [FieldOdds],
    /// Of the residuals of every field.
    pub(crate) tops: Pages<'a, Tops>,
    pub(crate) classes: Pages<'a, Class>,
    /// As they were in the base.
    pub(crate) before: &'a Tracks,
    pub(crate) tracks: &'a mut Tracks,
    pub(crate) scratch: &'a mut Scratch,
}

impl Models {
    /// Nothing is known of the deltas of a layout.
    pub fn new(layout: &Layout) -> Models {
        Models::of(&Family::new(layout))
    }

    /// Nothing is known yet.
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

    /// Forgets everything but the layout and the memory.
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

    /// Becomes a copy, in the memory it has.
    pub fn copy_from(&mut self, other: &Models) {
        if !Arc::ptr_eq(&self.family.0, &other.family.0) {
            // What was learnt elsewhere has numbers of its own.
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

    /// What concerns each table, in order.
    pub(crate) fn for_each_part<E>(
        &mut self,
        mut f: impl FnMut(usize, Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (plan, delta) = (&self.family.0.plan, self.family.next_delta());
        // Whoever shares it keeps it.
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

/// Whether the same is expected.
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
