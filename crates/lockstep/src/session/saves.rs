//! Saves of a session: collected from peers and sent to late joiners; ticks before them are forgotten (L13, L16).

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sametick_sim::record::Record;
use sametick_sim::{StateHash, Tick, Time};
use sametick_wire::claims::HOLD_US;
use sametick_wire::{Channel, Malformed};

use crate::compaction::{Compaction, Look};
use crate::gathering::{Gathering, Step};
use crate::message::{
    CHECK_EVERY, MAX_STATE, MAX_WANTED, PIECE_BYTES, Piece, RECENT_TICKS, Resume, SaveHead, ToPeer, ToRelay,
};
use crate::planted::{self, Bug};
use crate::relay::Output;
use crate::session::{Member, Out, Save, Session, Source, Stage, send};

/// The longest time a join waits for a save that is being made; then the peer begins without it.
pub const JOIN_PATIENCE_US: u64 = 2_000_000;

/// The bandwidth for saves, shared by all peers that join a session: 32 megabits a second.
pub const PASS_ON_PER_SECOND: u64 = 4 << 20;

/// The most bytes of saves sent at once after a pause.
const PASS_ON_AT_ONCE: u64 = 8 * PIECE_BYTES as u64;

/// After this many ticks peers no longer report the state of a tick, and no agreement on it is possible.
const FORGOTTEN_TICKS: u32 = crate::checks::MAX_CHECKS as u32 * CHECK_EVERY;

/// The name of a stored save in a log: its key below that of the session.
pub const STORED_AS: &str = "save";

/// The name of a save in a log where only the relay has it.
pub const KEPT_IN: &str = "memory";

/// The state of a session about saves.
#[derive(Clone, Debug)]
pub(crate) struct Saves {
    newest: Option<Arc<Save>>,
    /// Ticks up to here need not be kept for the log's sake.
    settled: Tick,
    compaction: Compaction,
    gathering: Option<Gathering>,
    /// The driver was asked for a state and has not answered.
    keeper_asked: bool,
    /// Peers that could not give a save this time.
    tried: Vec<Member>,
    /// The peer that was asked last: next time another is asked.
    asked: Option<Member>,
    /// Peers no longer had a recent state: ask for a future one.
    ahead: bool,
    /// There is memory for another save.
    is_allowed: bool,
    /// All members have left, and the last save has been asked for.
    ended: bool,
    /// Pieces that peers have asked for.
    wants: VecDeque<(Member, u32)>,
    /// The number of bytes that may be sent now.
    allowance: u64,
    allowed_at: Time,
}

impl Saves {
    pub fn new(compaction: Compaction) -> Saves {
        Saves {
            newest: None,
            settled: Tick::ZERO,
            compaction,
            gathering: None,
            keeper_asked: false,
            tried: Vec::new(),
            asked: None,
            ahead: false,
            is_allowed: true,
            ended: false,
            wants: VecDeque::new(),
            allowance: PASS_ON_AT_ONCE,
            allowed_at: Time::ZERO,
        }
    }

    /// A resumed session has a stored save already.
    pub fn begin_with(&mut self, save: Save) {
        self.compaction.on_saved(save.tick);
        self.settled = save.tick;
        self.newest = Some(Arc::new(save));
    }

    /// Adds the bandwidth for the elapsed time.
    fn earn(&mut self, now: Time) {
        let earned = now.micros_since(self.allowed_at).min(1_000_000) * PASS_ON_PER_SECOND / 1_000_000;
        self.allowance = (self.allowance + earned).min(PASS_ON_AT_ONCE);
        self.allowed_at = self.allowed_at.max(now);
    }
}

impl Session {
    /// The newest save, if there is one.
    pub fn save(&self) -> Option<&Save> {
        self.saves.newest.as_deref()
    }

    /// The bytes kept, of closed ticks and of the save.
    pub fn kept_bytes(&self) -> usize {
        self.history.bytes() + self.save().map_or(0, |save| save.state.len())
    }

    /// Allows or forbids new saves.
    pub(crate) fn allow_saves(&mut self, may: bool) {
        self.saves.is_allowed = may;
    }

    /// What a joining peer begins with, perhaps again; none if too much has been forgotten.
    pub(super) fn source(&self, resume: Option<&Resume>) -> Option<Source> {
        let more = 1 + u32::from(planted::has(Bug::FirstMissed));
        let next = resume.map(|resume| Tick(resume.have.0.saturating_add(more)));
        let (first, last) = (self.history.first(), self.history.last());
        let is_kept = |next: &Tick| *next > Tick(1) && *next >= first && next.0 <= last.0 + 1;
        let own = next.filter(is_kept).map(Source::Ticks);
        let whole = || self.history.is_whole().then_some(Source::Ticks(Tick(1)));
        own.or_else(|| self.useful_save().map(Source::Save)).or_else(whole)
    }

    /// The newest save, if all ticks after it are kept.
    fn useful_save(&self) -> Option<Arc<Save>> {
        self.saves.newest.clone().filter(|save| save.tick.next() >= self.history.first())
    }

    /// Whether a peer that would begin there had better wait for a save. Asks for one if it is time to.
    pub(super) fn is_worth_waiting(&mut self, now: Time, source: &Source, out: &mut Out) -> bool {
        let has_own = matches!(source, Source::Ticks(first) if *first > Tick(1));
        if has_own || !self.saves.compaction.is_long(self.facts.rate, self.history.last()) {
            return false;
        }
        self.consider_saving(now, true, out);
        self.saves.gathering.is_some() || self.saves.keeper_asked
    }

    /// A stored session goes on with many ticks to catch up with: asks for the state that its log leads to. Players
    /// cannot agree on it yet, but all of its ticks were closed.
    pub(super) fn want_save_to_go_on(&mut self, out: &mut Out) {
        let closed = self.history.last();
        if self.saves.is_allowed && self.saves.compaction.is_long(self.facts.rate, closed) {
            self.saves.keeper_asked = true;
            out.push_bare(Output::WantSave(self.id, closed));
        }
    }

    fn consider_saving(&mut self, now: Time, joining: bool, out: &mut Out) {
        let look = Look {
            joining,
            reached: self.agreement.agreed(),
            catching_up: self.members.values().any(|it| it.stage.needs(now).is_some()),
            ..Look::at(now, self.facts.rate, self.history.last())
        };
        let is_free = self.saves.gathering.is_none() && !self.saves.keeper_asked && self.saves.is_allowed;
        if is_free && self.saves.compaction.due(&look).is_some() {
            (self.saves.ahead, self.saves.tried) = (false, Vec::new());
            if self.saves.compaction.has_keeper() {
                self.saves.keeper_asked = true;
                out.push_bare(Output::WantSave(self.id, look.reached));
            } else {
                self.ask_a_peer(now, out);
            }
        }
    }

    /// Asks the next peer with the agreed state; the driver for a replay if there is none.
    fn ask_a_peer(&mut self, now: Time, out: &mut Out) {
        let (agreed, closed) = (self.agreement.agreed(), self.history.last());
        let mut holders = self.agreement.holders(agreed);
        holders.retain(|member| self.members.contains_key(member) && !self.saves.tried.contains(member));
        let later = holders.iter().find(|member| Some(**member) > self.saves.asked);
        let Some(from) = later.or(holders.first()).copied() else { return self.give_up(now, agreed, out) };
        let is_recent = closed.ticks_since(agreed) <= RECENT_TICKS / 2;
        let tick = if is_recent && !self.saves.ahead {
            agreed
        } else {
            Tick((closed.0 / CHECK_EVERY + 1) * CHECK_EVERY)
        };
        let wait_us = self.facts.rate.due_micros(Tick(tick.ticks_since(closed)));
        self.saves.gathering = Some(Gathering::new(tick, from, now.plus_micros(wait_us)));
        self.saves.asked = Some(from);
        send(out, from, Channel::Control, &ToPeer::GiveSave { tick });
    }

    /// No peer has given a save: joins that wait for it begin without it.
    fn give_up(&mut self, now: Time, tick: Tick, out: &mut Out) {
        self.saves.gathering = None;
        self.saves.compaction.on_failed(now);
        out.push_bare(Output::WantSave(self.id, tick));
        self.welcome_waiting(now, true, out);
    }

    fn pass_over(&mut self, now: Time, member: Member, out: &mut Out) {
        self.saves.gathering = None;
        self.saves.tried.push(member);
        self.ask_a_peer(now, out);
    }

    /// Handles a peer's message about saves, its own or the relay's.
    pub(super) fn on_save_message(
        &mut self,
        now: Time,
        member: Member,
        message: ToRelay,
        out: &mut Out,
    ) -> Result<(), Malformed> {
        if let ToRelay::Want { tick, offset } = message {
            return self.on_want(now, member, tick, offset, out);
        }
        let Some(gathering) = &mut self.saves.gathering else { return Ok(()) };
        let step = match message {
            ToRelay::Offer { tick, bytes } => gathering.on_offer(now, member, tick, bytes),
            ToRelay::Piece(piece) => gathering.on_piece(now, member, &piece),
            _ => Step::On,
        };
        let tick = gathering.tick();
        match step {
            Step::On => self.run_gathering(now, out),
            Step::Missing if !self.saves.ahead => {
                self.saves.ahead = true;
                self.ask_a_peer(now, out);
            }
            Step::Missing | Step::PassOver => self.pass_over(now, member, out),
            Step::Complete(state) => {
                self.saves.gathering = None;
                self.take_save(now, tick, state, out);
            }
        }
        Ok(())
    }

    /// Continues a collection.
    fn run_gathering(&mut self, now: Time, out: &mut Out) {
        let closed = self.history.last();
        let Some(gathering) = &mut self.saves.gathering else { return };
        if let Some(hash) = self.agreement.hash_at(gathering.tick()) {
            gathering.on_agreed(now, hash);
        }
        let from = gathering.from();
        if gathering.is_hopeless(closed, FORGOTTEN_TICKS) {
            let agreed = self.agreement.agreed();
            self.give_up(now, agreed, out);
        } else if gathering.is_overdue(now) {
            self.pass_over(now, from, out);
        } else if let Some(ask) = gathering.ask(now) {
            send(out, from, Channel::Control, &ask);
        }
    }

    /// Handles the state of a tick from a replay, as [`Output::WantSave`] asked for.
    pub fn on_made(&mut self, now: Time, tick: Tick, state: Option<Vec<u8>>, out: &mut Out) {
        let was_asked = core::mem::take(&mut self.saves.keeper_asked);
        let agreed = self.agreement.hash_at(tick);
        let is_right = |state: &Vec<u8>| {
            agreed.is_none_or(|hash| hash == StateHash::of_bytes(state))
                && (1..=MAX_STATE).contains(&state.len())
        };
        let is_new = tick > self.saves.compaction.saved() && tick <= self.history.last();
        match state.filter(|state| is_new && is_right(state)) {
            Some(state) => self.take_save(now, tick, state, out),
            // The driver does not know the game.
            None if was_asked && self.saves.gathering.is_none() => self.ask_a_peer(now, out),
            None => {}
        }
    }

    /// A save is complete.
    fn take_save(&mut self, now: Time, tick: Tick, state: Vec<u8>, out: &mut Out) {
        if let Some(table) = self.history.table_after(tick) {
            let hash = StateHash::of_bytes(&state);
            self.saves.newest = Some(Arc::new(Save { tick, hash, state, table }));
            self.saves.compaction.on_saved(tick);
            out.push_bare(Output::Save(self.id));
            if !self.saves.compaction.has_store() {
                self.settle(now, tick, KEPT_IN, out);
            }
        } else {
            self.saves.compaction.on_failed(now);
        }
        self.welcome_waiting(now, true, out);
    }

    /// The save of a tick is stored.
    pub fn on_saved(&mut self, now: Time, tick: Tick, out: &mut Out) {
        self.settle(now, tick, STORED_AS, out);
    }

    /// A save is stored: records that, and ticks before it are no longer needed for the log.
    fn settle(&mut self, now: Time, tick: Tick, place: &str, out: &mut Out) {
        let Some(save) = self.saves.newest.as_ref().filter(|save| save.tick == tick) else { return };
        if tick > self.saves.settled {
            let (hash, place) = (save.hash, place.into());
            out.push_bare(Output::Record(self.id, Record::Snapshot { tick, hash, place }));
            self.saves.settled = tick;
            self.forget(now);
        }
    }

    /// Forgets the ticks before the save, except those that peers catching up need and those that disconnected peers
    /// may need when they come back.
    fn forget(&mut self, now: Time) {
        let hold_ticks = HOLD_US / self.facts.rate.tick_micros().max(1);
        let back = Tick((u64::from(self.history.last().0).saturating_sub(hold_ticks)) as u32);
        let needed = self.members.values().filter_map(|it| it.stage.needs(now)).min();
        let needed = needed.map_or(back, |tick| Tick(tick.0.saturating_sub(1)));
        self.history.forget(self.saves.settled.min(back).min(needed));
    }

    /// Answers joins that have waited for a save: all of them, or those whose time is over.
    fn welcome_waiting(&mut self, now: Time, all: bool, out: &mut Out) {
        let is_over = |stage: &Stage| matches!(stage, Stage::Waiting(until) if all || *until <= now);
        if !self.members.values().any(|it| is_over(&it.stage)) {
            return;
        }
        let waiting: Vec<Member> =
            self.members.iter().filter(|(_, it)| is_over(&it.stage)).map(|(member, _)| *member).collect();
        self.send_ticks(out);
        let (Some(epoch), Some(source)) = (self.epoch, self.source(None)) else { return };
        for member in waiting {
            self.welcome(now, epoch, member, source.clone(), out);
        }
        self.send_roster(out);
    }

    /// Sends a save to a peer whose missing ticks are no longer kept. Returns whether there is a save.
    pub(super) fn load_anew(&mut self, now: Time, member: Member, out: &mut Out) -> bool {
        let Some(save) = self.useful_save() else { return false };
        let Some(membership) = self.members.get_mut(&member) else { return false };
        let needs = save.tick.next();
        membership.stage = Stage::CatchingUp {
            since: now,
            needs,
            save: Some(save.clone()),
            is_new: !membership.stage.has_say(),
        };
        self.saves.wants.retain(|(other, _)| *other != member);
        send(out, member, Channel::Control, &ToPeer::Load(save.head()));
        true
    }

    /// The save that a welcome announces.
    pub(super) fn head_of(source: &Source) -> Option<SaveHead> {
        match source {
            Source::Ticks(_) => None,
            Source::Save(save) => Some(save.head()),
        }
    }

    /// A peer that catches up asks for ticks from here on.
    pub(super) fn note_need(&mut self, member: Member, from: Tick) {
        if let Some(Stage::CatchingUp { needs, .. }) = self.members.get_mut(&member).map(|it| &mut it.stage) {
            *needs = from.max(*needs);
        }
    }

    /// A peer sends what only a peer that has caught up sends.
    pub(super) fn note_level(&mut self, member: Member) {
        if let Some(membership) = self.members.get_mut(&member)
            && matches!(membership.stage, Stage::CatchingUp { .. })
        {
            membership.stage = Stage::Level;
            self.saves.wants.retain(|(other, _)| *other != member);
        }
    }

    fn on_want(
        &mut self,
        now: Time,
        member: Member,
        tick: Tick,
        offset: u32,
        out: &mut Out,
    ) -> Result<(), Malformed> {
        let Some(membership) = self.members.get(&member) else { return Ok(()) };
        // The peer may not know yet that it is to begin with another save.
        let Stage::CatchingUp { save: Some(save), .. } = &membership.stage else { return Ok(()) };
        if save.tick != tick {
            return Ok(());
        }
        let waiting = self.saves.wants.iter().filter(|(other, _)| *other == member).count();
        let is_there = (offset as usize) < save.state.len() && (offset as usize).is_multiple_of(PIECE_BYTES);
        if !is_there || waiting >= MAX_WANTED {
            return Err(Malformed::Forbidden(
                "pieces begin at multiples of 16 KiB within the save, and at most 4 are asked for at a time",
            ));
        }
        self.saves.wants.push_back((member, offset));
        self.pass_on(now, out);
        Ok(())
    }

    /// Sends the pieces asked for, as many as the bandwidth allows, to one peer after the other so that all get theirs.
    fn pass_on(&mut self, now: Time, out: &mut Out) {
        self.saves.earn(now);
        while self.saves.allowance >= PIECE_BYTES as u64 {
            let Some((member, offset)) = self.saves.wants.pop_front() else { return };
            let stage = self.members.get(&member).map(|it| &it.stage);
            let Some(Stage::CatchingUp { save: Some(save), .. }) = stage else { continue };
            let rest = save.state.get(offset as usize..).unwrap_or_default();
            let bytes = rest[..rest.len().min(PIECE_BYTES)].to_vec();
            self.saves.allowance -= bytes.len() as u64;
            let piece = Piece { tick: save.tick, offset, bytes };
            send(out, member, Channel::Chunks, &ToPeer::Piece(piece));
        }
    }

    /// A peer has left.
    pub(super) fn on_giver_left(&mut self, now: Time, member: Member, out: &mut Out) {
        self.saves.wants.retain(|(other, _)| *other != member);
        if self.saves.gathering.as_ref().is_some_and(|gathering| gathering.from() == member) {
            self.pass_over(now, member, out);
        }
    }

    /// Does what is due about saves as time passes.
    pub(super) fn look_after_saves(&mut self, now: Time, out: &mut Out) {
        if self.epoch.is_none() {
            return;
        }
        self.run_gathering(now, out);
        self.pass_on(now, out);
        self.welcome_waiting(now, false, out);
        if self.members.is_empty() {
            self.save_end(now, out);
        } else {
            self.saves.ended = false;
            self.consider_saving(now, false, out);
        }
        if self.history.last().0.is_multiple_of(CHECK_EVERY) {
            self.forget(now);
        }
    }

    /// All members have left, and the last tick with any of them is closed: only a replay can produce its state.
    /// Without an object store no peer would ever ask for it.
    fn save_end(&mut self, now: Time, out: &mut Out) {
        let closed = self.history.last();
        let look = Look { ending: true, ..Look::at(now, self.facts.rate, closed) };
        let is_over = self.seat_slots.iter().all(Option::is_none) && !self.saves.ended;
        let is_over = is_over && self.saves.compaction.has_store();
        if is_over && self.saves.compaction.due(&look).is_some() {
            self.saves.ended = true;
            out.push_bare(Output::WantSave(self.id, closed));
        }
    }
}
