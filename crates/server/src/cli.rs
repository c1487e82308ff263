//! The `sametick` command line: its arguments, and which command runs.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sametick_store::saves::StoreError;
use sametick_transport::clock::random;
use sametick_transport::dial::Locator;
use sametick_wire::access::AccessKey;
use sametick_wire::channel::MAX_NEWEST_MESSAGE;
use sametick_wire::netem::Profile;

use crate::bot::{BotError, BotGame, play_bots};
use crate::check::{CheckArgs, CheckError, check};
use crate::config::{self, Config, ConfigCommand, ConfigError, Key};
use crate::copies::CopyError;
use crate::folder_lock::FolderLockError;
use crate::games::{Games, UnknownGame};
use crate::hosting::command::{HostArgs, serve_host};
use crate::identity::IdentityError;
use crate::listen::{ListenArgs, ListenError};
use crate::load::{LoadCommand, load};
use crate::logging;
use crate::logs::{LogCommand, LogError, log};
use crate::ping::{PingError, Plan, ping};
use crate::play::{PlayError, PlayGame, play};
use crate::recite::{ReciteArgs, ReciteError, recite};
use crate::replay::{ReplayArgs, ReplayError, replay};
use crate::secret::{Secret, SecretError};
use crate::serve::{RelayArgs, serve_pings, serve_relay};
use crate::sessions::{SessionsCommand, SessionsError, sessions};
use crate::signals::survive_file_limit;
use crate::up::{Role, SettingsError, UpArgs, up};

/// A runtime for real-time multiplayer games
///
/// Without a command: everything, for this machine only. Open the URL that is printed and play.
#[derive(Debug, Parser)]
#[command(
    name = "sametick",
    version,
    after_help = "\
Examples:
  sametick                                    everything on this machine: open the URL it prints
  sametick up --listen 0.0.0.0:8080           the same, for others too
  sametick ping serve --listen 127.0.0.1:7800 answer pings
  sametick ping udp://127.0.0.1:7800          measure the way to it
  sametick relay --listen 0.0.0.0             let players meet
  sametick play pong --connect udp://127.0.0.1:7777
  sametick bot pong --connect udp://127.0.0.1:7777
  sametick bot arena --room den --connect udp://127.0.0.1:7777
  sametick replay match.log --to 3999 --state the state of any tick of a session
  sametick log verify match.log               is a log sound, and true?
  sametick sessions list                      what is kept
  sametick check pong                         is a game deterministic?"
)]
pub struct Command {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Everything: pages to play on, a relay, authoritative rooms and a lobby, on every transport
    #[command(after_help = "\
Examples:
  sametick up                                 the same as sametick alone: http://127.0.0.1:8080
  sametick up --listen 0.0.0.0:8080           for others on your network too
  sametick up --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem --origin https://example.org
  sametick up --print-config > sametick.toml  a file with all settings, to change
  sametick up --config sametick.toml --udp off
  sametick up --behind-proxy --origin https://example.org --secret-file secret.txt

WebSocket is on the same port as the pages, WebTransport on the UDP port of the same number.
Browsers have WebTransport on https:// pages and on this machine only; other pages use WebSocket.")]
    Up(Box<UpArgs>),
    /// Pages and the lobby alone: hosts on this or other machines have the sessions
    #[command(after_help = "\
Examples:
  sametick gateway --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem --hosts 0.0.0.0:8079 --origin https://example.org
  sametick gateway --host-ports 9001-9100             start hosts on this machine as well

Hosts prove that they belong to it with the key in hosts/key of its data folder: copy that file to them.")]
    Gateway(Box<UpArgs>),
    /// A process in which sessions run, for a gateway
    #[command(after_help = "\
Examples:
  sametick host --gateway 10.0.0.1:8079 --gateway-key key --listen 0.0.0.0:8081 --address wss://h1.example.org:8081 \\
      --tls-cert chain.pem --tls-key key.pem
  sametick host --gateway 10.0.0.1:8079 --gateway-key key --capacity 50

SIGTERM lets games go on for --drain seconds, then saves them and moves sessions to another host; Ctrl-C saves at once.")]
    Host(Box<HostArgs>),
    /// Measure a link: handshake, round trips, loss and bytes
    Ping(PingArgs),
    /// Let players of any lockstep game meet
    #[command(after_help = "\
Examples:
  sametick relay --listen 0.0.0.0:7777 --data /var/lib/sametick
  SAMETICK_SECRET=opensesame sametick relay --listen 0.0.0.0 --status status.json")]
    Relay(RelayArgs),
    /// Play in this terminal, against others and bots
    #[command(subcommand)]
    Play(PlayGame),
    /// Play with headless players, in lockstep or in a room, and see how that goes
    #[command(subcommand)]
    Bot(BotGame),
    /// Load test: use a server as many people would, and report how it performs
    #[command(subcommand)]
    Load(LoadCommand),
    /// Is a game deterministic?
    Check(CheckArgs),
    /// Play a log again: go to any tick, step, print states, compare
    Replay(ReplayArgs),
    /// Play a log against a live relay with headless players, to compare what becomes of it
    #[command(after_help = "\
Examples:
  sametick recite match.log --connect udp://127.0.0.1:7777 --session again
  sametick log diff match.log sametick-data/sessions/BUILD/again-TIME/log --to 600

Ends with an error if the relay closed a tick otherwise than the log says.")]
    Recite(ReciteCommand),
    /// Look into logs: info, cat, verify, diff, export
    #[command(subcommand)]
    Log(LogCommand),
    /// Sessions that are kept: list, show, fetch, delete
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// What this machine remembers: your name, passphrase and relay
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Args)]
struct ReciteCommand {
    #[command(flatten)]
    recite: ReciteArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// The arguments of every command that connects to a server.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// Put a bad network in front of the link, such as "rtt=100ms,jitter=20ms,loss=2%"
    #[arg(long, value_name = "PROFILE")]
    netem: Option<Profile>,

    /// The bad network's seed: the same seed does the same to the same packets
    #[arg(long, value_name = "SEED", requires = "netem")]
    seed: Option<u64>,

    /// Print the report as one line of JSON
    #[arg(long)]
    json: bool,

    /// A file with the passphrase on its first line. Without it, $SAMETICK_SECRET counts, or `sametick config`
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl ClientArgs {
    pub(crate) fn key(&self) -> Result<AccessKey, CommandError> {
        match Secret::find(self.secret_file.as_deref()) {
            Secret::Open => {
                let config = Config::load()?;
                Ok(Secret::remembered(config.value(Key::Passphrase)).key()?)
            }
            said => Ok(said.key()?),
        }
    }

    pub(crate) fn netem(&self) -> Option<(Profile, u64)> {
        let seed = self.seed.unwrap_or_else(|| u64::from_le_bytes(random()));
        self.netem.map(|profile| (profile, seed))
    }

    /// Prints a report as text, or as JSON.
    pub(crate) fn print<R: serde::Serialize + std::fmt::Display>(&self, report: &R) -> io::Result<()> {
        crate::report::print(report, self.json)
    }
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  sametick ping serve                         answer on every transport; prints the URLs to ping
  sametick ping udp://127.0.0.1:7777
  sametick ping ws://127.0.0.1:7779 --count 500 --rate 60
  sametick ping quic://HOST:7778?cert=HASH --json
  sametick ping udp://127.0.0.1:7777 --netem \"rtt=100ms,jitter=20ms,loss=2%\"

A bad network (--netem) has: rtt or latency, jitter, loss, burst, dup, reorder, late, corrupt, rate, queue.
rtt counts both ways; everything else applies to each direction. The handshake does not pass it."
)]
struct PingArgs {
    #[command(subcommand)]
    serve: Option<PingWhat>,

    /// The server: udp://HOST:PORT, quic://HOST:PORT?cert=HASH, ws://, wss:// or wt://
    #[arg(required = true, value_name = "URL")]
    url: Option<Locator>,

    /// How many pings to send
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,

    /// How many pings to send a second
    #[arg(long, value_name = "HZ", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rate: u32,

    /// How many bytes each ping has, at most
    #[arg(long, value_name = "BYTES", default_value_t = 32, value_parser = size)]
    size: usize,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, Subcommand)]
enum PingWhat {
    /// Answer pings on UDP, QUIC, WebSocket and WebTransport until Ctrl-C
    #[command(after_help = "\
Examples:
  sametick ping serve
  sametick ping serve --listen 0.0.0.0 --wt off
  SAMETICK_SECRET=opensesame sametick ping serve
  sametick ping serve --secret-file secret.txt      (kill -HUP reads it again; who is in stays in)
  sametick ping serve --tls-cert chain.pem --tls-key key.pem --origin https://example.org")]
    Serve(ListenArgs),
}

fn size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size) if (8..=MAX_NEWEST_MESSAGE).contains(&size) => Ok(size),
        _ => Err(format!("a ping has 8 to {MAX_NEWEST_MESSAGE} bytes")),
    }
}

/// Why a command did not work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A server did not start.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A configuration file cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The check of tokens cannot be set up.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A server could not be pinged.
    #[error(transparent)]
    Ping(#[from] PingError),
    /// A log could not be played against a relay.
    #[error(transparent)]
    Recite(#[from] ReciteError),
    /// A player could not play.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// Bots could not play.
    #[error(transparent)]
    Bot(#[from] BotError),
    /// A copy of a session cannot be kept or brought.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// There is no passphrase.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A game cannot be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The configuration has no value, or there is no place for it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another process has the data folder.
    #[error(transparent)]
    Folder(#[from] FolderLockError),
    /// The database of players cannot be used.
    #[error("{0}")]
    Players(String),
    /// The game to save sessions of is not known.
    #[error("--keeper: {0}")]
    ProofJournal(UnknownGame),
    /// Saves cannot be kept.
    #[error("saves cannot be kept: {0}")]
    Store(StoreError),
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Kept sessions cannot be looked at.
    #[error(transparent)]
    Sessions(#[from] SessionsError),
    /// A log cannot be played.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The operating system failed us.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl CommandError {
    /// The kind of the underlying error of the operating system, if there is one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            CommandError::Io(error) => Some(error.kind()),
            _ => None,
        }
    }
}

/// Runs a command with these games.
pub fn run(command: Command, games: &Games) -> Result<ExitCode, CommandError> {
    // Log lines would be written over the game.
    let is_drawn = matches!(command.what, Some(What::Play(_))) && io::stderr().is_terminal();
    if !is_drawn {
        logging::start();
    }
    sametick_transport::files::raise_limit();
    // One thread: a hub and its links stay on one core.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { survive_file_limit() });
    match command.what {
        None => runtime.block_on(up(&UpArgs::default(), games, Role::Everything))?,
        Some(What::Up(args)) => runtime.block_on(up(&args, games, Role::Everything))?,
        Some(What::Gateway(args)) => runtime.block_on(up(&args, games, Role::Gateway))?,
        Some(What::Host(args)) => runtime.block_on(serve_host(&args, games))?,
        Some(What::Ping(PingArgs { serve: Some(PingWhat::Serve(args)), .. })) => {
            runtime.block_on(serve_pings(&args))?;
        }
        Some(What::Relay(args)) => runtime.block_on(serve_relay(&args, games))?,
        Some(What::Play(game)) => runtime.block_on(play(&game, games.commit()))?,
        Some(What::Bot(game)) => return runtime.block_on(play_bots(&game, games.commit())),
        Some(What::Load(command)) => return runtime.block_on(load(&command, games.commit())),
        Some(What::Check(args)) => return check(&args, games),
        Some(What::Replay(args)) => return replay(&args, games),
        Some(What::Recite(args)) => {
            let report = runtime.block_on(recite(&args.recite, &args.client.key()?, games))?;
            args.client.print(&report)?;
            return Ok(if report.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Some(What::Log(command)) => return log(&command, games),
        Some(What::Sessions(command)) => return runtime.block_on(sessions(&command)),
        Some(What::Config(command)) => return config::config(&command),
        Some(What::Ping(args)) => runtime.block_on(measure(&args))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(args: &PingArgs) -> Result<(), CommandError> {
    let url = args.url.as_ref().expect("clap asks for it");
    let plan = Plan { count: args.count, rate: args.rate, size: args.size, netem: args.client.netem() };
    let report = ping(url, &args.client.key()?, plan).await?;
    Ok(args.client.print(&report)?)
}
