//! The surroundings of a player: complete on the host, and as far as known to the client for prediction.
//!
//! Rules that both compute query [`Around`], so that they are written once.

use sametick_sim::replica::Scene;

use crate::entities::{Avatar, Ground, Structure};
use crate::setup::FIRST_BOT;
use crate::space::{At, MAX_SIZE, Tile};
use crate::state::{Arena, Own};

/// The queries of rules about the surroundings.
pub(crate) trait Around {
    /// Whether the tile in this column and row cannot be walked on.
    fn is_solid(&self, x: i32, y: i32) -> bool;

    /// The owner of the structure on a tile.
    fn owner_at(&self, tile: Tile) -> Option<u16>;

    /// Calls `see` for every living player but `except` that is less than `reach` from a place along both axes.
    fn others(&self, except: u16, at: At, reach: i32, see: impl FnMut(u16, At));

    /// How much worse `shooter`, a bot, aims at another; none if it does not aim there at all.
    fn handicap(&self, shooter: u16, other: u16) -> Option<u8>;
}

impl Around for Arena {
    fn is_solid(&self, x: i32, y: i32) -> bool {
        self.map.is_solid(x, y)
    }

    fn owner_at(&self, tile: Tile) -> Option<u16> {
        self.map.block(tile).map(|block| block.owner)
    }

    fn others(&self, except: u16, at: At, reach: i32, mut see: impl FnMut(u16, At)) {
        let first = self.by_x.partition_point(|place| place.x <= at[0] - reach);
        for place in self.by_x[first..].iter().take_while(|place| place.x < at[0] + reach) {
            let own = &self.people[usize::from(place.index)].own;
            if own.at[1].abs_diff(at[1]) < reach.unsigned_abs() && own.is_alive() && own.number != except {
                see(own.number, own.at);
            }
        }
    }

    fn handicap(&self, shooter: u16, other: u16) -> Option<u8> {
        let person = self.person(other).filter(|person| !person.own.is_shielded())?;
        // Players on seats fight without a handicap.
        if shooter < FIRST_BOT { Some(0) } else { person.handicap() }
    }
}

/// The surroundings as a client knows them.
pub(crate) struct Known<'a> {
    scene: &'a Scene,
    size: i32,
    /// The structure that the player has just built or removed, which the scene may not show yet.
    touched: Option<([i16; 2], bool)>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(own: &Own, scene: &'a Scene) -> Known<'a> {
        let size = scene.get::<Ground>(0).map_or(MAX_SIZE, |ground| ground.size);
        let touched = (own.busy > 0).then_some((own.touched, own.removed));
        Known { scene, size: size.into(), touched }
    }
}

impl Around for Known<'_> {
    fn is_solid(&self, x: i32, y: i32) -> bool {
        let Some(tile) = Tile::new(x, y).filter(|_| x < self.size && y < self.size) else { return true };
        match self.touched {
            Some((touched, removed)) if touched == tile.pair() => !removed,
            _ => self.scene.get::<Structure>(tile.number()).is_some(),
        }
    }

    fn owner_at(&self, tile: Tile) -> Option<u16> {
        self.scene.get::<Structure>(tile.number()).map(|structure| structure.owner)
    }

    fn others(&self, except: u16, at: At, reach: i32, mut see: impl FnMut(u16, At)) {
        let reach = reach.unsigned_abs();
        for (id, avatar) in self.scene.iter::<Avatar>() {
            let near = avatar.at[0].abs_diff(at[0]) < reach && avatar.at[1].abs_diff(at[1]) < reach;
            if let Some(number) = u16::try_from(id).ok().filter(|number| near && *number != except) {
                see(number, avatar.at);
            }
        }
    }

    /// A view does not know which players a bot in the state would spare: only clients on seats use it.
    fn handicap(&self, _: u16, other: u16) -> Option<u8> {
        let is_shielded = self.scene.get::<Avatar>(other.into()).is_some_and(|avatar| avatar.shielded);
        (!is_shielded).then_some(0)
    }
}
