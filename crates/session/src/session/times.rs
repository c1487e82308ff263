//! Time-outs of a session.

use sametick_sim::Time;

use super::{ABANDONED_US, DORMANT_US, IDLE_US, Place, RESULTS_US, Rest, Session, UNCLAIMED_US};
use crate::message::{Ending, Parting, Phase};

impl Session {
    /// The next time-out. None once there is no more.
    pub(super) fn wake_at(&self) -> Option<Time> {
        if self.kept.phase == Phase::Closed || self.rest != Rest::None {
            return None;
        }
        let away = self.presences.values().filter_map(|presence| match presence.place {
            Place::Away(until) => Some(until),
            Place::On(_) => None,
        });
        let grace = self.presences.values().filter_map(|presence| presence.grace.map(|(at, _)| at));
        let tickets = self.expected.values().map(|expected| expected.ticket.until());
        let end = self.ends_at().map(|(at, _)| at);
        away.chain(grace).chain(tickets).chain(end).min()
    }

    /// When the session closes without further activity, and why.
    fn ends_at(&self) -> Option<(Time, Ending)> {
        let is_empty = self.kept.people.is_empty();
        if self.kept.dormant {
            return Some((self.phase_at.plus_micros(DORMANT_US), Ending::Unclaimed));
        }
        match self.kept.phase {
            Phase::Lobby if is_empty => Some((self.empty_at.plus_micros(UNCLAIMED_US), Ending::Unclaimed)),
            Phase::Lobby => Some((self.active_at.plus_micros(IDLE_US), Ending::Idle)),
            Phase::Running if is_empty => Some((self.empty_at.plus_micros(ABANDONED_US), Ending::Abandoned)),
            Phase::Results if is_empty => {
                // The holder of a ticket may still arrive.
                let tickets = self.expected.values().map(|expected| expected.ticket.until());
                let last = tickets.max().unwrap_or(Time::ZERO);
                Some((self.empty_at.max(self.phase_at).max(last), Ending::Finished))
            }
            Phase::Results => Some((self.phase_at.plus_micros(RESULTS_US), Ending::Finished)),
            Phase::Running | Phase::Closed => None,
        }
    }

    /// Handles the time-outs that are due before the present input.
    pub(super) fn pass_time(&mut self) {
        let now = self.now;
        self.expected.retain(|_, expected| expected.ticket.until() > now);
        let late = |place| matches!(place, Place::Away(until) if until <= now);
        let released: alloc::vec::Vec<_> = self
            .presences
            .iter()
            .filter(|(_, presence)| late(presence.place))
            .map(|(player, _)| *player)
            .collect();
        for player in released {
            self.remove(player, Parting::Released);
        }
        for (player, presence) in &mut self.presences {
            if let Some((_, serial)) = presence.grace.take_if(|(at, _)| *at <= now)
                && let Some(person) = self.kept.person_mut(*player)
            {
                person.floor = person.floor.max(serial);
            }
        }
        if let Some((_, ending)) = self.ends_at().filter(|(at, _)| *at <= now) {
            self.close(ending);
        }
    }
}
