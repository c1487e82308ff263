//! The scripts of a server: from their connections to their rooms, and back.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::SessionKey;
use sametick_sim::Time;
use sametick_sim::record::Leaving;
use sametick_transport::endpoint::{RawEvent, RawMessage};
use sametick_transport::hub::{Key, Links};
use sametick_transport::websocket::MAX_MESSAGE;
use sametick_wire::Member;

use super::entrance::Entrance;
use super::envelope::{Code, Encoding, Fault, encode};
use super::script::{AnyScript, Input, Output};
use super::{Input as RoomInput, Rooms, ToLocal};
use crate::games::{AnyGame, Games};

/// A script and its connection.
struct Present {
    key: Key,
    script: Box<dyn AnyScript>,
    wake_at: Option<Time>,
}

/// The scripts of a server.
#[derive(Default)]
pub struct Scripts {
    members: HashMap<Key, Member>,
    present: BTreeMap<Member, Present>,
    buf: Vec<u8>,
}

impl Scripts {
    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// When a script wants to be woken.
    pub fn wake_at(&self) -> Option<Time> {
        self.present.values().filter_map(|present| present.wake_at).min()
    }

    /// The member of a room that talks over this connection.
    pub fn member(&self, key: Key) -> Option<Member> {
        self.members.get(&key).copied()
    }

    /// Lets a script in, which asks for its room next; on these assignment, in the game of a session.
    pub fn come(
        &mut self,
        now: Time,
        rooms: &mut Rooms,
        links: &mut Links,
        key: Key,
        from: IpAddr,
        (entrance, assignment): (&Entrance, Option<SeatAssignment>),
    ) -> Result<Member, Fault> {
        let refused = |why: String| Fault::new(Code::NotAllowed, why);
        let games = rooms.games().clone();
        let game = game_of(&games, entrance.game.as_deref()).map_err(refused)?;
        let hosting =
            game.room().ok_or_else(|| refused(format!("{} is not played in rooms here", game.name())))?;
        let script = hosting.script(now, entrance, games.commit()).map_err(refused)?;
        let member = rooms.join_local(SessionKey { build: game.build(), name: entrance.room.clone() });
        rooms.come_from(member, from);
        assignment.into_iter().for_each(|assignment| rooms.assign(member, assignment));
        self.members.insert(key, member);
        self.present.insert(member, Present { key, script, wake_at: None });
        self.drain(member, now, rooms, links);
        Ok(member)
    }

    /// Tells a script why it is not let in.
    pub fn turn_away(links: &mut Links, key: Key, fault: &Fault) {
        let mut bytes = Vec::new();
        encode(Encoding::Json, fault, &mut bytes);
        links.say(key, Encoding::Json.words(bytes));
        links.hang_up(key);
    }

    /// Takes what happens on the connection of a script that was let in.
    pub fn on_raw(&mut self, now: Time, rooms: &mut Rooms, links: &mut Links, key: Key, event: RawEvent) {
        match (event, self.member(key)) {
            (RawEvent::Said(said), Some(member)) => {
                let input = match &said {
                    RawMessage::Text(text) => Input::Said(Encoding::Json, text.as_bytes()),
                    RawMessage::Binary(bytes) => Input::Said(Encoding::MessagePack, bytes),
                };
                self.tell(member, now, rooms, links, input);
            }
            (RawEvent::TooLong, Some(member)) => {
                let why = format!("a message has at most {MAX_MESSAGE} bytes");
                self.tell(member, now, rooms, links, Input::Broke(Code::TooLarge, &why));
            }
            (RawEvent::NoText, Some(member)) => {
                let why = "a text frame has to be UTF-8";
                self.tell(member, now, rooms, links, Input::Broke(Code::BadMessage, why));
            }
            (RawEvent::Ended(why), Some(member)) => {
                tracing::info!(%why, "a script has gone");
                self.members.remove(&key);
                self.present.remove(&member);
                rooms.handle(now, RoomInput::Closed(member, Leaving::Left));
            }
            (RawEvent::Began { .. }, _) | (_, None) => {}
        }
    }

    /// Wakes whose time has come.
    pub fn on_time(&mut self, now: Time, rooms: &mut Rooms, links: &mut Links) {
        let due = self.present.iter().filter(|(_, present)| present.wake_at.is_some_and(|at| at <= now));
        for member in due.map(|(member, _)| *member).collect::<Vec<_>>() {
            self.tell(member, now, rooms, links, Input::Timeout);
        }
    }

    /// Hands over what rooms have for scripts. Returns whether there was anything: the rooms may want something then.
    pub fn deliver(&mut self, now: Time, rooms: &mut Rooms, links: &mut Links) -> bool {
        let mut buf = std::mem::take(&mut self.buf);
        let mut any = false;
        while let Some(to) = rooms.poll_local(&mut buf) {
            any = true;
            match to {
                ToLocal::Message(member, channel) => {
                    self.tell(member, now, rooms, links, Input::Message(channel, &buf));
                }
                ToLocal::Closed(member, why) => self.tell(member, now, rooms, links, Input::Closed(why)),
            }
        }
        self.buf = buf;
        any
    }

    /// Tells everybody that it is over.
    pub fn stop(&mut self, rooms: &mut Rooms, links: &mut Links, why: &str) {
        for member in self.present.keys().copied().collect::<Vec<_>>() {
            // Whoever keeps the time does not take an earlier one.
            self.tell(member, Time::ZERO, rooms, links, Input::Closed(why));
        }
    }

    fn tell(&mut self, member: Member, now: Time, rooms: &mut Rooms, links: &mut Links, input: Input<'_>) {
        if let Some(present) = self.present.get_mut(&member) {
            let began_us = rooms.clock_us();
            present.script.handle(now, input);
            self.drain(member, now, rooms, links);
            rooms.charge_member(member, began_us);
        }
    }

    /// Carries out what a script wants.
    fn drain(&mut self, member: Member, now: Time, rooms: &mut Rooms, links: &mut Links) {
        let Some(present) = self.present.get_mut(&member) else { return };
        let mut bytes = Vec::new();
        present.wake_at = loop {
            match present.script.poll_output(&mut bytes) {
                Output::Send(channel) => rooms.handle(now, RoomInput::Message(member, channel, &bytes)),
                Output::Say(encoding) => links.say(present.key, encoding.words(std::mem::take(&mut bytes))),
                Output::HangUp => {
                    links.hang_up(present.key);
                    break None;
                }
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
            }
        };
    }
}

/// The game that is named, or the only one there is.
fn game_of<'a>(games: &'a Games, name: Option<&str>) -> Result<&'a dyn AnyGame, String> {
    let hosted: Vec<&dyn AnyGame> = games.iter().filter(|game| game.room().is_some()).collect();
    let names = || {
        let names: Vec<&str> = hosted.iter().map(|game| game.name()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    match (name, &hosted[..]) {
        (Some(name), _) => {
            let found = hosted.iter().rev().find(|game| game.name() == name);
            found
                .copied()
                .ok_or_else(|| format!("no game {name:?} is played in rooms here; there are: {}", names()))
        }
        (None, [only]) => Ok(*only),
        (None, _) => Err(format!("say which game with ?game=NAME; there are: {}", names())),
    }
}

impl Encoding {
    /// A frame with what was [encoded](super::envelope::encode).
    pub fn words(self, bytes: Vec<u8>) -> RawMessage {
        match self {
            Encoding::Json => RawMessage::Text(String::from_utf8(bytes).expect("JSON is text")),
            Encoding::MessagePack => RawMessage::Binary(bytes),
        }
    }
}
