//! Passphrase check for HTTP requests and WebSocket upgrades.

use sametick_transport::clock::unix_seconds;
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::site::{Bytes, Request, Response, StatusCode, Upgrade, header};
use sametick_wire::hex::from_hex;

use super::{error, set};
use crate::listen::Listening;
use crate::rooms::entrance::is_of_scripts;

/// The scheme with which a page proves the passphrase: `Authorization: Sametick HEX`.
const PROOF_SCHEME: &str = "Sametick ";

/// The passphrase of a server, if it has one.
pub(crate) struct Gate {
    keeper: ProofJournal,
    /// Whether a passphrase is set.
    pub is_locked: bool,
}

impl Gate {
    /// The gate of a server with these listeners.
    pub fn of(listening: &Listening) -> Gate {
        Gate { keeper: listening.keeper.clone(), is_locked: !listening.secret.is_open() }
    }

    /// Whether the request proves the passphrase, if one is set.
    pub fn may_see(&self, request: &Request<()>) -> bool {
        let in_headers = || {
            let shown = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
            from_hex(shown.strip_prefix(PROOF_SCHEME)?)
        };
        // Pages cannot set headers of WebSocket requests.
        let in_query = || {
            let mut pairs = request.uri().query()?.split('&');
            pairs.find_map(|pair| pair.strip_prefix("proof=")).and_then(from_hex)
        };
        let is_good = |proof: [u8; 32]| self.keeper.key().is_page_proof(unix_seconds() / 60, &proof);
        !self.is_locked || in_headers().or_else(in_query).is_some_and(is_good)
    }

    /// The purpose of a WebSocket. Envelopes are used at `talks_at` and at script paths: refusals there are sent in an
    /// envelope, because browsers and most libraries do not show the body of a refused upgrade.
    pub fn upgrade(&self, request: &Request<()>, talks_at: &str) -> Upgrade {
        let path = request.uri().path();
        if path == talks_at || is_of_scripts(path) {
            return if self.may_see(request) { Upgrade::Raw } else { Upgrade::Refused(unauthorized()) };
        }
        if path.starts_with("/api/") {
            let why = "there is no WebSocket here; a script comes in at /api/rooms/CODE/ws";
            return Upgrade::Refused(error(StatusCode::NOT_FOUND, why));
        }
        Upgrade::Link
    }
}

pub(crate) fn unauthorized() -> Response<Bytes> {
    let why = "this server asks for a passphrase; show the proof of it that docs/protocol.md describes";
    let mut response = error(StatusCode::UNAUTHORIZED, why);
    set(response.headers_mut(), header::WWW_AUTHENTICATE.as_str(), PROOF_SCHEME.trim_end());
    response
}
