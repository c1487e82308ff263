//! What rooms want of whoever drives them.

use sametick_lockstep::relay::SessionKey;
use sametick_sim::contest::Outcome;
use sametick_sim::record::Record;
use sametick_sim::{Seat, Tick, Time};
use sametick_store::players::{Question, Write};
use sametick_wire::{Channel, Member};

use super::{Mark, RoomId};
use crate::recovered::RecoveredSession;

/// What the log of a room goes on from.
#[derive(Debug)]
pub struct Resumed {
    pub(crate) recovered: RecoveredSession,
    pub(crate) seats: Vec<Seat>,
}

/// What rooms want. Bytes are in the buffer that was given.
#[derive(Debug)]
pub enum Output {
    /// Send these bytes over a link.
    Send(Member, Channel),
    /// End a link, and say why.
    Close(Member, &'static str),
    /// Look what there is of a room, and say [`Rooms::sought`](super::Rooms::sought).
    Find(SessionKey),
    /// A room has begun: its log starts here, see [`Rooms::room`](super::Rooms::room).
    Begun(RoomId),
    /// A room goes on, and so does its log.
    Resumed(RoomId, Box<Resumed>),
    /// Save a room as it is, see [`OpenRoom::save`](super::OpenRoom::save).
    SaveRoom(RoomId),
    /// Ask the database about somebody, and say [`Rooms::found`](super::Rooms::found).
    Ask(Member, Question),
    /// Write this to the database, sooner or later.
    Save(Write),
    /// Write everything that was to be saved now, and say [`Rooms::saved`](super::Rooms::saved).
    Flush(Mark),
    /// Write this down.
    Record(RoomId, Record),
    /// A tick was stepped: write its inputs down, see [`OpenRoom::inputs`](super::OpenRoom::inputs).
    Stepped(RoomId, Tick),
    /// The game of a room with [assignment](super::Rooms::assign) is over, said once. The room goes on until somebody ends it.
    Outcome(RoomId, Outcome),
    /// The game of a room has panicked: the room ends.
    Crashed(RoomId),
    /// A room is over: its log ends here.
    Ended(RoomId),
    /// Nothing more before this time.
    WakeAt(Time),
    /// Nothing more until something arrives.
    Wait,
}

/// What a member of this process is sent. Bytes are in the buffer that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToLocal {
    /// A message.
    Message(Member, Channel),
    /// They do not take part any more, and why.
    Closed(Member, &'static str),
}
