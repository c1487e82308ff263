//! Members' connections to their sessions, and the outputs of sessions.

use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use super::{Grave, Host, MAX_GRAVES, Output, REMEMBERED_US, Rest, Work};
use crate::id::SessionId;
use crate::message::{Closing, Ending, Event};
use crate::session;

impl Host {
    pub(super) fn arrive(&mut self, member: Member, shown: &str) {
        let Ok(ticket) = self.seal.open(self.now, shown) else {
            return self.outputs.push_back(Output::Close(member, Closing::BadTicket));
        };
        self.enter(member, ticket.session, Closing::BadTicket, session::Input::Arrive(member, ticket));
    }

    pub(super) fn resume(&mut self, member: Member, session: SessionId, player: PlayerId, token: Token) {
        self.enter(member, session, Closing::BadToken, session::Input::Resume(member, player, token));
    }

    fn enter(&mut self, member: Member, session: SessionId, closing: Closing, input: session::Input) {
        if self.members.contains_key(&member) {
            // A connection belongs to one member.
            return;
        }
        if self.running.contains_key(&session) {
            self.members.insert(member, session);
            return self.pass_to(session, input);
        }
        let grave = self.graves.get(&session);
        let forward = grave.and_then(|grave| grave.forward.clone());
        let over = grave.map(|grave| Closing::Over(grave.ending));
        self.outputs.extend(forward.map(|forward| Output::Tell(member, Event::Moved(forward))));
        self.outputs.push_back(Output::Close(member, over.unwrap_or(closing)));
    }

    pub(super) fn pass_to_that_of(&mut self, member: Member, input: session::Input) {
        if let Some(session) = self.session_of(member) {
            self.pass_to(session, input);
        }
    }

    pub(super) fn pass_to(&mut self, id: SessionId, input: session::Input) {
        if let Some(running) = self.running.get_mut(&id) {
            running.session.handle(self.now, input);
            self.drain(id);
        }
    }

    /// Drains the outputs of a session.
    pub(super) fn drain(&mut self, id: SessionId) {
        while let Some(running) = self.running.get_mut(&id) {
            let output = match running.session.poll_output() {
                session::Output::WakeAt(at) => {
                    running.wake_at = at;
                    break;
                }
                session::Output::Suspended => {
                    running.rest = Rest::Suspended;
                    Output::Suspended(id)
                }
                session::Output::Frozen => {
                    running.rest = Rest::Frozen;
                    Output::Save(id)
                }
                session::Output::Adopted(tickets) => {
                    self.adopted(id, &tickets);
                    continue;
                }
                session::Output::Reserved(ask, answer) => {
                    self.answer(ask, answer);
                    continue;
                }
                session::Output::Weigh(work, salt, password) => {
                    self.next += 1;
                    self.works.insert(self.next, Work::Session(id, work));
                    Output::Weigh(self.next, salt, password)
                }
                session::Output::Store(number) => Output::Store(id, number),
                session::Output::Tell(member, event) => Output::Tell(member, event),
                session::Output::Answer(member, seq, answer) => Output::Answer(member, seq, answer),
                session::Output::Close(member, why) => {
                    self.members.remove(&member);
                    Output::Close(member, why)
                }
                session::Output::Begin { round, again } => Output::Begin { session: id, round, again },
                session::Output::Manned(seat, player) => Output::Manned(id, seat, player),
                session::Output::Unmanned(seat) => Output::Unmanned(id, seat),
                session::Output::Left(player) => Output::Left(id, player),
                session::Output::Finish => Output::Finish(id),
                session::Output::Closed(ending) => {
                    self.bury(id, ending);
                    continue;
                }
            };
            self.outputs.push_back(output);
        }
        self.has_news();
    }

    /// A session is over. The file of one that was quarantined or moved stays on disk, so that the next incarnation can
    /// tell its players too.
    fn bury(&mut self, id: SessionId, ending: Ending) {
        let Some(mut running) = self.running.remove(&id) else { return };
        // Connections that were opened while that was being stored.
        loop {
            match running.session.poll_output() {
                session::Output::Close(member, why) => {
                    self.members.remove(&member);
                    self.outputs.push_back(Output::Close(member, why));
                }
                session::Output::WakeAt(_) => break,
                _ => {}
            }
        }
        let is_stored = matches!(ending, Ending::Quarantined | Ending::Moved);
        let forward = running.session.forward().cloned();
        self.adoptions.remove(&id);
        let until = self.now.plus_micros(REMEMBERED_US);
        self.graves.insert(id, Grave { key: running.session.key(), ending, until, is_stored, forward });
        self.outputs.push_back(Output::Over(id, ending));
        if !is_stored {
            self.outputs.push_back(Output::Delete(id));
        }
        if self.graves.len() > MAX_GRAVES {
            let oldest = self.graves.iter().min_by_key(|(_, grave)| grave.until).map(|(id, _)| *id);
            oldest.into_iter().for_each(|oldest| self.forget(oldest));
        }
    }

    pub(super) fn forget(&mut self, id: SessionId) {
        let Some(grave) = self.graves.remove(&id) else { return };
        self.keys.remove(&grave.key);
        if grave.is_stored {
            self.outputs.push_back(Output::Delete(id));
        }
    }
}
