//! Delta encoding of snapshots: a target snapshot is coded by how it differs from a base that the view holds.
//!
//! A delta is one frame of the [range coder](sametick_wire::range), with [`Models`] in the state that both ends had
//! after the packet of the base; so any packet between may be lost. Unchanged entities cost next to nothing: an entity
//! that changed lately takes one well predicted bit, and runs of quiet entities are skipped.
//! ```
//! use sametick_room::{delta, models::Models, snapshot::{Layout, Mark, Snapshot}};
//! use sametick_sim::{Tick, replica::Entity};
//!
//! #[derive(Clone, Debug, PartialEq, Entity)]
//! struct Lamp { lit: bool }
//!
//! let layout = Layout::new(&[Lamp::KIND]);
//! let (base, mut target) = (Snapshot::new(&layout), Snapshot::new(&layout));
//! target.tick = Tick(9);
//! target.tables[0].push(Mark { id: 4, zone: 0, at: Tick(9) }).copy_from_slice(&[1]);
//!
//! let mut bytes = Vec::new();
//! delta::encode(&mut Models::new(&layout), &base, &target, &mut bytes);
//! let mut read = Snapshot::new(&layout);
//! delta::decode(&mut Models::new(&layout), &base, Tick(9), &bytes, &mut read)?;
//! assert_eq!(read, target);
//! # Ok::<(), sametick_wire::Malformed>(())
//! ```

use alloc::vec::Vec;

use sametick_sim::Tick;
use sametick_sim::replica::MAX_WIDTH;
use sametick_wire::Malformed;
use sametick_wire::range::{Coder, RangeDecoder, RangeEncoder};

use crate::models::{Count, Models, Part, REST_AGES, Tracks};
use crate::row::{self, RowModels, Since};
use crate::snapshot::{KnownEntities, Mark, Snapshot};
use crate::track::{Head, Lane};

/// The most entities of a kind in one snapshot: decoders refuse more.
pub const MAX_ENTITIES: usize = 16_384;

/// Entities that changed within this many ticks before the base are active.
const ACTIVE_TICKS: u32 = 64;

/// What happens to an entity of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Same,
    Changed,
    Gone,
}

/// Appends the delta from `base` to `target`. `models` has to be in its state after the base's packet, and is then in
/// its state after this one. Returns how many of the bytes code entities that the base does not have.
///
/// No table of `target` may hold more than [`MAX_ENTITIES`].
pub fn encode(models: &mut Models, base: &Snapshot, target: &Snapshot, out: &mut Vec<u8>) -> usize {
    let mut encoder = RangeEncoder::default();
    encoder.begin_in(core::mem::take(out));
    let ticks = Ticks { base: base.tick, target: target.tick };
    let mut fresh_bytes = 0;
    let coded = models.for_each_part(|at, part| {
        let (Some(base), Some(target)) = (base.tables.get(at), target.tables.get(at)) else { return Ok(()) };
        fresh_bytes += Walk::new(&mut encoder, part, base, ticks).table(Side::Write(target))?;
        Ok(())
    });
    debug_assert_eq!(coded, Ok::<_, Malformed>(()), "what is written is not malformed");
    *out = encoder.take();
    fresh_bytes
}

/// Decodes a delta into the snapshot of a tick, reusing its memory. `models` has to be in its state after the base's
/// packet, and is then in its state after this one.
///
/// # Errors
/// If the bytes are no valid delta; snapshot and models then have to be overwritten before they are used again.
pub fn decode(
    models: &mut Models,
    base: &Snapshot,
    tick: Tick,
    bytes: &[u8],
    target: &mut Snapshot,
) -> Result<(), Malformed> {
    target.clear();
    target.tick = tick;
    let ticks = Ticks { base: base.tick, target: tick };
    let mut decoder = RangeDecoder::default();
    decoder.begin(bytes);
    let mut reading = decoder.over(bytes);
    models.for_each_part(|at, part| {
        let Some(base) = base.tables.get(at) else {
            return Err(Malformed::Forbidden("an update has as many tables as its base"));
        };
        let Some(target) = target.tables.get_mut(at) else {
            return Err(Malformed::Forbidden("an update has as many tables as its base"));
        };
        Walk::new(&mut reading, part, base, ticks).table(Side::Read(target))?;
        Ok(())
    })?;
    match (decoder.is_overrun(bytes), decoder.has_rest(bytes)) {
        (true, _) => Err(Malformed::Truncated),
        (_, true) => Err(Malformed::TooLong),
        _ => Ok(()),
    }
}

#[derive(Clone, Copy)]
struct Ticks {
    base: Tick,
    target: Tick,
}

/// The target: written when encoding, filled when decoding.
enum Side<'a> {
    Write(&'a KnownEntities),
    Read(&'a mut KnownEntities),
}

/// Merges the entities of one kind of base and target, in the order of their ids.
struct Walk<'a, 'b, C> {
    coder: &'a mut C,
    part: Part<'b>,
    base: &'a KnownEntities,
    ticks: Ticks,
    /// Whether the tracks match the base. If not, the caller passed models that do not belong to the base.
    has_tracks: bool,
    /// Bytes written for entities that the base does not have.
    fresh_bytes: usize,
}

impl<'a, 'b, C: Coder> Walk<'a, 'b, C> {
    fn new(coder: &'a mut C, part: Part<'b>, base: &'a KnownEntities, ticks: Ticks) -> Self {
        let rows = base.marks().len();
        let Part { plan, before, .. } = &part;
        let has_tracks =
            before.heads.len() == rows * plan.fields.len() && before.lanes.len() == rows * plan.lanes;
        Walk { coder, part, base, ticks, has_tracks, fresh_bytes: 0 }
    }

    /// Codes the whole table. Returns how many bytes were written for entities that the base does not have.
    fn table(mut self, mut side: Side<'_>) -> Result<usize, Malformed> {
        self.begin();
        if let Side::Write(target) = &side {
            self.compare(target);
        }
        self.fresh_ids(&side)?;
        self.rows(&mut side)?;
        let elapsed = self.ticks.target.ticks_since(self.ticks.base);
        self.part.tracks.pulls.iter_mut().for_each(|pull| pull.settle(elapsed));
        Ok(self.fresh_bytes)
    }

    /// Clears the scratch memory.
    fn begin(&mut self) {
        let Part { tracks, before, scratch, .. } = &mut self.part;
        tracks.begin(&before.pulls);
        scratch.fates.clear();
        scratch.fresh.clear();
    }

    /// Finds the fate of each entity of the base, and the new entities.
    fn compare(&mut self, target: &KnownEntities) {
        let (fates, fresh) = (&mut self.part.scratch.fates, &mut self.part.scratch.fresh);
        let mut at = 0;
        let marks = target.marks();
        for (index, mark) in self.base.marks().iter().enumerate() {
            while let Some(other) = marks.get(at).filter(|other| other.id < mark.id) {
                fresh.push(other.id);
                at += 1;
            }
            let Some(other) = marks.get(at).filter(|other| other.id == mark.id) else {
                fates.push(Fate::Gone);
                continue;
            };
            let same = other == mark && target.slots(at) == self.base.slots(index);
            fates.push(if same { Fate::Same } else { Fate::Changed });
            at += 1;
        }
        fresh.extend(marks[at..].iter().map(|mark| mark.id));
    }

    /// Codes the ids of new entities.
    fn fresh_ids(&mut self, side: &Side<'_>) -> Result<(), Malformed> {
        let Part { table, numbers, scratch: crate::models::Scratch { fresh, .. }, .. } = &mut self.part;
        let reads = matches!(side, Side::Read(_));
        let count = numbers.at(Count::Fresh as usize).code(self.coder, fresh.len() as u32) as usize;
        if reads && count > MAX_ENTITIES.saturating_sub(self.base.marks().len()) {
            return Err(Malformed::TooLong);
        }
        let past = self.base.marks().last().map_or(0, |last| u64::from(last.id) + 1);
        let mut lowest = 0u64;
        for at in 0..count {
            let id = fresh.get(at).map_or(0, |id| u64::from(*id));
            let from = if lowest < past && table.beyond.code(self.coder, id >= past) { past } else { lowest };
            let apart = numbers.at(Count::PredictionError as usize);
            let id = from + u64::from(apart.code(self.coder, id.saturating_sub(from) as u32));
            if reads {
                fresh
                    .push(u32::try_from(id).map_err(|_| Malformed::Forbidden("an entity's id has 32 bits"))?);
                if self.coder.is_overrun() {
                    return Err(Malformed::Truncated);
                }
            }
            lowest = id + 1;
        }
        Ok(())
    }

    /// Codes every entity, in the order of ids. `out` counts the entities of the target.
    fn rows(&mut self, side: &mut Side<'_>) -> Result<(), Malformed> {
        let mut like = [0; MAX_WIDTH];
        let (mut at, mut fresh, mut out) = (0, 0, 0);
        let mut quiet = self.quiet_rows(0);
        let mut lately = 0;
        loop {
            let next = self.part.scratch.fresh.get(fresh).copied();
            let mark = self.base.marks().get(at).copied();
            if let Some(id) = next.filter(|id| mark.is_none_or(|mark| *id < mark.id)) {
                self.fresh_row(side, out, id, &mut like)?;
                (fresh, out) = (fresh + 1, out + 1);
                continue;
            }
            let Some(mark) = mark else { return Ok(()) };
            if next == Some(mark.id) {
                return Err(Malformed::Forbidden("ids in an update ascend"));
            }
            let is_active = self.is_active(&mark);
            if !is_active && quiet > 0 {
                let run = self.run(at, quiet, next);
                self.keep(side, at, at + run);
                (at, out, quiet) = (at + run, out + run, quiet - run);
                continue;
            }
            let fate = if is_active { self.active_fate(at, &mark, lately) } else { self.gone(at, 1) };
            match fate {
                Fate::Same => self.keep(side, at, at + 1),
                Fate::Changed => self.changed_row(side, at, out, &mark)?,
                Fate::Gone => {}
            }
            out += usize::from(fate != Fate::Gone);
            at += 1;
            if is_active {
                lately = lately << 1 & 2 | usize::from(fate != Fate::Same);
            } else {
                quiet = self.quiet_rows(at);
            }
        }
    }

    fn is_active(&self, mark: &Mark) -> bool {
        self.ticks.base.ticks_since(mark.at) <= ACTIVE_TICKS
    }

    /// The fate of an entity; not known while decoding.
    fn fate(&self, at: usize) -> Fate {
        self.part.scratch.fates.get(at).copied().unwrap_or(Fate::Same)
    }

    /// How many unchanged quiet entities precede the next changed one; more than there are if none is changed.
    fn quiet_rows(&mut self, from: usize) -> usize {
        let (mut count, mut stirs) = (0, false);
        if !self.part.scratch.fates.is_empty() {
            for (mark, at) in self.base.marks()[from..].iter().zip(from..) {
                if !self.is_active(mark) {
                    stirs = self.fate(at) != Fate::Same;
                    if stirs {
                        break;
                    }
                    count += 1;
                }
            }
        }
        let Part { table, numbers, .. } = &mut self.part;
        if from < self.base.marks().len() && table.stirred.code(self.coder, stirs) {
            numbers.at(Count::Quiet as usize).code(self.coder, count) as usize
        } else {
            usize::MAX
        }
    }

    /// How many quiet entities, at most `most`, come before the next active or new one.
    fn run(&self, at: usize, most: usize, next: Option<u32>) -> usize {
        let quiet = |mark: &&Mark| !self.is_active(mark) && next.is_none_or(|next| mark.id < next);
        self.base.marks()[at..].iter().take(most).take_while(quiet).count()
    }

    fn active_fate(&mut self, at: usize, mark: &Mark, lately: usize) -> Fate {
        let rested = self.ticks.base.ticks_since(mark.at);
        let age = (u32::BITS - rested.leading_zeros()) as usize;
        let same = self.fate(at) == Fate::Same;
        let odds = &mut self.part.table.same[age.min(REST_AGES - 1)][lately & 3];
        if odds.code(self.coder, same) { Fate::Same } else { self.gone(at, 0) }
    }

    /// Codes whether an entity that is not unchanged has changed or is gone.
    fn gone(&mut self, at: usize, context: usize) -> Fate {
        let gone = self.fate(at) == Fate::Gone;
        if self.part.table.gone[context].code(self.coder, gone) { Fate::Gone } else { Fate::Changed }
    }

    /// Copies unchanged entities.
    fn keep(&mut self, side: &mut Side<'_>, from: usize, to: usize) {
        let Part { plan, before, tracks: Tracks { heads, lanes, .. }, .. } = &mut self.part;
        let fields = plan.fields.len();
        if self.has_tracks {
            heads.extend_from_slice(&before.heads[from * fields..to * fields]);
            lanes.extend_from_slice(&before.lanes[from * plan.lanes..to * plan.lanes]);
        } else {
            heads.resize(heads.len() + (to - from) * fields, Head::default());
            lanes.resize(lanes.len() + (to - from) * plan.lanes, Lane::default());
        }
        if let Side::Read(target) = side {
            target.push_like(self.base, from..to);
        }
    }

    /// Codes the tick of an entity's codes, mostly that of the target, and its zone.
    fn mark(&mut self, side: &Side<'_>, out: usize, id: u32, zone: u8) -> Result<Mark, Malformed> {
        let known = match side {
            Side::Write(target) => target.marks()[out],
            Side::Read(_) if self.coder.is_overrun() => return Err(Malformed::Truncated),
            Side::Read(_) => Mark { id, zone, at: Tick::ZERO },
        };
        let (Part { table, numbers, .. }, now) = (&mut self.part, self.ticks.target.0);
        let mut age = now.wrapping_sub(known.at.0);
        if table.aged.code(self.coder, age != 0) {
            age = numbers.at(Count::Age as usize).code(self.coder, age);
        } else {
            age = 0;
        }
        let mut zone = zone;
        if table.rezoned.code(self.coder, known.zone != zone) {
            zone = numbers.at(Count::Zone as usize).code(self.coder, known.zone.into()) as u8;
        }
        Ok(Mark { id, zone, at: Tick(now.wrapping_sub(age)) })
    }

    fn changed_row(
        &mut self,
        side: &mut Side<'_>,
        at: usize,
        out: usize,
        was: &Mark,
    ) -> Result<(), Malformed> {
        let mark = self.mark(side, out, was.id, was.zone)?;
        self.keep(&mut Side::Write(self.base), at, at + 1);
        let since =
            Since { rested: self.ticks.base.ticks_since(was.at), elapsed: mark.at.ticks_since(was.at) };
        let mut values = self.values(side, out);
        let base = self.base.slots(at);
        let (coder, models) = self.row_models();
        let values = &mut values[..base.len()];
        row::known(coder, models, since, base, values);
        if let Side::Read(target) = side {
            target.push(mark).copy_from_slice(values);
        }
        Ok(())
    }

    fn fresh_row(
        &mut self,
        side: &mut Side<'_>,
        out: usize,
        id: u32,
        like: &mut [i32; MAX_WIDTH],
    ) -> Result<(), Malformed> {
        let before = self.coder.written();
        let mark = self.mark(side, out, id, 0)?;
        let Part { plan, tracks: Tracks { heads, lanes, .. }, .. } = &mut self.part;
        heads.resize(heads.len() + plan.fields.len(), Head::default());
        lanes.resize(lanes.len() + plan.lanes, Lane::NEW);
        let width = plan.width;
        let mut values = self.values(side, out);
        let (coder, models) = self.row_models();
        row::fresh(coder, models, &like[..width], &mut values[..width]);
        *like = values;
        self.fresh_bytes += self.coder.written() - before;
        if let Side::Read(target) = side {
            target.push(mark).copy_from_slice(&like[..width]);
        }
        Ok(())
    }

    /// The slots to write, or room for those to read.
    fn values(&self, side: &Side<'_>, out: usize) -> [i32; MAX_WIDTH] {
        let mut values = [0; MAX_WIDTH];
        if let Side::Write(target) = side {
            let slots = target.slots(out);
            values[..slots.len()].copy_from_slice(slots);
        }
        values
    }

    /// The models of the entity whose track was added last.
    fn row_models(&mut self) -> (&mut C, RowModels<'_>) {
        let Part { plan, fields, tops, classes, tracks: Tracks { heads, lanes, pulls }, .. } = &mut self.part;
        let (head, lane) = (heads.len() - plan.fields.len(), lanes.len() - plan.lanes);
        let (heads, lanes) = (&mut heads[head..], &mut lanes[lane..]);
        let (tops, classes) = (tops.all(), classes.all());
        let models = RowModels { plan, fields, tops, classes, pulls, heads, lanes };
        (&mut *self.coder, models)
    }
}
