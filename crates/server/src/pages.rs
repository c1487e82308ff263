//! The HTTP side of `sametick up`: the built pages, and a JSON API for them.

mod api;
mod files;
pub(crate) mod gate;
mod places;
mod session;

use sametick_transport::site::{
    Bytes, HeaderMap, Later, Method, Pages, Request, Response, StatusCode, Upgrade, Visitor, header,
};
use serde_json::{Value, json};

use crate::games::Games;
use crate::gateway::lists::Lists;
use crate::identity::Identity;
use crate::identity::tokens::Counter;
use crate::listen::Listening;
use crate::presence::Presence;
use api::Api;
use session::Exchange;

/// Headers of every response. Scripts load from this origin only; pages may connect to other ports of this host
/// (WebTransport), and may not be framed.
const HEADERS: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; \
         connect-src 'self' ws: wss: https:; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
         object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// The HTTP handler for pages and API.
pub struct WebPages {
    api: Api,
}

impl WebPages {
    /// For a server with these listeners. Sign-ins get their tokens from `tokens`.
    pub fn new(
        listening: &Listening,
        games: Games,
        presence: Presence,
        lists: Lists,
        identity: Identity,
        counter: Counter,
    ) -> WebPages {
        WebPages { api: Api::new(listening, games, presence, lists, Exchange::new(identity, counter)) }
    }
}

impl Pages for WebPages {
    fn answer(&self, request: &Request<()>) -> Response<Bytes> {
        let path = request.uri().path();
        let response = if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
            set(response.headers_mut(), header::ALLOW.as_str(), "GET, HEAD");
            response
        } else if path == "/api" || path.starts_with("/api/") {
            self.api.answer(request)
        } else {
            files::answer(path, self.api.is_place(path), request.headers())
        };
        guarded(response)
    }

    fn answer_later(&self, request: &Request<()>, visitor: &Visitor) -> Option<Later> {
        let answer = self.api.answer_later(request, visitor)?;
        Some(Box::pin(async move { guarded(answer.await) }))
    }

    fn upgrade(&self, request: &Request<()>) -> Upgrade {
        self.api.upgrade(request)
    }
}

/// Adds the common headers.
pub(crate) fn guarded(mut response: Response<Bytes>) -> Response<Bytes> {
    for (name, value) in HEADERS {
        set(response.headers_mut(), name, value);
    }
    response
}

/// A JSON answer that must not be cached.
pub(crate) fn answer_json(status: StatusCode, value: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(value.to_string()));
    *response.status_mut() = status;
    set(response.headers_mut(), header::CONTENT_TYPE.as_str(), "application/json");
    set(response.headers_mut(), header::CACHE_CONTROL.as_str(), "no-store");
    response
}

pub(crate) fn error(status: StatusCode, why: &str) -> Response<Bytes> {
    answer_json(status, &json!({ "error": why }))
}

pub(crate) fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    let value = header::HeaderValue::from_str(value).expect("our own headers are plain text");
    headers.insert(name, value);
}
