//! Requests of members, and when each is allowed.

use alloc::string::String;

use sametick_sim::Seat;
use sametick_wire::Member;
use sametick_wire::identity::PlayerId;

use super::{CHAT, GRACE_US, MAX_RESULTS, Output, Place, Session};
use crate::message::{Event, Parting, Phase, Refusal, Request};
use crate::name::{Line, Name};
use crate::plan::Group;
use crate::settings::Settings;

impl Session {
    pub(super) fn say(&mut self, member: Member, seq: u64, request: Request) {
        let Some(player) = self.player_of(member) else { return };
        self.hear(player);
        let answer = match request {
            Request::Password { password } => match self.check_creator(player) {
                Ok(()) => match self.change_lock(member, seq, password) {
                    Some(refusal) => Err(refusal),
                    None => return self.active_at = self.now,
                },
                Err(refusal) => Err(refusal),
            },
            request => self.do_request(player, request),
        };
        if answer.is_ok() {
            self.active_at = self.now;
        }
        // The answer goes before the end of the connection, if the request was to leave.
        let at = self.fresh.iter().position(|output| matches!(output, Output::Close(to, _) if *to == member));
        self.fresh.insert(at.unwrap_or(self.fresh.len()), Output::Answer(member, seq, answer));
    }

    fn do_request(&mut self, player: PlayerId, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Take { seat } => self.take(player, seat),
            Request::Stand {} => self.stand(player),
            Request::Ready { ready } => self.ready(player, ready),
            Request::Rename { name } => self.rename(player, name),
            Request::Chat { line } => self.chat(player, line),
            Request::Start {} => self.start(player),
            Request::Settings { settings } => self.change_settings(player, settings),
            Request::Kick { player: other, ban } => {
                self.check_creator(player)?;
                if other == player { Err(Refusal::NoSuchPlayer) } else { self.kick(other, ban) }
            }
            Request::Rematch {} => self.rematch(player),
            Request::Leave {} => {
                self.remove(player, Parting::Left);
                Ok(())
            }
            Request::Password { .. } => Err(Refusal::NotNow),
        }
    }

    /// The first message over a link shows that its token has arrived: earlier tokens expire soon.
    fn hear(&mut self, player: PlayerId) {
        let Some(presence) = self.presences.get_mut(&player).filter(|presence| !presence.is_heard) else {
            return;
        };
        presence.is_heard = true;
        presence.grace = Some((self.now.plus_micros(GRACE_US), presence.serial));
    }

    fn check_creator(&self, player: PlayerId) -> Result<(), Refusal> {
        if self.kept.creator == Some(player) { Ok(()) } else { Err(Refusal::NotCreator) }
    }

    fn check_phase(&self, phase: Phase) -> Result<(), Refusal> {
        if self.kept.phase == phase { Ok(()) } else { Err(Refusal::NotNow) }
    }

    fn take(&mut self, player: PlayerId, seat: Seat) -> Result<(), Refusal> {
        let is_running = self.kept.phase == Phase::Running;
        if !is_running {
            self.check_phase(Phase::Lobby)?;
        }
        self.check_free(seat, player)?;
        let group = self.kept.plan.group_of(seat).ok_or(Refusal::NoSuchSeat)?;
        let person = self.kept.person(player).ok_or(Refusal::NoSuchPlayer)?;
        let old = person.seat;
        if old == Some(seat) {
            return Ok(());
        }
        if is_running && person.bound.is_some_and(|bound| bound != group) {
            return Err(Refusal::OtherGroup);
        }
        let stays = old.and_then(|old| self.kept.plan.group_of(old)) == Some(group);
        let sat = if stays { person.sat } else { self.kept.count() };
        let person = self.kept.person_mut(player).ok_or(Refusal::NoSuchPlayer)?;
        (person.seat, person.ready, person.sat) = (Some(seat), false, sat);
        if is_running {
            person.bound = Some(group);
            self.fresh.extend(old.map(Output::Unmanned));
            self.fresh.push(Output::Manned(seat, player));
        }
        Ok(())
    }

    fn stand(&mut self, player: PlayerId) -> Result<(), Refusal> {
        let is_running = self.kept.phase == Phase::Running;
        if !is_running {
            self.check_phase(Phase::Lobby)?;
        }
        let person = self.kept.person_mut(player).ok_or(Refusal::NoSuchPlayer)?;
        person.ready = false;
        let old = person.seat.take();
        self.fresh.extend(old.filter(|_| is_running).map(Output::Unmanned));
        Ok(())
    }

    fn ready(&mut self, player: PlayerId, ready: bool) -> Result<(), Refusal> {
        self.check_phase(Phase::Lobby)?;
        let person = self.kept.person_mut(player).ok_or(Refusal::NoSuchPlayer)?;
        if ready && person.seat.is_none() {
            return Err(Refusal::NoSeat);
        }
        person.ready = ready;
        Ok(())
    }

    fn rename(&mut self, player: PlayerId, name: Name) -> Result<(), Refusal> {
        self.check_phase(Phase::Lobby)?;
        let seat = self.kept.person(player).and_then(|person| person.seat).ok_or(Refusal::NoSeat)?;
        let group = self.kept.plan.group_of(seat).ok_or(Refusal::NoSuchSeat)?;
        if self.kept.captain(group) != Some(player) {
            return Err(Refusal::NotCaptain);
        }
        if let Some(label) = self.kept.labels.get_mut(usize::from(group.0)) {
            *label = name;
        }
        Ok(())
    }

    fn chat(&mut self, player: PlayerId, line: Line) -> Result<(), Refusal> {
        let presence = self.presences.get_mut(&player).ok_or(Refusal::NoSuchPlayer)?;
        if !presence.chat.try_take(self.now, CHAT) {
            return Err(Refusal::TooFast);
        }
        let name = self.kept.person(player).ok_or(Refusal::NoSuchPlayer)?.name.clone();
        let event = Event::Chat { player, name, line };
        self.fresh.extend(self.links.keys().map(|member| Output::Tell(*member, event.clone())));
        Ok(())
    }

    /// Starts the game for the creator, if every group with players has one who is ready.
    fn start(&mut self, player: PlayerId) -> Result<(), Refusal> {
        self.check_creator(player)?;
        self.check_phase(Phase::Lobby)?;
        let group_of = |seat| self.kept.plan.group_of(seat);
        let is_in = |person: &super::kept::KeptPerson, group| person.seat.and_then(group_of) == Some(group);
        let mut manned = (0..self.kept.settings.groups)
            .map(Group)
            .filter(|group| self.kept.people.iter().any(|person| is_in(person, *group)))
            .peekable();
        let has_ready = |group| self.kept.people.iter().any(|person| person.ready && is_in(person, group));
        if manned.peek().is_none() || !manned.all(has_ready) {
            return Err(Refusal::NotReady);
        }
        self.kept.phase = Phase::Running;
        self.kept.round += 1;
        self.phase_at = self.now;
        self.fresh.push(Output::Begin { round: self.kept.round, again: false });
        for person in &mut self.kept.people {
            person.ready = false;
            person.bound = person.seat.and_then(|seat| self.kept.plan.group_of(seat));
            let is_on =
                self.presences.get(&person.player).is_some_and(|one| matches!(one.place, Place::On(_)));
            self.fresh.extend(person.seat.filter(|_| is_on).map(|seat| Output::Manned(seat, person.player)));
        }
        Ok(())
    }

    fn change_settings(&mut self, player: PlayerId, settings: Settings) -> Result<(), Refusal> {
        self.check_creator(player)?;
        self.check_phase(Phase::Lobby)?;
        if !settings.fit(&self.kept.plan) || !settings.is_same_game(&self.kept.settings) {
            return Err(Refusal::BadSettings);
        }
        let seats = self.kept.plan.seats_of(settings.groups);
        let sitting = self.kept.people.iter().filter_map(|person| person.seat);
        let mut held = sitting.chain(self.expected.values().filter_map(|expected| expected.ticket.seat));
        let expected = self.expected.keys().filter(|player| self.kept.person(**player).is_none()).count();
        if held.any(|seat| seat.index() >= seats) || self.kept.people.len() + expected > seats {
            return Err(Refusal::SeatTaken);
        }
        self.kept.settings = settings;
        // They were ready for other settings.
        self.kept.people.iter_mut().for_each(|person| person.ready = false);
        Ok(())
    }

    pub(super) fn ended(&mut self, mut results: String) {
        if self.kept.phase != Phase::Running {
            return;
        }
        results.truncate(results.floor_char_boundary(MAX_RESULTS));
        self.kept.phase = Phase::Results;
        self.kept.results = Some(results);
        self.kept.people.iter_mut().for_each(|person| person.bound = None);
        self.phase_at = self.now;
    }

    fn rematch(&mut self, player: PlayerId) -> Result<(), Refusal> {
        self.check_creator(player)?;
        self.check_phase(Phase::Results)?;
        self.kept.phase = Phase::Lobby;
        self.kept.results = None;
        self.kept.crashes.clear();
        self.phase_at = self.now;
        Ok(())
    }
}
