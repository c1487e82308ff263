//! Whoever asks over HTTP where a passphrase is set shows that they know it.

use sametick_transport::clock::unix_seconds;
use sametick_transport::keeper::Keeper;
use sametick_transport::site::{Bytes, Request, Response, StatusCode, Upgrade, header};
use sametick_wire::hex::from_hex;

use super::{error, set};
use crate::listen::Listening;
use crate::rooms::entrance::Entrance;

/// How a page proves the passphrase: `Authorization: Sametick HEX`.
const PROOF_SCHEME: &str = "Sametick ";

/// The passphrase of a server, if it has one.
pub(crate) struct Gate {
    keeper: Keeper,
    /// Whether there is one.
    pub is_locked: bool,
}

impl Gate {
    /// That of a server that listens like this.
    pub fn of(listening: &Listening) -> Gate {
        Gate { keeper: listening.keeper.clone(), is_locked: !listening.secret.is_open() }
    }

    /// Whether whoever asks knows the passphrase, if there is one.
    pub fn may_see(&self, request: &Request<()>) -> bool {
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

    /// What the WebSocket of a script is for: to talk with a room, unless what it asks for makes no sense.
    pub fn upgrade_script(&self, request: &Request<()>) -> Upgrade {
        if !self.may_see(request) {
            return Upgrade::Refused(unauthorized());
        }
        match Entrance::parse(&request.uri().to_string()) {
            Ok(_) => Upgrade::Talk,
            Err(why) => Upgrade::Refused(error(StatusCode::BAD_REQUEST, &why)),
        }
    }
}

pub(crate) fn unauthorized() -> Response<Bytes> {
    let why = "this server asks for a passphrase; show the proof of it that docs/protocol.md describes";
    let mut response = error(StatusCode::UNAUTHORIZED, why);
    set(response.headers_mut(), header::WWW_AUTHENTICATE.as_str(), PROOF_SCHEME.trim_end());
    response
}
