//! What happens to a player's side of a session, and what it wants: the same for a peer in lockstep and a view of a room.

use sametick_sim::{Tick, Time};

use crate::Channel;
use crate::pacer::Path;

/// What happens to a player's side.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a, I> {
    /// A message arrived on the link.
    Message(Channel, &'a [u8]),
    /// The player's input for the tick that was asked for.
    Local(I),
    /// What the link counts, as [`Output::WantPath`] asked for.
    Path(Path),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a player's side wants. Bytes are in the buffer that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes on this channel.
    Send(Channel),
    /// Hand in the player's input for this tick, with [`Input::Local`].
    WantInput(Tick),
    /// Say what the link counts, with [`Input::Path`].
    WantPath,
    /// Nothing more before this time.
    WakeAt(Time),
    /// Nothing more until a message comes.
    Wait,
}
