//! Recent states of entities, for interpolation at the shown moment.

use alloc::vec::Vec;

use sametick_sim::replica::{Entity, Kind};
use sametick_sim::{Tick, TickRate};

use super::timeline::MAX_DELAY_US;
use crate::snapshot::{Layout, Mark, Snapshot};

/// How much time of states is kept, in milliseconds: twice the longest delay.
const KEPT_MS: u32 = 2 * MAX_DELAY_US as u32 / 1_000;
/// Additional states, so that there is always one before and one after the shown moment.
const KEPT_BESIDES: usize = 4;

/// The recent states of an entity.
#[derive(Clone, Debug)]
struct Track {
    id: u32,
    zone: u8,
    /// The tick of its removal.
    gone: Option<Tick>,
    /// The last update in which it was unchanged from the last of its states.
    unchanged: Tick,
    count: usize,
    ticks: Vec<Tick>,
    slots: Vec<i32>,
    /// The entity's own shown moment: never moves backwards.
    shown_us: i64,
}

/// The recent states of all entities of a kind.
#[derive(Clone, Debug)]
struct Lane {
    kind: Kind,
    width: usize,
    /// The number of states kept per entity.
    kept: usize,
    /// The number of ticks between two updates of an entity, by zone.
    periods: Vec<u32>,
    tracks: Vec<Track>,
    spare: Vec<Track>,
}

/// The recent states of all entities.
#[derive(Clone, Debug)]
pub(crate) struct Tracks {
    rate: TickRate,
    /// The number of ticks between two updates.
    every: u32,
    lanes: Vec<Lane>,
}

impl Tracks {
    /// Tracks for all kinds but the last, which is the predicted one.
    pub fn new(layout: &Layout, rate: TickRate, updates: TickRate) -> Tracks {
        let every = rate.per_second().div_ceil(updates.per_second());
        let kept = KEPT_BESIDES + (updates.per_second() * KEPT_MS / 1_000) as usize;
        let kinds = layout.kinds().split_last().map_or(&[][..], |(_, kinds)| kinds);
        let lane = |kind: &Kind| Lane {
            kind: *kind,
            width: kind.width(),
            kept,
            periods: kind
                .zones
                .iter()
                .map(|zone| (rate.per_second() / u32::from(zone.hz.max(1))).max(every))
                .collect(),
            tracks: Vec::new(),
            spare: Vec::new(),
        };
        Tracks { rate, every, lanes: kinds.iter().map(lane).collect() }
    }

    /// Adds an update. While it is partial, an entity that it lacks may still exist.
    pub fn on_update(&mut self, snapshot: &Snapshot, partial: bool) {
        for (lane, known) in self.lanes.iter_mut().zip(&snapshot.tables) {
            let mut at = 0;
            for (index, mark) in known.marks().iter().enumerate() {
                while lane.tracks.get(at).is_some_and(|track| track.id < mark.id) {
                    lane.tracks[at].end(snapshot.tick, partial);
                    at += 1;
                }
                let period = lane.periods.get(usize::from(mark.zone)).copied().unwrap_or(self.every);
                if lane.tracks.get(at).is_none_or(|track| track.id != mark.id) {
                    let track = lane.fresh(mark.id);
                    lane.tracks.insert(at, track);
                }
                lane.tracks[at].push(snapshot.tick, mark, known.slots(index), period);
                at += 1;
            }
            for track in lane.tracks.iter_mut().skip(at) {
                track.end(snapshot.tick, partial);
            }
        }
    }

    /// Advances the shown moment. Entities that are updated less often are shown later, so that they move as smoothly.
    pub fn look(&mut self, shown_us: i64) {
        let (rate, every) = (self.rate, self.every);
        for lane in &mut self.lanes {
            for track in &mut lane.tracks {
                let period = lane.periods.get(usize::from(track.zone)).copied().unwrap_or(every);
                let later = rate.due_micros(Tick(period.saturating_sub(every))) as i64;
                track.shown_us = track.shown_us.max(shown_us - later);
            }
            let over =
                |track: &Track| track.gone.is_some_and(|gone| shown_us >= rate.due_micros(gone) as i64);
            lane.spare.extend(lane.tracks.extract_if(.., |track| over(track)));
        }
    }

    /// The entities of a type as they are shown: id, zone and values.
    pub fn shown<E: Entity>(&self) -> impl Iterator<Item = (u32, u8, E)> + '_ {
        let rate = self.rate;
        let lane = self.lanes.iter().find(|lane| lane.kind.name == E::KIND.name);
        lane.into_iter().flat_map(move |lane| {
            lane.tracks.iter().filter_map(move |track| {
                let (from, to, share) = track.around(rate, lane.width)?;
                let from = E::take(from)?;
                let entity = if share > 0.0 { from.between(&E::take(to)?, share) } else { from };
                Some((track.id, track.zone, entity))
            })
        })
    }
}

impl Lane {
    fn fresh(&mut self, id: u32) -> Track {
        let mut track = self.spare.pop().unwrap_or_else(|| Track {
            id,
            zone: 0,
            gone: None,
            unchanged: Tick::ZERO,
            count: 0,
            ticks: alloc::vec![Tick::ZERO; self.kept],
            slots: alloc::vec![0; self.kept * self.width],
            shown_us: i64::MIN,
        });
        (track.id, track.gone, track.count, track.shown_us) = (id, None, 0, i64::MIN);
        track
    }
}

impl Track {
    fn end(&mut self, tick: Tick, partial: bool) {
        if !partial {
            self.gone.get_or_insert(tick);
        }
    }

    fn push(&mut self, update: Tick, mark: &Mark, slots: &[i32], period: u32) {
        self.zone = mark.zone;
        if self.gone.take().is_some() {
            // It was out of sight: it does not glide to its new place.
            self.count = 0;
        }
        let unchanged = core::mem::replace(&mut self.unchanged, update);
        if let Some(last) = self.count.checked_sub(1).map(|last| self.ticks[last]) {
            if mark.at <= last {
                return;
            }
            // It rested until the last update in which it was unchanged, or had not changed one period ago. If an
            // update was lost, this is unknown.
            let still = unchanged.min(Tick(mark.at.0.saturating_sub(period)));
            if still > last {
                let width = slots.len();
                let at = (self.count - 1) * width;
                self.make_room(width);
                let from = at.min((self.count - 1) * width);
                self.slots.copy_within(from..from + width, self.count * width);
                self.ticks[self.count] = still;
                self.count += 1;
            }
        }
        let width = slots.len();
        self.make_room(width);
        self.slots[self.count * width..(self.count + 1) * width].copy_from_slice(slots);
        self.ticks[self.count] = mark.at;
        self.count += 1;
    }

    fn make_room(&mut self, width: usize) {
        if self.count == self.ticks.len() {
            self.ticks.copy_within(1.., 0);
            self.slots.copy_within(width.., 0);
            self.count -= 1;
        }
    }

    /// The states before and after the shown moment, and how far between them it is. None before the first state.
    fn around(&self, rate: TickRate, width: usize) -> Option<(&[i32], &[i32], f32)> {
        let due_us = |at: usize| rate.due_micros(self.ticks[at]) as i64;
        let state = |at: usize| &self.slots[at * width..(at + 1) * width];
        let from = (0..self.count).rev().find(|at| due_us(*at) <= self.shown_us)?;
        let to = (from + 1).min(self.count - 1);
        let span_us = due_us(to) - due_us(from);
        let share = if span_us > 0 { (self.shown_us - due_us(from)) as f32 / span_us as f32 } else { 0.0 };
        Some((state(from), state(to), share))
    }
}
