//! The feature "build": structures on tiles, who may build and remove them, and previews of planned ones.
//!
//! A player previews a structure ([`Action::Preview`]), builds it ([`Action::Place`]) or removes an own one
//! ([`Action::Remove`]). The host decides in the order of the requests; the client predicts the answer with the same
//! two functions, `place` and `take_away`.

use postcard_schema::Schema;
use sametick_sim::replica::Scene;
use serde::{Deserialize, Serialize};

use crate::around::{Around, Known};
use crate::input::Action;
use crate::map::Block;
use crate::movement::overlaps;
use crate::space::{Tile, UNIT, square, way};
use crate::state::{Arena, Event, Own};

/// The largest distance between the middle of an avatar and the middle of the tile.
pub const REACH: i32 = 4 * UNIT;

/// How many structures a player may have.
pub const MAX_BUILT: u8 = 24;

/// The cooldown between two actions of a player: the client has seen the result of the first by then.
pub const BUILD_TICKS: u8 = 8;

/// How long a preview is shown without being repeated.
pub const PREVIEW_TICKS: u8 = 15;

/// The owner of a structure that belongs to no player.
pub const NOBODY: u16 = u16::MAX;

/// What can stand on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Built by players, strong.
    Wall,
    /// Built by players, weak.
    Crate,
    /// There from the start, indestructible, and cannot be built.
    Rock,
}

impl Kind {
    /// The health of a new one.
    pub const fn health(self) -> u8 {
        match self {
            Kind::Wall | Kind::Rock => 100,
            Kind::Crate => 40,
        }
    }

    /// The code of the kind.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this code.
    pub const fn of_code(code: u8) -> Option<Kind> {
        match code {
            0 => Some(Kind::Wall),
            1 => Some(Kind::Crate),
            2 => Some(Kind::Rock),
            _ => None,
        }
    }
}

/// A planned structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Plan {
    /// The tile.
    pub tile: Tile,
    /// The kind.
    pub kind: Kind,
    /// The remaining ticks for which it is shown.
    pub ticks: u8,
}

/// A player's request in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Ask {
    /// The order of the player's input within the tick, as far as the host knows.
    pub place: u16,
    /// The player's number.
    pub number: u16,
    /// The requested action.
    pub action: Action,
}

/// Why a request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "snake_case")]
pub enum Denied {
    /// The player is dead.
    Dead,
    /// The player has the maximum number of structures.
    TooMany,
    /// The tile is too far away.
    OutOfReach,
    /// The tile is taken by a structure or an avatar, or is not on the map.
    Occupied,
    /// There is no structure of the player there.
    NotYours,
    /// The player has built or removed something too recently.
    TooSoon,
    /// The round has not begun yet.
    NotBegun,
}

/// Whether a player may build there, apart from the cooldown.
pub(crate) fn may_place(own: &Own, tile: Tile, kind: Kind, around: &impl Around) -> Result<(), Denied> {
    is_able(own)?;
    if own.built >= MAX_BUILT {
        return Err(Denied::TooMany);
    }
    if !is_in_reach(own, tile) {
        return Err(Denied::OutOfReach);
    }
    let mut is_clear =
        kind != Kind::Rock && !around.is_solid(tile.x(), tile.y()) && !overlaps(own.at, tile.x(), tile.y());
    if is_clear {
        // No avatar further away than this touches the tile.
        around.others(own.number, tile.centre(), UNIT, |_, at| is_clear &= !overlaps(at, tile.x(), tile.y()));
    }
    if is_clear { Ok(()) } else { Err(Denied::Occupied) }
}

/// Whether a player may build there, as far as the client knows: for the colour of a preview.
pub fn could_place(own: &Own, tile: Tile, kind: Kind, around: &Scene) -> bool {
    may_place(own, tile, kind, &Known::new(own, around)).is_ok()
}

/// Builds, as far as the player's own state is concerned. Succeeds if there is a structure now.
pub(crate) fn place(own: &mut Own, tile: Tile, kind: Kind, around: &impl Around) -> Result<(), Denied> {
    may_place(own, tile, kind, around)?;
    is_rested(own)?;
    own.built = own.built.saturating_add(1);
    (own.busy, own.touched, own.removed) = (BUILD_TICKS, tile.pair(), false);
    Ok(())
}

/// Removes a structure, as far as the player's own state is concerned. Succeeds if it is gone now.
pub(crate) fn take_away(own: &mut Own, tile: Tile, around: &impl Around) -> Result<(), Denied> {
    is_able(own)?;
    if !is_in_reach(own, tile) {
        return Err(Denied::OutOfReach);
    }
    if around.owner_at(tile) != Some(own.number) {
        return Err(Denied::NotYours);
    }
    is_rested(own)?;
    own.built = own.built.saturating_sub(1);
    (own.busy, own.touched, own.removed) = (BUILD_TICKS, tile.pair(), true);
    Ok(())
}

/// Dead players cannot build, and before the round no player can.
fn is_able(own: &Own) -> Result<(), Denied> {
    match own.is_alive() {
        false => Err(Denied::Dead),
        true if own.frozen > 0 => Err(Denied::NotBegun),
        true => Ok(()),
    }
}

fn is_rested(own: &Own) -> Result<(), Denied> {
    if own.busy == 0 { Ok(()) } else { Err(Denied::TooSoon) }
}

/// Counts down the cooldown.
pub(crate) fn rest(own: &mut Own) {
    own.busy = own.busy.saturating_sub(1);
}

/// Predicts an action on the client.
pub(crate) fn predict(own: &mut Own, action: Action, around: &impl Around) {
    match action {
        Action::Place(tile, kind) => _ = place(own, tile, kind, around),
        Action::Remove(tile) => _ = take_away(own, tile, around),
        Action::Preview(..) | Action::Clear => {}
    }
}

fn is_in_reach(own: &Own, tile: Tile) -> bool {
    square(way(own.at, tile.centre())) <= i64::from(REACH) * i64::from(REACH)
}

impl Arena {
    /// Executes all requests of the tick: the earlier input first, and of two at once the lower number.
    pub(crate) fn build(&mut self) {
        for person in &mut self.people {
            rest(&mut person.own);
            person.plan =
                person.plan.filter(|plan| plan.ticks > 1).map(|plan| Plan { ticks: plan.ticks - 1, ..plan });
        }
        self.asks.sort_unstable_by_key(|ask| (ask.place, ask.number));
        for index in 0..self.asks.len() {
            self.answer(self.asks[index]);
        }
    }

    fn answer(&mut self, ask: Ask) {
        let Ok(at) = self.find(ask.number) else { return };
        let (by, mut own) = (ask.number, self.people[at].own);
        match ask.action {
            Action::Preview(tile, kind) if own.is_alive() => {
                self.people[at].plan = Some(Plan { tile, kind, ticks: PREVIEW_TICKS });
            }
            Action::Preview(..) => {}
            Action::Clear => self.people[at].plan = None,
            Action::Place(tile, kind) => match place(&mut own, tile, kind, self) {
                Ok(()) => {
                    self.map.insert(Block { tile, kind, health: kind.health(), owner: by });
                    let person = &mut self.people[at];
                    (person.plan, person.life.built) = (None, person.life.built.saturating_add(1));
                    self.happened.push(Event::Built { by, tile, kind });
                }
                Err(why) => self.happened.push(Event::Refused { by, tile, why }),
            },
            Action::Remove(tile) => match take_away(&mut own, tile, self) {
                Ok(()) => {
                    let removed = self.map.remove(tile);
                    self.happened.extend(removed.map(|block| Event::Destroyed { tile, kind: block.kind }));
                }
                Err(why) => self.happened.push(Event::Refused { by, tile, why }),
            },
        }
        self.people[at].own = own;
    }

    /// A shot hits a structure.
    pub(crate) fn damage_block(&mut self, tile: Tile, damage: u8) {
        let Some(fallen) = self.map.damage(tile, damage) else { return };
        if let Ok(owner) = self.find(fallen.owner) {
            let own = &mut self.people[owner].own;
            own.built = own.built.saturating_sub(1);
        }
        self.happened.push(Event::Destroyed { tile, kind: fallen.kind });
    }
}
