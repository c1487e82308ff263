//! Opens the listeners of a server, on any of the four transports.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use sametick_transport::clock::Clock;
use sametick_transport::connection_slots::{ConnectionSlots, MAX_EACH};
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::endpoint::Endpoint;
use sametick_transport::hub::Hub;
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::site::{Origins, Pages, Site};
use sametick_transport::tls::{CertHash, Certificate, CertificateError, Purpose};
use sametick_transport::udp::UdpEndpoint;
use sametick_transport::websocket;
use sametick_transport::{quic, webtransport};
use tokio::net::TcpListener;

use crate::secret::{Secret, SecretError};

/// What to listen on, and the limits of connections.
#[derive(Clone, Debug, Args)]
pub struct ListenArgs {
    /// The address to listen on, 0.0.0.0 or `[::]` for all, and the first of four ports
    #[arg(long, value_name = "IP[:PORT]", default_value = "127.0.0.1:7777")]
    pub listen: ListenOn,

    /// The port for raw UDP (0: any free one, "off": none) [default: the first]
    #[arg(long, value_name = "PORT")]
    pub udp: Option<Port>,

    /// The port for native QUIC [default: the one after]
    #[arg(long, value_name = "PORT")]
    pub quic: Option<Port>,

    /// The port for WebSocket [default: the one after]
    #[arg(long, value_name = "PORT")]
    pub ws: Option<Port>,

    /// The port for WebTransport [default: the one after]
    #[arg(long, value_name = "PORT")]
    pub wt: Option<Port>,

    /// A PEM file with the certificate chain for QUIC, WebSocket (then wss://) and WebTransport
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// A PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// A page's origin that may connect besides those of this host, such as `https://example.org`. Its name is a name
    /// of this server, too: to other names than those of this machine it does not answer
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Vec<String>,

    /// How many connections one address may have at a time on each port
    #[arg(long, value_name = "N", default_value_t = MAX_EACH)]
    pub per_address: usize,

    /// A file with the passphrase on its first line; read again on SIGHUP. Without it, $SAMETICK_SECRET counts
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// Where sessions, used proofs and self-signed certificates are kept
    #[arg(long, value_name = "DIR", default_value = "sametick-data")]
    pub data: PathBuf,
}

/// The first port if none is given.
const DEFAULT_PORT: u16 = 7777;

/// An address, and the first of four ports: for UDP, QUIC, WebSocket and WebTransport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOn {
    /// The address.
    pub ip: IpAddr,
    /// The first port; 0 for any free ones.
    pub first_port: u16,
}

impl ListenOn {
    /// The port of the transport with this index; 0 stays 0.
    fn port(self, place: u16) -> Port {
        Port::On(if self.first_port == 0 { 0 } else { self.first_port + place })
    }
}

impl std::str::FromStr for ListenOn {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ListenOn, Self::Err> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let (ip, first_port) = match (bare.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
            (Ok(ip), _) => (ip, DEFAULT_PORT),
            (_, Ok(addr)) => (addr.ip(), addr.port()),
            _ => return Err("an address such as 0.0.0.0, or with a port such as 0.0.0.0:7777"),
        };
        match first_port.checked_add(3) {
            Some(_) => Ok(ListenOn { ip, first_port }),
            None => Err("four ports are needed, so the first is 65532 at most"),
        }
    }
}

/// A port, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// This port; 0 for any free one.
    On(u16),
    /// Do not listen.
    Off,
}

impl std::str::FromStr for Port {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Port, Self::Err> {
        match text {
            "off" => Ok(Port::Off),
            port => port.parse().map(Port::On).map_err(|_| "a port is a number up to 65535, or \"off\""),
        }
    }
}

/// Why a server does not start. Each error says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A port cannot be opened.
    #[error("{what}: cannot listen on {addr}: {error}{}", hint(.error, .option))]
    Bind {
        /// What the port is for.
        what: &'static str,
        /// The address.
        addr: SocketAddr,
        /// The option that chooses another port.
        option: String,
        /// The error.
        error: io::Error,
    },
    /// The data folder cannot be written to.
    #[error("cannot write to the data folder {}: {error}; choose another with --data", path.display())]
    Data {
        /// The folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The certificate cannot be read or made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// There is no passphrase.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Every transport is off.
    #[error("nothing to listen on: --udp, --quic, --ws and --wt are all off")]
    Nothing,
}

fn hint(error: &io::Error, option: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!("; another program has it: choose another port with {option}"),
        io::ErrorKind::PermissionDenied => format!("; choose a port above 1023 with {option}"),
        io::ErrorKind::AddrNotAvailable => "; this machine does not have that address: see --listen".into(),
        _ => String::new(),
    }
}

/// A hub that listens, and its addresses.
pub struct Listening {
    /// Ready to run an application.
    pub hub: Hub,
    /// The URLs at which it can be reached.
    pub locators: Vec<Locator>,
    /// The journal of used proofs, which also changes the passphrase.
    pub keeper: ProofJournal,
    /// Where the passphrase comes from.
    pub secret: Secret,
    /// The certificates of the listeners, for renewing them.
    pub certificates: Certificates,
}

/// The certificates of the listeners.
#[derive(Clone, Debug)]
pub enum Certificates {
    /// One that was configured, for all transports.
    Configured(Certificate),
    /// Self-signed: a long-lived one for native clients, and a short-lived one that browsers accept.
    Kept {
        /// For QUIC.
        native: Certificate,
        /// For WebTransport.
        browsers: Certificate,
    },
}

impl Certificates {
    fn of(&self, scheme: Scheme) -> &Certificate {
        match self {
            Certificates::Configured(certificate) => certificate,
            Certificates::Kept { native, .. } if scheme == Scheme::Quic => native,
            Certificates::Kept { browsers, .. } => browsers,
        }
    }

    /// The hash that clients of a scheme must pin, if no authority has signed the certificate.
    pub fn pin(&self, scheme: Scheme) -> Option<CertHash> {
        let secure = matches!(scheme, Scheme::Quic | Scheme::Wss | Scheme::Wt);
        let kept = matches!(self, Certificates::Kept { .. });
        (secure && kept).then(|| self.of(scheme).hash())
    }

    /// Reads configured files again and replaces old self-signed certificates. One that cannot be renewed stays, and
    /// the error is logged.
    pub fn renew(&self) {
        for scheme in [Scheme::Quic, Scheme::Wt] {
            match self.of(scheme).renew() {
                Ok(true) => {
                    tracing::info!(hash = %self.of(scheme).hash(), "a new certificate for {}", scheme.name());
                }
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "the old certificate stays"),
            }
        }
    }
}

impl ListenArgs {
    /// The ports that these options open.
    pub fn doors(&self) -> Doors {
        let port = |place, given: Option<Port>| given.unwrap_or_else(|| self.listen.port(place));
        Doors {
            ip: self.listen.ip,
            udp: port(0, self.udp),
            quic: port(1, self.quic),
            tcp: port(2, self.ws),
            wt: port(3, self.wt),
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            origins: self.origin.clone(),
            names: Vec::new(),
            per_address: self.per_address,
            secret_file: self.secret_file.clone(),
            data: self.data.clone(),
            web: None,
        }
    }
}

/// The ports that a server opens, and their settings.
#[derive(Clone, Debug)]
pub struct Doors {
    /// The address.
    pub ip: IpAddr,
    /// The port of raw UDP.
    pub udp: Port,
    /// The port of native QUIC.
    pub quic: Port,
    /// The port of WebSocket, and of pages if there are any.
    pub tcp: Port,
    /// The port of WebTransport.
    pub wt: Port,
    /// PEM files of a certificate chain and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Origins of pages that may connect besides those of this host.
    pub origins: Vec<String>,
    /// Names of this server besides those of the origins.
    pub names: Vec<String>,
    /// How many connections one address may have at a time on each port.
    pub per_address: usize,
    /// A file with the passphrase.
    pub secret_file: Option<PathBuf>,
    /// The folder for used proofs and self-signed certificates.
    pub data: PathBuf,
    /// Set if there are pages on the TCP port.
    pub web: Option<Web>,
}

/// How pages are served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Web {
    /// Whether a proxy stands before the TCP port, whose headers are trusted.
    pub behind_proxy: bool,
    /// The port of this machine that pages are served on, if that is another one.
    pub pages_port: Option<u16>,
}

impl Doors {
    /// Opens all listeners. The TCP port comes last, because its pages name the other ports. Needs a runtime.
    pub async fn open(
        &self,
        clock: Clock,
        pages: impl FnOnce(&Listening) -> Option<Arc<dyn Pages>>,
    ) -> Result<Listening, ListenError> {
        let data = |error| ListenError::Data { path: self.data.clone(), error };
        std::fs::create_dir_all(&self.data).map_err(data)?;
        let secret = Secret::find(self.secret_file.as_deref());
        let keeper = ProofJournal::open(secret.key()?, &self.data.join("used-proofs")).map_err(data)?;
        let certificates = self.certificates()?;
        let hub = Hub::new(clock, Some(keeper.clone()));
        let mut listening = Listening { hub, locators: Vec::new(), keeper, secret, certificates };
        let tcp = self.bind_tcp().await?;
        for (scheme, port) in [(Scheme::Udp, self.udp), (Scheme::Quic, self.quic), (Scheme::Wt, self.wt)] {
            if let Port::On(port) = port {
                self.open_udp(scheme, port, tcp.as_ref(), &mut listening)?;
            }
        }
        if let Some(listener) = tcp {
            let site = Site {
                origins: self.origins(self.web.and_then(|web| web.pages_port)),
                pages: pages(&listening),
                behind_proxy: self.web.is_some_and(|web| web.behind_proxy),
                places: self.places(),
            };
            let addr = listener.local_addr()?;
            let (scheme, certificate) = match &listening.certificates {
                Certificates::Configured(certificate) => (Scheme::Wss, Some(certificate)),
                Certificates::Kept { .. } => (Scheme::Ws, None),
            };
            let endpoint = websocket::serve(listener, certificate, site)?;
            listening.add(scheme, addr, Box::new(endpoint));
        }
        if listening.locators.is_empty() {
            return Err(ListenError::Nothing);
        }
        Ok(listening)
    }

    async fn bind_tcp(&self) -> Result<Option<TcpListener>, ListenError> {
        let Port::On(port) = self.tcp else { return Ok(None) };
        let addr = SocketAddr::new(self.ip, port);
        let (what, option) = match self.web {
            Some(_) => ("http", format!("--listen {}", SocketAddr::new(self.ip, port.wrapping_add(1)))),
            None => ("ws", "--ws PORT".into()),
        };
        let bound = TcpListener::bind(addr).await;
        bound.map(Some).map_err(|error| ListenError::Bind { what, addr, option, error })
    }

    /// Opens a listener of a transport on UDP.
    fn open_udp(
        &self,
        scheme: Scheme,
        port: u16,
        tcp: Option<&TcpListener>,
        listening: &mut Listening,
    ) -> Result<(), ListenError> {
        let addr = SocketAddr::new(self.ip, port);
        let what = scheme.name();
        let bind = |error| ListenError::Bind { what, addr, option: format!("--{what} PORT"), error };
        let (keeper, certificate) = (listening.keeper.clone(), listening.certificates.of(scheme));
        let endpoint: Box<dyn Endpoint> = match scheme {
            Scheme::Udp => {
                let endpoint = UdpEndpoint::listen(addr, keeper).map_err(bind)?;
                Box::new(endpoint.with_max_links_each(self.per_address))
            }
            Scheme::Quic => Box::new(quic::listen(addr, keeper, certificate, self.places()).map_err(bind)?),
            _ => {
                // Pages come from the TCP port, which may have another number.
                let own_port = || tcp.and_then(|tcp| tcp.local_addr().ok()).map(|addr| addr.port());
                let pages_port = self.web.and_then(|web| web.pages_port.or_else(own_port));
                let origins = self.origins(pages_port);
                Box::new(webtransport::listen(addr, certificate, origins, self.places()).map_err(bind)?)
            }
        };
        let local = endpoint.local_addr().map_err(bind)?;
        listening.add(scheme, local, endpoint);
        Ok(())
    }

    fn origins(&self, pages_port: Option<u16>) -> Origins {
        Origins { allowed: self.origins.clone(), pages_port, names: self.names.clone() }
    }

    fn places(&self) -> ConnectionSlots {
        ConnectionSlots::of_each(self.per_address)
    }

    fn certificates(&self) -> Result<Certificates, CertificateError> {
        if let Some((chain, key)) = &self.tls {
            return Ok(Certificates::Configured(Certificate::load(chain, key)?));
        }
        let names = ["localhost".to_owned(), self.ip.to_string()];
        let keep = |purpose| Certificate::kept_in(&self.data, purpose, &names);
        Ok(Certificates::Kept { native: keep(Purpose::Native)?, browsers: keep(Purpose::Browsers)? })
    }
}

impl Listening {
    fn add(&mut self, scheme: Scheme, at: SocketAddr, endpoint: Box<dyn Endpoint>) {
        let cert = self.certificates.pin(scheme);
        self.locators.push(Locator { scheme, host: at.ip().to_string(), port: at.port(), cert });
        self.hub.add(endpoint);
    }

    /// The URL of one of the transports, if it is open.
    pub fn locator(&self, scheme: Scheme) -> Option<&Locator> {
        self.locators.iter().find(|locator| locator.scheme == scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_port() {
        let on = |text: &str| text.parse().map(|on: ListenOn| (on.ip.to_string(), on.first_port));
        assert_eq!(on("0.0.0.0"), Ok(("0.0.0.0".into(), 7777)));
        assert_eq!(on("0.0.0.0:9000"), Ok(("0.0.0.0".into(), 9000)));
        assert_eq!(on("::"), Ok(("::".into(), 7777)));
        assert_eq!(on("[::]"), Ok(("::".into(), 7777)));
        assert_eq!(on("[::1]:0"), Ok(("::1".into(), 0)));
        for bad in ["", "here", "1.2.3.4:", "1.2.3.4:70000", "1.2.3.4:65533"] {
            assert!(on(bad).is_err(), "{bad}");
        }
    }
}
