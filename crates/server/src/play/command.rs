//! `sametick play`: what can be typed, and what this machine remembers of it.

use clap::{Args, Subcommand};
use sametick_pong::Setup;
use sametick_transport::clock::random;
use sametick_transport::dial::Locator;

use super::{PlayPlan, play_pong};
use crate::cli::{ClientArgs, CommandError};
use crate::config::{self, Config, Key};

/// What can be played.
#[derive(Debug, Subcommand)]
pub(crate) enum PlayGame {
    /// Pong, for two to four
    #[command(after_help = "\
Examples:
  sametick play pong --connect udp://127.0.0.1:7777 --name Ada
  sametick play pong                            the same again: name and relay are remembered
  sametick play pong --session friday --players 4
  sametick play pong --session friday --watch
  sametick play pong --netem \"rtt=120ms,jitter=20ms,loss=2%\"

Keys:
  arrows or WASD  move; your own wall is always at the left or at the bottom
  space           begin, serve, play again; bots play for who is missing
  d               figures of the connection, and what they mean (i, where D moves)
  g               also draw what the relay has confirmed: the shadow behind what you see
  q or Ctrl-C     leave

Where the terminal tells when a key is let go (kitty's keyboard protocol), a paddle moves while
its key is down. Elsewhere, as in tmux, a tap is a nudge, and a held key goes on once it repeats.
NO_COLOR is respected. The terminal needs 60 columns and 20 rows.")]
    Pong(PlayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// The relay: udp://HOST:PORT, quic://HOST:PORT?cert=HASH, ws://, wss:// or wt://. Without it, the last that worked
    #[arg(long, value_name = "URL")]
    connect: Option<Locator>,

    /// The session to meet in; begun if there is none
    #[arg(long, value_name = "NAME", default_value = "pong")]
    session: String,

    /// What you are called, here and in the relay's log. Remembered
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Only watch
    #[arg(long)]
    watch: bool,

    /// How many play, if the session is begun
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=4))]
    players: u8,

    #[command(flatten)]
    client: ClientArgs,
}

/// Plays what was asked for, as a program of this git commit.
pub(crate) async fn play(game: &PlayGame, commit: &'static str) -> Result<(), CommandError> {
    let PlayGame::Pong(args) = game;
    let relay = config::relay_or_last(args.connect.as_ref())?;
    let setup = Setup { seed: u64::from_le_bytes(random()), players: args.players, ..Default::default() };
    let plan = PlayPlan {
        session: args.session.clone(),
        name: name_or_last(args.name.as_deref())?,
        watch: args.watch,
        setup,
        netem: args.client.netem(),
        commit,
    };
    let report = play_pong(&relay, &args.client.key()?, plan).await?;
    Ok(args.client.print(&report)?)
}

/// The name that was given, which is remembered, or else the one that is.
fn name_or_last(given: Option<&str>) -> Result<String, CommandError> {
    let mut config = Config::load()?;
    if let Some(name) = given {
        config.set(Key::Name, name)?;
        if let Err(error) = config.save() {
            // No reason not to play.
            tracing::warn!(%error, "the name is not remembered");
        }
    }
    Ok(config.value(Key::Name).unwrap_or("player").to_owned())
}
