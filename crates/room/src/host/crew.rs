//! A crew: the members that share a view, the updates in flight to them, their acknowledgements and their next update.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::Tick;
use sametick_sim::replica::ViewId;
use sametick_wire::Member;

use super::choice::{Choice, Surroundings};
use super::in_flight::InFlight;
use crate::delta;
use crate::message::{Head, MASK_BITS, MAX_BACK, Report, widen_tick};
use crate::models::{Family, Models};
use crate::snapshot::{Layout, Snapshot};

/// The most members of a crew: one bit for each.
pub(crate) const MAX_CREW: usize = 32;

/// The most unacknowledged updates that are kept: a member that has acknowledged none for longer is left behind.
const MAX_SENT: usize = 40;

/// An update that was sent.
struct Sent {
    snapshot: Snapshot,
    models: Models,
    /// Members that have not acknowledged it.
    missing: u32,
}

/// The sent updates that can still serve as a base.
struct SentUpdates {
    /// Oldest first: the base, if there is one, and all updates since.
    sent: VecDeque<Sent>,
    /// Whether all members have acknowledged the first.
    known: bool,
    /// An unacknowledged update that serves as the base nevertheless.
    in_flight_base: Option<Tick>,
    spare: Vec<Sent>,
    nothing: Snapshot,
    family: Family,
}

impl SentUpdates {
    /// The last sent snapshot.
    fn latest(&self) -> &Snapshot {
        self.sent.back().map_or(&self.nothing, |sent| &sent.snapshot)
    }

    /// The base of the next update: the newest update that all members have acknowledged, or one in flight.
    fn base(&self) -> Option<&Sent> {
        match self.in_flight_base {
            Some(tick) => self.sent.iter().find(|sent| sent.snapshot.tick == tick),
            None => self.sent.front().filter(|_| self.known),
        }
    }

    /// Forgets all updates: the next one has no base.
    fn forget(&mut self) {
        self.spare.extend(self.sent.drain(..));
        (self.known, self.in_flight_base) = (false, None);
    }

    /// Makes the newest update the base though it is in flight. Fails if it is the base already, or is acknowledged.
    fn advance(&mut self) -> bool {
        let newest = self.latest().tick;
        let is_newer = self.sent.len() > usize::from(self.known) && self.in_flight_base != Some(newest);
        if is_newer {
            self.in_flight_base = Some(newest);
        }
        is_newer
    }

    /// The base was lost in flight: no update sent since the last acknowledged one can be decoded. Returns the tick of
    /// the first of those.
    fn retreat(&mut self) -> Tick {
        let known = usize::from(self.known);
        let first = self.sent.get(known).map_or(Tick::ZERO, |sent| sent.snapshot.tick);
        self.spare.extend(self.sent.drain(known..));
        self.in_flight_base = None;
        first
    }

    /// Finds the newest update that all needed members have acknowledged, and drops those that cannot be a base any
    /// more.
    fn settle(&mut self, needed: u32) {
        let Some(base) = self.sent.iter().rposition(|sent| sent.missing & needed == 0) else { return };
        self.spare.extend(self.sent.drain(..base));
        self.known = true;
        let known = self.sent.front().map(|sent| sent.snapshot.tick);
        self.in_flight_base = self.in_flight_base.filter(|base| known.is_none_or(|known| known < *base));
    }

    /// A buffer for the next update.
    fn fresh(&mut self) -> Sent {
        self.spare.pop().unwrap_or_else(|| {
            let (snapshot, models) = (self.nothing.clone(), Models::of(&self.family));
            Sent { snapshot, models, missing: 0 }
        })
    }

    /// The base snapshot of the next update, empty if there is none.
    fn known(&self) -> &Snapshot {
        self.base().map_or(&self.nothing, |base| &base.snapshot)
    }

    /// Encodes an update against the base. Returns how many bytes code entities that the base does not have.
    fn encode(&self, fresh: &mut Sent, out: &mut Vec<u8>) -> usize {
        let base = self.base();
        match base {
            Some(base) => fresh.models.copy_from(&base.models),
            None => fresh.models.reset(),
        }
        out.clear();
        delta::encode(&mut fresh.models, self.known(), &fresh.snapshot, out)
    }
}

/// The members that share a view.
pub(crate) struct Crew {
    pub view: ViewId,
    members: [Option<Member>; MAX_CREW],
    /// Members whose acknowledgements are required of a base.
    needed: u32,
    /// The tick of the last update.
    newest: Tick,
    sent_updates: SentUpdates,
    in_flight: InFlight,
    choice: Choice,
    /// Encoded lossy events since the last update; the list has the end and the tick of each.
    events: Vec<u8>,
    event_ends: Vec<(Tick, usize)>,
}

impl Crew {
    pub fn new(view: ViewId, layout: &Layout, family: &Family) -> Crew {
        Crew {
            view,
            members: [None; MAX_CREW],
            needed: 0,
            newest: Tick::ZERO,
            sent_updates: SentUpdates {
                sent: VecDeque::new(),
                known: false,
                in_flight_base: None,
                spare: Vec::new(),
                nothing: Snapshot::new(layout),
                family: family.clone(),
            },
            in_flight: InFlight::new(),
            choice: Choice::default(),
            events: Vec::new(),
            event_ends: Vec::new(),
        }
    }

    /// All members.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().flatten().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// Adds a member. Fails if the crew is full. A new member has no base, so everything is sent again.
    pub fn add(&mut self, member: Member) -> bool {
        let Some(slot) = self.members.iter().position(Option::is_none) else { return false };
        self.members[slot] = Some(member);
        self.needed |= 1 << slot;
        self.sent_updates.forget();
        self.in_flight = InFlight::new();
        true
    }

    pub fn remove(&mut self, member: Member) {
        if let Some(slot) = self.slot_of(member) {
            self.members[slot] = None;
            self.needed &= !(1 << slot);
            self.sent_updates.settle(self.needed);
        }
    }

    fn slot_of(&self, member: Member) -> Option<usize> {
        self.members.iter().position(|other| *other == Some(member))
    }

    /// Handles a member's report: the newest update it received and, bit by bit, those before.
    pub fn on_report(&mut self, member: Member, report: &Report) {
        let Some(slot) = self.slot_of(member) else { return };
        let newest = report.newest.map(|newest| widen_tick(newest, self.newest));
        if let Some(newest) = newest {
            self.note_received(1 << slot, newest, report.mask);
        }
        let unread = self.in_flight.on_report(newest, self.newest);
        if unread && self.sent_updates.in_flight_base.is_some() {
            self.in_flight.retreat(self.sent_updates.retreat(), self.newest);
        }
    }

    fn note_received(&mut self, bit: u32, newest: Tick, mask: u64) {
        if self.needed & bit == 0 {
            // The member was left behind, and is heard again.
            self.needed |= bit;
            return self.sent_updates.forget();
        }
        for sent in &mut self.sent_updates.sent {
            let has = match newest.0.checked_sub(sent.snapshot.tick.0) {
                Some(0) => true,
                Some(back @ 1..=MASK_BITS) => mask >> (back - 1) & 1 == 1,
                _ => false,
            };
            if has {
                sent.missing &= !bit;
            }
        }
        self.sent_updates.settle(self.needed);
    }

    /// A member that has acknowledged nothing for too long is not required any more.
    fn leave_behind(&mut self, now: Tick) {
        let sent_updates = &mut self.sent_updates;
        let oldest = sent_updates.sent.front().map_or(now, |sent| sent.snapshot.tick);
        if sent_updates.sent.len() < MAX_SENT && now.ticks_since(oldest) <= MAX_BACK {
            return;
        }
        let lagging = sent_updates
            .sent
            .iter()
            .skip(usize::from(sent_updates.known))
            .fold(0, |bits, sent| bits | sent.missing);
        if self.needed & !lagging != 0 {
            self.needed &= !lagging;
            sent_updates.settle(self.needed);
        }
        let oldest = sent_updates.sent.front().map_or(now, |sent| sent.snapshot.tick);
        if sent_updates.sent.len() >= MAX_SENT || now.ticks_since(oldest) > MAX_BACK {
            sent_updates.forget();
            self.in_flight.lose();
        }
    }

    /// Adds a lossy event.
    pub fn tell(&mut self, tick: Tick, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.events);
        self.event_ends.push((tick, self.events.len()));
    }

    /// Makes the next update: writes its delta to `out` and its events to `events`, replacing their contents.
    pub fn compose(&mut self, around: &Surroundings<'_>, out: &mut Vec<u8>, events: &mut Vec<u8>) -> Head {
        self.leave_behind(around.tick);
        let mut fresh = self.sent_updates.fresh();
        let partial = self.fit(around, &mut fresh, out);
        assert!(out.len() <= around.budget, "an update of {} bytes", out.len());
        self.choice.finish(around.tick);
        let base = self.sent_updates.base().map(|base| base.snapshot.tick);
        fresh.missing = self.needed;
        self.sent_updates.sent.push_back(fresh);
        self.newest = around.tick;
        self.take_events(around, out.len(), events);
        Head { tick: around.tick, base, partial }
    }

    /// Encodes an update with as much content as fits. Returns whether an entity in sight is still unknown to the
    /// members.
    fn fit(&mut self, around: &Surroundings<'_>, fresh: &mut Sent, out: &mut Vec<u8>) -> bool {
        let is_alone = self.members().nth(1).is_none();
        let Crew { sent_updates, choice, view, in_flight, .. } = self;
        in_flight.pass();
        choice.begin();
        choice.plan(
            (sent_updates.latest(), sent_updates.known()),
            *view,
            around,
            sent_updates.in_flight_base.is_some(),
        );
        if choice.is_short() && is_alone && in_flight.is_allowed() && sent_updates.advance() {
            in_flight.take();
            choice.plan((sent_updates.latest(), sent_updates.known()), *view, around, true);
        }
        loop {
            let partial = choice.build(sent_updates.latest(), *view, around, &mut fresh.snapshot);
            let fresh_bytes = sent_updates.encode(fresh, out);
            choice.learn(out.len(), fresh_bytes);
            if out.len() <= around.budget {
                return partial;
            }
            if is_alone && in_flight.is_allowed() && sent_updates.advance() {
                in_flight.take();
                choice.plan((sent_updates.latest(), sent_updates.known()), *view, around, true);
            } else if choice.tighten(out.len(), around) {
                // Retry with less content.
            } else if !sent_updates.sent.is_empty() {
                // The repeated entities alone do not fit: start again without a base, with as many of them as fit.
                sent_updates.forget();
                choice.plan((sent_updates.latest(), sent_updates.known()), *view, around, false);
            } else {
                // Not even the predicted state fits.
                fresh.snapshot.clear();
                fresh.snapshot.tick = around.tick;
                sent_updates.encode(fresh, out);
                return true;
            }
        }
    }

    fn take_events(&mut self, around: &Surroundings<'_>, taken: usize, out: &mut Vec<u8>) {
        out.clear();
        let mut start = 0;
        for (tick, end) in self.event_ends.drain(..) {
            let event = &self.events[start..end];
            start = end;
            if taken + out.len() + event.len() + 2 <= around.budget {
                let ago = u8::try_from(around.tick.ticks_since(tick)).unwrap_or(u8::MAX);
                crate::message::put_event(out, ago, event);
            }
        }
        self.events.clear();
    }
}
