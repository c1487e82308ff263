//! Chooses the content of a view's next update: what is in sight and due, by priority, as far as the budget allows.

use alloc::vec::Vec;

use sametick_sim::replica::{Kind, MAX_WIDTH, Motion, ViewId};
use sametick_sim::{Tick, TickRate};

use super::cost::{self, Cost};
use super::grid::{Found, Grid};
use super::refresh::Refresh;
use super::scenery::Scenery;
use crate::snapshot::{KnownEntities, Layout, Mark, Snapshot};

/// An entity stays in its zone until it is this much farther away than the zone's edge, so that it does not flicker on
/// a border.
const HYSTERESIS: f32 = 1.1;

/// How often the content of a too long update is reduced, before only the mandatory part is left.
const TRIES: u32 = 4;

/// The priority of an entity that the view does not know yet, besides its age.
const NEWCOMER: f32 = 4.0;

/// How often the entities and fields of a kind are sent, in updates.
pub(crate) struct Cadence {
    zones: Vec<u32>,
    fields: Vec<u32>,
    /// The longest time, in ticks, that a change may go unseen because a field is not due.
    slowest_ticks: u32,
    /// The largest distance at which its entities are seen.
    pub reach: f32,
    /// The squared radii of each zone: for entering, and for leaving.
    edges: Vec<[f32; 2]>,
}

impl Cadence {
    pub fn of(kind: &Kind, steps: TickRate, updates: TickRate) -> Cadence {
        let updates_each = |hz: u16| (updates.per_second() / u32::from(hz.max(1))).max(1);
        let fields: Vec<u32> = kind.fields.iter().map(|field| field.hz.map_or(1, updates_each)).collect();
        let slowest = fields.iter().copied().max().unwrap_or(1);
        let ticks_each = steps.per_second().div_ceil(updates.per_second());
        Cadence {
            zones: kind.zones.iter().map(|zone| updates_each(zone.hz)).collect(),
            slowest_ticks: if slowest > 1 { (slowest + 1) * ticks_each } else { 0 },
            fields,
            edges: kind
                .zones
                .iter()
                .map(|zone| [1.0, HYSTERESIS].map(|by| square(zone.within * by)))
                .collect(),
            reach: kind.zones.last().map_or(f32::INFINITY, |zone| zone.within * HYSTERESIS),
        }
    }
}

/// Everything that decides on an update besides what was sent before.
pub(crate) struct Surroundings<'a> {
    pub layout: &'a Layout,
    pub scenery: &'a Scenery,
    pub grids: &'a [Grid],
    pub cadences: &'a [Cadence],
    pub tick: Tick,
    pub eye: Option<[f32; 3]>,
    /// The codes of the predicted state.
    pub own: Option<&'a [i32]>,
    /// The byte budget of the coded delta.
    pub budget: usize,
}

/// An entity in sight. An update has hundreds of these: they are kept small.
#[derive(Clone, Copy)]
struct Entry {
    row: u32,
    /// Its index in the last sent update, or [`UNKNOWN`].
    known: u32,
    /// How important its change is; zero if nothing has changed.
    priority: f32,
    kind: u16,
    zone: u8,
    told: bool,
    /// It changed since the base, so it is in every update until acknowledged, at least with its last sent values.
    again: bool,
    /// The base does not have it.
    fresh: bool,
}

/// The index of an entity that was not sent before.
const UNKNOWN: u32 = u32::MAX;

impl Entry {
    fn kind(&self) -> usize {
        self.kind.into()
    }

    fn known(&self) -> Option<usize> {
        (self.known != UNKNOWN).then_some(self.known as usize)
    }

    fn is_left_out(&self) -> bool {
        self.known == UNKNOWN && self.priority > 0.0 && !self.told
    }
}

/// An entity for which the last update had no room.
#[derive(Clone, Copy)]
struct Waiting {
    kind: usize,
    id: u32,
    since: Tick,
}

/// The content of a view's next update.
pub(crate) struct Choice {
    entries: Vec<Entry>,
    found: Found,
    ranking: Vec<(bool, f32, u32)>,
    waiting: Vec<Waiting>,
    updates: u32,
    /// Changed entities in the current update: all, and those that the base does not have.
    coded: u32,
    coded_fresh: u32,
    /// The cost of one entity, as measured so far.
    cost: Cost,
    limit: usize,
    tries: u32,
    /// Whether a due entity was left out.
    short: bool,
    refresh: Refresh,
    /// Entities of the base take priority: one that is left out is coded as resting, which makes its next change more
    /// expensive.
    steady: bool,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            entries: Vec::new(),
            found: Found::default(),
            ranking: Vec::new(),
            waiting: Vec::new(),
            updates: 0,
            coded: 0,
            coded_fresh: 0,
            cost: Cost::FIRST,
            limit: 0,
            tries: 0,
            short: false,
            refresh: Refresh::default(),
            steady: false,
        }
    }
}

impl Choice {
    /// Begins another update: which entities have their turn does not depend on how often the update is planned.
    pub fn begin(&mut self) {
        self.updates = self.updates.wrapping_add(1);
    }

    /// Whether a due entity did not fit.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Finds everything in sight and its changes since the last sent update; the update is coded against the base. If
    /// `steady`, entities of the base take priority over others.
    pub fn plan(
        &mut self,
        (latest, base): (&Snapshot, &Snapshot),
        view: ViewId,
        around: &Surroundings<'_>,
        steady: bool,
    ) {
        self.entries.clear();
        self.steady = steady;
        for kind in 0..around.cadences.len() {
            let reach = around.cadences[kind].reach;
            let mut found = core::mem::take(&mut self.found);
            around.grids[kind].near(around.eye, reach, &mut found);
            self.plan_kind(kind, &found, (latest, base), view, around);
            self.found = found;
        }
        self.tries = 0;
        self.limit = around.budget;
        let base_age = (base.tick > Tick::ZERO).then(|| around.tick.ticks_since(base.tick));
        self.refresh.begin(around.tick, base_age);
        self.choose(around.tick);
    }

    fn plan_kind(
        &mut self,
        kind: usize,
        found: &Found,
        (latest, base): (&Snapshot, &Snapshot),
        view: ViewId,
        around: &Surroundings<'_>,
    ) {
        let (spec, table) = (&around.layout.kinds()[kind], around.scenery.table(kind));
        let (base_tick, latest, base) = (base.tick, &latest.tables[kind], &base.tables[kind]);
        let (mut at, mut base_at) = (0, 0);
        let edges = &around.cadences[kind].edges[..];
        for row in found.iter() {
            let entity = &table.rows()[row as usize];
            let mark = mark_of(latest, &mut at, entity.id);
            let fresh = mark_of(base, &mut base_at, entity.id).is_none();
            let distance = match (entity.place, around.eye) {
                (Some(place), Some(eye)) => distance_squared(place, eye),
                _ => 0.0,
            };
            let Some(zone) = zone_at(edges, distance, mark.map(|mark| mark.zone)) else { continue };
            let again = mark.is_some_and(|mark| fresh || mark.at > base_tick);
            let known = if mark.is_some() { at as u32 } else { UNKNOWN };
            let number = kind as u16;
            let mut entry =
                Entry { row, known, priority: 0.0, kind: number, zone, told: false, again, fresh };
            let priority = match mark {
                Some(mark) => self.change(&entry, mark, spec, latest.slots(at), view, around),
                None => Some(NEWCOMER * self.waited(kind, entity.id, around.tick)),
            };
            let near = (spec.zones.len() + 1 - usize::from(zone)) as f32;
            entry.priority = priority.map_or(0.0, |priority| priority * near);
            self.entries.push(entry);
        }
    }

    /// How much a known entity has changed, weighted by the time since its last update; `None` if it has not changed or
    /// is not due.
    fn change(
        &self,
        entry: &Entry,
        mark: &Mark,
        spec: &Kind,
        slots: &[i32],
        view: ViewId,
        around: &Surroundings<'_>,
    ) -> Option<f32> {
        let cadence = &around.cadences[entry.kind()];
        let since = around.scenery.since(entry.kind(), entry.row as usize);
        let fresh = entry.zone != mark.zone || since + cadence.slowest_ticks > mark.at;
        let every = cadence.zones.get(usize::from(entry.zone)).copied().unwrap_or(1);
        let due = entry.zone < mark.zone || self.is_due(mark.id, every);
        if !fresh || !due {
            return None;
        }
        let mut codes = [0; MAX_WIDTH];
        let codes = codes.get_mut(..slots.len())?;
        codes.copy_from_slice(slots);
        let bits = self.write(entry, Some(mark.zone), spec, view, around, codes);
        let age = around.tick.ticks_since(mark.at) as f32;
        (codes != slots || entry.zone != mark.zone).then_some((1.0 + age) * (1.0 + bits as f32 / 4.0))
    }

    /// Overwrites the fields that are visible to the view and due. Returns how many bits the largest difference of a
    /// moving field has.
    fn write(
        &self,
        entry: &Entry,
        was: Option<u8>,
        spec: &Kind,
        view: ViewId,
        around: &Surroundings<'_>,
        codes: &mut [i32],
    ) -> u32 {
        let table = around.scenery.table(entry.kind());
        let (row, slots) = (table.rows()[entry.row as usize], table.slots_at(entry.row as usize));
        let nearer = was.is_none_or(|was| entry.zone < was);
        let (mut at, mut bits) = (0, 0);
        for (field, every) in spec.fields.iter().zip(&around.cadences[entry.kind()].fields) {
            let end = at + usize::from(field.slots);
            let seen = spec.zones.is_empty() || entry.zone < field.zones;
            let may = seen && (!field.owner || row.owner == Some(view));
            if may && (nearer || self.is_due(row.id, *every)) {
                for (code, new) in codes[at..end].iter_mut().zip(&slots[at..end]) {
                    if field.motion != Motion::Step {
                        bits = bits.max(u32::BITS - new.abs_diff(*code).leading_zeros());
                    }
                    *code = *new;
                }
            }
            at = end;
        }
        bits
    }

    /// Whether an entity with this period is due in this update: entities are spread over the updates of a period.
    fn is_due(&self, id: u32, every: u32) -> bool {
        every <= 1 || self.updates.wrapping_add(id).is_multiple_of(every)
    }

    fn waited(&self, kind: usize, id: u32, now: Tick) -> f32 {
        let waiting = self.waiting.iter().find(|waiting| waiting.kind == kind && waiting.id == id);
        1.0 + waiting.map_or(0, |waiting| now.ticks_since(waiting.since)) as f32
    }

    /// Takes as many changes as fit: the most important and longest waiting first.
    fn choose(&mut self, now: Tick) {
        self.ranking.clear();
        let (mut repeated, mut wanted) = (0, 0);
        (self.coded, self.coded_fresh) = (0, 0);
        for (index, entry) in (0..).zip(&mut self.entries) {
            entry.told = entry.priority > 0.0;
            if entry.again {
                repeated += self.cost.of(entry.fresh);
            } else if entry.told {
                wanted += self.cost.of(entry.fresh);
                self.ranking.push((self.steady && !entry.fresh, entry.priority, index));
            }
            if entry.again || entry.told {
                self.coded += 1;
                self.coded_fresh += u32::from(entry.fresh);
            }
        }
        let room = |limit: usize| cost::of_bytes(limit).saturating_sub(repeated);
        self.short = wanted > room(self.limit);
        if self.short {
            self.cut(room(self.limit / 8 * 7), now);
        }
    }

    /// Leaves out the least important changes. While refreshing is off, repeated entities keep their last sent values.
    fn cut(&mut self, mut room: u64, now: Tick) {
        self.ranking.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        for &(_, _, index) in &self.ranking {
            let entry = &mut self.entries[index as usize];
            let cost = self.cost.of(entry.fresh);
            if cost <= room {
                room -= cost;
                continue;
            }
            // Nothing less important takes its place.
            room = 0;
            entry.told = false;
            self.coded -= 1;
            self.coded_fresh -= u32::from(entry.fresh);
        }
        if !self.refresh.is_on(now) {
            self.repeat();
        }
    }

    /// Repeats entities with their last sent values. Returns whether that makes a difference.
    fn repeat(&mut self) -> bool {
        let mut differs = false;
        for entry in self.entries.iter_mut().filter(|entry| entry.again) {
            differs |= core::mem::take(&mut entry.told);
        }
        differs
    }

    /// The update is too long with this length: reduces the content. Fails if there is nothing more to leave out.
    pub fn tighten(&mut self, length: usize, around: &Surroundings<'_>) -> bool {
        self.tries += 1;
        if !self.admits() {
            return self.repeat();
        }
        let less = self.limit * around.budget / length.max(1);
        self.limit = if self.tries < TRIES { less.min(self.limit) / 8 * 7 } else { 0 };
        self.choose(around.tick);
        true
    }

    /// The update is sent as it was built last.
    pub fn finish(&mut self, now: Tick) {
        self.refresh.finish(now, !self.short);
    }

    /// Whether the update has news besides repeated entities.
    fn admits(&self) -> bool {
        self.entries.iter().any(|entry| entry.told && !entry.again)
    }

    /// Learns the cost of entities from an update of this length, of which `fresh_bytes` are for entities that the base
    /// lacks.
    pub fn learn(&mut self, length: usize, fresh_bytes: usize) {
        self.cost.fresh.learn(fresh_bytes, self.coded_fresh);
        self.cost.known.learn(length.saturating_sub(fresh_bytes), self.coded - self.coded_fresh);
    }

    /// Builds the snapshot that the view will have. Returns whether an entity in sight is still unknown to the view.
    pub fn build(
        &mut self,
        latest: &Snapshot,
        view: ViewId,
        around: &Surroundings<'_>,
        target: &mut Snapshot,
    ) -> bool {
        target.clear();
        target.tick = around.tick;
        let mut left_out = 0;
        for entry in &self.entries {
            let kind = entry.kind();
            let spec = &around.layout.kinds()[kind];
            let (known, table) = (&latest.tables[kind], &mut target.tables[kind]);
            match entry.known() {
                Some(at) => {
                    table.push_copy(known, at);
                    if entry.told {
                        let was = known.marks()[at].zone;
                        let (mark, codes) = table.last_mut();
                        (mark.zone, mark.at) = (entry.zone, around.tick);
                        self.write(entry, Some(was), spec, view, around, codes);
                    }
                }
                None if entry.told => {
                    let id = around.scenery.table(kind).rows()[entry.row as usize].id;
                    let codes = table.push(Mark { id, zone: entry.zone, at: around.tick });
                    self.write(entry, None, spec, view, around, codes);
                }
                None => left_out += 1,
            }
        }
        self.build_own(latest, around, target);
        self.note_waiting(around);
        left_out > 0
    }

    /// The predicted state is in every update.
    fn build_own(&self, latest: &Snapshot, around: &Surroundings<'_>, target: &mut Snapshot) {
        let (Some(own), Some(known), Some(table)) =
            (around.own, latest.tables.last(), target.tables.last_mut())
        else {
            return;
        };
        let same = known.marks().first().filter(|_| known.slots(0) == own);
        let at = same.map_or(around.tick, |mark| mark.at);
        table.push(Mark { id: 0, zone: 0, at }).copy_from_slice(own);
    }

    /// Remembers which new entities did not fit, and since when.
    fn note_waiting(&mut self, around: &Surroundings<'_>) {
        let Choice { entries, waiting, .. } = self;
        if waiting.is_empty() && !entries.iter().any(Entry::is_left_out) {
            return;
        }
        let id_of = |entry: &Entry| around.scenery.table(entry.kind()).rows()[entry.row as usize].id;
        let before = waiting.len();
        for entry in entries.iter().filter(|entry| entry.is_left_out()) {
            let (kind, id) = (entry.kind(), id_of(entry));
            let found = waiting[..before].iter().find(|waiting| waiting.kind == kind && waiting.id == id);
            let since = found.map_or(around.tick, |waiting| waiting.since);
            waiting.push(Waiting { kind, id, since });
        }
        waiting.drain(..before);
    }
}

/// The mark of an entity in a table. Entities are looked up in ascending order of ids; `at` is the index found.
fn mark_of<'a>(table: &'a KnownEntities, at: &mut usize, id: u32) -> Option<&'a Mark> {
    while table.marks().get(*at).is_some_and(|mark| mark.id < id) {
        *at += 1;
    }
    table.marks().get(*at).filter(|mark| mark.id == id)
}

/// The zone at a squared distance, given the zone before; none if the entity is out of sight.
fn zone_at(edges: &[[f32; 2]], distance: f32, was: Option<u8>) -> Option<u8> {
    if edges.is_empty() {
        return Some(0);
    }
    let plain = edges.iter().position(|[plain, _]| distance <= *plain);
    let stays = was.filter(|was| edges.get(usize::from(*was)).is_some_and(|[_, wide]| distance <= *wide));
    match (plain, stays) {
        (Some(plain), Some(stays)) => Some(stays.min(plain as u8)),
        (Some(plain), None) => Some(plain as u8),
        (None, stays) => stays,
    }
}

fn distance_squared(a: [f32; 3], b: [f32; 3]) -> f32 {
    let [x, y, z] = [0, 1, 2].map(|axis| square(a[axis] - b[axis]));
    x + y + z
}

fn square(number: f32) -> f32 {
    number * number
}
