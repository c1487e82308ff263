//! Joining, leaving and resuming. A ticket goes back to the gateway that asked for it, which sends its client here.

use alloc::vec::Vec;

use sametick_sim::Seat;
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use super::kept::KeptPerson;
use super::{
    CRASHES_WITHIN_S, DORMANT_US, Expected, MAX_BANNED, MAX_CRASHES, MAX_WORKS, Output, Place, Presence,
    Reserve, Rest, Session, WINDOW_US, Work,
};
use crate::message::{Closing, Ending, Parting, Phase, Refusal};
use crate::name::Name;
use crate::password::{GUESSES_OF_ALL, Lock, Password, Salt, Weight};
use crate::ticket::{MAX_TOKENS, TICKET_US, Ticket};
use sametick_wire::rate_limit::TokenBucket;

impl Session {
    pub(super) fn reserve(&mut self, reserve: Reserve) {
        let is_known = reserve.is_maker || self.kept.person(reserve.player).is_some();
        match self.kept.lock {
            Some(lock) if !is_known && self.kept.phase != Phase::Closed => self.ask_password(reserve, lock),
            _ => self.give_ticket(&reserve),
        }
    }

    fn ask_password(&mut self, mut reserve: Reserve, lock: Lock) {
        let refusal = match reserve.password.take() {
            Some(password) if password.is_sound() => {
                if self.works.len() >= MAX_WORKS {
                    Refusal::Busy
                } else if !self.guesses.try_take(self.now, GUESSES_OF_ALL) {
                    Refusal::TooManyGuesses
                } else {
                    self.weigh(Work::Join(reserve, lock.salt), lock.salt, password);
                    return;
                }
            }
            _ => Refusal::NotFound,
        };
        self.fresh.push(Output::Reserved(reserve.ask, Err(refusal)));
    }

    fn weigh(&mut self, work: Work, salt: Salt, password: Password) {
        self.next_work += 1;
        self.works.insert(self.next_work, work);
        self.weighing.push_back(Output::Weigh(self.next_work, salt, password));
    }

    pub(super) fn weighed(&mut self, work: u64, weight: Weight) {
        match self.works.remove(&work) {
            Some(Work::Join(reserve, salt)) => {
                // The password may have been changed or removed meanwhile.
                let is_right = self.kept.lock.is_none_or(|lock| lock == Lock { salt, weight });
                if is_right {
                    self.give_ticket(&reserve);
                } else {
                    self.fresh.push(Output::Reserved(reserve.ask, Err(Refusal::NotFound)));
                }
            }
            Some(Work::Lock(member, seq, salt)) => {
                let is_creator =
                    self.player_of(member).is_some_and(|player| self.kept.creator == Some(player));
                if is_creator {
                    self.kept.lock = Some(Lock { salt, weight });
                }
                let answer = if is_creator { Ok(()) } else { Err(Refusal::NotCreator) };
                self.fresh.push(Output::Answer(member, seq, answer));
            }
            None => {}
        }
    }

    /// Sets another password once it is hashed, or removes it at once.
    pub(super) fn change_lock(
        &mut self,
        member: Member,
        seq: u64,
        password: Option<Password>,
    ) -> Option<Refusal> {
        let Some(password) = password else {
            self.kept.lock = None;
            self.fresh.push(Output::Answer(member, seq, Ok(())));
            return None;
        };
        if !password.is_sound() {
            return Some(Refusal::BadSettings);
        }
        if self.works.len() >= MAX_WORKS {
            return Some(Refusal::Busy);
        }
        self.kept.salts += 1;
        let salt = Salt(self.tokens.salt(self.kept.salts));
        self.weigh(Work::Lock(member, seq, salt), salt, password);
        None
    }

    fn give_ticket(&mut self, reserve: &Reserve) {
        let answer = self.ticket_for(reserve);
        self.fresh.push(Output::Reserved(reserve.ask, answer));
    }

    fn ticket_for(&mut self, reserve: &Reserve) -> Result<Ticket, Refusal> {
        let player = reserve.player;
        if let Some(ending) = self.kept.ending {
            return Err(if ending == Ending::Quarantined { Refusal::Quarantined } else { Refusal::Over });
        }
        if self.kept.banned.contains(&player) {
            return Err(Refusal::Banned);
        }
        let is_member = self.kept.person(player).is_some();
        if self.kept.dormant && !is_member {
            return Err(Refusal::NotFound);
        }
        let seat = reserve.seat.filter(|_| !is_member);
        if let Some(ticket) = self.ticket_of(player, seat) {
            return Ok(ticket);
        }
        let others =
            self.expected.keys().filter(|other| **other != player && self.kept.person(**other).is_none());
        if !is_member && self.kept.people.len() + others.count() >= self.kept.seats() {
            return Err(Refusal::Full);
        }
        if let Some(seat) = seat {
            self.check_free(seat, player)?;
        }
        Ok(self.expect(player, &reserve.name, seat))
    }

    /// A player's ticket, if it is valid for long enough: a request may be repeated because the answer was lost.
    fn ticket_of(&self, player: PlayerId, seat: Option<Seat>) -> Option<Ticket> {
        let ticket = &self.expected.get(&player)?.ticket;
        let is_good = ticket.seat == seat && ticket.until().micros_since(self.now) > TICKET_US / 2;
        is_good.then(|| ticket.clone())
    }

    /// A ticket for a player: the existing one, or another that replaces it.
    pub(super) fn expect(&mut self, player: PlayerId, name: &Name, seat: Option<Seat>) -> Ticket {
        if let Some(ticket) = self.ticket_of(player, seat) {
            return ticket;
        }
        self.next_nonce += 1;
        let ticket = Ticket::new(self.now, self.kept.id, player, seat, self.next_nonce);
        self.expected.insert(player, Expected { name: name.clone(), ticket: ticket.clone() });
        ticket
    }

    /// Whether a seat takes part and the player could have it.
    pub(super) fn check_free(&self, seat: Seat, player: PlayerId) -> Result<(), Refusal> {
        if seat.index() >= self.kept.seats() {
            return Err(Refusal::NoSuchSeat);
        }
        let is_sat_on = self.kept.sitter(seat).is_some_and(|sitter| sitter.player != player);
        let is_held = self
            .expected
            .iter()
            .any(|(other, expected)| *other != player && expected.ticket.seat == Some(seat));
        if is_sat_on || is_held { Err(Refusal::SeatTaken) } else { Ok(()) }
    }

    pub(super) fn arrive(&mut self, member: Member, ticket: &Ticket) {
        if let Some(ending) = self.kept.ending {
            return self.fresh.push(Output::Close(member, Closing::Over(ending)));
        }
        let is_good = |expected: &mut Expected| expected.ticket == *ticket;
        let Some(expected) =
            self.expected.get_mut(&ticket.player).filter(|_| !self.links.contains_key(&member))
        else {
            return self.fresh.push(Output::Close(member, Closing::BadTicket));
        };
        if !is_good(expected) {
            return self.fresh.push(Output::Close(member, Closing::BadTicket));
        }
        let expected = self.expected.remove(&ticket.player).expect("it was there just now");
        self.awake();
        if self.kept.person(ticket.player).is_none() {
            self.add(ticket.player, &expected.name, ticket.seat);
        }
        self.connect(member, ticket.player);
    }

    fn add(&mut self, player: PlayerId, name: &Name, seat: Option<Seat>) {
        let joined = self.kept.count();
        let bound =
            seat.filter(|_| self.kept.phase == Phase::Running).and_then(|seat| self.kept.plan.group_of(seat));
        let name = self.name_for(name);
        self.kept.insert(KeptPerson {
            player,
            name,
            seat,
            bound,
            ready: false,
            joined,
            sat: joined,
            serial: 0,
            floor: 0,
        });
    }

    /// A name that no other member has.
    fn name_for(&self, name: &Name) -> Name {
        let is_free = |name: &Name| !self.kept.people.iter().any(|person| person.name.is_like(name));
        let numbered = (2..).map(|number| name.numbered(number));
        core::iter::once(name.clone())
            .chain(numbered)
            .find(is_free)
            .expect("there are more numbers than people")
    }

    pub(super) fn resume(&mut self, member: Member, player: PlayerId, token: &Token) {
        if let Some(ending) = self.kept.ending {
            return self.fresh.push(Output::Close(member, Closing::Over(ending)));
        }
        let is_good = self.kept.person(player).is_some_and(|person| {
            // All are compared, so that the time does not depend on which one matches.
            let good = |serial| self.tokens.is_good(token, player, person.joined, serial);
            (person.floor..=person.serial).filter(|serial| good(*serial)).count() > 0
        });
        if !is_good || self.links.contains_key(&member) {
            return self.fresh.push(Output::Close(member, Closing::BadToken));
        }
        self.connect(member, player);
    }

    /// Connects a member over this link, and ends any other link of theirs.
    fn connect(&mut self, member: Member, player: PlayerId) {
        let Some(person) = self.kept.person_mut(player) else { return };
        if person.serial - person.floor + 1 < MAX_TOKENS {
            person.serial += 1;
        }
        let (seat, serial) = (person.seat, person.serial);
        let old = self.presences.remove(&player);
        let chat = old.as_ref().map_or(TokenBucket::default(), |presence| presence.chat);
        let grace = old.as_ref().and_then(|presence| presence.grace);
        let place = Place::On(member);
        self.presences.insert(player, Presence { place, serial, is_heard: false, grace, chat });
        let was_on = match old.map(|presence| presence.place) {
            Some(Place::On(last)) => {
                self.links.remove(&last);
                self.fresh.push(Output::Close(last, Closing::CameBack));
                true
            }
            _ => false,
        };
        self.links.insert(member, player);
        self.came.push(member);
        self.active_at = self.now;
        if let Some(seat) = seat.filter(|_| self.kept.phase == Phase::Running && !was_on) {
            self.fresh.push(Output::Manned(seat, player));
        }
    }

    pub(super) fn cut(&mut self, member: Member) {
        let Some(player) = self.links.remove(&member) else { return };
        if let Some(presence) = self.presences.get_mut(&player) {
            presence.place = Place::Away(self.now.plus_micros(WINDOW_US));
        }
        let has_game = self.kept.phase == Phase::Running && self.rest == Rest::None;
        if let Some(person) = self.kept.person_mut(player) {
            person.ready = false;
            if let Some(seat) = person.seat.filter(|_| has_game) {
                self.fresh.push(Output::Unmanned(seat));
            }
        }
    }

    /// Removes a member, with all their tokens and tickets.
    pub(super) fn remove(&mut self, player: PlayerId, why: Parting) {
        self.expected.remove(&player);
        let Some(presence) = self.presences.remove(&player) else { return };
        let seat = self.kept.person(player).and_then(|person| person.seat);
        self.kept.people.retain(|person| person.player != player);
        self.gone.push((player, why));
        self.fresh.push(Output::Left(player));
        self.empty_at = self.now;
        if let Place::On(member) = presence.place {
            self.links.remove(&member);
            let closing = match why {
                Parting::Left | Parting::Released => Closing::Left,
                Parting::Kicked => Closing::Kicked,
                Parting::Banned => Closing::Banned,
            };
            self.fresh.push(Output::Close(member, closing));
            if let Some(seat) = seat.filter(|_| self.kept.phase == Phase::Running) {
                self.fresh.push(Output::Unmanned(seat));
            }
        }
    }

    pub(super) fn kick(&mut self, player: PlayerId, ban: bool) -> Result<(), Refusal> {
        let is_here = self.kept.person(player).is_some() || self.expected.contains_key(&player);
        if !is_here {
            return Err(Refusal::NoSuchPlayer);
        }
        self.remove(player, if ban { Parting::Banned } else { Parting::Kicked });
        if ban {
            if self.kept.banned.len() >= MAX_BANNED {
                self.kept.banned.remove(0);
            }
            self.kept.banned.push(player);
        }
        Ok(())
    }

    /// The host is back: the seats of all members are held.
    pub(super) fn come_back(&mut self, crashed_s: Option<u64>) {
        self.await_all(if self.kept.dormant { DORMANT_US } else { WINDOW_US });
        if self.kept.phase == Phase::Closed {
            self.fresh.extend(self.kept.ending.map(Output::Closed));
        } else if self.kept.phase == Phase::Running && !self.kept.dormant {
            match crashed_s {
                Some(unix_s) => self.crashed(unix_s),
                None => self.fresh.push(Output::Begin { round: self.kept.round, again: true }),
            }
        }
    }

    /// The game has crashed: it resumes from its save and log, unless it has crashed too often.
    pub(super) fn crashed(&mut self, unix_s: u64) {
        if self.kept.phase != Phase::Running {
            return;
        }
        // A clock that was set back must not make old crashes look new for ever.
        self.kept.crashes.retain(|at| unix_s.abs_diff(*at) < CRASHES_WITHIN_S);
        self.kept.crashes.push(unix_s);
        if self.kept.crashes.len() >= MAX_CRASHES {
            return self.close(Ending::Quarantined);
        }
        self.fresh.push(Output::Begin { round: self.kept.round, again: true });
        let on = self.kept.people.iter().filter(|person| self.is_on(person.player));
        let manned = on.filter_map(|person| Some(Output::Manned(person.seat?, person.player)));
        let manned: Vec<Output> = manned.collect();
        self.fresh.extend(manned);
    }

    pub(super) fn close(&mut self, ending: Ending) {
        if self.kept.phase == Phase::Closed {
            return;
        }
        self.end_links(Closing::Over(ending));
        // The game of a frozen session has been saved and ended.
        if self.kept.phase == Phase::Running && self.rest == Rest::None && !self.kept.dormant {
            self.fresh.push(Output::Finish);
        }
        (self.kept.phase, self.kept.dormant) = (Phase::Closed, false);
        self.kept.ending = Some(ending);
        self.kept.people.clear();
        self.presences.clear();
        self.fresh.push(Output::Closed(ending));
    }

    pub(super) fn suspend(&mut self) {
        if self.kept.phase == Phase::Closed {
            return;
        }
        for person in &mut self.kept.people {
            person.ready = false;
        }
        self.end_links(Closing::Suspended);
        let place = Place::Away(self.now.plus_micros(WINDOW_US));
        self.presences.values_mut().for_each(|presence| presence.place = place);
        self.rest = Rest::Suspended;
        self.fresh.push(Output::Suspended);
    }

    fn end_links(&mut self, why: Closing) {
        let links = core::mem::take(&mut self.links);
        self.fresh.extend(links.into_keys().map(|member| Output::Close(member, why)));
        self.expected.clear();
        self.refuse_works(Refusal::Over);
    }

    /// Refuses all requests that wait for a password hash.
    pub(super) fn refuse_works(&mut self, refusal: Refusal) {
        let works = core::mem::take(&mut self.works);
        let refused = works.into_values().map(|work| match work {
            Work::Join(reserve, _) => Output::Reserved(reserve.ask, Err(refusal)),
            Work::Lock(member, seq, _) => Output::Answer(member, seq, Err(refusal)),
        });
        self.fresh.extend(refused);
    }
}
