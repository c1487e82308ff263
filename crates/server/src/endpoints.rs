//! The addresses of a server, as pages and programs are told them.

use sametick_transport::dial::{Locator, Scheme};
use serde::Serialize;

use crate::listen::{Certificates, Listening};

/// The transports of a server.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    locators: Vec<Locator>,
    certificates: Certificates,
}

/// What a page needs to connect over WebTransport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WebTransport {
    pub port: u16,
    /// The certificate hash to pin, if no authority vouches for the certificate.
    pub cert: Option<String>,
}

impl Endpoints {
    /// The endpoints of a server with these listeners.
    pub fn of(listening: &Listening) -> Endpoints {
        Endpoints { locators: listening.locators.clone(), certificates: listening.certificates.clone() }
    }

    fn find(&self, scheme: Scheme) -> Option<&Locator> {
        self.locators.iter().find(|locator| locator.scheme == scheme)
    }

    /// The TCP port of pages and WebSocket.
    pub fn web_port(&self) -> Option<u16> {
        self.find(Scheme::Ws).or_else(|| self.find(Scheme::Wss)).map(|web| web.port)
    }

    /// WebTransport, if it is on. Certificates are renewed while the server runs: the hash is the current one.
    pub fn webtransport(&self) -> Option<WebTransport> {
        let cert = self.certificates.pin(Scheme::Wt).map(|hash| hash.to_string());
        self.find(Scheme::Wt).map(|wt| WebTransport { port: wt.port, cert })
    }

    /// The addresses for native programs, under the host name that the client used.
    pub fn native(&self, host: Option<&str>) -> Vec<String> {
        let native = [Scheme::Udp, Scheme::Quic].into_iter().filter_map(|scheme| {
            let locator = self.find(scheme)?.clone();
            let host = host.map_or(locator.host.clone(), str::to_owned);
            Some(Locator { host, cert: self.certificates.pin(scheme), ..locator }.to_string())
        });
        native.collect()
    }
}
