//! As whom a link takes part, where that is not its own to say: whoever drives the relay has decided it.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Seat, TickRate};
use sametick_wire::identity::PlayerId;

use crate::message::Join;

/// On which assignment a link takes part, whatever its own join says. A player takes part over one link at a time, the latest, and sits
/// exactly there or nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatAssignment {
    /// Who it is.
    pub player: PlayerId,
    /// What they are called.
    pub name: String,
    /// Where they sit; nowhere if they only watch.
    pub seat: Option<Seat>,
    /// Which game it is.
    pub game: String,
    /// How fast it goes.
    pub rate: TickRate,
    /// What the session begins with, if it has not begun.
    pub setup: Vec<u8>,
    /// The seed in that setup.
    pub seed: u64,
    /// How many seats it has then.
    pub seats: u16,
    /// Whether strangers may be shown it then.
    pub listed: bool,
}

/// What somebody wants who joins a session.
#[derive(Clone, Debug)]
pub(crate) struct JoinRequest {
    pub join: Join,
    /// Who it is, if that was decided, and the rest with it.
    pub player: Option<PlayerId>,
}

impl JoinRequest {
    /// What a join asks for, or what was decided in its place. How it comes back is its own to say; what it brings is not: there
    /// the state is decided as well.
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

    /// The same for a session that has begun.
    pub fn without_setup(&self) -> JoinRequest {
        let mut wish = self.clone();
        (wish.join.setup, wish.join.bring) = (Vec::new(), None);
        wish
    }

    /// Where it sits, if that was decided.
    pub fn assigned(&self) -> Option<Seat> {
        self.join.seat.filter(|_| self.player.is_some())
    }
}
