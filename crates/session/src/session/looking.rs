//! What whoever drives a session may look at.

use sametick_sim::Seat;
use sametick_wire::Member;
use sametick_wire::identity::PlayerId;

use super::Session;
use crate::id::{Key, SessionId};
use crate::lobby::Summary;
use crate::message::{Ending, Forward, Phase};
use crate::name::Name;

impl Session {
    /// Which session it is.
    pub fn id(&self) -> SessionId {
        self.kept.id
    }

    /// By which request it was made.
    pub fn key(&self) -> Key {
        self.kept.key
    }

    /// Where it is in its life.
    pub fn phase(&self) -> Phase {
        self.kept.phase
    }

    /// Why it is over, if it is.
    pub fn ending(&self) -> Option<Ending> {
        self.kept.ending
    }

    /// What it was called first: saves and logs of its games have that name.
    pub fn origin(&self) -> SessionId {
        self.kept.origin
    }

    /// What it was at the host that it has come from.
    pub fn was(&self) -> Option<SessionId> {
        self.kept.was
    }

    /// Whether it has come from another host, and nobody with it yet: it is in no list.
    pub fn is_dormant(&self) -> bool {
        self.kept.dormant
    }

    /// Where it goes on, if another host has it.
    pub fn forward(&self) -> Option<&Forward> {
        self.kept.forward.as_ref()
    }

    /// As lists have it.
    pub fn summary(&self) -> Summary {
        Summary {
            session: self.kept.id,
            settings: self.kept.settings.clone(),
            phase: self.kept.phase,
            players: self.kept.people.len() as u16,
            seats: self.kept.seats() as u16,
            locked: self.kept.lock.is_some(),
        }
    }

    /// Which player a connection is, while it is one of a member.
    pub fn player_of(&self, member: Member) -> Option<PlayerId> {
        self.links.get(&member).copied()
    }

    /// Whether somebody takes part, connected or not.
    pub fn has(&self, player: PlayerId) -> bool {
        self.kept.person(player).is_some()
    }

    /// What somebody is called here.
    pub fn name_of(&self, player: PlayerId) -> Option<&Name> {
        self.kept.person(player).map(|person| &person.name)
    }

    /// Where somebody sits.
    pub fn seat_of(&self, player: PlayerId) -> Option<Seat> {
        self.kept.person(player).and_then(|person| person.seat)
    }

    /// How many games were begun.
    pub fn round(&self) -> u32 {
        self.kept.round
    }

    /// The connections of its members.
    pub fn links(&self) -> impl Iterator<Item = (Member, PlayerId)> {
        self.links.iter().map(|(member, player)| (*member, *player))
    }
}
