//! Runs a server: opens its listeners, prints their URLs, and ends on a signal.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use sametick_lockstep::compaction::CompactionConfig;
use sametick_lockstep::relay::RelayConfig;
use sametick_store::saves::{Place, Retention};
use sametick_transport::clock::Clock;
use sametick_transport::hub::{App, Links};
use sametick_transport::hub_waker::HubWaker;
use sametick_transport::proof_journal::ProofJournal;

use crate::app::{SESSIONS_PER_ADDRESS, ServerApp};
use crate::cli::CommandError;
use crate::finder::Finder;
use crate::folder_lock::FolderLock;
use crate::games::Games;
use crate::listen::{Certificates, ListenArgs, Listening};
use crate::logging;
use crate::ping::PingServer;
use crate::secret::{Secret, claims_key};
use crate::signals::{Signals, Stop, Stops};
use crate::status::Status;
use crate::trace::Trace;
use crate::up::any_if_zero;
use crate::uploader::Uploader;

/// How often certificates are checked for renewal.
const RENEW_EVERY: Duration = Duration::from_secs(3_600);

/// How often the number of unwritten log lines is logged, if there are any.
const COUNT_EVERY: Duration = Duration::from_secs(30);

/// The arguments of `sametick relay`.
#[derive(Debug, Args)]
pub struct RelayArgs {
    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    options: RelayOptions,

    /// How many sessions one address may have begun, of those that go on; 0: any number
    #[arg(long, value_name = "N", default_value_t = SESSIONS_PER_ADDRESS)]
    sessions_per_address: usize,
}

/// The options of a relay, and of what it writes.
#[derive(Clone, Debug, Default, Args)]
pub struct RelayOptions {
    /// How many closed ticks to send together: more cost fewer bytes, and add as many ticks of latency. If not given,
    /// as many as the nearest player hardly notices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub ticks_per_packet: Option<u32>,

    /// Keep saves of sessions there as well: a folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME, with credentials
    /// from the environment (AWS_ACCESS_KEY_ID and others)
    #[arg(long, value_name = "PLACE", value_parser = Place::parse)]
    pub store: Option<Place>,

    /// Simulate sessions of this game, and save their states: without it players are asked for their state. May be
    /// given several times
    #[arg(long, value_name = "GAME")]
    pub keeper: Vec<String>,

    /// How many sessions to keep: older ones are deleted, but none that runs or was written to within the hour. 0 keeps
    /// all
    #[arg(long, value_name = "N")]
    pub keep_sessions: Option<usize>,

    /// Keep the status in this file, as JSON: sessions, players, and how their connections are
    #[arg(long, value_name = "FILE")]
    pub status: Option<PathBuf>,

    /// Write every message of sessions in lockstep into this file, a line of JSON each: some 100 kB a second for four
    /// players. Clients write their own ends, also of rooms: `play --trace`, `bot --trace`, the network panel of pages
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

impl RelayOptions {
    /// The relay's configuration, if it keeps its sessions below this folder.
    pub fn relay(&self, data: &Path) -> io::Result<RelayConfig> {
        // A closed tick is dropped only after a save of it is on disk.
        let has_keeper = !self.keeper.is_empty();
        let compaction = CompactionConfig { has_store: true, has_keeper, ..CompactionConfig::default() };
        let secret = claims_key(data)?;
        Ok(RelayConfig { ticks_per_packet: self.ticks_per_packet, secret, compaction, finds: true })
    }

    /// Sets up a server's stores, traces and status file.
    pub(crate) fn equip(
        &self,
        mut app: ServerApp,
        data: &Path,
        waker: HubWaker,
    ) -> Result<ServerApp, CommandError> {
        app.set_keeper(&self.keeper).map_err(CommandError::ProofJournal)?;
        let sessions = match self.keep_sessions {
            None => Retention::default().sessions,
            Some(0) => usize::MAX,
            Some(sessions) => sessions,
        };
        let store = self.store.as_ref();
        let uploader = Uploader::start(data, store, Retention { sessions }, waker.clone());
        app.set_uploader(uploader.map_err(CommandError::Store)?);
        app.set_finder(Finder::start(data, store).map_err(CommandError::Store)?, waker);
        if let Some(path) = &self.trace {
            app.set_trace(Trace::create(path).map_err(|error| cannot_write(path, &error))?);
        }
        if let Some(path) = &self.status {
            app.set_status(Status::create(path).map_err(|error| cannot_write(path, &error))?);
        }
        Ok(app)
    }
}

/// An error that names the file.
fn cannot_write(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
}

/// Answers pings until a signal ends it.
pub async fn serve_pings(args: &ListenArgs) -> Result<(), CommandError> {
    let _lock = FolderLock::take(&args.data, "ping serve")?;
    let listening = args.doors().open(Clock::start(), |_| None).await?;
    let stops = Stops::listen()?;
    greet("answers pings", "ping ", &listening, &args.data)?;
    run(listening, stops, &mut PingServer::default(), |app, links, _| app.stop(links)).await
}

/// Runs a relay until a signal ends it.
pub async fn serve_relay(args: &RelayArgs, games: &Games) -> Result<(), CommandError> {
    let _lock = FolderLock::take(&args.listen.data, "relay")?;
    let app = ServerApp::relay_only(args.options.relay(&args.listen.data)?, &args.listen.data, games.clone());
    let mut listening = args.listen.doors().open(Clock::start(), |_| None).await?;
    let waker = HubWaker::default();
    listening.hub.set_waker(waker.clone());
    let mut app = args.options.equip(app, &args.listen.data, waker)?;
    app.set_sessions_per_address(any_if_zero(args.sessions_per_address));
    let stops = Stops::listen()?;
    greet("relays", "play pong --connect ", &listening, &args.listen.data)?;
    run(listening, stops, &mut app, ServerApp::end).await?;
    close(app);
    Ok(())
}

/// Waits until a server has written everything.
pub(crate) fn close(app: ServerApp) {
    if !app.close() {
        tracing::error!(
            "not everything could be written: the end of a log, the newest of a player, or something in the store may be missing"
        );
    }
}

/// Prints what runs at which URL. `try_it` is the command that connects to it.
fn greet(does: &str, try_it: &str, listening: &Listening, data: &Path) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "sametick {} {does}. Ctrl-C ends it.", env!("CARGO_PKG_VERSION"))?;
    // As it was called, so that the line can be copied.
    let program = std::env::args().next().unwrap_or_else(|| "sametick".into());
    for locator in &listening.locators {
        writeln!(out, "  {program} {try_it}'{locator}'")?;
    }
    writeln!(out, "  passphrase: {}", listening.secret.asked())?;
    writeln!(out, "  data: {}", data.display())?;
    out.flush()
}

/// Runs an application until it is done or a signal ends it, and then until all clients have been told.
pub(crate) async fn run<A: App>(
    listening: Listening,
    mut stops: Stops,
    app: &mut A,
    end: fn(&mut A, &mut Links, Stop),
) -> Result<(), CommandError> {
    let Listening { mut hub, keeper, secret, certificates, .. } = listening;
    let mut stop = tokio::select! {
        done = hub.run(app) => done.map(|()| None)?,
        () = maintain(&secret, &keeper, &certificates) => None,
        stop = stops.next() => Some(stop?),
    };
    // The reader of the output may be gone, which does not prevent an orderly end.
    let _ = writeln!(io::stdout(), "stopping");
    // A second signal ends the process at once.
    while let Some(how) = stop {
        hub.with_links(|links| end(app, links, how));
        stop = tokio::select! {
            done = hub.run(app) => done.map(|()| None)?,
            again = stops.next() => again.map(|_| Some(Stop::Now))?,
        };
    }
    let ignored: u64 = hub.endpoint_stats().iter().map(|stats| stats.ignored).sum();
    tracing::info!(ignored, "packets and connections of strangers that got no answer");
    logging::tell_unwritten();
    Ok(())
}

/// Renews certificates, reads files again on SIGHUP, and logs how many lines were not written. Never ends.
async fn maintain(secret: &Secret, keeper: &ProofJournal, certificates: &Certificates) {
    let (mut hangups, mut limits) = (Signals::hangups(), Signals::file_limits());
    let mut renewing = Box::pin(tokio::time::sleep(RENEW_EVERY));
    loop {
        tokio::select! {
            () = limits.next() => {
                say_file_limit();
                // Logged once: it happens again with every write.
                limits = Signals::default();
                continue;
            }
            () = hangups.next() => reload_secret(secret, keeper),
            () = &mut renewing => {}
            () = tokio::time::sleep(COUNT_EVERY) => {
                logging::tell_unwritten();
                continue;
            }
        }
        renewing.set(tokio::time::sleep(RENEW_EVERY));
        certificates.renew();
    }
}

fn say_file_limit() {
    tracing::error!(
        "a file has reached the size that this process may write (ulimit -f): what does not fit is not written, games go on. \
         Raise the limit and start again"
    );
}

fn reload_secret(secret: &Secret, keeper: &ProofJournal) {
    match secret.key() {
        Ok(key) => {
            keeper.set_key(key);
            tracing::info!("the passphrase has been read again");
        }
        Err(error) => tracing::error!(%error, "the old passphrase stays"),
    }
}
