//! Draws the court in half characters: a cell of a terminal is about twice as high as wide, so half of one is a square.

use sametick_pong::{Bar, Pong, View, Wall};

use super::frame::{Frame, Ink, Palette};

/// How the court is reflected on the screen, so that every player has their own wall at the left or at the bottom.
///
/// It is a reflection, not a rotation: up stays up and left stays left, on the keys too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    swap_x: bool,
    swap_y: bool,
}

impl Side {
    /// The side of the player at this wall; spectators see the court unreflected.
    pub fn of(wall: Option<Wall>) -> Side {
        Side { swap_x: wall == Some(Wall::Right), swap_y: wall == Some(Wall::Top) }
    }

    /// Where a wall is on the screen.
    pub fn place(self, wall: Wall) -> Wall {
        match wall {
            Wall::Left if self.swap_x => Wall::Right,
            Wall::Right if self.swap_x => Wall::Left,
            Wall::Top if self.swap_y => Wall::Bottom,
            Wall::Bottom if self.swap_y => Wall::Top,
            wall => wall,
        }
    }

    fn point(self, [x, y]: [f32; 2]) -> [f32; 2] {
        [if self.swap_x { -x } else { x }, if self.swap_y { -y } else { y }]
    }
}

/// Where a court is on the screen, in cells, its frame included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first column.
    pub left: usize,
    /// The first row.
    pub top: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Place {
    /// The largest place for a court of these proportions within some columns and rows.
    pub fn within(pong: &Pong, columns: usize, rows: usize) -> Place {
        let [x, y] = View::of(pong).half;
        let (most_x, most_y) = (columns.saturating_sub(2), rows.saturating_sub(2) * 2);
        let wide = (most_y as f32 * x / y) as usize;
        let (inner_x, inner_y) =
            if wide <= most_x { (wide, most_y) } else { (most_x, (most_x as f32 * y / x) as usize) };
        Place { left: 0, top: 0, width: inner_x + 2, height: inner_y / 2 + 2 }
    }
}

/// The digits of a countdown: 1, 2 and 3.
const DIGITS: [[&str; 5]; 3] = [
    [".#.", "##.", ".#.", ".#.", "###"],
    ["###", "..#", "###", "#..", "###"],
    ["###", "..#", "###", "..#", "###"],
];

/// Half characters for each dot of a digit.
const DIGIT_SCALE: usize = 2;

/// A bitmap of half characters.
struct Pixels {
    columns: usize,
    rows: usize,
    half: [f32; 2],
    solid: Vec<Option<Ink>>,
    ghost: Vec<Option<Ink>>,
}

impl Pixels {
    fn new(place: Place, half: [f32; 2]) -> Pixels {
        let (columns, rows) = (place.width.saturating_sub(2), place.height.saturating_sub(2) * 2);
        Pixels { columns, rows, half, solid: vec![None; columns * rows], ghost: vec![None; columns * rows] }
    }

    /// Fills a rectangle. It has the same size at every position, and is never smaller than one pixel.
    fn fill(&mut self, bar: Bar, ink: Ink, is_ghost: bool) {
        let span = |axis: usize, pixels: usize| {
            let scale = pixels as f32 / (2.0 * self.half[axis]);
            let size = ((2.0 * bar.half[axis] * scale).round() as usize).clamp(1, pixels.max(1));
            let first = (bar.centre[axis] + self.half[axis]) * scale - size as f32 / 2.0;
            let first = (first.round().clamp(0.0, 1e6) as usize).min(pixels.saturating_sub(size));
            first..(first + size).min(pixels)
        };
        let (columns, rows) = (span(0, self.columns), span(1, self.rows));
        let layer = if is_ghost { &mut self.ghost } else { &mut self.solid };
        for row in rows {
            layer[row * self.columns..][columns.clone()].fill(Some(ink));
        }
    }

    /// Writes the 3, 2 or 1 of a countdown into the middle, behind the ball and the paddles.
    fn write(&mut self, count: u8) {
        let rows = DIGITS[usize::from(count.clamp(1, 3)) - 1];
        let (wide, high) = (DIGIT_SCALE * rows[0].len(), DIGIT_SCALE * rows.len());
        if wide > self.columns || high > self.rows {
            return;
        }
        let (left, top) = ((self.columns - wide) / 2, (self.rows - high) / 2);
        for (row, column) in (0..high).flat_map(|row| (0..wide).map(move |column| (row, column))) {
            let is_set = rows[row / DIGIT_SCALE].as_bytes()[column / DIGIT_SCALE] == b'#';
            let pixel = &mut self.solid[(top + row) * self.columns + left + column];
            if is_set && pixel.is_none() {
                *pixel = Some(Ink::Strong);
            }
        }
    }

    fn draw(&self, frame: &mut Frame, left: usize, top: usize, palette: Palette) {
        for row in 0..self.rows / 2 {
            for column in 0..self.columns {
                let [upper, lower] = [2 * row, 2 * row + 1].map(|row| row * self.columns + column);
                let ghost = self.ghost[upper].or(self.ghost[lower]);
                let drawn = match (self.solid[upper], self.solid[lower], ghost) {
                    (Some(upper), Some(lower), _) => Some(both(upper, lower, palette)),
                    (Some(upper), None, _) => Some(('▀', upper, None)),
                    (None, Some(lower), _) => Some(('▄', lower, None)),
                    (None, None, Some(ghost)) => Some(('░', ghost, None)),
                    (None, None, None) => None,
                };
                if let Some((glyph, ink, ground)) = drawn {
                    frame.set(left + column, top + row, glyph, ink, ground);
                }
            }
        }
    }
}

fn both(upper: Ink, lower: Ink, palette: Palette) -> (char, Ink, Option<Ink>) {
    match palette {
        Palette::Colour if upper != lower && lower.can_be_ground() => ('▀', upper, Some(lower)),
        Palette::Colour if upper != lower => ('▄', lower, Some(upper)),
        _ => ('█', upper, None),
    }
}

/// Draws a court with its frame: the state on screen, and behind it the confirmed one if that is wanted.
pub fn draw(
    frame: &mut Frame,
    place: Place,
    pong: &Pong,
    ghost: Option<&Pong>,
    side: Side,
    palette: Palette,
) {
    draw_walls(frame, place, pong, side);
    let mut pixels = Pixels::new(place, View::of(pong).half);
    if pixels.columns == 0 || pixels.rows == 0 {
        return;
    }
    for row in (0..place.height - 2).filter(|row| pong.rules.players == 2 && row % 2 == 0) {
        frame.set(place.left + place.width / 2, place.top + 1 + row, '╎', Ink::Faint, None);
    }
    for (pong, is_ghost) in ghost.map(|ghost| (ghost, true)).into_iter().chain([(pong, false)]) {
        let view = View::of(pong);
        for (wall, bar) in Wall::ALL.into_iter().zip(view.paddles) {
            let Some(bar) = bar else { continue };
            pixels.fill(Bar { centre: side.point(bar.centre), ..bar }, Ink::Of(wall), is_ghost);
        }
        if let Some(ball) = view.ball {
            let bar = Bar { centre: side.point(ball), half: [view.radius; 2] };
            pixels.fill(bar, Ink::Text, is_ghost);
        }
    }
    if let Some(count) = pong.count() {
        pixels.write(count);
    }
    pixels.draw(frame, place.left + 1, place.top + 1, palette);
}

/// Solid walls are thick lines; an open wall is a thin line in the colour of its player.
fn draw_walls(frame: &mut Frame, place: Place, pong: &Pong, side: Side) {
    let Place { left, top, width, height } = place;
    let (right, bottom) = (left + width - 1, top + height - 1);
    for wall in Wall::ALL {
        let is_open = pong.rules.court().is_open(wall);
        let ink = if is_open { Ink::Of(wall) } else { Ink::Faint };
        match side.place(wall) {
            placed @ (Wall::Left | Wall::Right) => {
                let column = if placed == Wall::Left { left } else { right };
                let glyph = if is_open { '┊' } else { '┃' };
                (top + 1..bottom).for_each(|row| frame.set(column, row, glyph, ink, None));
            }
            placed @ (Wall::Top | Wall::Bottom) => {
                let row = if placed == Wall::Top { top } else { bottom };
                let glyph = if is_open { '┄' } else { '━' };
                (left + 1..right).for_each(|column| frame.set(column, row, glyph, ink, None));
            }
        }
    }
    for (column, row, glyph) in
        [(left, top, '┌'), (right, top, '┐'), (left, bottom, '└'), (right, bottom, '┘')]
    {
        frame.set(column, row, glyph, Ink::Faint, None);
    }
}
