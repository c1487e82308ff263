//! The JSON API of the pages: health, server description, sessions and players.

use std::future::ready;
use std::time::Instant;

use sametick_transport::site::{
    Bytes, HeaderMap, Later, Method, Request, Response, StatusCode, Upgrade, Visitor, header,
};
use serde_json::{Value, json};

use super::gate::{Gate, unauthorized};
use super::session::{self, Exchange};
use super::{answer_json, error, places, set};
use crate::endpoints::Endpoints;
use crate::games::{AnyGame, Games};
use crate::gateway;
use crate::gateway::lists::Lists;
use crate::listen::Listening;
use crate::presence::{Mode, Presence};
use crate::rooms::entrance::{Entrance, room_of};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The sources of the API's answers.
pub struct Api {
    started: Instant,
    games: Games,
    presence: Presence,
    endpoints: Endpoints,
    gate: Gate,
    /// The lists of sessions and hosts.
    lists: Lists,
    exchange: Exchange,
}

impl Api {
    pub fn new(
        listening: &Listening,
        games: Games,
        presence: Presence,
        lists: Lists,
        exchange: Exchange,
    ) -> Api {
        Api {
            started: Instant::now(),
            games,
            presence,
            endpoints: Endpoints::of(listening),
            gate: Gate::of(listening),
            lists,
            exchange,
        }
    }

    /// Whether the app has a page for this path, given this server's games.
    pub fn is_place(&self, path: &str) -> bool {
        places::is_place(path, &self.games)
    }

    pub fn answer(&self, request: &Request<()>) -> Response<Bytes> {
        let path = request.uri().path();
        match (path, room_of(path)) {
            ("/api/health", _) => answer_json(StatusCode::OK, &self.health()),
            ("/api/server", _) => answer_json(StatusCode::OK, &self.server(request.headers())),
            (session::PATH, _) => {
                let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "a token is exchanged here by POST");
                set(response.headers_mut(), header::ALLOW.as_str(), "POST");
                response
            }
            ("/api/sessions" | "/api/lobby", _) | (_, Some(_)) if !self.gate.may_see(request) => {
                unauthorized()
            }
            ("/api/sessions", _) => {
                answer_json(StatusCode::OK, &json!({ "sessions": self.presence.read().listed() }))
            }
            ("/api/lobby", _) => match self.lists.answer(request.uri().query().unwrap_or_default()) {
                Ok(sessions) => answer_json(StatusCode::OK, &sessions),
                Err(why) => error(StatusCode::BAD_REQUEST, &why),
            },
            (_, Some(code)) => self.room(code, request.uri().query().unwrap_or_default()),
            _ => error(
                StatusCode::NOT_FOUND,
                "there is nothing here; there are /api/health, /api/server, /api/lobby, /api/session, \
                 /api/sessions and /api/rooms/CODE",
            ),
        }
    }

    /// Begins an answer that takes a while: a sign-in.
    pub fn answer_later(&self, request: &Request<()>, visitor: &Visitor) -> Option<Later> {
        if request.method() != Method::POST || request.uri().path() != session::PATH {
            return None;
        }
        if !self.gate.may_see(request) {
            return Some(Box::pin(ready(unauthorized())));
        }
        Some(self.exchange.answer(request, visitor))
    }

    /// The purpose of a WebSocket at this path.
    pub fn upgrade(&self, request: &Request<()>) -> Upgrade {
        self.gate.upgrade(request, gateway::SOCKET)
    }

    fn room(&self, code: &str, query: &str) -> Response<Bytes> {
        let entrance = match Entrance::parse(&format!("/api/rooms/{code}/ws?{query}")) {
            Ok(entrance) => entrance,
            Err(why) => return error(StatusCode::BAD_REQUEST, &why),
        };
        match self.presence.read().room(&entrance.room, entrance.game.as_deref()) {
            Some(room) => answer_json(StatusCode::OK, &json!(room)),
            None => error(StatusCode::NOT_FOUND, "there is no such room now; the first join begins it"),
        }
    }

    fn health(&self) -> Value {
        let (sessions, players) = self.presence.read().counts();
        let hosted = self.lists.counts();
        json!({
            "status": "ok",
            "version": VERSION,
            "commit": self.games.commit(),
            "uptime_s": self.started.elapsed().as_secs(),
            "sessions": sessions,
            "players": players,
            "hosts": hosted.hosts,
            "hosted_sessions": hosted.sessions,
            "hosted_players": hosted.players,
        })
    }

    fn server(&self, headers: &HeaderMap) -> Value {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).and_then(name_of);
        let games: Vec<Value> = self.games.iter().map(game).collect();
        json!({
            "version": VERSION,
            "commit": self.games.commit(),
            "locked": self.gate.is_locked,
            "sign_in": self.exchange.is_needed(),
            "games": games,
            "websocket": { "path": "/ws" },
            "webtransport": self.endpoints.webtransport(),
            "native": self.endpoints.native(host),
        })
    }
}

fn game(game: &dyn AnyGame) -> Value {
    let seats = game.seats();
    let modes = if game.room().is_some() { vec![Mode::Lockstep, Mode::Room] } else { vec![Mode::Lockstep] };
    let room = game.room().map(|room| {
        let seats = room.seats();
        json!({
            "schema": room.schema().to_string(),
            "updates_per_second": room.updates().per_second(),
            "seats": [seats.start(), seats.end()],
        })
    });
    let session = game.contest().map(|contest| {
        let groups: Vec<Value> = contest
            .groups()
            .iter()
            .map(|group| json!({ "name": group.name, "seats": group.seats }))
            .collect();
        json!({ "groups": groups, "scenarios": contest.scenarios() })
    });
    json!({
        "name": game.name(),
        "build": game.build().to_string(),
        "schema": game.schema().to_string(),
        "ticks_per_second": game.rate().per_second(),
        "seats": [seats.start(), seats.end()],
        "modes": modes,
        "room": room,
        "session": session,
    })
}

/// The name in `name:port` or `[v6]:port`, if it looks like one.
fn name_of(host: &str) -> Option<&str> {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => name,
        None => host.split(':').next()?,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'_');
    (!name.is_empty() && name.bytes().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_headers_are_parsed_strictly() {
        assert_eq!(name_of("example.org:8080"), Some("example.org"));
        assert_eq!(name_of("[::1]:8080"), Some("::1"));
        assert_eq!(name_of("127.0.0.1"), Some("127.0.0.1"));
        for bad in ["", ":80", "a b", "<script>", "a/b:1", "[]:1"] {
            assert_eq!(name_of(bad), None, "{bad}");
        }
    }
}
