//! What happened on every seat in one tick, and what came from outside.

use alloc::vec::Vec;
use core::fmt;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::Seat;

/// What happened on every taken seat in one tick, in seat order: all that a step is told.
///
/// A seat that is not listed is absent: nobody sits there. Made once and reused ([`clear`](Inputs::clear)), it
/// allocates nothing per tick.
///
/// ```
/// use sametick_sim::{Inputs, Seat};
///
/// let mut inputs = Inputs::new();
/// inputs.set(Seat(2), 'w');   // did something
/// inputs.omit(Seat(0));       // sits there, but the input did not arrive in time
/// inputs.join(Seat(1));       // has just sat down
/// assert!(inputs.iter().map(|row| row.seat.0).eq([0, 1, 2]));
/// assert_eq!(inputs.get(Seat(2)).and_then(|row| row.input), Some('w'));
/// assert!(inputs.get(Seat(0)).is_some_and(|row| row.is_omitted()));
/// assert!(inputs.get(Seat(7)).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(bound(deserialize = "I: Deserialize<'de>"), try_from = "Parts<I>")]
pub struct Inputs<I> {
    rows: Vec<Row<I>>,
    brought: Vec<Restored<Vec<u8>>>,
}

/// Inputs before they are checked.
#[derive(Deserialize)]
#[serde(bound(deserialize = "I: Deserialize<'de>"))]
struct Parts<I> {
    rows: Vec<Row<I>>,
    brought: Vec<Restored<Vec<u8>>>,
}

/// Something that was kept outside of the game, such as in a database, and comes into it in this tick: bytes that the same game
/// wrote earlier, of another session or another build perhaps, and that it reads as carefully as a stranger's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Restored<B> {
    /// Whose it is.
    pub whose: Whose,
    /// What.
    pub bytes: B,
}

/// Whose something is that is brought into a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Whose {
    /// The place's: what stood there.
    Place,
    /// A player's, from when they were last there.
    Player(Seat),
    /// A player's wherever they are: their character.
    Character(Seat),
}

impl Whose {
    /// The seat it belongs to, if to one.
    pub const fn seat(self) -> Option<Seat> {
        match self {
            Whose::Place => None,
            Whose::Player(seat) | Whose::Character(seat) => Some(seat),
        }
    }

    /// Its name in exports and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Whose::Place => "place",
            Whose::Player(_) => "player",
            Whose::Character(_) => "character",
        }
    }
}

/// What happened on one seat in one tick.
///
/// In this order: the player sits down (`joined`), acts (`input`), gets up (`left`). A seat that is left can be
/// taken again in the next tick at the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Row<I> {
    /// Which seat.
    pub seat: Seat,
    /// Someone has just sat down here; this tick is their first.
    pub joined: bool,
    /// Whoever sat here is gone after this tick.
    pub left: bool,
    /// What they did, if it arrived in time.
    pub input: Option<I>,
}

impl<I> Row<I> {
    const fn empty(seat: Seat) -> Row<I> {
        Row { seat, joined: false, left: false, input: None }
    }

    /// Whether an input was due and did not arrive in time.
    ///
    /// Nothing is due from someone who has just come or is going.
    pub const fn is_omitted(&self) -> bool {
        self.input.is_none() && !self.joined && !self.left
    }

    /// The input, or `last` where there is none.
    ///
    /// Going on with what the seat did last is what most games want, and what the default
    /// [`Game::guess`](crate::Game::guess) predicts, so that an omission looks right on every screen. Keep the last
    /// input of each seat in the state for that; what is kept anywhere else is lost on a rollback.
    pub fn input_or<'a>(&'a self, last: &'a I) -> &'a I {
        self.input.as_ref().unwrap_or(last)
    }
}

impl<I> Inputs<I> {
    /// Nobody is there.
    pub const fn new() -> Inputs<I> {
        Inputs { rows: Vec::new(), brought: Vec::new() }
    }

    /// Forgets everything but the memory, for the next tick.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.brought.clear();
    }

    /// Something comes in from outside, before anything that is done in this tick.
    pub fn bring(&mut self, whose: Whose, bytes: Vec<u8>) {
        self.brought.push(Restored { whose, bytes });
    }

    /// What came in from outside, in order.
    pub fn brought(&self) -> impl Iterator<Item = Restored<&[u8]>> {
        self.brought.iter().map(|Restored { whose, bytes }| Restored { whose: *whose, bytes: &bytes[..] })
    }

    /// The seat does `input`.
    pub fn set(&mut self, seat: Seat, input: I) {
        self.row(seat).input = Some(input);
    }

    /// The seat is taken, but its input did not arrive in time.
    pub fn omit(&mut self, seat: Seat) {
        self.row(seat).input = None;
    }

    /// Someone sits down, before anything they do in this tick.
    pub fn join(&mut self, seat: Seat) {
        self.row(seat).joined = true;
    }

    /// Whoever sits there gets up, after anything they do in this tick.
    pub fn leave(&mut self, seat: Seat) {
        self.row(seat).left = true;
    }

    /// What happened on `seat`; nothing if nobody sits there.
    pub fn get(&self, seat: Seat) -> Option<&Row<I>> {
        self.find(seat).ok().and_then(|at| self.rows.get(at))
    }

    /// What happened on every taken seat, lowest seat first.
    pub fn iter(&self) -> core::slice::Iter<'_, Row<I>> {
        self.rows.iter()
    }

    /// How many seats are taken.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no seat is taken.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn find(&self, seat: Seat) -> Result<usize, usize> {
        self.rows.binary_search_by_key(&seat, |row| row.seat)
    }

    fn row(&mut self, seat: Seat) -> &mut Row<I> {
        let at = self.find(seat).unwrap_or_else(|at| {
            self.rows.insert(at, Row::empty(seat));
            at
        });
        &mut self.rows[at]
    }
}

impl<I> Default for Inputs<I> {
    fn default() -> Self {
        Inputs::new()
    }
}

impl<'a, I> IntoIterator for &'a Inputs<I> {
    type Item = &'a Row<I>;
    type IntoIter = core::slice::Iter<'a, Row<I>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Rows that are not in seat order, or two for one seat: no one writes inputs like that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder;

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("inputs are not in seat order")
    }
}

impl core::error::Error for OutOfOrder {}

impl<I> TryFrom<Parts<I>> for Inputs<I> {
    type Error = OutOfOrder;

    fn try_from(Parts { rows, brought }: Parts<I>) -> Result<Self, OutOfOrder> {
        let in_order = rows.is_sorted_by(|a, b| a.seat < b.seat);
        if in_order { Ok(Inputs { rows, brought }) } else { Err(OutOfOrder) }
    }
}
