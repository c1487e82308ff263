//! Events to members: every difference from the state that they know, once it is stored.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sametick_wire::Member;

use super::{Kept, Output, Session};
use crate::message::{Event, GroupState, Parting, Person, Phase, View};
use crate::plan::Group;

impl Session {
    /// The state that members see.
    pub fn view(&self) -> View {
        let kept = &self.kept;
        let person = |person: &super::kept::KeptPerson| Person {
            player: person.player,
            name: person.name.clone(),
            seat: person.seat,
            ready: person.ready,
            away: !self.is_on(person.player),
        };
        let group = |(number, name): (u8, &crate::name::Name)| GroupState {
            group: Group(number),
            name: name.clone(),
            captain: kept.captain(Group(number)),
        };
        View {
            session: kept.id,
            plan: kept.plan.clone(),
            settings: kept.settings.clone(),
            locked: kept.lock.is_some(),
            phase: kept.phase,
            round: kept.round,
            results: kept.results.clone(),
            creator: kept.creator,
            groups: (0..kept.settings.groups).zip(&kept.labels).map(group).collect(),
            people: kept.people.iter().map(person).collect(),
        }
    }

    /// After each input: restores the invariants, and produces the events.
    pub(super) fn settle(&mut self, before: &Kept) {
        self.mend_creator();
        if self.kept != *before {
            self.revision += 1;
        }
        self.tell_changes();
        let revision = self.revision;
        self.waiting.extend(self.fresh.drain(..).map(|output| (revision, output)));
    }

    /// A session without its creator passes to the member who joined first, connected members before others.
    fn mend_creator(&mut self) {
        if self.kept.creator.is_some_and(|creator| self.kept.person(creator).is_some()) {
            return;
        }
        let first = self.kept.people.iter().min_by_key(|person| (!self.is_on(person.player), person.joined));
        self.kept.creator = first.map(|person| person.player);
    }

    fn tell_changes(&mut self) {
        let view = self.view();
        let events = self.changes(&view);
        self.gone.clear();
        let came = core::mem::take(&mut self.came);
        // Chat and the like follow the changes of the same step; new members know those changes already.
        let mut told = Vec::new();
        for event in events {
            let others = self.links.keys().filter(|member| !came.contains(member));
            told.extend(others.map(|member| Output::Tell(*member, event.clone())));
        }
        for member in came {
            told.extend(self.welcome(member, &view));
        }
        self.fresh.splice(0..0, told);
        self.told = view;
    }

    fn welcome(&self, member: Member, view: &View) -> Option<Output> {
        let you = *self.links.get(&member)?;
        let (person, presence) = (self.kept.person(you)?, self.presences.get(&you)?);
        let resume_token = self.tokens.of(you, person.joined, presence.serial).to_hex();
        Some(Output::Tell(member, Event::Welcome { you, resume_token, view: Box::new(view.clone()) }))
    }

    /// The events for everything that has changed.
    fn changes(&self, view: &View) -> Vec<Event> {
        let told = &self.told;
        let mut events = Vec::new();
        if (&told.settings, told.locked) != (&view.settings, view.locked) {
            events.push(Event::About { settings: view.settings.clone(), locked: view.locked });
        }
        for person in told.people.iter().filter(|old| !view.people.iter().any(|one| one.player == old.player))
        {
            let why = self.gone.iter().find(|(player, _)| *player == person.player);
            let why = why.map_or(Parting::Left, |(_, why)| *why);
            events.push(Event::Left { player: person.player, why });
        }
        let is_new = |person: &&Person| !told.people.contains(person);
        events.extend(view.people.iter().filter(is_new).cloned().map(Event::Person));
        let is_new = |group: &&GroupState| !told.groups.contains(group);
        events.extend(view.groups.iter().filter(is_new).cloned().map(Event::Group));
        if told.creator != view.creator {
            events.push(Event::Creator { creator: view.creator });
        }
        if (told.phase, told.round, &told.results) != (view.phase, view.round, &view.results)
            && view.phase != Phase::Closed
        {
            let (phase, round, results) = (view.phase, view.round, view.results.clone());
            events.push(Event::Phase { phase, round, results });
        }
        events
    }
}
