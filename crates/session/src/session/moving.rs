//! Moving a session to another host.
//!
//! The old host freezes the session and offers its snapshot. The new host stores a copy that is inactive and unlisted,
//! and answers with its id. The old host stores that it has given the session up, and only then tells members that id.
//! So a member who arrives at the copy proves that it is the only one, and a copy that no member was told of closes by
//! itself.

use alloc::vec::Vec;

use sametick_sim::Time;

use super::{DORMANT_US, Damaged, Input, Kept, Output, Place, Presence, Rest, Session, WINDOW_US};
use crate::id::{Key, SessionId};
use crate::message::{Closing, Ending, Event, Forward, Phase, Refusal};
use crate::ticket::Admission;
use sametick_wire::rate_limit::TokenBucket;

impl Session {
    /// Adopts the session that another host offers, under another id. It is inactive until a member arrives.
    pub fn adopt(
        now: Time,
        secret: &[u8; 32],
        stored: &[u8],
        id: SessionId,
        key: Key,
    ) -> Result<Session, Damaged> {
        let mut kept = Kept::from_bytes(stored)?;
        if kept.phase == Phase::Closed {
            return Err(Damaged::Unsound);
        }
        (kept.was, kept.id, kept.key, kept.dormant) = (Some(kept.id), id, key, true);
        let mut session = Session::with(now, secret, kept);
        session.revision = 1;
        session.await_all(DORMANT_US);
        let before = session.kept.clone();
        session.give_tickets();
        session.settle(&before);
        Ok(session)
    }

    /// Holds the seats of all members for this long.
    pub(super) fn await_all(&mut self, us: u64) {
        let place = Place::Away(self.now.plus_micros(us));
        for person in &mut self.kept.people {
            person.ready = false;
            let serial = person.serial;
            let presence =
                Presence { place, serial, is_heard: false, grace: None, chat: TokenBucket::default() };
            self.presences.insert(person.player, presence);
        }
        self.told = self.view();
    }

    pub(super) fn give_tickets(&mut self) {
        let people: Vec<_> =
            self.kept.people.iter().map(|person| (person.player, person.name.clone())).collect();
        let tickets = people.into_iter().map(|(player, name)| self.expect(player, &name, None)).collect();
        self.fresh.push(Output::Adopted(tickets));
    }

    /// A member has arrived whom the old host has sent: the session is active here.
    pub(super) fn awake(&mut self) {
        if !core::mem::take(&mut self.kept.dormant) {
            return;
        }
        self.await_all(WINDOW_US);
        (self.active_at, self.phase_at, self.empty_at) = (self.now, self.now, self.now);
        if self.kept.phase == Phase::Running {
            self.fresh.push(Output::Begin { round: self.kept.round, again: true });
        }
    }

    pub(super) fn freeze(&mut self) {
        if self.kept.phase == Phase::Closed {
            return;
        }
        if self.kept.dormant {
            // Only its old host can tell where it goes on.
            return self.suspend();
        }
        self.kept.people.iter_mut().for_each(|person| person.ready = false);
        self.refuse_works(Refusal::Stopping);
        self.expected.clear();
        self.rest = Rest::Frozen;
        self.fresh.push(Output::Frozen);
    }

    pub(super) fn handle_frozen(&mut self, input: Input) {
        match input {
            Input::Reserve(reserve) => self.fresh.push(Output::Reserved(reserve.ask, Err(Refusal::Stopping))),
            Input::Say(member, seq, _) => {
                self.fresh.push(Output::Answer(member, seq, Err(Refusal::Stopping)));
            }
            Input::Arrive(member, _) | Input::Resume(member, ..) => {
                self.fresh.push(Output::Close(member, Closing::Suspended));
            }
            Input::Cut(member) => self.cut(member),
            Input::Moved(forward, admissions) => self.move_to(forward, &admissions),
            Input::Close(ending) => self.close(ending),
            Input::Suspend => self.suspend(),
            _ => {}
        }
    }

    fn move_to(&mut self, forward: Forward, admissions: &[Admission]) {
        let of = |player| admissions.iter().find(|one| one.player == player).map(|one| one.ticket.clone());
        for (member, player) in &self.links {
            let forward = Forward { ticket: of(*player), ..forward.clone() };
            self.fresh.push(Output::Tell(*member, Event::Moved(forward)));
        }
        self.kept.forward = Some(Forward { ticket: None, ..forward });
        self.close(Ending::Moved);
    }
}
