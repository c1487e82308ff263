//! What the coder expects: how likely every kind of bit is, and how every entity moved so far. Both ends keep the models
//! as they were after each packet, so that a delta is read with the models of the packet that it builds on.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use sametick_sim::replica::{Code, Field, Kind, Motion};

use crate::odds::{LENGTHS, Number, Odds, TOPS};
use crate::snapshot::Layout;
use crate::spin::Scale;
use crate::track::{Head, Lane, Pull};

/// How wrong what was foreseen of a slot tends to be, in classes of twice the size each, and two that stand apart.
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

/// Finer contexts of a class: how far what was foreseen lies from a whole code, or how fast it moves.
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
    /// Of residuals.
    pub(crate) tops: [[Odds; TOPS]; LENGTHS],
    /// Whether its code is one that its motion allows.
    pub(crate) regular: Odds,
    /// Whether the largest component is the foreseen one, by how clearly it is.
    pub(crate) largest: [Odds; 4],
    /// Which it is instead.
    pub(crate) other: [Odds; 4],
}

impl FieldOdds {
    const NEW: FieldOdds = FieldOdds {
        changed: [Odds::NEW; 8],
        tops: [[Odds::NEW; TOPS]; LENGTHS],
        regular: Odds::NEW,
        largest: [Odds::NEW; 4],
        other: [Odds::NEW; 4],
    };
}

/// Contexts for whether an active entity is as it was.
pub(crate) const REST_AGES: usize = 8;

/// What is expected of the entities of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOdds {
    /// By how long it has been as it is, and by whether the two entities before it changed.
    pub(crate) same: [[Odds; 4]; REST_AGES],
    pub(crate) gone: [Odds; 2],
    /// Whether any other quiet entity changed, and how many did not before it.
    pub(crate) stirred: Odds,
    pub(crate) quiet: Number,
    /// How many are new; whether the number of a new one is beyond all known; and how far.
    pub(crate) fresh: Number,
    pub(crate) beyond: Odds,
    pub(crate) apart: Number,
    /// How old what is said of an entity is.
    pub(crate) aged: Odds,
    pub(crate) age: Number,
    pub(crate) rezoned: Odds,
    pub(crate) zone: Number,
}

impl TableOdds {
    const NEW: TableOdds = TableOdds {
        same: [[Odds::NEW; 4]; REST_AGES],
        gone: [Odds::NEW; 2],
        stirred: Odds::NEW,
        quiet: Number::NEW,
        fresh: Number::NEW,
        beyond: Odds::NEW,
        apart: Number::NEW,
        aged: Odds::NEW,
        age: Number::NEW,
        rezoned: Odds::NEW,
        zone: Number::NEW,
    };
}

/// How a field is coded.
#[derive(Clone, Debug)]
pub(crate) struct FieldPlan {
    pub(crate) slots: Range<usize>,
    pub(crate) way: Way,
    /// Among those of its table.
    pub(crate) lanes: Range<usize>,
    pub(crate) classes: Range<usize>,
}

/// What is foreseen of a field.
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
            // One that may be absent has five slots, and is not foreseen.
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
    fn clear_rows(&mut self) {
        self.heads.clear();
        self.lanes.clear();
    }

    fn copy_from(&mut self, other: &Tracks) {
        self.heads.clone_from(&other.heads);
        self.lanes.clone_from(&other.lanes);
        self.pulls.clone_from(&other.pulls);
    }
}

/// Everything that is expected of one layout's deltas. Whoever encodes against a base, and whoever decodes, begins with
/// the models as they were after the packet that made the base, or with new ones if the base is empty.
#[derive(Debug)]
pub struct Models {
    plan: Arc<[TablePlan]>,
    tables: Vec<TableOdds>,
    fields: Vec<FieldOdds>,
    classes: Vec<Class>,
    tracks: Vec<Tracks>,
    scratch: Scratch,
}

/// Memory that a delta is made in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) tracks: Tracks,
    pub(crate) fates: Vec<crate::delta::Fate>,
    pub(crate) fresh: Vec<u32>,
}

/// What concerns one table.
pub(crate) struct Part<'a> {
    pub(crate) plan: &'a TablePlan,
    pub(crate) table: &'a mut TableOdds,
    pub(crate) fields: &'a mut [FieldOdds],
    pub(crate) classes: &'a mut [Class],
    /// As they were in the base.
    pub(crate) tracks: &'a mut Tracks,
    pub(crate) scratch: &'a mut Scratch,
}

impl Models {
    /// Nothing is known of the deltas of a layout.
    pub fn new(layout: &Layout) -> Models {
        let plan: Arc<[TablePlan]> = layout.kinds().iter().map(TablePlan::new).collect();
        let tables = alloc::vec![TableOdds::NEW; plan.len()];
        let fields = alloc::vec![FieldOdds::NEW; plan.iter().map(|table| table.fields.len()).sum()];
        let classes = alloc::vec![Class::NEW; plan.iter().map(|table| table.classes).sum()];
        let tracks = |table: &TablePlan| Tracks {
            pulls: alloc::vec![Pull::default(); table.lanes],
            ..Tracks::default()
        };
        let tracks = plan.iter().map(tracks).collect();
        Models { plan, tables, fields, classes, tracks, scratch: Scratch::default() }
    }

    /// Forgets everything but the layout and the memory.
    pub fn reset(&mut self) {
        self.tables.fill(TableOdds::NEW);
        self.fields.fill(FieldOdds::NEW);
        self.classes.fill(Class::NEW);
        for tracks in &mut self.tracks {
            tracks.clear_rows();
            tracks.pulls.fill(Pull::default());
        }
    }

    /// Becomes a copy, in the memory it has.
    pub fn copy_from(&mut self, other: &Models) {
        self.plan = Arc::clone(&other.plan);
        self.tables.clone_from(&other.tables);
        self.fields.clone_from(&other.fields);
        self.classes.clone_from(&other.classes);
        self.tracks.resize_with(other.tracks.len(), Tracks::default);
        for (to, from) in self.tracks.iter_mut().zip(&other.tracks) {
            to.copy_from(from);
        }
    }

    /// What concerns each table, in order.
    pub(crate) fn for_each_part<E>(
        &mut self,
        mut f: impl FnMut(usize, Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut fields, mut classes) = (&mut self.fields[..], &mut self.classes[..]);
        let tables = self.tables.iter_mut().zip(&mut self.tracks);
        for (at, (plan, (table, tracks))) in self.plan.iter().zip(tables).enumerate() {
            let (own_fields, rest) = fields.split_at_mut(plan.fields.len());
            fields = rest;
            let (own_classes, rest) = classes.split_at_mut(plan.classes);
            classes = rest;
            let scratch = &mut self.scratch;
            let part = Part { plan, table, fields: own_fields, classes: own_classes, tracks, scratch };
            f(at, part)?;
        }
        Ok(())
    }
}

impl Clone for Models {
    fn clone(&self) -> Models {
        Models {
            plan: Arc::clone(&self.plan),
            tables: self.tables.clone(),
            fields: self.fields.clone(),
            classes: self.classes.clone(),
            tracks: self.tracks.clone(),
            scratch: Scratch::default(),
        }
    }
}

/// Whether the same is expected.
impl PartialEq for Models {
    fn eq(&self, other: &Models) -> bool {
        self.tables == other.tables
            && self.fields == other.fields
            && self.classes == other.classes
            && self.tracks == other.tracks
    }
}
