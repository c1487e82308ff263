//! Everyone who shares a view: what they have been sent, what they have, and what they are sent next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::Tick;
use sametick_sim::replica::ViewId;
use sametick_wire::Member;

use super::choice::{Choice, Surroundings};
use crate::delta;
use crate::message::{Head, MASK_BITS, MAX_BACK};
use crate::models::{Family, Models};
use crate::snapshot::{Layout, Snapshot};

/// Members of a crew: a bit for each.
pub(crate) const MAX_CREW: usize = 32;

/// Updates that are kept for those who may have them: whoever has not said so for longer is left behind.
const MAX_SENT: usize = 24;

/// How often an update that came out too long is made again with less in it.
const TRIES: u32 = 4;

/// An update that was sent.
struct Sent {
    snapshot: Snapshot,
    models: Models,
    /// Members that have not said that they have it.
    missing: u32,
}

/// The updates that something can still be coded against.
struct Shelf {
    /// The oldest first: the base, if there is one, and all since.
    sent: VecDeque<Sent>,
    /// Whether everybody has the first.
    known: bool,
    spare: Vec<Sent>,
    nothing: Snapshot,
    family: Family,
}

impl Shelf {
    /// What was sent last.
    fn latest(&self) -> &Snapshot {
        self.sent.back().map_or(&self.nothing, |sent| &sent.snapshot)
    }

    /// The newest update that everybody has.
    fn base(&self) -> Option<&Sent> {
        self.sent.front().filter(|_| self.known)
    }

    /// Nothing is known to everybody any more.
    fn forget(&mut self) {
        self.spare.extend(self.sent.drain(..));
        self.known = false;
    }

    /// Finds the newest update that everybody has, and gives up what nothing can be coded against any more.
    fn settle(&mut self, needed: u32) {
        let Some(base) = self.sent.iter().rposition(|sent| sent.missing & needed == 0) else { return };
        self.spare.extend(self.sent.drain(..base));
        self.known = true;
    }

    /// A place for the next one.
    fn fresh(&mut self) -> Sent {
        self.spare.pop().unwrap_or_else(|| {
            let (snapshot, models) = (self.nothing.clone(), Models::of(&self.family));
            Sent { snapshot, models, missing: 0 }
        })
    }

    /// Codes an update against what everybody has.
    fn encode(&self, fresh: &mut Sent, out: &mut Vec<u8>) {
        let base = self.base();
        match base {
            Some(base) => fresh.models.copy_from(&base.models),
            None => fresh.models.reset(),
        }
        let known = base.map_or(&self.nothing, |base| &base.snapshot);
        out.clear();
        delta::encode(&mut fresh.models, known, &fresh.snapshot, out);
    }
}

/// Everyone who shares a view.
pub(crate) struct Crew {
    pub view: ViewId,
    members: [Option<Member>; MAX_CREW],
    /// Members without whose word nothing is taken for known.
    needed: u32,
    shelf: Shelf,
    choice: Choice,
    /// Lossy events since the last update, coded; each ends where the list says, with its tick.
    events: Vec<u8>,
    event_ends: Vec<(Tick, usize)>,
}

impl Crew {
    pub fn new(view: ViewId, layout: &Layout, family: &Family) -> Crew {
        Crew {
            view,
            members: [None; MAX_CREW],
            needed: 0,
            shelf: Shelf {
                sent: VecDeque::new(),
                known: false,
                spare: Vec::new(),
                nothing: Snapshot::new(layout),
                family: family.clone(),
            },
            choice: Choice::default(),
            events: Vec::new(),
            event_ends: Vec::new(),
        }
    }

    /// Everyone in it.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().flatten().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// Somebody comes. Fails if there is no place. They know nothing yet, so everything is told anew.
    pub fn add(&mut self, member: Member) -> bool {
        let Some(slot) = self.members.iter().position(Option::is_none) else { return false };
        self.members[slot] = Some(member);
        self.needed |= 1 << slot;
        self.shelf.forget();
        true
    }

    pub fn remove(&mut self, member: Member) {
        if let Some(slot) = self.slot_of(member) {
            self.members[slot] = None;
            self.needed &= !(1 << slot);
            self.shelf.settle(self.needed);
        }
    }

    fn slot_of(&self, member: Member) -> Option<usize> {
        self.members.iter().position(|other| *other == Some(member))
    }

    /// The tick of the last update.
    pub fn newest(&self) -> Tick {
        self.shelf.latest().tick
    }

    /// A member says what it has: an update and, bit by bit, those before it.
    pub fn on_report(&mut self, member: Member, newest: Tick, mask: u64) {
        let Some(slot) = self.slot_of(member) else { return };
        let bit = 1 << slot;
        if self.needed & bit == 0 {
            // It was left behind, and is there again.
            self.needed |= bit;
            return self.shelf.forget();
        }
        for sent in &mut self.shelf.sent {
            let has = match newest.0.checked_sub(sent.snapshot.tick.0) {
                Some(0) => true,
                Some(back @ 1..=MASK_BITS) => mask >> (back - 1) & 1 == 1,
                _ => false,
            };
            if has {
                sent.missing &= !bit;
            }
        }
        self.shelf.settle(self.needed);
    }

    /// Whoever has said nothing for too long is not waited for.
    fn leave_behind(&mut self, now: Tick) {
        let shelf = &mut self.shelf;
        let oldest = shelf.sent.front().map_or(now, |sent| sent.snapshot.tick);
        if shelf.sent.len() < MAX_SENT && now.ticks_since(oldest) <= MAX_BACK {
            return;
        }
        let lagging =
            shelf.sent.iter().skip(usize::from(shelf.known)).fold(0, |bits, sent| bits | sent.missing);
        if self.needed & !lagging != 0 {
            self.needed &= !lagging;
            shelf.settle(self.needed);
        }
        let oldest = shelf.sent.front().map_or(now, |sent| sent.snapshot.tick);
        if shelf.sent.len() >= MAX_SENT || now.ticks_since(oldest) > MAX_BACK {
            shelf.forget();
        }
    }

    /// Something happened that may be lost.
    pub fn tell(&mut self, tick: Tick, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.events);
        self.event_ends.push((tick, self.events.len()));
    }

    /// Makes the next update: its coded rest goes into `out`, in place of what was there, and its events into `events`.
    pub fn compose(&mut self, around: &Surroundings<'_>, out: &mut Vec<u8>, events: &mut Vec<u8>) -> Head {
        self.leave_behind(around.tick);
        let Crew { shelf, choice, view, .. } = self;
        choice.begin();
        choice.plan(shelf.latest(), shelf.base().map(|base| base.snapshot.tick), *view, around);
        let mut fresh = shelf.fresh();
        let mut partial = false;
        for attempt in 1..=TRIES {
            partial = choice.build(shelf.latest(), *view, around, &mut fresh.snapshot);
            shelf.encode(&mut fresh, out);
            if out.len() <= around.budget || attempt == TRIES {
                break;
            }
            if attempt + 1 == TRIES {
                // What nobody has said they have does not fit: begin anew with as much of it as does.
                shelf.forget();
                choice.plan(shelf.latest(), None, *view, around);
            }
            choice.tighten(out.len());
        }
        choice.learn(out.len());
        let head = Head { tick: around.tick, base: shelf.base().map(|base| base.snapshot.tick), partial };
        fresh.missing = self.needed;
        shelf.sent.push_back(fresh);
        self.take_events(around, out.len(), events);
        head
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
