//! The relay is killed with its unsynced data, and started again.

use sametick_lockstep::peer::Status;
use sametick_lockstep::relay::{Found, Kept, Relay};
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::{Tick, Time};

use super::mischief::Event;
use super::{NEVER, SECOND_US, World};
use crate::faults::{draw_us, is_clean};
use crate::games::Playable;
use crate::outcome::Checker;

/// A client that hears nothing for this long tries another link.
const SILENCE_US: u64 = SECOND_US;

/// The limit on the time until play is back after a restart.
const BACK_US: u64 = 5 * SECOND_US;

/// Of six sessions that have ended, how many are forgotten.
const FORGOTTEN_OF_6: u64 = 1;

/// The remains of a session that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remains {
    LogAndSave,
    Log,
    Save,
}

impl<G: Playable> World<G> {
    pub(super) fn crash_relay(&mut self) {
        if self.relay_down {
            return;
        }
        self.relay_down = true;
        self.crashed_at = self.now;
        self.awaited.clear();
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
            self.plan_in(BACK_US, Event::Again(self.now));
        }
    }

    /// A client notices that its link is dead.
    pub(super) fn on_notice(&mut self, client: usize, member: Member) {
        let online = self.clients[client].online.as_ref();
        let cable = online.and_then(|online| self.cables[online.cable].as_ref());
        if cable.is_some_and(|cable| cable.member == member) {
            let status = online.map(|online| online.peer.status());
            let played = matches!(status, Some(Status::Playing | Status::WaitingForRelay));
            self.note(|| format!("client {client} hears nothing any more"));
            let wait_us = self.rng.below(SECOND_US / 4);
            self.disconnect(client, wait_us, true);
            self.rest_client(client);
            if played && self.clients[client].kept.is_some() {
                self.awaited.push(client);
            }
        }
    }

    /// The remains on disk of the requested session.
    pub(super) fn find(&mut self) -> Found {
        match self.find_kept() {
            Some(kept) => Found::Kept(Box::new(kept)),
            None => Found::New { uid: self.take_uid() },
        }
    }

    fn take_uid(&mut self) -> u64 {
        self.next_uid += 1;
        self.next_uid - 1
    }

    fn find_kept(&mut self) -> Option<Kept> {
        let referee = self.referees.last()?;
        let remains = match (&referee.left, &referee.saves.0) {
            _ if referee.ended => self.draw_remains()?,
            (Some(_), _) => Remains::LogAndSave,
            (None, Some(_)) => Remains::Save,
            (None, None) => {
                // Nothing of it was on the disk.
                self.referees.last_mut()?.ended = true;
                return None;
            }
        };
        let uid = if remains == Remains::Save { self.take_uid() } else { 0 };
        let referee = self.referees.last_mut()?;
        let has_ended = referee.ended;
        let result = match (remains, referee.saves.0.clone()) {
            (Remains::Save, Some(save)) => referee.take_up_after(SessionId(uid), save),
            (Remains::Log, _) => {
                referee.saves = Default::default();
                referee.take_up()
            }
            _ if has_ended => referee.take_up(),
            _ => Ok(()),
        };
        self.judge(result);
        if has_ended {
            self.figures.resumed[remains as usize] += 1;
        }
        let referee = self.referees.last()?;
        let (left, save) = (referee.left.as_ref()?, referee.saves.0.clone());
        let (id, begun) = (referee.id, save.as_ref().map_or(Tick::ZERO, |save| save.tick));
        let mut kept = Kept::new(referee.facts.clone(), id.0, left.rewinds, save);
        left.ticks.iter().skip(begun.0 as usize).for_each(|rows| kept.push(rows));
        let (ticks, last) = (left.ticks.len(), referee.last());
        self.plan_in(BACK_US, Event::Back(id, self.now));
        self.note(|| format!("{remains:?} of {id:?} is found: {ticks} ticks of {last}, save after {begun}"));
        Some(kept)
    }

    /// Draws the remains of the last session, which has ended; `None` if it is forgotten.
    fn draw_remains(&mut self) -> Option<Remains> {
        let referee = self.referees.last().filter(|referee| referee.resumable)?;
        if self.rng.chance(FORGOTTEN_OF_6, 6) {
            return None;
        }
        let (has_save, is_whole) = (referee.saves.0.is_some(), referee.journal.is_whole());
        Some(match self.rng.below(4) {
            _ if !has_save => Remains::Log,
            0 => Remains::Save,
            1 if is_whole => Remains::Log,
            _ => Remains::LogAndSave,
        })
    }

    /// A session goes on.
    pub(super) fn on_rewind(&mut self, id: SessionId, to: Tick) {
        let session = self.relay.session(id);
        let (restarts, waits) = session.map_or((0, false), |it| (it.restarts(), it.is_returning()));
        let Some(referee) = self.referee(id) else { return };
        let Some(left) = &mut referee.left else { return };
        let is_back = left.ticks.len() > to.0 as usize;
        left.rewinds += 1;
        // The log had lost earlier ones.
        left.is_last = left.rewinds >= restarts && !waits;
        self.figures.restarts += 1;
        self.figures.rewinds += u64::from(is_back);
    }

    /// Checks that clients that lost their link when the relay was killed play again, if nothing else has happened and
    /// networks are good.
    pub(super) fn expect_again(&mut self, started_at: Time) {
        let is_calm = self.disturbed_at < self.crashed_at && self.crashed_at < started_at;
        let is_clean = self.clients.iter().all(|client| is_clean(&client.profile) && !client.is_silenced());
        if !is_calm || !is_clean || self.relay_down || self.relay_stalled {
            return;
        }
        let Some((id, from)) = self.referees.last().map(|referee| (referee.id, referee.from)) else { return };
        for index in self.awaited.clone() {
            self.figures.in_time += 1;
            let online = self.clients[index].online.as_ref();
            let plays = online.is_some_and(|online| {
                let is_here = online.welcome.is_some_and(|(session, _)| session == id);
                let tick = online.peer.confirmed().map_or(Tick::ZERO, |(tick, _)| tick);
                is_here && tick > from && *online.peer.status() == Status::Playing
            });
            if !plays {
                let status = online.map(|online| online.peer.status().clone());
                let what = format!("client {index} does not play 5 s after the restart: {status:?}");
                self.fail(Checker::Recovery, what);
            }
        }
    }

    /// Checks that the session has gone on by now, if a client has waited for it since it was found.
    pub(super) fn expect_back(&mut self, id: SessionId, found_at: Time) {
        let is_same = self.referee(id).is_some_and(|referee| referee.found_at == Some(found_at));
        let is_there = is_same && !self.relay_down && !self.relay_stalled;
        let session = self.relay.session(id).filter(|session| is_there && session.is_returning());
        let mut cables = self.cables.iter().flatten().filter(|cable| cable.opened_at <= found_at);
        let waits = cables.any(|cable| cable.there.is_some() && cable.here.is_some() && !cable.answered);
        if session.is_some_and(|session| session.members() > 0) && waits {
            self.fail(Checker::Recovery, format!("{id:?} has not gone on"));
        }
    }
}
