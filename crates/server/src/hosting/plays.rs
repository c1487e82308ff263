//! The games of sessions, as the relay and the rooms know them.

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::SessionKey;
use sametick_session::id::SessionId;
use sametick_session::session::Session;
use sametick_session::settings::Mode;
use sametick_sim::contest::Wanted;
use sametick_sim::{Seat, TickRate};
use sametick_wire::hello::Identity;
use sametick_wire::identity::PlayerId;

use crate::games::Games;

/// A game that a session has begun.
pub(crate) struct Play {
    pub key: SessionKey,
    pub mode: Mode,
    /// The build and schema that a link must have.
    pub identity: Identity,
    game: &'static str,
    rate: TickRate,
    setup: Vec<u8>,
    seed: u64,
    seats: u16,
}

/// The session, player and seat of a link to a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guest {
    pub session: SessionId,
    pub player: PlayerId,
    pub seat: Option<Seat>,
}

impl Play {
    /// The game of a round of a session. Name, setup and seed are the same at every start and on every host.
    pub fn new(session: &Session, round: u32, games: &Games) -> Result<Play, String> {
        let summary = session.summary();
        let settings = &summary.settings;
        let game = games.named(&settings.game).ok_or("there is no such game any more")?;
        let contest = game.contest().ok_or("sessions of this game cannot be had any more")?;
        let schema = match settings.mode {
            Mode::Lockstep => game.schema(),
            Mode::Room => game.room().ok_or("this game is not played in rooms any more")?.schema(),
        };
        let origin = session.origin();
        let seed = seed_of(&origin.to_bytes(), round);
        let scenario = settings.scenario.as_deref();
        let wanted = Wanted { seed, seats: summary.seats, scenario, difficulty: settings.difficulty.level() };
        Ok(Play {
            key: SessionKey { build: game.build(), name: place(origin, round) },
            mode: settings.mode,
            identity: Identity { build: game.build(), schema },
            game: game.name(),
            rate: game.rate(),
            setup: contest.setup(&wanted),
            seed,
            seats: summary.seats,
        })
    }

    /// The assignment of a player in this game.
    pub fn assignment(&self, player: PlayerId, name: String, seat: Option<Seat>) -> SeatAssignment {
        let Play { game, rate, setup, seed, seats, .. } = self;
        let (game, setup) = ((*game).into(), setup.clone());
        SeatAssignment {
            player,
            name,
            seat,
            game,
            rate: *rate,
            setup,
            seed: *seed,
            seats: *seats,
            listed: false,
        }
    }
}

/// The name of a round's game, made of the id under which the session was created.
fn place(origin: SessionId, round: u32) -> String {
    format!("{origin}-{round}")
}

/// The session of a game with this name, if it is the name of a session's game.
pub(crate) fn session_of_place(place: &str) -> Option<SessionId> {
    let (origin, round) = place.split_once('-')?;
    round.parse::<u32>().ok()?;
    SessionId::from_hex(origin)
}

/// A different random seed for every round of every session.
fn seed_of(origin: &[u8; 16], round: u32) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("sametick 2026 seed of a round");
    hasher.update(origin).update(&round.to_le_bytes());
    let mut seed = [0; 8];
    hasher.finalize_xof().fill(&mut seed);
    u64::from_le_bytes(seed)
}
