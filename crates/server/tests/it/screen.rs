//! A terminal emulator for tests: as much as a game needs, and strict about positions.

use unicode_width::UnicodeWidthChar;

/// The content of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    width: usize,
    /// `None` for the right half of a wide character.
    rows: Vec<Vec<Option<char>>>,
    row: usize,
    column: usize,
    /// The bytes of an escape sequence that has begun.
    sequence: Option<String>,
    /// Every sequence besides colours and positions.
    pub modes: Vec<String>,
}

impl Screen {
    pub fn new(width: usize, height: usize) -> Screen {
        let rows = vec![vec![Some(' '); width]; height];
        Screen { width, rows, row: 0, column: 0, sequence: None, modes: Vec::new() }
    }

    /// The screen as text, a line for each row.
    pub fn lines(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.iter().flatten().collect()).collect()
    }

    /// Feeds output to the screen. Panics at anything outside the screen.
    pub fn feed(&mut self, text: &str) {
        for glyph in text.chars() {
            match &mut self.sequence {
                Some(sequence) => {
                    sequence.push(glyph);
                    if glyph != '[' && glyph.is_ascii_alphabetic() {
                        let sequence = self.sequence.take().unwrap_or_default();
                        self.obey(&sequence);
                    }
                }
                None if glyph == '\x1b' => self.sequence = Some(String::new()),
                None if glyph == '\r' => self.column = 0,
                None if glyph == '\n' => self.row += 1,
                None => self.put(glyph),
            }
        }
    }

    fn put(&mut self, glyph: char) {
        let width = glyph.width().unwrap_or_else(|| panic!("{glyph:?} shows nothing"));
        assert!(self.row < self.rows.len(), "{glyph:?} is below the last row");
        assert!(self.column + width <= self.width, "{glyph:?} is behind the last column of row {}", self.row);
        let row = &mut self.rows[self.row];
        // Overwriting half of a wide character clears the other half.
        if row[self.column].is_none() {
            row[self.column - 1] = Some(' ');
        }
        if row.get(self.column + width).is_some_and(Option::is_none) {
            row[self.column + width] = Some(' ');
        }
        row[self.column] = Some(glyph);
        if width == 2 {
            row[self.column + 1] = None;
        }
        self.column += width;
    }

    fn obey(&mut self, sequence: &str) {
        let place = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('H'));
        match (sequence, place) {
            ("[2J", _) => self.rows.iter_mut().for_each(|row| row.fill(Some(' '))),
            (_, Some(place)) => {
                let (row, column) = place.split_once(';').unwrap_or(("1", "1"));
                let number = |text: &str| text.parse::<usize>().unwrap().checked_sub(1).unwrap();
                (self.row, self.column) = (number(row), number(column));
                assert!(
                    self.row < self.rows.len() && self.column < self.width,
                    "{sequence} is not on the screen"
                );
            }
            (colour, _) if colour.ends_with('m') => {}
            (mode, _) => self.modes.push(mode.to_owned()),
        }
    }
}
