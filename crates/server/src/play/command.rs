//! `sametick play`: its arguments, and which of them this machine remembers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sametick_client::SessionCopy;
use sametick_pong::{Pong, Setup};
use sametick_transport::clock::random;
use sametick_transport::dial::Locator;

use super::{PlayPlan, play_pong};
use crate::cli::{ClientArgs, CommandError};
use crate::config::{self, Config, Key};
use crate::copies::{self, CopyArgs, CopyError, Keep, read_copy};

/// The games that can be played.
#[derive(Debug, Subcommand)]
pub(crate) enum PlayGame {
    /// Pong, for two to four
    #[command(after_help = "\
Examples:
  sametick play pong --connect udp://127.0.0.1:7777 --name Ada
  sametick play pong                            the same again: name and relay are remembered
  sametick play pong --session friday --players 4
  sametick play pong --session friday --watch
  sametick play pong --session friday --bring friday.save      go on from your copy, if the server has lost the session
  sametick play pong --netem \"rtt=120ms,jitter=20ms,loss=2%\"

Keys:
  arrows or WASD  move; your own wall is always at the left or at the bottom
  space           begin, serve, play again; bots play for who is missing
  d               figures of the connection, and what they mean (i, where D moves)
  g               also draw what the relay has confirmed: the shadow behind what you see
  k               keep a copy of the session now
  q or Ctrl-C     leave

A copy of the session as the relay has confirmed it is kept at the end: where --save says, or else that of the last ten
sessions among your data. A player who has one can bring it when the server has lost the session.

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

    /// The session to meet in; begun if there is none [default: pong, or that of --bring]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// What you are called, here and in the relay's log. Remembered
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Join as a spectator
    #[arg(long)]
    watch: bool,

    /// How many play, if the session is begun [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=4))]
    players: Option<u8>,

    #[command(flatten)]
    copies: CopyArgs,

    /// Keep no copy of the session
    #[arg(long, conflicts_with = "save")]
    no_save: bool,

    /// Write every message into this file, a line of JSON each: what went wrong between you and the relay can be read
    /// there
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    client: ClientArgs,
}

impl PlayArgs {
    /// Reads the copy to bring.
    fn brought(&self) -> Result<Option<SessionCopy>, CopyError> {
        let Some(place) = &self.copies.bring else { return Ok(None) };
        let copy = read_copy::<Pong>(place, self.session.as_deref())?;
        copies::check_seats(&copy, place, (1, self.players.map(u16::from)))?;
        Ok(Some(copy))
    }

    /// Where a copy is kept.
    fn keep(&self) -> Option<Keep> {
        let named = self.copies.save.as_deref().map(Keep::at);
        named.or_else(Keep::by_default).filter(|_| !self.no_save)
    }
}

/// Plays the game, as a program of this git commit.
pub(crate) async fn play(game: &PlayGame, commit: &'static str) -> Result<(), CommandError> {
    let PlayGame::Pong(args) = game;
    let relay = config::relay_or_last(args.connect.as_ref())?;
    let players = args.players.unwrap_or(2);
    let setup = Setup { seed: u64::from_le_bytes(random()), players, ..Default::default() };
    let bring = args.brought()?;
    let own = bring.as_ref().map(|copy| copy.facts.name.as_str());
    let plan = PlayPlan {
        session: args.session.as_deref().or(own).unwrap_or("pong").to_owned(),
        keep: args.keep(),
        name: name_or_last(args.name.as_deref())?,
        watch: args.watch,
        setup,
        netem: args.client.netem(),
        trace: args.trace.clone(),
        bring,
        commit,
    };
    let report = play_pong(&relay, &args.client.key()?, plan).await?;
    Ok(args.client.print(&report)?)
}

/// The given name, which is then remembered, or else the remembered one.
fn name_or_last(given: Option<&str>) -> Result<String, CommandError> {
    let mut config = Config::load()?;
    if let Some(name) = given {
        config.set(Key::Name, name)?;
        if let Err(error) = config.save() {
            // A name that cannot be remembered does not keep the player from playing.
            tracing::warn!(%error, "the name is not remembered");
        }
    }
    Ok(config.value(Key::Name).unwrap_or("player").to_owned())
}
