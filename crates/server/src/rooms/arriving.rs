//! Members that have come in, before they join a room.

use std::net::IpAddr;

use sametick_lockstep::relay::SessionKey;
use sametick_transport::rate_limit::network;
use sametick_wire::Member;
use sametick_wire::hello::{Identity, Refusal};

use super::{Door, Rooms, check_code};
use crate::games::AnyGame;

impl Rooms {
    /// Checks a client's build and schema for a room of this code. The refusal names what differs.
    pub fn admit(&self, identity: &Identity, code: &str) -> Result<(), Refusal> {
        check_code(code).map_err(|why| Refusal::Other(why.into()))?;
        let hosted: Vec<&dyn AnyGame> = self.games.iter().filter(|game| game.room().is_some()).collect();
        let found = self.games.of_build(identity.build);
        match (found, &hosted[..]) {
            (Some(game), _) => match game.room() {
                Some(room) => {
                    let own = Identity { build: game.build(), schema: room.schema() };
                    own.refusal(identity).map_or(Ok(()), Err)
                }
                None => Err(Refusal::Other(format!("{} is not played in rooms here", game.name()))),
            },
            (None, [only]) => Err(Refusal::Build { server: only.build(), client: identity.build }),
            (None, _) => {
                let builds: Vec<String> =
                    hosted.iter().map(|game| format!("{} {}", game.name(), game.build())).collect();
                let there = if builds.is_empty() { "none".into() } else { builds.join(", ") };
                Err(Refusal::Other(format!(
                    "no game of build {} is played in rooms here; there are: {there}",
                    identity.build
                )))
            }
        }
    }

    /// A link has opened whose hello was [admitted](Rooms::admit). Its first message must be a join.
    pub fn enter(&mut self, member: Member, key: SessionKey) {
        let door = Door {
            key,
            assignment: None,
            room: None,
            asking: None,
            claimed: None,
            player: None,
            is_closed: false,
            source: None,
        };
        self.doors.insert(member, door);
    }

    /// Adds a local member, which has no link and no hello.
    pub fn join_local(&mut self, key: SessionKey) -> Member {
        let member = Member(self.next_local);
        self.next_local += 1;
        self.enter(member, key);
        member
    }

    /// Sets the IP address of a new member, for limits.
    pub fn come_from(&mut self, member: Member, ip: IpAddr) {
        if let Some(door) = self.doors.get_mut(&member) {
            let ip = ip.to_canonical();
            door.source = Some(if ip.is_loopback() { ip } else { network(ip) });
        }
    }
}
