//! Server addresses (`udp://host:port`, `quic://host:port?cert=…`, `ws://`, `wss://`, `wt://`), and connecting to them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;

use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Stamp};
use sametick_wire::{Carrier, Time};

use crate::clock::{random, unix_seconds};
use crate::endpoint::Endpoint;
use crate::noise::Psk;
use crate::tls::{CertHash, Trust};
use crate::udp::UdpEndpoint;
use crate::{quic, websocket, webtransport};

/// The transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Raw UDP.
    Udp,
    /// Native QUIC.
    Quic,
    /// WebSocket without TLS.
    Ws,
    /// WebSocket over TLS.
    Wss,
    /// WebTransport.
    Wt,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Scheme; 5] = [Scheme::Udp, Scheme::Quic, Scheme::Ws, Scheme::Wss, Scheme::Wt];

    /// The default port of a server.
    pub const fn default_port(self) -> u16 {
        match self {
            Scheme::Udp => 7777,
            Scheme::Quic => 7778,
            Scheme::Ws | Scheme::Wss => 7779,
            Scheme::Wt => 7780,
        }
    }

    /// The guarantees of its links.
    pub const fn carrier(self) -> Carrier {
        match self {
            Scheme::Udp => Carrier::Datagrams,
            Scheme::Quic | Scheme::Wt => Carrier::DatagramsAndStreams,
            Scheme::Ws | Scheme::Wss => Carrier::Stream,
        }
    }

    /// The name before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Udp => "udp",
            Scheme::Quic => "quic",
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
            Scheme::Wt => "wt",
        }
    }
}

/// The address and the transport of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    /// The transport.
    pub scheme: Scheme,
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The certificate that the server must have, where no public authority vouches for it.
    pub cert: Option<CertHash>,
}

/// Why a text is not a [`Locator`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLocator {
    /// No scheme, or an unknown one.
    #[error("\"{0}\" should begin with udp://, quic://, ws://, wss:// or wt://")]
    Scheme(String),
    /// No host.
    #[error("\"{0}\" names no host")]
    Host(String),
    /// The port is invalid.
    #[error("\"{0}\" is not a port between 1 and 65535")]
    Port(String),
    /// There is a parameter other than `?cert=…`.
    #[error("\"{0}\" is not understood: only ?cert=<64 hexadecimal digits> may follow the port")]
    Query(String),
}

impl FromStr for Locator {
    type Err = BadLocator;

    fn from_str(text: &str) -> Result<Locator, BadLocator> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| BadLocator::Scheme(text.into()))?;
        let scheme = Scheme::ALL.into_iter().find(|known| known.name() == scheme);
        let scheme = scheme.ok_or_else(|| BadLocator::Scheme(text.into()))?;
        let (authority, query) = rest.split_once('?').map_or((rest, None), |(a, q)| (a, Some(q)));
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (host, port) = split_port(authority)?;
        if host.is_empty() || host.contains(['/', ' ', '@']) {
            return Err(BadLocator::Host(text.into()));
        }
        let cert = query.map(|query| {
            let hash = query.strip_prefix("cert=").and_then(|hash| hash.parse().ok());
            hash.ok_or_else(|| BadLocator::Query(query.into()))
        });
        let port = port.unwrap_or(scheme.default_port());
        Ok(Locator { scheme, host: host.into(), port, cert: cert.transpose()? })
    }
}

/// Splits `host:port`, `[v6]:port` and either without a port.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), BadLocator> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let parse = |port: &str| match port.parse() {
        Ok(0) | Err(_) => Err(BadLocator::Port(port.into())),
        Ok(port) => Ok(port),
    };
    Ok((host, port.map(parse).transpose()?))
}

impl Locator {
    /// `host:port`, as in a URL.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    fn trust(&self) -> Trust {
        self.cert.map_or(Trust::Public, Trust::Pinned)
    }

    async fn resolve(&self) -> io::Result<SocketAddr> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await?.next();
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{} has no address", self.host)))
    }

    /// Connects to the server with this hello.
    pub async fn dial(&self, now: Time, key: &AccessKey, hello: &Hello) -> io::Result<Box<dyn Endpoint>> {
        let stamp = Stamp { unix_s: unix_seconds(), nonce: random() };
        let first =
            hello.to_bytes(key, stamp).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.call(now, key, first).await
    }

    /// Connects to the server with these bytes as the first message.
    pub async fn call(&self, now: Time, key: &AccessKey, first: Vec<u8>) -> io::Result<Box<dyn Endpoint>> {
        let to = self.resolve().await?;
        Ok(match self.scheme {
            Scheme::Udp => Box::new(UdpEndpoint::connect(to, &Psk::new(key), &first, now)?),
            Scheme::Quic => Box::new(quic::connect(to, &self.host, self.trust(), key.clone(), first)?),
            Scheme::Ws => Box::new(websocket::connect(to, &self.host, &self.authority(), None, first)?),
            Scheme::Wss => {
                Box::new(websocket::connect(to, &self.host, &self.authority(), Some(self.trust()), first)?)
            }
            Scheme::Wt => Box::new(webtransport::connect(&self.authority(), self.trust(), first)?),
        })
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.authority())?;
        self.cert.map_or(Ok(()), |cert| write!(f, "?cert={cert}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locators_read_and_print() {
        let hash = "ab".repeat(32);
        for text in [
            "udp://127.0.0.1:7777".to_owned(),
            "ws://example.org:80".to_owned(),
            "wss://[::1]:443".to_owned(),
            format!("quic://localhost:7778?cert={hash}"),
            format!("wt://[2001:db8::1]:9?cert={hash}"),
        ] {
            assert_eq!(text.parse::<Locator>().unwrap().to_string(), text);
        }
        let short: Locator = "quic://example.org".parse().unwrap();
        assert_eq!(short.to_string(), "quic://example.org:7778");
        assert_eq!("ws://example.org:1/".parse::<Locator>().unwrap().port, 1);
    }

    #[test]
    fn a_bad_locator_is_refused_with_a_reason() {
        for (text, word) in [
            ("example.org:1", "should begin with"),
            ("http://example.org", "should begin with"),
            ("udp://:1", "names no host"),
            ("udp://a/b:1", "names no host"),
            ("udp://a:0", "is not a port"),
            ("udp://a:99999", "is not a port"),
            ("quic://a:1?cert=12", "is not understood"),
            ("quic://a:1?pin=12", "is not understood"),
        ] {
            let error = text.parse::<Locator>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
