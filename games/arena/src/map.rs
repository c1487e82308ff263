//! The map: the structures on its tiles, and the rocks that are there from the start.

use alloc::vec;
use alloc::vec::Vec;

use postcard_schema::Schema;
use sametick_sim::Rng;
use serde::{Deserialize, Serialize};

use crate::build::{Kind, NOBODY};
use crate::space::Tile;

/// One group of rocks per this many tiles.
const TILES_PER_GROUP: u32 = 110;

/// The shapes of groups, as offsets of columns and rows. None has a hollow, so that no player can be locked in.
const GROUPS: [&[[i32; 2]]; 6] = [
    &[[0, 0], [1, 0], [2, 0]],
    &[[0, 0], [0, 1], [0, 2]],
    &[[0, 0], [1, 0], [0, 1], [1, 1]],
    &[[0, 0], [1, 0], [2, 0], [2, 1], [2, 2]],
    &[[0, 0], [0, 1], [0, 2], [0, 3], [0, 4]],
    &[[0, 0], [0, 1], [0, 2], [1, 2]],
];

/// A structure on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Block {
    /// The tile.
    pub tile: Tile,
    /// The kind.
    pub kind: Kind,
    /// The remaining health.
    pub health: u8,
    /// The number of the player who built it, or [`NOBODY`].
    pub owner: u16,
}

/// The structures of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Map {
    /// The number of tiles per side.
    size: u16,
    /// All structures, in the order of tiles.
    blocks: Vec<Block>,
    /// One bit for each tile with a structure, row by row: for fast queries.
    solid: Vec<u64>,
}

impl Map {
    /// A map without structures.
    pub(crate) fn bare(size: u16) -> Map {
        let words = usize::from(size) * row_words(size);
        Map { size, blocks: Vec::new(), solid: vec![0; words] }
    }

    /// A map with rocks.
    pub(crate) fn with_rocks(size: u16, rng: &mut Rng) -> Map {
        let mut map = Map::bare(size);
        for _ in 0..u32::from(size) * u32::from(size) / TILES_PER_GROUP {
            let corner = [0; 2].map(|_| rng.between(1, i32::from(size) - 2));
            let group = GROUPS[rng.below(GROUPS.len() as u64) as usize];
            map.raise(corner, group);
        }
        map
    }

    /// Places a group unless it touches another one or the border.
    fn raise(&mut self, [x, y]: [i32; 2], group: &[[i32; 2]]) {
        let clear = group.iter().all(|[dx, dy]| {
            let around = (-1..=1).flat_map(|row| (-1..=1).map(move |column| [column, row]));
            around.into_iter().all(|[column, row]| !self.is_solid(x + dx + column, y + dy + row))
        });
        for tile in group.iter().filter_map(|[dx, dy]| Tile::new(x + dx, y + dy)).filter(|_| clear) {
            self.insert(Block { tile, kind: Kind::Rock, health: Kind::Rock.health(), owner: NOBODY });
        }
    }

    /// The number of tiles per side.
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// All structures, in the order of tiles.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The structure on a tile.
    pub fn block(&self, tile: Tile) -> Option<&Block> {
        self.blocks.get(self.find(tile).ok()?)
    }

    /// Whether a tile cannot be walked on: it is beyond the border, or has a structure.
    pub fn is_solid(&self, x: i32, y: i32) -> bool {
        let inside = 0..i32::from(self.size);
        if !inside.contains(&x) || !inside.contains(&y) {
            return true;
        }
        let word = y as usize * row_words(self.size) + x as usize / 64;
        self.solid.get(word).is_none_or(|word| word >> (x % 64) & 1 == 1)
    }

    /// Adds a structure on a free tile of the map.
    pub(crate) fn insert(&mut self, block: Block) {
        if let Err(at) = self.find(block.tile) {
            self.blocks.insert(at, block);
            self.mark(block.tile, true);
        }
    }

    pub(crate) fn remove(&mut self, tile: Tile) -> Option<Block> {
        let at = self.find(tile).ok()?;
        self.mark(tile, false);
        Some(self.blocks.remove(at))
    }

    /// Damages the structure on a tile. Returns it if it is destroyed.
    pub(crate) fn damage(&mut self, tile: Tile, damage: u8) -> Option<Block> {
        let at = self.find(tile).ok()?;
        let block = self.blocks.get_mut(at).filter(|block| block.kind != Kind::Rock)?;
        block.health = block.health.saturating_sub(damage);
        if block.health > 0 { None } else { self.remove(tile) }
    }

    /// Gives a structure without an owner to a player. Returns whether it had none.
    pub(crate) fn adopt(&mut self, tile: Tile, owner: u16) -> bool {
        let block = self.find(tile).ok().and_then(|at| self.blocks.get_mut(at));
        let block = block.filter(|block| block.owner == NOBODY && block.kind != Kind::Rock);
        block.map(|block| block.owner = owner).is_some()
    }

    /// The structures of a player stay, without an owner.
    pub(crate) fn disown(&mut self, owner: u16) {
        for block in self.blocks.iter_mut().filter(|block| block.owner == owner) {
            block.owner = NOBODY;
        }
    }

    fn find(&self, tile: Tile) -> Result<usize, usize> {
        self.blocks.binary_search_by_key(&tile, |block| block.tile)
    }

    fn mark(&mut self, tile: Tile, solid: bool) {
        let word = tile.y() as usize * row_words(self.size) + tile.x() as usize / 64;
        if let Some(word) = self.solid.get_mut(word) {
            let bit = 1 << (tile.x() % 64);
            *word = if solid { *word | bit } else { *word & !bit };
        }
    }

    /// Whether the bits match the structures, and every structure is valid.
    pub(crate) fn is_sound(&self) -> bool {
        let inside = |block: &Block| {
            let end = i32::from(self.size);
            block.tile.x() < end && block.tile.y() < end && (1..=block.kind.health()).contains(&block.health)
        };
        let in_order = self.blocks.is_sorted_by(|a, b| a.tile < b.tile);
        if self.solid.len() != usize::from(self.size) * row_words(self.size) || !in_order {
            return false;
        }
        let bits: u32 = self.solid.iter().map(|word| word.count_ones()).sum();
        let marked = |block: &Block| inside(block) && self.is_solid(block.tile.x(), block.tile.y());
        bits as usize == self.blocks.len() && self.blocks.iter().all(marked)
    }
}

const fn row_words(size: u16) -> usize {
    (size as usize).div_ceil(64)
}
