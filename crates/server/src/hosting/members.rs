//! The members of sessions: their connections, and the messages to them. The pass that a member is given is read by
//! `admit` of the host's side.

use sametick_session::host::Input;
use sametick_session::id::{SessionId, player};
use sametick_session::message::{Closing, Event, Refusal, Request};
use sametick_session::session::Session;
use sametick_session::settings::Mode;
use sametick_sim::{Seat, Time};
use sametick_transport::endpoint::RawEvent;
use sametick_transport::hub::{Key, Links};
use sametick_wire::Member;
use sametick_wire::hex::to_hex;
use sametick_wire::identity::{PlayerId, Token};
use serde::{Deserialize, Serialize};

use super::{HostSide, MOVED_ON, Order};
use crate::endpoints::WebTransport;
use crate::envelope_connection::{EnvelopeConnection, asked};
use crate::rooms::envelope::{Code, Outgoing};

/// The WebSocket path of sessions.
pub(crate) const SOCKET: &str = "/api/session/ws";

/// The feature in all envelopes of a session.
const FEATURE: &str = "session";

/// A connection to a session, before or after its entry.
pub(super) struct Present {
    connection: EnvelopeConnection,
    /// Whether the member has shown a ticket or a token.
    has_come: bool,
    /// The play address the member was told last, once it is welcome.
    told: Option<Option<Playing>>,
}

/// The first command.
#[derive(Deserialize)]
#[serde(tag = "action", content = "payload", rename_all = "snake_case")]
enum Entry {
    Arrive {
        ticket: String,
    },
    Resume {
        session: SessionId,
        #[serde(with = "player")]
        player: PlayerId,
        token: String,
    },
}

#[derive(Serialize)]
struct Happened<E: Serialize> {
    feature: &'static str,
    event: E,
}

impl<E: Serialize> Outgoing for Happened<E> {
    const KIND: &'static str = "event";
}

#[derive(Serialize)]
struct Closes {
    feature: &'static str,
    closing: Closing,
}

impl Outgoing for Closes {
    const KIND: &'static str = "closing";
}

#[derive(Serialize)]
struct Done {
    seq: u64,
}

impl Outgoing for Done {
    const KIND: &'static str = "ack";
}

/// The message with the play address.
#[derive(Serialize)]
struct Play<'a> {
    play: Option<&'a Playing>,
}

/// A member's play address, with pass and seat.
#[derive(Clone, PartialEq, Eq, Serialize)]
struct Playing {
    game: String,
    mode: Mode,
    place: String,
    pass: String,
    seat: Option<Seat>,
    websocket: Option<u16>,
    webtransport: Option<WebTransport>,
    native: Vec<String>,
}

impl HostSide {
    /// Handles an event of a connection.
    pub fn on_raw(&mut self, now: Time, links: &mut Links, key: Key, event: &RawEvent) {
        match (event, self.members.get(&key).copied()) {
            (RawEvent::Began { from, .. }, _) => {
                let member = Member(self.next);
                self.next += 1;
                self.members.insert(key, member);
                let connection = EnvelopeConnection::new(key, from.ip());
                self.present.insert(member, Present { connection, has_come: false, told: None });
            }
            (RawEvent::Ended(_), Some(member)) => {
                self.members.remove(&key);
                if self.present.remove(&member).is_some() {
                    self.host.handle(now, Input::Cut(member));
                }
            }
            (_, Some(member)) => self.hear(now, links, member, event),
            _ => {}
        }
    }

    fn hear(&mut self, now: Time, links: &mut Links, member: Member, event: &RawEvent) {
        let Some(present) = self.present.get_mut(&member) else { return };
        let Some(command) = present.connection.hear(now, links, event) else { return };
        let seq = command.seq;
        let understood = match present.has_come {
            true => asked::<Request>(command, FEATURE).and_then(|request| {
                if let Request::Settings { settings } = &request {
                    self.games.check(settings).map_err(|why| (seq, Code::BadPayload, why))?;
                }
                Ok(Input::Say(member, seq, request))
            }),
            false => asked::<Entry>(command, FEATURE).and_then(|entry| match entry {
                Entry::Arrive { ticket } => Ok(Input::Arrive(member, ticket)),
                Entry::Resume { session, player, token } => match Token::from_hex(&token) {
                    Some(token) => Ok(Input::Resume(member, session, player, token)),
                    None => Err((seq, Code::BadPayload, "a token has 32 hexadecimal digits".into())),
                },
            }),
        };
        match understood {
            Ok(input) => {
                present.has_come = true;
                self.host.handle(now, input);
            }
            Err((seq, code, why)) => present.connection.complain(links, seq, code, why),
        }
    }

    pub(super) fn tell(&mut self, links: &mut Links, member: Member, event: Event) {
        let Some(present) = self.present.get_mut(&member) else { return };
        let is_welcome = matches!(event, Event::Welcome { .. });
        present.connection.say(links, &Happened { feature: FEATURE, event });
        if is_welcome {
            present.told = Some(None);
            self.stale.extend(self.host.session_of(member));
        }
    }

    pub(super) fn answer(
        &mut self,
        links: &mut Links,
        member: Member,
        seq: u64,
        answer: Result<(), Refusal>,
    ) {
        let Some(present) = self.present.get(&member) else { return };
        match answer {
            Ok(()) => present.connection.say(links, &Done { seq }),
            Err(refusal) => present.connection.refuse(links, Some(seq), refusal),
        }
    }

    pub(super) fn close_member(&mut self, links: &mut Links, member: Member, closing: Closing) {
        if let Some(present) = self.present.remove(&member) {
            present.connection.say(links, &Closes { feature: FEATURE, closing });
            present.connection.hang_up(links);
        }
    }

    /// Sends members their play address if it has changed, and ends links whose player has lost its place.
    pub(super) fn tell_where_to_play(&mut self, links: &mut Links) {
        let mut stale = std::mem::take(&mut self.stale);
        stale.sort_unstable();
        stale.dedup();
        for id in stale {
            let members: Vec<Member> =
                self.host.session(id).into_iter().flat_map(Session::links).map(|(to, _)| to).collect();
            for member in members {
                let playing = self.playing(member);
                let Some(present) = self.present.get_mut(&member) else { continue };
                if present.told.as_ref().is_some_and(|told| *told != playing) {
                    let play = Play { play: playing.as_ref() };
                    present.connection.say(links, &Happened { feature: FEATURE, event: play });
                    present.told = Some(playing);
                }
            }
            self.kick_strays(id);
        }
    }

    fn kick_strays(&mut self, id: SessionId) {
        let session = self.host.session(id);
        let is_stray = |player, seat| {
            session.is_none_or(|session| !session.has(player) || session.seat_of(player) != seat)
        };
        for (member, guest) in self.guests.iter().filter(|(_, guest)| guest.session == id) {
            if is_stray(guest.player, guest.seat) {
                self.orders.push_back(Order::Kick(*member, MOVED_ON));
            }
        }
    }

    fn playing(&self, member: Member) -> Option<Playing> {
        let (id, player) = self.player_at(member)?;
        let (session, play) = (self.host.session(id)?, self.plays.get(&id)?);
        Some(Playing {
            game: session.summary().settings.game.to_string(),
            mode: play.mode,
            place: play.key.name.clone(),
            pass: to_hex(&self.host.pass(id, player)),
            seat: session.seat_of(player),
            websocket: self.ways.web_port(),
            webtransport: self.ways.webtransport(),
            native: self.ways.native(None),
        })
    }
}
