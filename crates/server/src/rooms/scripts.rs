//! The scripts of a server: connects their WebSockets to their rooms.

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
    /// Whether there are no scripts.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// The next wake time of a script.
    pub fn wake_at(&self) -> Option<Time> {
        self.present.values().filter_map(|present| present.wake_at).min()
    }

    /// The member that uses this connection.
    pub fn member(&self, key: Key) -> Option<Member> {
        self.members.get(&key).copied()
    }

    /// Admits a script, which joins its room next; with an assignment in the game of a session.
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

    /// Refuses a script with a fault.
    pub fn turn_away(links: &mut Links, key: Key, fault: &Fault) {
        let mut bytes = Vec::new();
        encode(Encoding::Json, fault, &mut bytes);
        links.say(key, Encoding::Json.words(bytes));
        links.hang_up(key);
    }

    /// Handles an event on the connection of an admitted script.
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

    /// Wakes the scripts that are due.
    pub fn on_time(&mut self, now: Time, rooms: &mut Rooms, links: &mut Links) {
        let due = self.present.iter().filter(|(_, present)| present.wake_at.is_some_and(|at| at <= now));
        for member in due.map(|(member, _)| *member).collect::<Vec<_>>() {
            self.tell(member, now, rooms, links, Input::Timeout);
        }
    }

    /// Passes messages of rooms to scripts. Returns whether there were any: the rooms may have outputs then.
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

    /// Closes all scripts with a reason.
    pub fn stop(&mut self, rooms: &mut Rooms, links: &mut Links, why: &str) {
        for member in self.present.keys().copied().collect::<Vec<_>>() {
            // A state machine ignores a time earlier than its own.
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

    /// Carries out a script's outputs.
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

/// The named game, or the only one.
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
    /// A frame with bytes that were [encoded](super::envelope::encode).
    pub fn words(self, bytes: Vec<u8>) -> RawMessage {
        match self {
            Encoding::Json => RawMessage::Text(String::from_utf8(bytes).expect("JSON is text")),
            Encoding::MessagePack => RawMessage::Binary(bytes),
        }
    }
}
