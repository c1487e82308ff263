//! What a view is told next: what it may see, what is due, and of that as much as there is room for.

use alloc::vec::Vec;

use sametick_sim::replica::{Kind, MAX_WIDTH, Motion, ViewId};
use sametick_sim::{Tick, TickRate};

use super::grid::{Found, Grid};
use super::scenery::Scenery;
use crate::snapshot::{Known, Layout, Mark, Snapshot};

/// Whoever is in a zone stays in it until so much farther away than its edge: nobody flickers on a border.
const HYSTERESIS: f32 = 1.1;

/// Bytes that a changed entity is taken to cost before anything is known.
const FIRST_COST: u32 = 10 * COST_UNIT;
const COST_UNIT: u32 = 256;

/// How much is thought of an entity that a view does not know yet, besides its age.
const NEWCOMER: f32 = 4.0;

/// How often the entities and fields of a kind are looked at, in updates.
pub(crate) struct Cadence {
    zones: Vec<u32>,
    fields: Vec<u32>,
    /// In ticks, how long a change may go unseen because a field is not looked at.
    slowest_ticks: u32,
    /// How far its entities are seen at all.
    pub reach: f32,
    /// The squares of how far each zone reaches: for who comes, and for who is in it already.
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

/// Everything that decides about an update besides what was sent before.
pub(crate) struct Surroundings<'a> {
    pub layout: &'a Layout,
    pub scenery: &'a Scenery,
    pub grids: &'a [Grid],
    pub cadences: &'a [Cadence],
    pub tick: Tick,
    pub eye: Option<[f32; 3]>,
    /// The codes of what the view foresees.
    pub own: Option<&'a [i32]>,
    /// Bytes that the coded rest may have.
    pub budget: usize,
}

/// An entity in sight. There are hundreds of them in an update: they are kept small.
#[derive(Clone, Copy)]
struct Entry {
    row: u32,
    /// Its index in what was sent last, or [`UNKNOWN`].
    known: u32,
    /// How much it matters that something is new about it; nothing is if it is zero.
    priority: f32,
    kind: u16,
    zone: u8,
    told: bool,
}

/// The index of who was not sent before.
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

/// An entity that did not fit.
#[derive(Clone, Copy)]
struct Waiting {
    kind: usize,
    id: u32,
    since: Tick,
}

/// What a view is told next.
pub(crate) struct Choice {
    entries: Vec<Entry>,
    found: Found,
    ranking: Vec<(f32, u32)>,
    waiting: Vec<Waiting>,
    updates: u32,
    /// Changed entities that are told again, since nobody has said they have them.
    again: u32,
    /// Changed entities in the update that is made.
    told: u32,
    /// What one costs, as seen so far.
    cost: u32,
    limit: usize,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            entries: Vec::new(),
            found: Found::default(),
            ranking: Vec::new(),
            waiting: Vec::new(),
            updates: 0,
            again: 0,
            told: 0,
            cost: FIRST_COST,
            limit: 0,
        }
    }
}

impl Choice {
    /// Another update: whose turn it is in it does not depend on how often it is planned.
    pub fn begin(&mut self) {
        self.updates = self.updates.wrapping_add(1);
    }

    /// Finds everything in sight and what is new about it. `base` is when what everybody has was made.
    pub fn plan(&mut self, latest: &Snapshot, base: Option<Tick>, view: ViewId, around: &Surroundings<'_>) {
        self.entries.clear();
        self.again = 0;
        for kind in 0..around.cadences.len() {
            let reach = around.cadences[kind].reach;
            let mut found = core::mem::take(&mut self.found);
            around.grids[kind].near(around.eye, reach, &mut found);
            self.plan_kind(kind, &found, &latest.tables[kind], base, view, around);
            self.found = found;
        }
        self.choose(around.budget);
    }

    fn plan_kind(
        &mut self,
        kind: usize,
        found: &Found,
        latest: &Known,
        base: Option<Tick>,
        view: ViewId,
        around: &Surroundings<'_>,
    ) {
        let (spec, table) = (&around.layout.kinds()[kind], around.scenery.table(kind));
        let mut at = 0;
        let edges = &around.cadences[kind].edges[..];
        for row in found.iter() {
            let entity = &table.rows()[row as usize];
            while latest.marks().get(at).is_some_and(|mark| mark.id < entity.id) {
                at += 1;
            }
            let mark = latest.marks().get(at).filter(|mark| mark.id == entity.id);
            let distance = match (entity.place, around.eye) {
                (Some(place), Some(eye)) => distance_squared(place, eye),
                _ => 0.0,
            };
            let Some(zone) = zone_at(edges, distance, mark.map(|mark| mark.zone)) else { continue };
            if mark.is_some_and(|mark| base.is_none_or(|base| mark.at > base)) {
                self.again += 1;
            }
            let known = if mark.is_some() { at as u32 } else { UNKNOWN };
            let mut entry = Entry { row, known, priority: 0.0, kind: kind as u16, zone, told: false };
            let priority = match mark {
                Some(mark) => self.change(&entry, mark, spec, latest.slots(at), view, around),
                None => Some(NEWCOMER * self.waited(kind, entity.id, around.tick)),
            };
            let near = (spec.zones.len() + 1 - usize::from(zone)) as f32;
            entry.priority = priority.map_or(0.0, |priority| priority * near);
            self.entries.push(entry);
        }
    }

    /// How much an entity that is known has changed, and for how long nothing was told of it; nothing if it has not, or is
    /// not due.
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

    /// Writes the fields that the view may see and that are due over what it has. Returns how many bits the largest
    /// difference of something that moves has.
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

    /// What is looked at every so many updates is spread over them.
    fn is_due(&self, id: u32, every: u32) -> bool {
        every <= 1 || self.updates.wrapping_add(id).is_multiple_of(every)
    }

    fn waited(&self, kind: usize, id: u32, now: Tick) -> f32 {
        let waiting = self.waiting.iter().find(|waiting| waiting.kind == kind && waiting.id == id);
        1.0 + waiting.map_or(0, |waiting| now.ticks_since(waiting.since)) as f32
    }

    /// Takes as much of what is new as there is room for: what matters most, and has waited longest, first.
    fn choose(&mut self, budget: usize) {
        self.limit = budget;
        self.ranking.clear();
        for (index, entry) in (0..).zip(&mut self.entries) {
            entry.told = entry.priority > 0.0;
            if entry.told {
                self.ranking.push((entry.priority, index));
            }
        }
        self.cut();
    }

    fn cut(&mut self) {
        let room = (self.limit as u64 * u64::from(COST_UNIT) / u64::from(self.cost.max(1))) as usize;
        let room = room.saturating_sub(self.again as usize);
        self.told = self.again + self.ranking.len().min(room) as u32;
        if self.ranking.len() <= room {
            return;
        }
        self.ranking.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for &(_, index) in &self.ranking[room..] {
            self.entries[index as usize].told = false;
        }
    }

    /// The update came out at this length, which is too long: less of it.
    pub fn tighten(&mut self, length: usize) {
        self.learn(length);
        self.cost += self.cost / 4;
        self.choose(self.limit);
    }

    /// What changed entities cost.
    pub fn learn(&mut self, length: usize) {
        if let Some(cost) = (length as u32).saturating_mul(COST_UNIT).checked_div(self.told) {
            // Twice as much is believed at once, less only slowly.
            self.cost = cost.max((7 * self.cost + cost) / 8).max(COST_UNIT / 16);
        }
    }

    /// Makes what the view will have. Returns whether something in sight is still unknown to it.
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

    /// What is foreseen is always told.
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

    /// Remembers which newcomers did not fit, and since when.
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

/// The zone at a distance, of which the square is given, for who was in one before or not; none if it is out of sight.
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
