//! Admission of scripts into rooms, and the address of a session's game that another process runs.

use std::fmt;
use std::net::SocketAddr;

use sametick_lockstep::assignment::SeatAssignment;
use sametick_session::ticket::Passes;
use sametick_sim::Time;
use sametick_transport::endpoint::RawEvent;
use sametick_transport::hub::{Key, Links};
use sametick_wire::hello::{Hello, Intent};

use super::{ONLY_GATEWAY, STOPS, ServerApp, Side};
use crate::hosting::{Guest, session_of_place};
use crate::rooms::entrance::{Entrance, is_of_scripts};
use crate::rooms::envelope::{Code, Fault};
use crate::rooms::scripts::Scripts;

/// A session's game that a player asked for at the wrong process.
pub(super) struct Elsewhere {
    /// The address of its host as the gateway tells it to members, if it is known.
    address: Option<String>,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Some(address) => {
                write!(f, "this is the game of a session, which is played at its host: {address}")
            }
            None => f.write_str("this is the game of a session, which is played at its host"),
        }
    }
}

/// Whether a WebSocket at this path is for scripts.
pub(super) fn is_script(target: &str) -> bool {
    target.split('?').next().is_some_and(is_of_scripts)
}

impl ServerApp {
    /// Handles an event on a script's connection.
    pub(super) fn script_talks(&mut self, now: Time, links: &mut Links, key: Key, event: RawEvent) {
        let is_news = matches!(event, RawEvent::Began { .. } | RawEvent::Ended(_));
        match event {
            RawEvent::Began { from, target } => {
                if let Err(fault) = self.let_script_in(now, links, key, from, &target) {
                    Scripts::turn_away(links, key, &fault);
                }
            }
            event => {
                let gone = self.scripts.member(key).filter(|_| matches!(event, RawEvent::Ended(_)));
                if let (Some(member), Some(sessions)) = (gone, &mut self.sessions) {
                    sessions.ended(member);
                }
                let Some(rooms) = &mut self.rooms else { return };
                self.scripts.on_raw(now, rooms, links, key, event);
            }
        }
        let changed = self.drain(now, links, Some(Side::Rooms));
        self.show(now, changed || is_news);
    }

    fn let_script_in(
        &mut self,
        now: Time,
        links: &mut Links,
        key: Key,
        from: SocketAddr,
        target: &str,
    ) -> Result<(), Fault> {
        let refused = |why: &str| Fault::new(Code::NotAllowed, why);
        if self.stopping {
            return Err(Fault::new(Code::Closed, STOPS));
        }
        let mut entrance = Entrance::parse(target).map_err(|why| refused(&why))?;
        let admitted = self.admit_script(now, &entrance)?;
        let rooms =
            self.rooms.as_mut().filter(|_| !self.is_only_gateway).ok_or_else(|| refused(ONLY_GATEWAY))?;
        let (assignment, guest) = admitted.unzip();
        if let Some(assignment) = &assignment {
            entrance.name.clone_from(&assignment.name);
            entrance.game = Some(assignment.game.clone());
        }
        let member = self.scripts.come(now, rooms, links, key, from.ip(), (&entrance, assignment))?;
        tracing::info!(%from, room = entrance.room, "a script has come");
        if let (Some(guest), Some(sessions)) = (guest, &mut self.sessions) {
            sessions.opened(member, guest);
        }
        Ok(())
    }

    /// The player and seat of a script in the game of a session.
    fn admit_script(&self, now: Time, entrance: &Entrance) -> Result<Option<(SeatAssignment, Guest)>, Fault> {
        if let Some(sessions) = &self.sessions {
            let admitted = sessions.admit_script(entrance);
            return admitted.map(Some).map_err(|why| Fault::new(Code::NotAllowed, why));
        }
        match self.elsewhere(now, &entrance.room, entrance.pass.as_deref()) {
            Some(elsewhere) => Err(Fault::new(Code::Elsewhere, elsewhere.to_string()).at(elsewhere.address)),
            None => Ok(None),
        }
    }

    /// Where the requested game runs, if it is the game of a session of another process.
    pub(super) fn elsewhere_of(&self, now: Time, hello: &Hello) -> Option<Elsewhere> {
        let place = match &hello.intent {
            Intent::Join { session } => session,
            Intent::Enter { room } => room,
            Intent::Ping => return None,
        };
        self.elsewhere(now, place, hello.pass.as_deref())
    }

    /// The session id is in the pass and in the game's name. The latter names the host that created the session, which
    /// may have moved it.
    fn elsewhere(&self, now: Time, place: &str, pass: Option<&[u8]>) -> Option<Elsewhere> {
        if self.sessions.is_some() {
            return None;
        }
        let gateway = self.gateway.as_ref()?;
        let session = pass.and_then(Passes::session_of).or_else(|| session_of_place(place))?;
        Some(Elsewhere { address: gateway.address_of(now, session.host) })
    }
}
