//! The stored state of a session, as canonical bytes.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::Seat;
use sametick_wire::control;
use sametick_wire::identity::PlayerId;
use serde::{Deserialize, Serialize};

use crate::id::{Key, SessionId, maybe_player, player, players};
use crate::message::{Ending, Forward, Phase};
use crate::name::Name;
use crate::password::Lock;
use crate::plan::{Group, Plan};
use crate::settings::Settings;
use crate::ticket::MAX_TOKENS;

/// The version of the format.
const VERSION: u8 = 2;

/// An upper bound of the counters of a session, which they never come near.
const MAX_COUNT: u32 = u32::MAX / 2;

/// Bytes of the hash that detects damage.
const CHECK_LEN: usize = 8;

/// The state of a session that survives its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub id: SessionId,
    /// The key of the request that created it.
    pub key: Key,
    pub plan: Plan,
    pub settings: Settings,
    pub lock: Option<Lock>,
    pub phase: Phase,
    pub ending: Option<Ending>,
    pub round: u32,
    pub results: Option<String>,
    #[serde(with = "maybe_player")]
    pub creator: Option<PlayerId>,
    /// The names of all groups, also of those that do not take part.
    pub labels: Vec<Name>,
    /// Ordered by id.
    pub people: Vec<KeptPerson>,
    #[serde(with = "players")]
    pub banned: Vec<PlayerId>,
    /// Counts arrivals and moves to another group.
    pub next: u32,
    /// Counts salts.
    pub salts: u32,
    /// Recent crashes of the game, in Unix seconds.
    pub crashes: Vec<u64>,
    /// Its first id: the files of its games keep this name when it moves.
    pub origin: SessionId,
    /// Its id at the previous host.
    pub was: Option<SessionId>,
    /// Adopted from another host, which may still have it: inactive until a member arrives whom that host has sent.
    pub dormant: bool,
    /// Where it has moved to.
    pub forward: Option<Forward>,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptPerson {
    #[serde(with = "player")]
    pub player: PlayerId,
    pub name: Name,
    pub seat: Option<Seat>,
    /// The group that the player stays in while a game runs.
    pub bound: Option<Group>,
    pub ready: bool,
    /// The order of joining the session.
    pub joined: u32,
    /// The order of joining the group.
    pub sat: u32,
    /// The serial number of the newest token.
    pub serial: u32,
    /// The serial number of the oldest valid token.
    pub floor: u32,
}

/// Why a stored session cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// It has another version.
    Version(u8),
    /// The bytes are damaged.
    Bytes,
    /// The bytes are intact, but hold no valid state of a session.
    Unsound,
}

impl Kept {
    /// Encodes it for storage.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![VERSION];
        control::put(&mut bytes, self);
        let check = blake3::hash(&bytes);
        bytes.extend(check.as_bytes().iter().take(CHECK_LEN));
        bytes
    }

    /// Decodes and checks it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Kept, Damaged> {
        let (said, check) = bytes.split_last_chunk::<CHECK_LEN>().ok_or(Damaged::Bytes)?;
        if !blake3::hash(said).as_bytes().starts_with(check) {
            return Err(Damaged::Bytes);
        }
        let kept: Kept = match said.split_first() {
            Some((&VERSION, rest)) => control::from_bytes(rest).map_err(|_| Damaged::Bytes)?,
            Some((version, _)) => return Err(Damaged::Version(*version)),
            None => return Err(Damaged::Bytes),
        };
        if kept.is_sound() { Ok(kept) } else { Err(Damaged::Unsound) }
    }

    /// Whether the state is consistent.
    pub fn is_sound(&self) -> bool {
        let seats = self.seats();
        let sitting: BTreeSet<Seat> = self.people.iter().filter_map(|person| person.seat).collect();
        self.settings.fit(&self.plan)
            && self.labels.len() == self.plan.groups().len()
            && self.people.is_sorted_by(|one, other| one.player < other.player)
            && self.people.len() <= seats
            && sitting.len() == self.people.iter().filter(|person| person.seat.is_some()).count()
            && sitting.iter().all(|seat| seat.index() < seats)
            && self.people.iter().all(|person| self.is_sound_person(person))
            && [self.next, self.salts, self.round].into_iter().all(|count| count <= MAX_COUNT)
            && self.creator.is_some() != self.people.is_empty()
            && self.creator.is_none_or(|creator| self.person(creator).is_some())
            && (self.phase == Phase::Closed) == self.ending.is_some()
            && (self.ending == Some(Ending::Moved)) == self.forward.is_some()
            && self.banned.iter().all(|player| self.person(*player).is_none())
    }

    fn is_sound_person(&self, person: &KeptPerson) -> bool {
        let group = person.seat.and_then(|seat| self.plan.group_of(seat));
        let is_bound = self.phase == Phase::Running && group.is_some();
        person.serial.checked_sub(person.floor).is_some_and(|good| good < MAX_TOKENS)
            && person.serial <= MAX_COUNT
            && (!person.ready || self.phase == Phase::Lobby && person.seat.is_some())
            && (person.bound.is_none() || self.phase == Phase::Running)
            && (!is_bound || person.bound == group)
            && self.phase != Phase::Closed
    }

    /// The number of seats that take part.
    pub fn seats(&self) -> usize {
        self.plan.seats_of(self.settings.groups)
    }

    pub fn person(&self, player: PlayerId) -> Option<&KeptPerson> {
        self.people.iter().find(|person| person.player == player)
    }

    pub fn person_mut(&mut self, player: PlayerId) -> Option<&mut KeptPerson> {
        self.people.iter_mut().find(|person| person.player == player)
    }

    pub fn insert(&mut self, person: KeptPerson) {
        let at = self.people.partition_point(|one| one.player < person.player);
        self.people.insert(at, person);
    }

    /// The member on a seat.
    pub fn sitter(&self, seat: Seat) -> Option<&KeptPerson> {
        self.people.iter().find(|person| person.seat == Some(seat))
    }

    /// The member who has been in a group for the longest.
    pub fn captain(&self, group: Group) -> Option<PlayerId> {
        let is_in =
            |person: &&KeptPerson| person.seat.and_then(|seat| self.plan.group_of(seat)) == Some(group);
        self.people.iter().filter(is_in).min_by_key(|person| person.sat).map(|person| person.player)
    }

    pub fn count(&mut self) -> u32 {
        self.next += 1;
        self.next
    }
}

#[cfg(test)]
mod tests {
    use sametick_sim::Time;

    use super::*;
    use crate::id::{HostId, Incarnation};
    use crate::session::{Founding, Session};
    use crate::settings::{Difficulty, Mode};

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    /// A session with one member whose valid tokens are these.
    fn kept(floor: u32, serial: u32) -> Kept {
        let settings = Settings {
            name: name("x"),
            game: name("pong"),
            mode: Mode::Room,
            scenario: None,
            difficulty: Difficulty::default(),
            groups: 1,
            listed: true,
        };
        let id = SessionId { host: HostId(1), born: Incarnation(1), mark: 1 };
        let plan = Plan::uniform("Players", 1, &["left", "right"]).unwrap();
        let founding = Founding { id, key: Key([1; 16]), plan, settings, lock: None };
        let mut kept = Session::new(Time::ZERO, &[1; 32], founding).unwrap().kept;
        let (player, name) = (PlayerId(1), name("Ada"));
        let (seat, bound, ready, joined, sat) = (None, None, false, 1, 1);
        kept.insert(KeptPerson { player, name, seat, bound, ready, joined, sat, serial, floor });
        kept.creator = Some(player);
        kept
    }

    #[test]
    fn a_counter_that_is_too_large_is_refused() {
        let read = |kept: &Kept| Kept::from_bytes(&kept.to_bytes()).map(|_| ());
        assert_eq!(read(&kept(7, 10)), Ok(()));
        for (floor, serial) in [(0, u32::MAX), (u32::MAX, u32::MAX), (2, 1), (0, MAX_TOKENS)] {
            assert_eq!(read(&kept(floor, serial)), Err(Damaged::Unsound), "{floor} {serial}");
        }
        let counted = |change: fn(&mut Kept)| {
            let mut kept = kept(0, 1);
            change(&mut kept);
            read(&kept)
        };
        assert_eq!(counted(|kept| kept.next = u32::MAX), Err(Damaged::Unsound));
        assert_eq!(counted(|kept| kept.salts = u32::MAX), Err(Damaged::Unsound));
        assert_eq!(counted(|kept| kept.round = u32::MAX), Err(Damaged::Unsound));
    }
}
