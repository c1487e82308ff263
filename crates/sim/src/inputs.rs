//! The inputs of all seats in one tick, and the saved state that is loaded in it.

use alloc::vec::Vec;
use core::fmt;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::Seat;

/// The inputs, joins and departures of all taken seats in one tick, in seat order: the only argument of a step.
///
/// A seat that is not listed is empty. Made once and reused ([`clear`](Inputs::clear)), it allocates nothing per tick.
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

/// Deserialised inputs before they are validated.
#[derive(Deserialize)]
#[serde(bound(deserialize = "I: Deserialize<'de>"))]
struct Parts<I> {
    rows: Vec<Row<I>>,
    brought: Vec<Restored<Vec<u8>>>,
}

/// Saved state from outside the game, such as from a database, that is loaded in this tick: bytes that the same game
/// wrote earlier, perhaps in another session or by another build. The game has to treat them as untrusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Restored<B> {
    /// The owner.
    pub owner: Owner,
    /// The bytes.
    pub bytes: B,
}

/// The owner of saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Owner {
    /// The place: structures of the room.
    Place,
    /// A player: the state from when the player last left.
    Player(Seat),
    /// A player's character, in all rooms.
    Character(Seat),
}

impl Owner {
    /// The seat of the owner, if it has one.
    pub const fn seat(self) -> Option<Seat> {
        match self {
            Owner::Place => None,
            Owner::Player(seat) | Owner::Character(seat) => Some(seat),
        }
    }

    /// The name in exports and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Owner::Place => "place",
            Owner::Player(_) => "player",
            Owner::Character(_) => "character",
        }
    }
}

/// What happened on one seat in one tick.
///
/// In this order: the player joins (`joined`), acts (`input`), leaves (`left`). A seat that is left can be taken again
/// in the next tick at the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Row<I> {
    /// The seat.
    pub seat: Seat,
    /// A player has just joined; this tick is the player's first.
    pub joined: bool,
    /// The player leaves after this tick.
    pub left: bool,
    /// The input, if it arrived in time.
    pub input: Option<I>,
}

impl<I> Row<I> {
    const fn empty(seat: Seat) -> Row<I> {
        Row { seat, joined: false, left: false, input: None }
    }

    /// Whether an input was due and did not arrive in time.
    ///
    /// No input is due from a player who has just joined or is leaving.
    pub const fn is_omitted(&self) -> bool {
        self.input.is_none() && !self.joined && !self.left
    }

    /// The input, or `last` if there is none. Most games want to continue with the seat's last input, which is also
    /// what the default [`Game::guess`](crate::Game::guess) predicts, so that an omission looks right on every screen.
    /// Keep the last input of each seat in the state for that; stored anywhere else it is lost on a rollback.
    pub fn input_or<'a>(&'a self, last: &'a I) -> &'a I {
        self.input.as_ref().unwrap_or(last)
    }
}

impl<I> Inputs<I> {
    /// Inputs without any taken seat.
    pub const fn new() -> Inputs<I> {
        Inputs { rows: Vec::new(), brought: Vec::new() }
    }

    /// Removes everything, keeping the memory, for the next tick.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.brought.clear();
    }

    /// Adds saved state, loaded before all actions of this tick.
    pub fn bring(&mut self, owner: Owner, bytes: Vec<u8>) {
        self.brought.push(Restored { owner, bytes });
    }

    /// The saved state that is loaded, in order.
    pub fn brought(&self) -> impl Iterator<Item = Restored<&[u8]>> {
        self.brought.iter().map(|Restored { owner, bytes }| Restored { owner: *owner, bytes: &bytes[..] })
    }

    /// Sets the seat's input.
    pub fn set(&mut self, seat: Seat, input: I) {
        self.row(seat).input = Some(input);
    }

    /// Marks the seat as taken with its input missing.
    pub fn omit(&mut self, seat: Seat) {
        self.row(seat).input = None;
    }

    /// A player joins, before acting in this tick.
    pub fn join(&mut self, seat: Seat) {
        self.row(seat).joined = true;
    }

    /// The player leaves, after acting in this tick.
    pub fn leave(&mut self, seat: Seat) {
        self.row(seat).left = true;
    }

    /// The row of `seat`; none if the seat is empty.
    pub fn get(&self, seat: Seat) -> Option<&Row<I>> {
        self.find(seat).ok().and_then(|at| self.rows.get(at))
    }

    /// The rows of all taken seats, lowest seat first.
    pub fn iter(&self) -> core::slice::Iter<'_, Row<I>> {
        self.rows.iter()
    }

    /// The number of taken seats.
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

/// Rows that are not in seat order, or two for one seat: no encoder writes such inputs.
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
