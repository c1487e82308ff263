//! Read-only accessors.

use sametick_sim::Seat;
use sametick_wire::Member;
use sametick_wire::identity::PlayerId;

use super::Session;
use crate::id::{Key, SessionId};
use crate::lobby::Summary;
use crate::message::{Ending, Forward, Phase};
use crate::name::Name;

impl Session {
    /// The session's id.
    pub fn id(&self) -> SessionId {
        self.kept.id
    }

    /// The key of the request that created it.
    pub fn key(&self) -> Key {
        self.kept.key
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        self.kept.phase
    }

    /// Why it is over, if it is.
    pub fn ending(&self) -> Option<Ending> {
        self.kept.ending
    }

    /// Its first id: saves and logs of its games have that name.
    pub fn origin(&self) -> SessionId {
        self.kept.origin
    }

    /// Its id at the previous host, if it has moved here.
    pub fn was(&self) -> Option<SessionId> {
        self.kept.was
    }

    /// Whether it was adopted and no member has followed yet: such a session is not listed.
    pub fn is_dormant(&self) -> bool {
        self.kept.dormant
    }

    /// Where it has moved to, if another host has it.
    pub fn forward(&self) -> Option<&Forward> {
        self.kept.forward.as_ref()
    }

    /// Its entry in lists.
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

    /// The player of a connection, while it is one of a member.
    pub fn player_of(&self, member: Member) -> Option<PlayerId> {
        self.links.get(&member).copied()
    }

    /// Whether a player is a member, connected or not.
    pub fn has(&self, player: PlayerId) -> bool {
        self.kept.person(player).is_some()
    }

    /// The name of a member.
    pub fn name_of(&self, player: PlayerId) -> Option<&Name> {
        self.kept.person(player).map(|person| &person.name)
    }

    /// The seat of a member.
    pub fn seat_of(&self, player: PlayerId) -> Option<Seat> {
        self.kept.person(player).and_then(|person| person.seat)
    }

    /// The number of games started.
    pub fn round(&self) -> u32 {
        self.kept.round
    }

    /// The connections of its members.
    pub fn links(&self) -> impl Iterator<Item = (Member, PlayerId)> {
        self.links.iter().map(|(member, player)| (*member, *player))
    }
}
