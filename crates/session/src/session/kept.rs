//! What of a session outlives its process, as canonical bytes.

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

/// The form of what is kept.
const VERSION: u8 = 2;

/// Nothing that is counted in a session comes near this.
const MAX_COUNT: u32 = u32::MAX / 2;

/// Bytes of the hash that tells damage.
const CHECK_LEN: usize = 8;

/// What of a session outlives its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub id: SessionId,
    /// By which request it was made.
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
    /// The names of all groups, also of those that take no part.
    pub labels: Vec<Name>,
    /// In the order of their ids.
    pub people: Vec<KeptPerson>,
    #[serde(with = "players")]
    pub banned: Vec<PlayerId>,
    /// Counts whoever comes and whoever sits down in another group.
    pub next: u32,
    /// Counts salts.
    pub salts: u32,
    /// When the game crashed lately, in Unix seconds.
    pub crashes: Vec<u64>,
    /// What it was called first: its games are called after that wherever it goes.
    pub origin: SessionId,
    /// What it was at the host before.
    pub was: Option<SessionId>,
    /// It has come from another host, which may still have it: nothing happens before somebody comes whom that host has sent.
    pub dormant: bool,
    /// Where it goes on.
    pub forward: Option<Forward>,
}

/// Somebody who takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptPerson {
    #[serde(with = "player")]
    pub player: PlayerId,
    pub name: Name,
    pub seat: Option<Seat>,
    /// The group they stay in while a game goes on.
    pub bound: Option<Group>,
    pub ready: bool,
    /// When they came, among all.
    pub joined: u32,
    /// When they came into their group, among all.
    pub sat: u32,
    /// The newest token that was given to them.
    pub serial: u32,
    /// The oldest that is good.
    pub floor: u32,
}

/// Why what was kept cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// Another version wrote it.
    Version(u8),
    /// It is not what was written.
    Bytes,
    /// It was written so, but it is no state of a session.
    Unsound,
}

impl Kept {
    /// What the driver stores.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![VERSION];
        control::put(&mut bytes, self);
        let check = blake3::hash(&bytes);
        bytes.extend(check.as_bytes().iter().take(CHECK_LEN));
        bytes
    }

    /// What the driver found.
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

    /// Whether it can be so.
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

    /// How many seats take part.
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

    /// Who sits on a seat.
    pub fn sitter(&self, seat: Seat) -> Option<&KeptPerson> {
        self.people.iter().find(|person| person.seat == Some(seat))
    }

    /// The first of those who are in a group.
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

    /// A session with somebody in it whose tokens are these.
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
    fn what_would_be_counted_too_far_is_refused() {
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
