//! The API of the pages: how the server is, what it is, and who plays.

use std::future::ready;
use std::time::Instant;

use sametick_transport::clock::unix_seconds;
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::keeper::Keeper;
use sametick_transport::site::{
    Bytes, HeaderMap, Later, Method, Request, Response, StatusCode, Upgrade, Visitor, header,
};
use sametick_wire::hex::from_hex;
use serde_json::{Value, json};

use super::session::{self, Exchange};
use super::{answer_json, error, set};
use crate::games::{AnyGame, Games};
use crate::listen::{Certificates, Listening};
use crate::lobby::{Lobby, Mode};
use crate::rooms::entrance::{Entrance, room_of, room_of_socket};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How a page proves the passphrase: `Authorization: Sametick HEX`.
const PROOF_SCHEME: &str = "Sametick ";

/// Everything the API tells of.
pub struct Api {
    started: Instant,
    games: Games,
    lobby: Lobby,
    /// Where others than pages reach it; and pages, on WebTransport.
    locators: Vec<Locator>,
    certificates: Certificates,
    keeper: Keeper,
    is_locked: bool,
    exchange: Exchange,
}

impl Api {
    pub fn new(listening: &Listening, games: Games, lobby: Lobby, exchange: Exchange) -> Api {
        Api {
            started: Instant::now(),
            games,
            lobby,
            locators: listening.locators.clone(),
            certificates: listening.certificates.clone(),
            keeper: listening.keeper.clone(),
            is_locked: !listening.secret.is_open(),
            exchange,
        }
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
            ("/api/sessions", _) | (_, Some(_)) if !self.may_see(request) => unauthorized(),
            ("/api/sessions", _) => {
                answer_json(StatusCode::OK, &json!({ "sessions": self.lobby.read().listed() }))
            }
            (_, Some(code)) => self.room(code, request.uri().query().unwrap_or_default()),
            _ => error(
                StatusCode::NOT_FOUND,
                "there is nothing here; there are /api/health, /api/server, /api/session, /api/sessions and \
                 /api/rooms/CODE",
            ),
        }
    }

    /// Begins to answer what takes a while: that somebody signs in.
    pub fn answer_later(&self, request: &Request<()>, visitor: &Visitor) -> Option<Later> {
        if request.method() != Method::POST || request.uri().path() != session::PATH {
            return None;
        }
        if !self.may_see(request) {
            return Some(Box::pin(ready(unauthorized())));
        }
        Some(self.exchange.answer(request, visitor))
    }

    /// What a WebSocket at this address is for.
    pub fn upgrade(&self, request: &Request<()>) -> Upgrade {
        if room_of_socket(request.uri().path()).is_none() {
            return Upgrade::Link;
        }
        if !self.may_see(request) {
            return Upgrade::Refused(unauthorized());
        }
        match Entrance::parse(&request.uri().to_string()) {
            Ok(_) => Upgrade::Talk,
            Err(why) => Upgrade::Refused(error(StatusCode::BAD_REQUEST, &why)),
        }
    }

    fn room(&self, code: &str, query: &str) -> Response<Bytes> {
        let entrance = match Entrance::parse(&format!("/api/rooms/{code}/ws?{query}")) {
            Ok(entrance) => entrance,
            Err(why) => return error(StatusCode::BAD_REQUEST, &why),
        };
        match self.lobby.read().room(&entrance.room, entrance.game.as_deref()) {
            Some(room) => answer_json(StatusCode::OK, &json!(room)),
            None => error(StatusCode::NOT_FOUND, "there is no such room now; whoever comes first begins it"),
        }
    }

    fn health(&self) -> Value {
        let (sessions, players) = self.lobby.read().counts();
        json!({
            "status": "ok",
            "version": VERSION,
            "commit": crate::COMMIT,
            "uptime_s": self.started.elapsed().as_secs(),
            "sessions": sessions,
            "players": players,
        })
    }

    fn server(&self, headers: &HeaderMap) -> Value {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).and_then(name_of);
        let games: Vec<Value> = self.games.iter().map(game).collect();
        let find = |scheme| self.locators.iter().find(|locator| locator.scheme == scheme);
        // Kept certificates are made anew while the server runs: the hash is that of this moment.
        let pin = |scheme| self.certificates.pin(scheme);
        let webtransport = find(Scheme::Wt)
            .map(|wt| json!({ "port": wt.port, "cert": pin(Scheme::Wt).map(|hash| hash.to_string()) }));
        let native = [Scheme::Udp, Scheme::Quic].into_iter().filter_map(|scheme| {
            let locator = find(scheme)?.clone();
            let host = host.map_or(locator.host.clone(), str::to_owned);
            Some(Locator { host, cert: pin(scheme), ..locator }.to_string())
        });
        json!({
            "version": VERSION,
            "commit": crate::COMMIT,
            "locked": self.is_locked,
            "sign_in": self.exchange.is_needed(),
            "games": games,
            "websocket": { "path": "/ws" },
            "webtransport": webtransport,
            "native": native.collect::<Vec<_>>(),
        })
    }

    /// Whether whoever asks knows the passphrase, if there is one.
    fn may_see(&self, request: &Request<()>) -> bool {
        let in_headers = || {
            let shown = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
            from_hex(shown.strip_prefix(PROOF_SCHEME)?)
        };
        // Pages cannot set the headers of WebSockets.
        let in_query = || {
            let mut pairs = request.uri().query()?.split('&');
            pairs.find_map(|pair| pair.strip_prefix("proof=")).and_then(from_hex)
        };
        let is_good = |proof: [u8; 32]| self.keeper.key().is_page_proof(unix_seconds() / 60, &proof);
        !self.is_locked || in_headers().or_else(in_query).is_some_and(is_good)
    }
}

fn unauthorized() -> Response<Bytes> {
    let why = "this server asks for a passphrase; show the proof of it that docs/protocol.md describes";
    let mut response = error(StatusCode::UNAUTHORIZED, why);
    set(response.headers_mut(), header::WWW_AUTHENTICATE.as_str(), PROOF_SCHEME.trim_end());
    response
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
    json!({
        "name": game.name(),
        "build": game.build().to_string(),
        "ticks_per_second": game.rate().per_second(),
        "seats": [seats.start(), seats.end()],
        "modes": modes,
        "room": room,
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
    fn hosts_are_read_with_care() {
        assert_eq!(name_of("example.org:8080"), Some("example.org"));
        assert_eq!(name_of("[::1]:8080"), Some("::1"));
        assert_eq!(name_of("127.0.0.1"), Some("127.0.0.1"));
        for bad in ["", ":80", "a b", "<script>", "a/b:1", "[]:1"] {
            assert_eq!(name_of(bad), None, "{bad}");
        }
    }
}
