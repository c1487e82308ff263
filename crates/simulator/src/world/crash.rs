//! The relay is killed, with what its disk had not synced, and started again.

use sametick_lockstep::relay::{Found, Kept, Relay};
use sametick_lockstep::session::{Member, Session, SessionId};
use sametick_sim::{Tick, Time};

use super::mischief::Event;
use super::{NEVER, SECOND_US, World};
use crate::faults::draw_us;
use crate::games::Playable;
use crate::outcome::Checker;

/// A client that hears nothing for so long tries another link.
const SILENCE_US: u64 = SECOND_US;

/// After a restart play is back within this time, once somebody has come.
const BACK_US: u64 = 5 * SECOND_US;

impl<G: Playable> World<G> {
    pub(super) fn crash_relay(&mut self) {
        if self.relay_down {
            return;
        }
        self.relay_down = true;
        self.relay_wake_at = None;
        self.relay_told = false;
        let next = Member(self.next_member);
        let World { referees, rng, .. } = self;
        let crashes = referees.iter_mut().filter(|it| !it.ended).map(|it| it.on_crash(rng, next));
        let result: Result<Vec<()>, _> = crashes.collect();
        self.judge(result.map(|_| ()));
        for referee in &mut self.referees {
            referee.saves.1.clear();
        }
        for index in 0..self.cables.len() {
            self.cables_next[index] = NEVER;
            let Some(cable) = &mut self.cables[index] else { continue };
            cable.there = None;
            let (client, member) = (cable.client, cable.member);
            self.close_tamperings(member);
            let wait_us = SILENCE_US + self.rng.below(SECOND_US / 2);
            self.plan_in(wait_us, Event::Notice(client, member));
            self.rest_cable(index);
        }
        let us = draw_us(&mut self.rng, 100_000, 5 * SECOND_US);
        self.plan_in(us, Event::StartRelay);
    }

    pub(super) fn start_relay(&mut self) {
        if std::mem::take(&mut self.relay_down) {
            self.note(|| "the relay is started again".into());
            self.relay = Relay::new(self.config);
        }
    }

    /// A client finds that its link is dead.
    pub(super) fn on_notice(&mut self, client: usize, member: Member) {
        let online = self.clients[client].online.as_ref();
        let cable = online.and_then(|online| self.cables[online.cable].as_ref());
        if cable.is_some_and(|cable| cable.member == member) {
            self.note(|| format!("client {client} hears nothing any more"));
            let wait_us = self.rng.below(SECOND_US / 4);
            self.disconnect(client, wait_us, true);
            self.rest_client(client);
        }
    }

    /// What the disk has of the session that is looked for.
    pub(super) fn find(&mut self) -> Found {
        let uid = self.next_uid;
        let last = self.referees.last_mut().filter(|referee| !referee.ended);
        let Some((referee, left)) = last.and_then(|it| it.left.as_ref().map(|left| (&*it, left))) else {
            if let Some(referee) = self.referees.last_mut() {
                // Nothing of it was on the disk.
                referee.ended = true;
            }
            self.next_uid += 1;
            return Found::New { uid };
        };
        let (save, uid) = (referee.saves.0.clone(), referee.id.0);
        let begun = save.as_ref().map_or(Tick::ZERO, |save| save.tick);
        let mut kept = Kept::new(referee.facts.clone(), uid, left.rewinds, save);
        left.ticks.iter().skip(begun.0 as usize).for_each(|rows| kept.push(rows));
        let (id, ticks, last) = (referee.id, left.ticks.len(), referee.last());
        self.plan_in(BACK_US, Event::Back(id, self.now));
        self.note(|| format!("the log of {id:?} has {ticks} ticks of {last}, and a save after {begun}"));
        Found::Kept(Box::new(kept))
    }

    /// A session goes on.
    pub(super) fn on_rewind(&mut self, id: SessionId, to: Tick) {
        let restarts = self.relay.session(id).map_or(0, Session::restarts);
        let Some(referee) = self.referee(id) else { return };
        let Some(left) = &mut referee.left else { return };
        let is_back = left.ticks.len() > to.0 as usize;
        left.rewinds += 1;
        // The log had lost earlier ones.
        left.is_last = left.rewinds >= restarts;
        let is_lost = left.is_last && referee.is_log_behind();
        self.figures.restarts += 1;
        self.figures.rewinds += u64::from(is_back);
        if is_lost {
            self.note(|| "the log had lost a rewind, and nobody came who knew: no more can be told".into());
            self.figures.undecided += 1;
            (self.done, self.undecided) = (true, true);
        }
    }

    /// It must have gone on by now.
    pub(super) fn expect_back(&mut self, id: SessionId, found_at: Time) {
        let is_same = self.referee(id).is_some_and(|referee| referee.found_at == Some(found_at));
        let is_there = is_same && !self.relay_down && !self.relay_stalled;
        let session = self.relay.session(id).filter(|session| is_there && session.is_returning());
        if session.is_some_and(|session| session.members() > 0) {
            self.fail(Checker::Recovery, format!("{id:?} has not gone on"));
        }
    }
}
