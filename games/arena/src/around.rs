//! What is around a player: all of it for the host, and what was told of it for a player's own screen.
//!
//! Rules that both compute ask through [`Around`], so that they are written once.

use sametick_sim::replica::Scene;

use crate::entities::{Avatar, Ground, Structure};
use crate::setup::FIRST_BOT;
use crate::space::{At, MAX_SIZE, Tile};
use crate::state::{Arena, Own};

/// What rules ask of the world.
pub(crate) trait Around {
    /// Whether nobody can walk on the tile in this column and row.
    fn is_solid(&self, x: i32, y: i32) -> bool;

    /// Whose the structure on a tile is.
    fn owner_at(&self, tile: Tile) -> Option<u16>;

    /// Tells of everyone alive but `except` who is less than `reach` from a place, both ways along.
    fn others(&self, except: u16, at: At, reach: i32, see: impl FnMut(u16, At));

    /// How much worse `shooter`, who plays by rule, aims at another; none if it does not aim there at all.
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
        // Those who sit on seats fight as players do.
        if shooter < FIRST_BOT { Some(0) } else { person.handicap() }
    }
}

/// What a player's screen knows.
pub(crate) struct Known<'a> {
    scene: &'a Scene,
    size: i32,
    /// What the player has just built or taken away, of which the scene may not know yet.
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

    /// A view knows nothing about a player that a bot in the state would spare: only those on seats see through it.
    fn handicap(&self, _: u16, other: u16) -> Option<u8> {
        let is_shielded = self.scene.get::<Avatar>(other.into()).is_some_and(|avatar| avatar.shielded);
        (!is_shielded).then_some(0)
    }
}
