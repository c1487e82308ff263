//! The seats of a game, in groups such as the consoles of ships. Pong has one group of four.

use alloc::vec::Vec;
use core::ops::Range;

use sametick_sim::Seat;
use serde::{Deserialize, Serialize};

use crate::name::Name;

/// The most groups of a game.
pub const MAX_GROUPS: usize = 32;

/// The most seats of a session: the seats of all players have to fit one message.
pub const MAX_SEATS: usize = 256;

/// The number of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Group(pub u8);

/// A group as the game defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPlan {
    /// Its name until its captain changes it.
    pub name: Name,
    /// The names of its seats.
    pub seats: Vec<Name>,
}

/// All seats of a game, numbered through the groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    groups: Vec<GroupPlan>,
}

impl Plan {
    /// A plan of these groups; none if there are too many, or one has no seats.
    pub fn new(groups: Vec<GroupPlan>) -> Option<Plan> {
        let seats: usize = groups.iter().map(|group| group.seats.len()).sum();
        let is_sound = (1..=MAX_GROUPS).contains(&groups.len())
            && groups.iter().all(|group| !group.seats.is_empty())
            && seats <= MAX_SEATS;
        is_sound.then_some(Plan { groups })
    }

    /// This many groups of seats with these names. None as for [`Plan::new`], or if a name is invalid.
    pub fn uniform(group: &str, groups: usize, seats: &[&str]) -> Option<Plan> {
        let name = Name::parse(group).ok()?;
        let seats: Option<Vec<Name>> = seats.iter().map(|seat| Name::parse(seat).ok()).collect();
        let seats = seats?;
        let name_of = |number| if groups == 1 { name.clone() } else { name.numbered(number) };
        let groups = groups.min(MAX_GROUPS + 1);
        Plan::new(
            (1..=groups).map(|number| GroupPlan { name: name_of(number), seats: seats.clone() }).collect(),
        )
    }

    /// The groups, by their numbers.
    pub fn groups(&self) -> &[GroupPlan] {
        &self.groups
    }

    /// The number of seats of the first groups.
    pub fn seats_of(&self, groups: u8) -> usize {
        self.groups.iter().take(groups.into()).map(|group| group.seats.len()).sum()
    }

    /// The seats of a group.
    pub fn seats_in(&self, group: Group) -> Range<u16> {
        let from = self.seats_of(group.0);
        let count = self.groups.get(usize::from(group.0)).map_or(0, |group| group.seats.len());
        from as u16..(from + count) as u16
    }

    /// The group of a seat.
    pub fn group_of(&self, seat: Seat) -> Option<Group> {
        let all = (0..self.groups.len() as u8).map(Group);
        all.into_iter().find(|group| self.seats_in(*group).contains(&seat.0))
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Bare {
            groups: Vec<GroupPlan>,
        }
        let Bare { groups } = Bare::deserialize(deserializer)?;
        Plan::new(groups).ok_or_else(|| serde::de::Error::custom("this is no plan of seats"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_numbered_through_the_groups() {
        let plan =
            Plan::uniform("Ship", 8, &["helm", "weapons", "engines", "science", "comms", "screen"]).unwrap();
        assert_eq!((plan.seats_of(8), plan.seats_of(3), plan.seats_in(Group(2))), (48, 18, 12..18));
        assert_eq!((plan.group_of(Seat(17)), plan.group_of(Seat(48))), (Some(Group(2)), None));
        assert_eq!(&*plan.groups()[7].name, "Ship 8");
        let pong = Plan::uniform("Players", 1, &["left", "right", "top", "bottom"]).unwrap();
        assert_eq!((pong.seats_of(1), &*pong.groups()[0].name), (4, "Players"));
        assert!(Plan::uniform("x", 0, &["a"]).is_none() && Plan::uniform("x", 1, &[]).is_none());
        assert!(Plan::uniform("x", 33, &["a"]).is_none() && Plan::uniform("x", 32, &["a"; 9]).is_none());
    }
}
