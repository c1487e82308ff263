//! `sametick host`: a process in which sessions run.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use sametick_session::fleet::PORTS;
use sametick_session::placing::MAX_SESSIONS;
use sametick_transport::clock::Clock;
use sametick_transport::connection_slots::MAX_EACH;
use sametick_transport::control_connection::ControlConnections;
use sametick_transport::hub_waker::HubWaker;

use super::folder::Folder;
use super::pages::{Count, HostPages};
use super::{HostSide, Hosting};
use crate::app::ServerApp;
use crate::cli::CommandError;
use crate::endpoints::Endpoints;
use crate::games::Games;
use crate::gateway::command::{KEY, WHERE};
use crate::gateway::processes::HOSTS;
use crate::listen::{Doors, Listening, Port, Web};
use crate::secret::kept_key;
use crate::serve::{RelayOptions, close, run};
use crate::signals::Stops;

/// The default listen address of a host.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), *PORTS.start());

/// How long games may go on when a host is told to end: with the work that follows, the host ends within 30 s.
pub(crate) const MAX_DRAIN_S: u64 = 20;

/// The arguments of `sametick host`.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// The address for players: WebSocket (tcp) and WebTransport (udp of the same number)
    #[arg(long, value_name = "IP:PORT", default_value_t = DEFAULT_LISTEN)]
    pub listen: SocketAddr,

    /// A gateway to work for: HOST:PORT of its --hosts. More than one may be given
    #[arg(long, value_name = "HOST:PORT")]
    pub gateway: Vec<String>,

    /// The file with the key of the gateways: hosts/key in the data folder of a gateway
    #[arg(long, value_name = "FILE", requires = "gateway")]
    pub gateway_key: Option<PathBuf>,

    /// What players are told to connect to: ws://NAME:PORT or wss://NAME:PORT [default: the gateway's name, and this port]
    #[arg(long, value_name = "URL", value_parser = address)]
    pub address: Option<String>,

    /// How many sessions it takes at once: 1 keeps a crash of one game from all others
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=MAX_SESSIONS as i64))]
    pub capacity: u16,

    /// For how many seconds games may go on after SIGTERM; then they are saved
    #[arg(long, value_name = "SECONDS", default_value_t = MAX_DRAIN_S, value_parser = clap::value_parser!(u64).range(0..=MAX_DRAIN_S))]
    pub drain: u64,

    /// The port for raw UDP (0: any free one, "off": none)
    #[arg(long, value_name = "PORT", default_value = "off")]
    pub udp: Port,

    /// The port for native QUIC, likewise
    #[arg(long, value_name = "PORT", default_value = "off")]
    pub quic: Port,

    /// The port that pages come from, on the same machine: they may connect
    #[arg(long, value_name = "PORT", default_value_t = 8_080)]
    pub pages_port: u16,

    /// Another page's origin that may connect, such as `https://example.org`. Its name is a name of this host, too
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Vec<String>,

    /// How many connections one address may have at a time on each port
    #[arg(long, value_name = "N", default_value_t = MAX_EACH)]
    pub per_address: usize,

    /// A PEM file with the certificate chain; players come over wss:// then
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// A PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// A proxy stands before the port: trust the client addresses that it sends
    #[arg(long)]
    pub behind_proxy: bool,

    /// A file with the passphrase on its first line; read again on SIGHUP. Without it, $SAMETICK_SECRET counts
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// Where logs and saves of games are kept, and in hosts/PORT what the host itself keeps
    #[arg(long, value_name = "DIR", default_value = "sametick-data")]
    pub data: PathBuf,

    /// Started by the gateway of this data folder
    #[arg(long, hide = true)]
    pub started: bool,

    #[command(flatten)]
    pub options: RelayOptions,
}

pub(crate) fn address(text: &str) -> Result<String, &'static str> {
    let rest = text.strip_prefix("ws://").or_else(|| text.strip_prefix("wss://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(['/', '?', '#']) => Ok(text.to_owned()),
        _ => Err("an address such as wss://play.example.org:8081, without a path"),
    }
}

/// The host name in an address that players are told: it is one of this host's names.
fn name_of(address: &str) -> Option<String> {
    let (_, authority) = address.split_once("://")?;
    let name = authority.rsplit_once(':').map_or(authority, |(name, _)| name);
    Some(name.to_owned())
}

/// Hosts sessions until the process is told to end.
pub async fn serve_host(args: &HostArgs, games: &Games) -> Result<(), CommandError> {
    let port = args.listen.port();
    let hosts = args.data.join(HOSTS);
    let home = hosts.join(port.to_string());
    let folder = Folder::open(&home)?;
    let count = Count::default();
    let pages = |open: &Listening| Some(Arc::new(HostPages::new(open, count.clone(), games.commit())) as _);
    let clock = Clock::start();
    let mut listening = args.doors(&home).open(clock, pages).await?;
    let waker = HubWaker::default();
    listening.hub.set_waker(waker.clone());
    let hosting = Hosting {
        folder,
        address: args.address.clone().unwrap_or_else(|| format!(":{port}")),
        capacity: args.capacity,
        connections: args.connections(&hosts, &waker)?,
        port: args.started.then_some(port),
        ways: Endpoints::of(&listening),
        drain_us: args.drain * 1_000_000,
        count,
    };
    let side = HostSide::start(clock.now(), hosting, games.clone(), &waker)?;
    let app = ServerApp::hosting(args.options.relay(&args.data)?, &args.data, games, side, waker.clone());
    let mut app = args.options.equip(app, &args.data, waker)?;
    let stops = Stops::listen()?;
    greet(args, &listening)?;
    run(listening, stops, &mut app, ServerApp::end).await?;
    app.say_goodbye().await;
    close(app);
    Ok(())
}

fn greet(args: &HostArgs, listening: &Listening) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(
        out,
        "sametick {} hosts sessions on {}. Ctrl-C ends it.",
        env!("CARGO_PKG_VERSION"),
        args.listen
    )?;
    writeln!(out, "  sessions: at most {}", args.capacity)?;
    match &args.gateway[..] {
        [] if args.started => writeln!(out, "  gateway: the one that has started it")?,
        [] => writeln!(out, "  gateway: none, so nobody is sent here; see --gateway")?,
        gateways => writeln!(out, "  gateways: {}", gateways.join(", "))?,
    }
    writeln!(out, "  passphrase: {}", listening.secret.asked())?;
    writeln!(out, "  data: {}", args.data.display())?;
    out.flush()
}

impl HostArgs {
    fn doors(&self, home: &Path) -> Doors {
        let port = Port::On(self.listen.port());
        Doors {
            ip: self.listen.ip(),
            udp: self.udp,
            quic: self.quic,
            tcp: port,
            wt: port,
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            origins: self.origin.clone(),
            names: self.address.as_deref().and_then(name_of).into_iter().collect(),
            per_address: self.per_address,
            secret_file: self.secret_file.clone(),
            data: home.to_owned(),
            web: Some(Web { behind_proxy: self.behind_proxy, pages_port: Some(self.pages_port) }),
        }
    }

    /// A connection to every gateway. The gateway that has started this host writes its address to a file, because it
    /// can change after a restart.
    fn connections(&self, hosts: &Path, waker: &HubWaker) -> io::Result<Vec<ControlConnections>> {
        let key_file = self.gateway_key.clone().unwrap_or_else(|| hosts.join(KEY));
        if !self.started && self.gateway.is_empty() {
            return Ok(Vec::new());
        }
        if !key_file.exists() {
            let why = format!(
                "{}: there is no such key; copy hosts/key of the gateway's data folder, and name it with --gateway-key",
                key_file.display()
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        let key = kept_key(&key_file)?;
        if self.started {
            let file = hosts.join(WHERE);
            let where_to = move || std::fs::read_to_string(&file).ok().map(|text| text.trim().to_owned());
            return Ok(vec![ControlConnections::call(where_to, key, waker.clone())]);
        }
        let call = |gateway: &String| {
            let gateway = gateway.clone();
            ControlConnections::call(move || Some(gateway.clone()), key, waker.clone())
        };
        Ok(self.gateway.iter().map(call).collect())
    }
}
