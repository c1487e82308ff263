//! As much of a terminal as a game needs: it shows what it is told, and is strict about where.

use unicode_width::UnicodeWidthChar;

/// What a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    width: usize,
    /// None for the right half of a wide character.
    rows: Vec<Vec<Option<char>>>,
    row: usize,
    column: usize,
    /// Bytes of a sequence that has begun.
    sequence: Option<String>,
    /// Every sequence that was seen besides colours and places.
    pub modes: Vec<String>,
}

impl Screen {
    pub fn new(width: usize, height: usize) -> Screen {
        let rows = vec![vec![Some(' '); width]; height];
        Screen { width, rows, row: 0, column: 0, sequence: None, modes: Vec::new() }
    }

    /// What it shows, a line for each row.
    pub fn lines(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.iter().flatten().collect()).collect()
    }

    /// Shows more. Panics if that is not on the screen.
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
        // Half of what was wide is nothing.
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
