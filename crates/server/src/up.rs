//! `sametick up`: a server with pages to play on, a relay and rooms on every transport, and a lobby with hosts of its
//! own.

mod hosts;
mod settings;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sametick_transport::clock::{Clock, unix_ms};
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::hub_waker::HubWaker;
use sametick_wire::claims::HOLD_US;

pub(crate) use settings::any_if_zero;
use settings::{DEFAULT_BACKUP_MINUTES, DEFAULT_TOKEN_DAYS};
pub use settings::{Settings, SettingsError, UpArgs};

use crate::app::ServerApp;
use crate::cli::CommandError;
use crate::endpoints::Endpoints;
use crate::folder_lock::FolderLock;
use crate::games::Games;
use crate::gateway::lists::Lists;
use crate::identity::Identity;
use crate::listen::Listening;
use crate::pages::WebPages;
use crate::players::Players;
use crate::presence::Presence;
use crate::rooms::Keeping;
use crate::serve::{close, run};
use crate::signals::Stops;

/// The database of players, below the data folder.
const PLAYERS: &str = "players.sqlite";

const DAY_S: u64 = 86_400;

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything: pages, a relay, rooms, and hosts that it starts.
    Everything,
    /// Pages and the lobby; games are played at hosts.
    Gateway,
}

impl Role {
    /// The command that starts it.
    fn name(self) -> &'static str {
        match self {
            Role::Everything => "up",
            Role::Gateway => "gateway",
        }
    }
}

/// Runs everything, or a gateway alone, until a signal ends it.
pub async fn up(args: &UpArgs, games: &Games, role: Role) -> Result<(), CommandError> {
    let settings = args.settings()?;
    if args.print_config {
        return Ok(write!(io::stdout(), "{}", settings.to_file())?);
    }
    let data = settings.data();
    let lock = FolderLock::take(&data, role.name())?;
    let (presence, lists) = (Presence::default(), Lists::default());
    let identity = Identity::start(settings.identity.config()?)?;
    let token_s = settings.token_days.unwrap_or(DEFAULT_TOKEN_DAYS) * DAY_S;
    let waker = HubWaker::default();
    let backup_s = settings.backup_every.unwrap_or(DEFAULT_BACKUP_MINUTES) * 60;
    let backup_every = (backup_s > 0).then(|| Duration::from_secs(backup_s));
    let players = Players::open(&data.join(PLAYERS), token_s, backup_every, waker.clone())
        .map_err(CommandError::Players)?;
    let damage = players.recovery().map(ToString::to_string);
    let pages = |open: &Listening| {
        let (presence, identity, counter) = (presence.clone(), identity.clone(), players.counter());
        Some(Arc::new(WebPages::new(open, games.clone(), presence, lists.clone(), identity, counter)) as _)
    };
    let clock = Clock::start();
    let mut listening = settings.doors().open(clock, pages).await?;
    listening.hub.set_waker(waker.clone());
    let keeping = Keeping {
        epoch_unix_ms: unix_ms(),
        token_s,
        is_strict: identity.requires_tokens(),
        hold_us: settings.hold.map_or(HOLD_US, |seconds| seconds * 1_000_000),
    };
    let app = ServerApp::with_players(settings.relay.relay(&data)?, &data, games, players, keeping);
    let mut app = settings.relay.equip(app, &data, waker.clone())?;
    app.set_room_limits(settings.room_limits());
    app.set_sessions_per_address(settings.sessions_per_address());
    app.show_in(presence);
    let pages_port = Endpoints::of(&listening).web_port().unwrap_or_default();
    let gatewaying = settings.gatewaying(role, &data, (lists, games.clone()), pages_port)?;
    let mut gateway = gatewaying.start(clock.now(), waker).await?;
    if identity.requires_tokens() {
        gateway.set_strict();
    }
    app.set_gateway(gateway);
    if role == Role::Gateway {
        app.set_only_gateway();
    }
    let stops = Stops::listen()?;
    identity.warn_if_open();
    let mut out = io::stdout();
    write!(out, "{}", greeting(&listening, &data, &identity, damage.as_deref()))?;
    out.flush()?;
    run(listening, stops, &mut app, ServerApp::end).await?;
    close(app);
    drop(lock);
    // The reader of the output may be gone.
    let _ = writeln!(out, "stopped: the players have been told, the logs are written");
    Ok(())
}

/// The text at the start: the URL to open, then all listeners.
fn greeting(listening: &Listening, data: &Path, identity: &Identity, damage: Option<&str>) -> String {
    let mut text = format!("sametick {} is up. Open this and play:\n\n", env!("CARGO_PKG_VERSION"));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<12}{value}");
    };
    let locator = |scheme| listening.locator(scheme);
    let own = own_address();
    if let Some(web) = locator(Scheme::Ws).or_else(|| locator(Scheme::Wss)) {
        let scheme = if web.scheme == Scheme::Wss { "https" } else { "http" };
        let url = |host: &str| format!("{scheme}://{}/", at_host(web, host).authority());
        let ip = web.host.parse::<IpAddr>().ok();
        let (is_any, is_own) =
            (ip.is_some_and(|ip| ip.is_unspecified()), ip.is_some_and(|ip| ip.is_loopback()));
        row("open", &url(if is_any { "localhost" } else { &web.host }));
        if is_any {
            let others = url(own.as_deref().unwrap_or("THIS-MACHINE"));
            row("others", &format!("{others} if network and firewall let them"));
        } else if is_own {
            row("others", "cannot reach it; --listen 0.0.0.0 lets them");
        }
        row("", "");
        row("pages", &format!("{} (tcp), and WebSocket, at /ws", web.authority()));
    }
    if let Some(wt) = locator(Scheme::Wt) {
        row("", &format!("{} (udp), WebTransport", wt.authority()));
    }
    for (name, scheme) in [("programs", Scheme::Udp), ("", Scheme::Quic)] {
        if let Some(locator) = locator(scheme) {
            let is_any = locator.host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
            let host = if is_any { own.as_deref().unwrap_or("localhost") } else { &locator.host };
            row(name, &at_host(locator, host).to_string());
        }
    }
    row("data", &data.display().to_string());
    row("passphrase", listening.secret.asked());
    row("identity", identity.asked());
    if let Some(damage) = damage {
        row("attention", damage);
    }
    row("", "");
    row("Ctrl-C", "ends it");
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The same URL under another host name.
fn at_host(locator: &Locator, host: &str) -> Locator {
    Locator { host: host.into(), ..locator.clone() }
}

/// The address that this machine uses to reach others. Nothing is sent.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then(|| ip.to_string())
}
