//! The outputs of rooms for their driver.

use sametick_lockstep::relay::SessionKey;
use sametick_sim::contest::Outcome;
use sametick_sim::record::Record;
use sametick_sim::{Seat, Tick, Time};
use sametick_store::players::{Question, Write};
use sametick_wire::{Channel, Member};

use super::{Mark, RoomId};
use crate::recovered::RecoveredSession;

/// What the log of a resumed room continues from.
#[derive(Debug)]
pub struct Resumed {
    pub(crate) recovered: RecoveredSession,
    pub(crate) seats: Vec<Seat>,
}

/// An output of the rooms. Its bytes are in the caller's buffer.
#[derive(Debug)]
pub enum Output {
    /// Send these bytes over a link.
    Send(Member, Channel),
    /// End a link with a reason.
    Close(Member, &'static str),
    /// Search for a stored room, and call [`Rooms::sought`](super::Rooms::sought).
    Find(SessionKey),
    /// A room has begun: its log starts here, see [`Rooms::room`](super::Rooms::room).
    Begun(RoomId),
    /// A room is resumed, and so is its log.
    Resumed(RoomId, Box<Resumed>),
    /// Save a room in its present state, see [`OpenRoom::save`](super::OpenRoom::save).
    SaveRoom(RoomId),
    /// Look up a player in the database, and call [`Rooms::found`](super::Rooms::found).
    Ask(Member, Question),
    /// Write this to the database, sooner or later.
    Save(Write),
    /// Flush all writes now, and call [`Rooms::saved`](super::Rooms::saved).
    Flush(Mark),
    /// Append this record to the room's log.
    Record(RoomId, Record),
    /// A tick was stepped: append its inputs to the log, see [`OpenRoom::inputs`](super::OpenRoom::inputs).
    Stepped(RoomId, Tick),
    /// The game of a room with [assignment](super::Rooms::assign) is over; output once. The room goes on until the
    /// driver ends it.
    Outcome(RoomId, Outcome),
    /// The game of a room has panicked: the room ends.
    Crashed(RoomId),
    /// A room is over: its log ends here.
    Ended(RoomId),
    /// No more output before this time.
    WakeAt(Time),
    /// No more output until the next input.
    Wait,
}

/// An output for a local member. Its bytes are in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToLocal {
    /// A message.
    Message(Member, Channel),
    /// The member was closed for this reason.
    Closed(Member, &'static str),
}
