//! Seat assignment: the driver of the relay decides player and seat of a link, overriding its `Join`.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Seat, TickRate};
use sametick_wire::identity::PlayerId;

use crate::message::Join;

/// The player and seat of a link, as the driver decided; they override the link's `Join`. A player takes part over one
/// link at a time, the latest, and gets exactly this seat or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatAssignment {
    /// The player.
    pub player: PlayerId,
    /// The player's name.
    pub name: String,
    /// The seat; none for a spectator.
    pub seat: Option<Seat>,
    /// The game of the session.
    pub game: String,
    /// The tick rate of the game.
    pub rate: TickRate,
    /// The setup of the session, if the session has not begun.
    pub setup: Vec<u8>,
    /// The seed in that setup.
    pub seed: u64,
    /// The number of seats, if the session has not begun.
    pub seats: u16,
    /// Whether the session is shown in public lists, if it has not begun.
    pub listed: bool,
}

/// What a peer asks for when it joins a session.
#[derive(Clone, Debug)]
pub(crate) struct JoinRequest {
    pub join: Join,
    /// The player, if the driver assigned one; seat, game and the rest are then assigned as well.
    pub player: Option<PlayerId>,
}

impl JoinRequest {
    /// The request of a join, or of the assignment in its place. `resume` is taken from the join; `bring` is not,
    /// because an assignment decides the state too.
    pub fn new(join: Join, assignment: Option<SeatAssignment>) -> JoinRequest {
        let Some(assignment) = assignment else { return JoinRequest { join, player: None } };
        let SeatAssignment { player, name, seat, game, rate, setup, seed, seats, listed } = assignment;
        let Join { commit, resume, .. } = join;
        let (watch, wait_for, rate) = (seat.is_none(), 1, rate.per_second() as u16);
        let bring = None;
        let join = Join {
            game,
            commit,
            setup,
            seed,
            rate,
            seats,
            wait_for,
            name,
            watch,
            seat,
            listed,
            resume,
            bring,
        };
        JoinRequest { join, player: Some(player) }
    }

    /// The same request without the setup, for a session that has begun.
    pub fn without_setup(&self) -> JoinRequest {
        let mut wish = self.clone();
        (wish.join.setup, wish.join.bring) = (Vec::new(), None);
        wish
    }

    /// The seat, if the driver assigned one.
    pub fn assigned(&self) -> Option<Seat> {
        self.join.seat.filter(|_| self.player.is_some())
    }
}
