//! Spatial grid: entities in cells, so that a query for nearby entities looks at a few cells only.

use alloc::vec::Vec;

use sametick_sim::replica::Table;

/// The most cells along a side: more than a crowded room needs.
const MAX_SIDE: usize = 64;

/// The entities of one kind by position.
#[derive(Default)]
pub(crate) struct Grid {
    /// The two axes of largest extent.
    axes: [usize; 2],
    low: [f32; 2],
    cell: f32,
    sides: [usize; 2],
    /// Where the entities of each cell begin in `items`.
    starts: Vec<u32>,
    items: Vec<u32>,
    nowhere: Vec<u32>,
}

impl Grid {
    /// Sorts the entities of a table into cells about as wide as `reach`.
    pub fn fill(&mut self, table: &Table, reach: f32) {
        self.nowhere.clear();
        let (mut low, mut high) = ([f32::MAX; 3], [f32::MIN; 3]);
        for (index, row) in (0..).zip(table.rows()) {
            let Some(place) = row.place else {
                self.nowhere.push(index);
                continue;
            };
            for axis in 0..3 {
                low[axis] = if place[axis] < low[axis] { place[axis] } else { low[axis] };
                high[axis] = if place[axis] > high[axis] { place[axis] } else { high[axis] };
            }
        }
        let extent = [0, 1, 2].map(|axis| high[axis] - low[axis]);
        let least = (0..3).min_by(|a, b| extent[*a].total_cmp(&extent[*b])).unwrap_or(2);
        self.axes = if least == 0 {
            [1, 2]
        } else if least == 1 {
            [0, 2]
        } else {
            [0, 1]
        };
        self.low = self.axes.map(|axis| low[axis]);
        let longest =
            self.axes.map(|axis| extent[axis]).into_iter().fold(0.0, |a, b| if b > a { b } else { a });
        let coarse = longest / MAX_SIDE as f32;
        self.cell = if reach / 2.0 > coarse { reach / 2.0 } else { coarse };
        self.cell = if self.cell > 0.0 && self.cell.is_finite() { self.cell } else { 1.0 };
        self.sides = self.axes.map(|axis| 1 + ((extent[axis] / self.cell) as usize).min(MAX_SIDE));
        self.count(table);
    }

    fn count(&mut self, table: &Table) {
        let cells = self.sides[0] * self.sides[1];
        self.starts.clear();
        self.starts.resize(cells + 1, 0);
        let places = || (0u32..).zip(table.rows()).filter_map(|(index, row)| Some((index, row.place?)));
        for (_, place) in places() {
            let cell = self.cell_of(place);
            self.starts[cell + 1] += 1;
        }
        for cell in 0..cells {
            self.starts[cell + 1] += self.starts[cell];
        }
        self.items.clear();
        self.items.resize(self.starts[cells] as usize, 0);
        // Each start moves to the next one's as its cell fills, and is moved back afterwards.
        for (index, place) in places() {
            let cell = self.cell_of(place);
            self.items[self.starts[cell] as usize] = index;
            self.starts[cell] += 1;
        }
        self.starts.copy_within(..cells, 1);
        self.starts[0] = 0;
    }

    fn cell_of(&self, place: [f32; 3]) -> usize {
        let [x, y] = [0, 1].map(|axis| self.coordinate(axis, place[self.axes[axis]]));
        y * self.sides[0] + x
    }

    /// The cast puts coordinates below the first cell, and NaN, into the first.
    fn coordinate(&self, axis: usize, at: f32) -> usize {
        (((at - self.low[axis]) / self.cell) as usize).min(self.sides[axis] - 1)
    }

    /// Finds the indices of all entities without a position, and of those whose cell is within `reach` of the eye.
    pub fn near(&self, eye: Option<[f32; 3]>, reach: f32, found: &mut Found) {
        found.clear(self.nowhere.len() + self.items.len());
        found.add(&self.nowhere);
        let Some(eye) = eye.filter(|_| !self.items.is_empty()) else { return };
        let [(x0, x1), (y0, y1)] = [0, 1].map(|axis| {
            let at = eye[self.axes[axis]];
            (self.coordinate(axis, at - reach), self.coordinate(axis, at + reach))
        });
        for y in y0..=y1 {
            let row = y * self.sides[0];
            let (from, to) = (self.starts[row + x0], self.starts[row + x1 + 1]);
            found.add(&self.items[from as usize..to as usize]);
        }
    }
}

/// A set of entity indices: added in any order, iterated in ascending order.
#[derive(Default)]
pub(crate) struct Found(Vec<u64>);

impl Found {
    /// Clears the set, for a number of entities.
    fn clear(&mut self, of: usize) {
        self.0.clear();
        self.0.resize(of.div_ceil(64), 0);
    }

    fn add(&mut self, indices: &[u32]) {
        for index in indices {
            self.0[*index as usize / 64] |= 1 << (index % 64);
        }
    }

    /// The indices in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.0).flat_map(|(at, word)| {
            let mut rest = *word;
            core::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sametick_sim::Rng;
    use sametick_sim::replica::{Entity, Kind, Row, Scene};

    #[derive(Clone, Debug, PartialEq, Entity)]
    struct Dot {
        x: u8,
    }

    static KINDS: &[Kind] = &[Dot::KIND];

    #[test]
    fn no_near_entity_is_missed() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut scene = Scene::new(KINDS);
            let axes = [1.0, 1.0, if seed % 2 == 0 { 0.0 } else { 3.0 }];
            let mut coordinate = |wide: f32| (rng.below(20_001) as f32 / 10.0 - 1_000.0) * wide;
            for id in 0..(seed as u32 * 3) {
                let place = (id % 7 != 0).then(|| axes.map(&mut coordinate));
                scene.table_mut(0).push(Row { id, owner: None, place });
            }
            let (mut grid, reach) = (Grid::default(), 10.0 + (seed * 7) as f32);
            grid.fill(&scene.tables()[0], reach);
            for _ in 0..20 {
                let eye = axes.map(&mut coordinate);
                let mut found = Found::default();
                grid.near(Some(eye), reach, &mut found);
                let found: Vec<u32> = found.iter().collect();
                assert!(found.is_sorted_by(|a, b| a < b), "each is found once");
                for (index, row) in (0..).zip(scene.tables()[0].rows()) {
                    let near = row.place.is_none_or(|place| {
                        (0..3).map(|axis| (place[axis] - eye[axis]) * (place[axis] - eye[axis])).sum::<f32>()
                            <= reach * reach
                    });
                    assert!(!near || found.binary_search(&index).is_ok(), "seed {seed}");
                }
            }
        }
    }
}
