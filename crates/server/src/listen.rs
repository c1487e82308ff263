//! Opens what a server listens on: any of the four transports, each on a port of its own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use sametick_transport::clock::Clock;
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::endpoint::Endpoint;
use sametick_transport::hub::Hub;
use sametick_transport::keeper::Keeper;
use sametick_transport::tls::{Certificate, CertificateError};
use sametick_transport::udp::UdpEndpoint;
use sametick_transport::websocket::{self, Origins};
use sametick_transport::{quic, webtransport};

use crate::secret::{Secret, SecretError};

/// What to listen on, and who may come in.
#[derive(Clone, Debug, Args)]
pub struct ListenArgs {
    /// The address to listen on; 0.0.0.0 or :: for all
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub listen: IpAddr,

    /// The port for raw UDP (0: any free one, "off": none)
    #[arg(long, value_name = "PORT", default_value = "7777")]
    pub udp: Port,

    /// The port for native QUIC
    #[arg(long, value_name = "PORT", default_value = "7778")]
    pub quic: Port,

    /// The port for WebSocket
    #[arg(long, value_name = "PORT", default_value = "7779")]
    pub ws: Port,

    /// The port for WebTransport
    #[arg(long, value_name = "PORT", default_value = "7780")]
    pub wt: Port,

    /// A PEM file with the certificate chain for QUIC, WebSocket (then wss://) and WebTransport
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// A PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// A page's origin that may connect besides those of this host, such as https://example.org
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Vec<String>,

    /// A file with the passphrase on its first line; read again on SIGHUP. Without it, $SAMETICK_SECRET counts
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// Where used proofs and the self-signed certificate are kept
    #[arg(long, value_name = "DIR", default_value = "sametick-data")]
    pub data: PathBuf,
}

/// A port, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// This one; 0 is any that is free.
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

/// Why a server does not start. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A port cannot be had.
    #[error("{scheme}: cannot listen on {addr}: {error}{}", hint(.error, .scheme))]
    Bind {
        /// For what.
        scheme: &'static str,
        /// Where.
        addr: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The data folder cannot be written to.
    #[error("cannot write to the data folder {}: {error}; choose another with --data", path.display())]
    Data {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// There is no passphrase.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Every transport is off.
    #[error("nothing to listen on: --udp, --quic, --ws and --wt are all off")]
    Nothing,
}

fn hint(error: &io::Error, scheme: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("; another program has it: choose another port with --{scheme} PORT")
        }
        io::ErrorKind::PermissionDenied => format!("; choose a port above 1023 with --{scheme} PORT"),
        io::ErrorKind::AddrNotAvailable => "; this machine does not have that address: see --listen".into(),
        _ => String::new(),
    }
}

/// A hub that listens, and where.
pub struct Listening {
    /// Ready to run an application.
    pub hub: Hub,
    /// Where it can be reached.
    pub locators: Vec<Locator>,
    /// The door, for changing the passphrase.
    pub keeper: Keeper,
    /// Where the passphrase comes from.
    pub secret: Secret,
}

impl ListenArgs {
    /// Opens everything. Needs a runtime.
    pub async fn open(&self, clock: Clock) -> Result<Listening, ListenError> {
        let data = |error| ListenError::Data { path: self.data.clone(), error };
        std::fs::create_dir_all(&self.data).map_err(data)?;
        let secret = Secret::find(self.secret_file.as_deref());
        let keeper = Keeper::open(secret.key()?, None, &self.data.join("used-proofs")).map_err(data)?;
        let certificate = self.certificate(&self.data)?;
        let pinned = self.tls_cert.is_none().then(|| certificate.hash());
        let mut hub = Hub::new(clock, Some(keeper.clone()));
        let mut locators = Vec::new();
        for (scheme, port) in self.ports() {
            let addr = SocketAddr::new(self.listen, port);
            let bind = |error| ListenError::Bind { scheme: flag(scheme), addr, error };
            let endpoint = self.endpoint(scheme, addr, &keeper, &certificate).await.map_err(bind)?;
            let local = endpoint.local_addr().map_err(bind)?;
            let cert = pinned.filter(|_| matches!(scheme, Scheme::Quic | Scheme::Wss | Scheme::Wt));
            locators.push(Locator { scheme, host: local.ip().to_string(), port: local.port(), cert });
            hub.add(endpoint);
        }
        if locators.is_empty() {
            return Err(ListenError::Nothing);
        }
        Ok(Listening { hub, locators, keeper, secret })
    }

    fn ports(&self) -> impl Iterator<Item = (Scheme, u16)> {
        let ws = if self.tls_cert.is_some() { Scheme::Wss } else { Scheme::Ws };
        let all = [(Scheme::Udp, self.udp), (Scheme::Quic, self.quic), (ws, self.ws), (Scheme::Wt, self.wt)];
        all.into_iter().filter_map(|(scheme, port)| match port {
            Port::On(port) => Some((scheme, port)),
            Port::Off => None,
        })
    }

    fn certificate(&self, folder: &Path) -> Result<Certificate, CertificateError> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(chain), Some(key)) => Certificate::load(chain, key),
            _ => Certificate::kept_in(folder, &["localhost".into(), self.listen.to_string()]),
        }
    }

    async fn endpoint(
        &self,
        scheme: Scheme,
        addr: SocketAddr,
        keeper: &Keeper,
        certificate: &Certificate,
    ) -> io::Result<Box<dyn Endpoint>> {
        let origins = Origins { allowed: self.origin.clone() };
        Ok(match scheme {
            Scheme::Udp => Box::new(UdpEndpoint::listen(addr, keeper.clone())?),
            Scheme::Quic => Box::new(quic::listen(addr, keeper.clone(), certificate)?),
            Scheme::Ws => Box::new(websocket::listen(addr, None, origins).await?),
            Scheme::Wss => Box::new(websocket::listen(addr, Some(certificate), origins).await?),
            Scheme::Wt => Box::new(webtransport::listen(addr, certificate, origins)?),
        })
    }
}

/// The name of the option that sets a scheme's port.
fn flag(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Wss => "ws",
        other => other.name(),
    }
}
