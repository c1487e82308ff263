//! A screen as a grid of cells, and the text that turns one screen into the next.
//!
//! Nothing here uses a terminal. A frame is compared with the one before, and the differences are written in one piece,
//! so that nothing flickers and a slow connection carries little.

use std::fmt::Write;

use sametick_pong::Wall;
use unicode_width::UnicodeWidthChar;

/// The style of a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// The terminal's default style.
    #[default]
    Text,
    /// Background details.
    Faint,
    /// Emphasised.
    Strong,
    /// An error.
    Alarm,
    /// The colour of the player at a wall.
    Of(Wall),
}

/// Whether inks differ by colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Inks differ by colour.
    Colour,
    /// Inks differ by brightness only.
    Mono,
}

impl Palette {
    /// `Mono` if `NO_COLOR` is set.
    pub fn of_environment() -> Palette {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if unwanted { Palette::Mono } else { Palette::Colour }
    }
}

/// The colours of left, right, top and bottom among the 256 of a terminal: visible on black and on white.
const COLOURS: [u8; 4] = [39, 208, 41, 170];
const GREY: u8 = 244;
const RED: u8 = 203;

impl Ink {
    fn colour(self) -> Option<u8> {
        match self {
            Ink::Text | Ink::Strong => None,
            Ink::Faint => Some(GREY),
            Ink::Alarm => Some(RED),
            Ink::Of(wall) => Some(COLOURS[wall.index()]),
        }
    }

    /// Whether it can also be a background: an ink without a colour of its own cannot.
    pub fn can_be_ground(self) -> bool {
        self.colour().is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style {
    ink: Ink,
    ground: Option<Ink>,
}

const PLAIN: Style = Style { ink: Ink::Text, ground: None };

impl Style {
    fn write(self, palette: Palette, out: &mut String) {
        out.push_str("\x1b[0");
        match (palette, self.ink) {
            (_, Ink::Strong | Ink::Alarm) => out.push_str(";1"),
            (Palette::Mono, Ink::Faint) => out.push_str(";2"),
            _ => {}
        }
        if palette == Palette::Colour {
            let colours = [(38, self.ink.colour()), (48, self.ground.and_then(Ink::colour))];
            for (what, colour) in colours {
                // Writing to a string does not fail.
                let _ = colour.map_or(Ok(()), |colour| write!(out, ";{what};5;{colour}"));
            }
        }
        out.push('m');
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// `None` for the right half of a wide character.
    glyph: Option<char>,
    style: Style,
}

const BLANK: Cell = Cell { glyph: Some(' '), style: PLAIN };

/// A screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    width: usize,
    height: usize,
    cells: Vec<Cell>,
}

impl Frame {
    /// A blank screen.
    pub fn new(width: u16, height: u16) -> Frame {
        let (width, height) = (usize::from(width), usize::from(height));
        Frame { width, height, cells: vec![BLANK; width * height] }
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Draws one narrow character. A position outside the screen is ignored.
    pub fn set(&mut self, column: usize, row: usize, glyph: char, ink: Ink, ground: Option<Ink>) {
        if column < self.width && row < self.height {
            self.cells[row * self.width + column] = Cell { glyph: Some(glyph), style: Style { ink, ground } };
        }
    }

    /// Writes a text on one row, as far as it fits. Returns the column after it.
    ///
    /// Control characters become question marks: names come from other players.
    pub fn write(&mut self, column: usize, row: usize, text: &str, ink: Ink) -> usize {
        let mut at = column;
        for glyph in text.chars() {
            let (glyph, width) = glyph.width().map_or(('?', 1), |width| (glyph, width));
            if width == 0 {
                continue;
            }
            if at + width > self.width {
                break;
            }
            self.set(at, row, glyph, ink, None);
            if width == 2 && row < self.height {
                self.cells[row * self.width + at + 1].glyph = None;
            }
            at += width;
        }
        at
    }

    /// Writes a text centred on a row.
    pub fn write_centred(&mut self, row: usize, text: &str, ink: Ink) {
        self.write(self.width.saturating_sub(width(text)) / 2, row, text, ink);
    }

    /// Blanks a rectangle.
    pub fn clear(&mut self, column: usize, row: usize, width: usize, height: usize) {
        for row in row..row + height {
            (column..column + width).for_each(|column| self.set(column, row, ' ', Ink::Text, None));
        }
    }

    /// The screen as plain text, a line for each row.
    #[cfg(test)]
    pub fn lines(&self) -> Vec<String> {
        let line = |row: usize| self.cells[row * self.width..][..self.width].iter();
        (0..self.height).map(|row| line(row).filter_map(|cell| cell.glyph).collect()).collect()
    }

    /// What to write to a terminal that shows `before`, or anything if that is `None`. Empty if nothing has changed.
    pub fn changes(&self, before: Option<&Frame>, palette: Palette) -> String {
        let before = before.filter(|before| (before.width, before.height) == (self.width, self.height));
        let mut out = String::new();
        if before.is_none() {
            out.push_str("\x1b[0m\x1b[2J");
        }
        let (mut style, mut cursor) = (None, None);
        for (at, cell) in self.cells.iter().enumerate() {
            let Some(glyph) = cell.glyph else { continue };
            let end = at + glyph.width().unwrap_or(1);
            let old = before.map_or(&[BLANK; 2][..end - at], |before| &before.cells[at..end]);
            if old == &self.cells[at..end] {
                continue;
            }
            if cursor != Some(at) {
                let _ = write!(out, "\x1b[{};{}H", at / self.width + 1, at % self.width + 1);
            }
            if style != Some(cell.style) {
                cell.style.write(palette, &mut out);
                style = Some(cell.style);
            }
            out.push(glyph);
            // In the last column, terminals differ in where the cursor is afterwards.
            cursor = Some(end).filter(|end| end % self.width != 0);
        }
        if style.is_some() {
            out.push_str("\x1b[0m");
        }
        out
    }
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(|glyph| glyph.width().unwrap_or(1)).sum()
}

/// As much of a text as fits into some columns, with an ellipsis if it was cut.
pub fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for glyph in text.chars() {
        if width(&short) + glyph.width().unwrap_or(1) + 1 > columns {
            break;
        }
        short.push(glyph);
    }
    if columns > 0 {
        short.push('…');
    }
    short
}

/// A text in lines of at most some columns, broken between words; a longer word is cut.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shortened(word, columns)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_written() {
        let mut before = Frame::new(10, 2);
        before.write(0, 0, "tick 41", Ink::Text);
        let mut after = before.clone();
        assert_eq!(after.changes(Some(&before), Palette::Colour), "");
        after.write(0, 0, "tick 42", Ink::Text);
        after.set(9, 1, '█', Ink::Of(Wall::Left), None);
        let changes = after.changes(Some(&before), Palette::Colour);
        assert_eq!(changes, "\x1b[1;7H\x1b[0m2\x1b[2;10H\x1b[0;38;5;39m█\x1b[0m");
        let whole = after.changes(Some(&Frame::new(9, 2)), Palette::Mono);
        assert_eq!(whole, "\x1b[0m\x1b[2J\x1b[1;1H\x1b[0mtick\x1b[1;6H42\x1b[2;10H\x1b[0m█\x1b[0m");
    }

    #[test]
    fn control_characters_in_names_are_replaced() {
        let mut frame = Frame::new(8, 1);
        assert_eq!(frame.write(0, 0, "a\x1b[2J\u{301}b", Ink::Text), 6);
        assert_eq!(frame.lines(), ["a?[2Jb  "]);
        let mut frame = Frame::new(6, 1);
        assert_eq!(frame.write(0, 0, "日本語字", Ink::Text), 6);
        assert_eq!(frame.lines(), ["日本語"]);
        let mut narrow = frame.clone();
        narrow.write(2, 0, "ab", Ink::Text);
        assert_eq!(narrow.lines(), ["日ab語"]);
        assert_eq!(narrow.changes(Some(&frame), Palette::Mono), "\x1b[1;3H\x1b[0mab\x1b[0m");
        assert_eq!(frame.changes(Some(&narrow), Palette::Mono), "\x1b[1;3H\x1b[0m本\x1b[0m");
    }

    #[test]
    fn texts_are_shortened_and_wrapped_to_fit() {
        assert_eq!(
            ["Ada", "Ada Lovelace", "日本語"].map(|name| shortened(name, 5)),
            ["Ada", "Ada …", "日本…"]
        );
        assert_eq!((shortened("Ada", 1), shortened("Ada", 0)), ("…".into(), String::new()));
        assert_eq!(wrapped("as it should be, incredibly", 8), ["as it", "should", "be,", "incredi…"]);
    }
}
