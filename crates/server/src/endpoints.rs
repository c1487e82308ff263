//! Where a server is reached, as pages and programs are told.

use sametick_transport::dial::{Locator, Scheme};
use serde::Serialize;

use crate::listen::{Certificates, Listening};

/// The transports of a server.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    locators: Vec<Locator>,
    certificates: Certificates,
}

/// WebTransport, as pages need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WebTransport {
    pub port: u16,
    /// What to pin, if no authority vouches for it.
    pub cert: Option<String>,
}

impl Endpoints {
    /// Those of a server that listens like this.
    pub fn of(listening: &Listening) -> Endpoints {
        Endpoints { locators: listening.locators.clone(), certificates: listening.certificates.clone() }
    }

    fn find(&self, scheme: Scheme) -> Option<&Locator> {
        self.locators.iter().find(|locator| locator.scheme == scheme)
    }

    /// The port of pages and WebSocket.
    pub fn web_port(&self) -> Option<u16> {
        self.find(Scheme::Ws).or_else(|| self.find(Scheme::Wss)).map(|web| web.port)
    }

    /// WebTransport, if it is there. Kept certificates are made anew while the server runs: the hash is that of this moment.
    pub fn webtransport(&self) -> Option<WebTransport> {
        let cert = self.certificates.pin(Scheme::Wt).map(|hash| hash.to_string());
        self.find(Scheme::Wt).map(|wt| WebTransport { port: wt.port, cert })
    }

    /// The addresses for programs, under the name by which whoever asks knows this machine.
    pub fn native(&self, host: Option<&str>) -> Vec<String> {
        let native = [Scheme::Udp, Scheme::Quic].into_iter().filter_map(|scheme| {
            let locator = self.find(scheme)?.clone();
            let host = host.map_or(locator.host.clone(), str::to_owned);
            Some(Locator { host, cert: self.certificates.pin(scheme), ..locator }.to_string())
        });
        native.collect()
    }
}
