//! Inputs and outputs of a player's side of a session: the same for a peer in lockstep and a view of a room.

use sametick_sim::{Tick, Time};

use crate::Channel;
use crate::pacer::Path;

/// What happens to a player's side.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a, I> {
    /// A message arrived on the link.
    Message(Channel, &'a [u8]),
    /// The player's input for the tick of [`Output::WantInput`].
    Local(I),
    /// The link's statistics, for [`Output::WantPath`].
    Path(Path),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a player's side asks its driver to do. Bytes are in the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes on this channel.
    Send(Channel),
    /// Return the player's input for this tick, with [`Input::Local`].
    WantInput(Tick),
    /// Return the link's statistics, with [`Input::Path`].
    WantPath,
    /// Nothing to do before this time.
    WakeAt(Time),
    /// Nothing to do until a message arrives.
    Wait,
}
