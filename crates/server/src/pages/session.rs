//! `POST /api/session`: exchanges a signed token for one of the server's own.

use std::future::ready;
use std::time::Instant;

use sametick_transport::rate_limit::AddressLimiter;
use sametick_transport::site::{Bytes, HeaderMap, Later, Request, Response, StatusCode, Visitor, header};
use serde_json::json;

use super::{answer_json, set};
use crate::identity::tokens::{Counter, Issued};
use crate::identity::{Identity, Refusal, SignedIn};

/// The path.
pub const PATH: &str = "/api/session";

/// The scheme with which a page shows its token: `Authorization: Bearer JWT`.
const SCHEME: &str = "Bearer";

/// Rate limit of sign-ins per address and its burst: a class behind one address signs in together.
const TRIES_PER_SECOND: u32 = 1;
const TRIES_AT_ONCE: u32 = 30;

const NO_TOKEN: Refusal = Refusal::MalformedToken("show your signed token: Authorization: Bearer JWT");

/// The handler that exchanges signed tokens.
pub struct Exchange {
    identity: Identity,
    counter: Counter,
    limiter: AddressLimiter,
}

impl Exchange {
    pub fn new(identity: Identity, counter: Counter) -> Exchange {
        Exchange { identity, counter, limiter: AddressLimiter::new(TRIES_PER_SECOND, TRIES_AT_ONCE) }
    }

    /// Whether rooms require these tokens.
    pub fn is_needed(&self) -> bool {
        self.identity.requires_tokens()
    }

    /// Begins to answer.
    pub fn answer(&self, request: &Request<()>, visitor: &Visitor) -> Later {
        let at_once = |response| -> Later { Box::pin(ready(response)) };
        if !visitor.is_welcome {
            let why = "pages of this origin may not sign in here";
            return at_once(refused(StatusCode::FORBIDDEN, "wrong_origin", why));
        }
        if !self.limiter.try_take(Instant::now(), visitor.ip) {
            let why = "too many tries from this address: wait a moment";
            return at_once(busy(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", why));
        }
        let Some(token) = bearer(request.headers()) else { return at_once(unauthorized(NO_TOKEN)) };
        let Some(signing_in) = self.identity.sign_in(token) else {
            let why = "nobody signs in here: come in with a name";
            return at_once(refused(StatusCode::NOT_FOUND, "no_identity", why));
        };
        let counter = self.counter.clone();
        Box::pin(async move {
            match signing_in.await {
                Ok(who) => match counter.issue(who.clone()).await {
                    Some(issued) => welcome(&who, &issued),
                    None => unauthorized(Refusal::IdentityUnavailable),
                },
                Err(refusal) => unauthorized(refusal),
            }
        })
    }
}

/// The token in the request, if there is one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case(SCHEME) && !token.is_empty()).then_some(token)
}

fn welcome(who: &SignedIn, issued: &Issued) -> Response<Bytes> {
    answer_json(
        StatusCode::OK,
        &json!({
            "token": issued.token.to_hex(),
            "player": who.player.to_string(),
            "name": issued.name,
            "expires": issued.expires_unix_s,
        }),
    )
}

fn unauthorized(refusal: Refusal) -> Response<Bytes> {
    let (code, sentence) = (refusal.code(), refusal.sentence());
    if refusal == Refusal::IdentityUnavailable {
        return busy(StatusCode::SERVICE_UNAVAILABLE, code, sentence);
    }
    let mut response = refused(StatusCode::UNAUTHORIZED, code, sentence);
    set(response.headers_mut(), header::WWW_AUTHENTICATE.as_str(), SCHEME);
    response
}

/// A refusal that a retry may avoid.
fn busy(status: StatusCode, code: &str, why: &str) -> Response<Bytes> {
    let mut response = refused(status, code, why);
    set(response.headers_mut(), header::RETRY_AFTER.as_str(), "2");
    response
}

fn refused(status: StatusCode, code: &str, why: &str) -> Response<Bytes> {
    answer_json(status, &json!({ "code": code, "error": why }))
}
