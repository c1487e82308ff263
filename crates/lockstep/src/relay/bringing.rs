//! Begins a session from a peer's copy, because nothing else is left of the session. Only the first peer that joins may
//! bring one. The relay takes the state in pieces, hashes it, and goes on as from a save of its own; only peers can
//! tell whether it is a state of the game.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sametick_sim::Time;
use sametick_wire::{Channel, Malformed};

use super::{JOIN_FIRST, MAX_TOTAL_HISTORY, Member, NO_ROOM, Output, Relay, SessionKey, facts_of};
use crate::assignment::JoinRequest;
use crate::gathering::{Gathering, MOST_ALONE, Step};
use crate::kept::Kept;
use crate::message::{self, Bring, Join, ToRelay};
use crate::rows::Table;
use crate::session::{Save, Session, SessionId, refuse, send};

/// The most copies taken at once, of all sessions together.
pub const MAX_BRINGING: usize = 64;

/// The time-out of a copy, because other joins of the session wait for it. The largest copy fits at a megabit a second.
pub const BRINGING_US: u64 = 90_000_000;

/// The longest message with a piece: the most bytes asked for, and three numbers.
const MAX_PIECE_MESSAGE: usize = MOST_ALONE as usize + 64;

/// Told to a peer whose copy does not arrive in time.
pub const BROUGHT_TOO_SLOWLY: &str = "the save that you bring did not come in time";

/// Told to a peer whose copy does not match its announced hash.
pub const BROUGHT_WRONG: &str = "the save that you bring is not the one that was announced: its bytes hash to another state, or are not there";

/// The number with which a session begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub uid: u64,
    /// Stored data must not be overwritten; otherwise a copy keeps its own start time.
    pub is_spoilt: bool,
}

/// A copy that is being transferred.
pub(super) struct Bringing {
    number: Number,
    gathering: Gathering,
    table: Table,
    bytes: usize,
    until: Time,
}

impl Bringing {
    fn is_overdue(&self, now: Time) -> bool {
        now >= self.until || self.gathering.is_overdue(now)
    }
}

impl Relay {
    /// Nothing is left of a session that peers want to join: the first of them begins it.
    pub(super) fn begin_found(&mut self, key: &SessionKey, number: Number) {
        while !self.bringing.contains_key(key) {
            let Some(waiting) = self.looked_for.get(key) else { return };
            let Some((first, wish)) = waiting.first().cloned() else {
                self.looked_for.remove(key);
                return;
            };
            let Some(bring) = &wish.join.bring else {
                let waiting = self.take_waiting(key);
                let id = self.begin(number.uid, first, &wish.join);
                return self.let_in(&waiting, id);
            };
            if let Err(why) = self.begin_bringing(key, number, first, &wish.join, bring) {
                self.turn_down(key, first, &why);
            }
        }
    }

    fn begin_bringing(
        &mut self,
        key: &SessionKey,
        number: Number,
        member: Member,
        join: &Join,
        bring: &Bring,
    ) -> Result<(), String> {
        let table = bring.table(join.seats).map_err(|unfit| unfit.to_string())?;
        let bytes = bring.save.bytes as usize;
        if self.bringing.len() >= MAX_BRINGING || self.kept_bytes() + bytes >= MAX_TOTAL_HISTORY {
            return Err(NO_ROOM.into());
        }
        let mut gathering = Gathering::alone(bring.save.tick, member, self.now);
        gathering.on_offer(self.now, member, bring.save.tick, Some(bring.save.bytes));
        gathering.on_agreed(self.now, bring.save.hash);
        let until = self.now.plus_micros(BRINGING_US);
        self.bringing.insert(key.clone(), Bringing { number, gathering, table, bytes, until });
        self.ask_for_piece(key);
        Ok(())
    }

    fn ask_for_piece(&mut self, key: &SessionKey) {
        let Some(Bringing { gathering, .. }) = self.bringing.get_mut(key) else { return };
        if let Some(ask) = gathering.ask(self.now) {
            send(&mut self.outbox, gathering.from(), Channel::Control, &ask);
        }
    }

    /// Whether a copy is being taken from this peer.
    pub(super) fn is_bringing(&self, key: &SessionKey, member: Member) -> bool {
        self.bringing.get(key).is_some_and(|bringing| bringing.gathering.from() == member)
    }

    /// Handles a message other than `Join` from a peer that has not joined.
    pub(super) fn on_brought(
        &mut self,
        key: &SessionKey,
        member: Member,
        message: ToRelay,
    ) -> Result<(), Malformed> {
        let bringing = self.bringing.get_mut(key).filter(|it| it.gathering.from() == member);
        let Some(Bringing { gathering, .. }) = bringing else {
            // Its copy may have been rejected for being slow.
            return match message {
                ToRelay::Piece(_) => Ok(()),
                _ => Err(Malformed::Forbidden(JOIN_FIRST)),
            };
        };
        let step = match message {
            ToRelay::Piece(piece) => gathering.on_piece(self.now, member, &piece),
            ToRelay::Offer { tick, bytes: None } => gathering.on_offer(self.now, member, tick, None),
            _ => return Err(Malformed::Forbidden("while its save is taken a peer only gives pieces of it")),
        };
        match step {
            Step::On => self.ask_for_piece(key),
            Step::Complete(state) => self.begin_brought(key, state),
            Step::Missing | Step::PassOver => self.give_up_bringing(key, BROUGHT_WRONG),
        }
        Ok(())
    }

    /// Reads a message of a peer that has not joined.
    pub(super) fn read_brought(
        &mut self,
        key: &SessionKey,
        member: Member,
        bytes: &[u8],
    ) -> Result<(), Malformed> {
        if bytes.len() > MAX_PIECE_MESSAGE {
            return Err(Malformed::TooLong);
        }
        self.on_brought(key, member, message::from_bytes(bytes)?)
    }

    /// The copy is complete: the session goes on from it.
    fn begin_brought(&mut self, key: &SessionKey, state: Vec<u8>) {
        let Some(Bringing { number, gathering, table, .. }) = self.bringing.remove(key) else { return };
        let waiting = self.take_waiting(key);
        let id = waiting.first().and_then(|(member, wish)| {
            let bring = wish.join.bring.as_ref()?;
            let facts = facts_of(self.doors.get(member)?, &wish.join);
            let (tick, hash) = (gathering.tick(), bring.save.hash);
            let save = Save { tick, hash, state, table };
            let started = self.started(number, bring.started_unix_ms);
            Some(Kept::new(facts, number.uid, 0, Some(save)).started(started))
        });
        let id = id.and_then(|kept| self.open_brought(key, kept));
        self.let_in(&waiting, id);
    }

    /// The start time of a session, as the copy states it if that is plausible and unused.
    fn started(&self, number: Number, said_unix_ms: u64) -> u64 {
        let is_free = !number.is_spoilt && said_unix_ms < number.uid;
        if is_free || !self.config.finds { said_unix_ms } else { number.uid }
    }

    fn open_brought(&mut self, key: &SessionKey, kept: Kept) -> Option<SessionId> {
        let id = self.next_id(kept.uid)?;
        let first = self.first.unwrap_or(Member(0));
        let mut session = Session::kept(id, kept, first, &self.config);
        session.expect_nobody(self.now);
        self.open(id, key.clone(), session);
        self.outbox.push_bare(Output::Brought(id));
        Some(id)
    }

    fn give_up_bringing(&mut self, key: &SessionKey, why: &str) {
        let Some(Bringing { number, gathering, .. }) = self.bringing.remove(key) else { return };
        self.turn_down(key, gathering.from(), why);
        self.begin_found(key, number);
    }

    /// A peer that brought a copy has left: the next waiting peer begins the session.
    pub(super) fn on_bringer_left(&mut self, key: &SessionKey, member: Member) {
        if self.is_bringing(key, member)
            && let Some(Bringing { number, .. }) = self.bringing.remove(key)
        {
            self.begin_found(key, number);
        }
    }

    pub(super) fn look_after_bringing(&mut self) {
        let now = self.now;
        let overdue = self.bringing.iter().filter(|(_, bringing)| bringing.is_overdue(now));
        let overdue: Vec<SessionKey> = overdue.map(|(key, _)| key.clone()).collect();
        for key in overdue {
            self.give_up_bringing(&key, BROUGHT_TOO_SLOWLY);
        }
    }

    /// When the next copy times out.
    pub(super) fn bringing_wake_at(&self) -> Option<Time> {
        self.bringing.values().map(|it| it.until.min(it.gathering.deadline())).min()
    }

    /// The bytes of all copies being transferred, once they are complete.
    pub(super) fn bringing_bytes(&self) -> usize {
        self.bringing.values().map(|bringing| bringing.bytes).sum()
    }

    /// Refuses a join that waits for a session.
    fn turn_down(&mut self, key: &SessionKey, member: Member, why: &str) {
        if let Some(waiting) = self.looked_for.get_mut(key) {
            waiting.retain(|(other, _)| *other != member);
        }
        if let Some(door) = self.doors.get_mut(&member) {
            door.waits = false;
        }
        refuse(&mut self.outbox, member, why);
    }

    /// Takes the joins that wait for a session.
    pub(super) fn take_waiting(&mut self, key: &SessionKey) -> Vec<(Member, JoinRequest)> {
        let waiting = self.looked_for.remove(key).unwrap_or_default();
        for (member, _) in &waiting {
            if let Some(door) = self.doors.get_mut(member) {
                door.waits = false;
            }
        }
        waiting
    }

    /// Lets the waiting peers join, if there is room for their session.
    pub(super) fn let_in(&mut self, waiting: &[(Member, JoinRequest)], id: Option<SessionId>) {
        for (member, wish) in waiting {
            match id {
                Some(id) => self.enter(id, *member, wish),
                None => refuse(&mut self.outbox, *member, NO_ROOM),
            }
        }
        if let Some(id) = id {
            self.look_for_returning(id);
        }
    }
}
