//! Reads what a link asks for in its hello, and decides whether it is admitted.

use std::net::IpAddr;

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::SessionKey;
use sametick_sim::{SchemaHash, Time};
use sametick_wire::hello::{Intent, Proven, Refusal};

use super::{ONLY_GATEWAY, STOPS, ServerApp, Side};
use crate::hosting::Guest;

/// The admitted request of a link that is about to open.
pub(super) struct Opening {
    pub side: Side,
    pub place: SessionKey,
    pub schema: SchemaHash,
    /// Its player and seat in the game of a session.
    pub guest: Option<(SeatAssignment, Guest)>,
    pub from: IpAddr,
}

impl ServerApp {
    /// The request in a hello, if it is admitted.
    pub(super) fn opening(&self, now: Time, from: IpAddr, proven: &Proven) -> Result<Opening, Refusal> {
        if self.stopping {
            return Err(Refusal::Other(STOPS.into()));
        }
        if let Some(elsewhere) = self.elsewhere_of(now, &proven.hello) {
            return Err(Refusal::Other(elsewhere.to_string()));
        }
        if self.is_only_gateway {
            return Err(Refusal::Other(ONLY_GATEWAY.into()));
        }
        let guest = self.sessions.as_ref().map(|sessions| sessions.admit(&proven.hello)).transpose()?;
        let identity = proven.hello.identity;
        let (side, place) = match (&proven.hello.intent, &self.rooms) {
            (Intent::Join { session }, _) => (Side::Relay, session),
            (Intent::Enter { room }, Some(rooms)) => {
                rooms.admit(&identity, room)?;
                (Side::Rooms, room)
            }
            (_, Some(_)) => return Err(Refusal::Other("join a session, or enter a room".into())),
            (_, None) => return Err(Refusal::Other("this is a relay: join a session".into())),
        };
        let place = SessionKey { build: identity.build, name: place.clone() };
        Ok(Opening { side, place, schema: identity.schema, guest, from })
    }
}
