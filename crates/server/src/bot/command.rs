//! `sametick bot`: its arguments, and how they become plans.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, Subcommand};
use sametick_arena::{Arena, Input, Walk};
use sametick_client::SessionCopy;
use sametick_pong::Pong;
use sametick_sim::{Game, Rng, Seat, Tick};
use sametick_transport::clock::random;
use sametick_transport::dial::Locator;
use sametick_wire::hello::MAX_PASS;
use sametick_wire::hex::read_hex;

use super::{Crowd, LockstepPlan, RoomPlan, RoomPlayer, play_lockstep, play_room};
use crate::cli::{ClientArgs, CommandError};
use crate::config;
use crate::copies::{self, CopyArgs, CopyError, Keep, read_copy};

/// Bots of one process, at most: an address may make 256 connections at once, and then 32 a second.
const MAX_BOTS: i64 = 250;

/// The games that bots can play.
#[derive(Debug, Subcommand)]
pub(crate) enum BotGame {
    /// Pong, for two to four
    #[command(after_help = "\
Examples:
  sametick bot pong --connect udp://127.0.0.1:7777 --count 4 --seconds 10
  sametick bot pong --connect quic://HOST:7778?cert=HASH --netem \"rtt=100ms,jitter=20ms,loss=5%\" --json
  sametick bot pong --session friday --save copies/        keep a copy of the session at the end
  sametick bot pong --session friday --bring copies/       begin with it where the server has nothing of the session

Ends with an error if any two players disagree.")]
    Pong(PongArgs),
    /// Arena, for any number: in lockstep, or in a room of the server
    #[command(after_help = "\
Examples:
  sametick bot arena --room den --connect udp://127.0.0.1:7777 --count 8 --seconds 60
  sametick bot arena --room den --connect ws://127.0.0.1:8080 --netem \"rtt=100ms,loss=2%\" --json
  sametick bot arena --room den --connect udp://127.0.0.1:7777 --count 200 --light
  sametick bot arena --connect udp://127.0.0.1:7777 --count 4

In a room, ends with an error if a bot was told nothing; in lockstep, if any two players disagree.")]
    Arena(ArenaArgs),
}

/// The pass of a member of a session, parsed from hexadecimal.
#[derive(Clone, Debug)]
struct Pass(Vec<u8>);

impl FromStr for Pass {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Pass, &'static str> {
        read_hex(text, MAX_PASS)
            .map(Pass)
            .ok_or("a pass has hexadecimal digits, two for each of at most 128 bytes")
    }
}

/// The arguments that bots of every game take.
#[derive(Debug, Args)]
struct CommonArgs {
    /// The server: udp://HOST:PORT, quic://HOST:PORT?cert=HASH, ws://, wss:// or wt://. Without it, the last that
    /// worked
    #[arg(long, value_name = "URL")]
    connect: Option<Locator>,

    /// The session to meet in [default: bots, or that of --bring]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    #[command(flatten)]
    copies: CopyArgs,

    /// Play for a member of a session of the lobby: the pass that member was told, with the game's place as --session
    /// or --room
    #[arg(long, value_name = "HEX", requires = "connect", conflicts_with = "count")]
    pass: Option<Pass>,

    /// For how long
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// For how long to look for a server that is gone
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    patience: u64,

    #[command(flatten)]
    client: ClientArgs,

    /// Write every message of every bot into this file, a line of JSON each
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Flip a bit in the first bot's state after this tick, to see the desync found, reported and repaired
    #[arg(long, value_name = "TICK")]
    flip_bit: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct PongArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// How many players
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4))]
    count: u32,

    /// How many seats the session has, if the bots begin it [default: as many as bots, and 2 at least]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=4))]
    players: Option<u8>,
}

#[derive(Debug, Args)]
pub(crate) struct ArenaArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// The room to play in, instead of a session
    #[arg(long, value_name = "CODE", conflicts_with_all = ["session", "flip_bit"])]
    room: Option<String>,

    /// How many players
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=MAX_BOTS))]
    count: u32,

    /// How many seats there are, if the bots begin it [default: 16, or as many as bots]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    players: Option<u16>,

    /// How many bots the game itself plays, if these begin it
    #[arg(long, value_name = "N", default_value_t = 3)]
    house_bots: u8,

    /// Bots that do not look where they go: they cost next to nothing, to fill a room with
    #[arg(long, requires = "room")]
    light: bool,
}

impl CommonArgs {
    fn crowd(&self, count: u32, commit: &'static str) -> Crowd {
        let count = if self.pass.is_some() { 1 } else { count };
        let (seconds, patience, netem) = (self.seconds, self.patience, self.client.netem());
        let (pass, trace) = (self.pass.clone().map(|Pass(bytes)| bytes), self.trace.clone());
        Crowd { count, seconds, netem, patience, pass, trace, commit }
    }

    /// Reads the copy to bring, and checks that it has a seat for each bot.
    fn brought<G: Game>(&self, count: u32, seats: Option<u16>) -> Result<Option<SessionCopy>, CopyError> {
        let Some(place) = &self.copies.bring else { return Ok(None) };
        if self.pass.is_some() {
            return Err(CopyError::InLobby);
        }
        let copy = read_copy::<G>(place, self.session.as_deref())?;
        copies::check_seats(&copy, place, (u16::try_from(count).unwrap_or(u16::MAX), seats))?;
        Ok(Some(copy))
    }

    /// Plays in a lockstep session.
    async fn play_lockstep<G: Game>(
        &self,
        crowd: Crowd,
        (setup, seed, seats): (G::Setup, u64, u16),
        bring: Option<SessionCopy>,
        autopilot: fn(&G, Seat) -> G::Input,
    ) -> Result<ExitCode, CommandError>
    where
        G::Input: Default,
    {
        let flip = self.flip_bit.map(Tick);
        let brought = bring.as_ref().map(|copy| copy.facts.name.as_str());
        let session = self.session.as_deref().or(brought).unwrap_or("bots").to_owned();
        let keep = self.copies.save.as_deref().map(Keep::at);
        let plan = LockstepPlan::<G> { session, crowd, setup, seed, seats, autopilot, flip, bring, keep };
        let relay = config::relay_or_last(self.connect.as_ref())?;
        let report = play_lockstep(&relay, &self.client.key()?, plan).await?;
        config::remember_relay(&relay);
        self.client.print(&report)?;
        Ok(if report.agree { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl PongArgs {
    async fn play(&self, commit: &'static str) -> Result<ExitCode, CommandError> {
        let least = u8::try_from(self.count.max(2)).unwrap_or(u8::MAX);
        let players = self.players.unwrap_or(least).max(least);
        let seed = u64::from_le_bytes(random());
        let setup = sametick_pong::Setup { seed, players, ..Default::default() };
        let (plan, crowd) = ((setup, seed, players.into()), self.common.crowd(self.count, commit));
        let bring = self.common.brought::<Pong>(self.count, self.players.map(u16::from))?;
        self.common.play_lockstep::<Pong>(crowd, plan, bring, sametick_pong::autopilot).await
    }
}

impl ArenaArgs {
    async fn play(&self, commit: &'static str) -> Result<ExitCode, CommandError> {
        let (common, seed) = (&self.common, u64::from_le_bytes(random()));
        let default = sametick_arena::Setup::default();
        let least = u16::try_from(self.count).unwrap_or(u16::MAX);
        let seats = self.players.unwrap_or(default.seats).max(least);
        let setup = sametick_arena::Setup { seed, seats, bots: self.house_bots, ..default };
        let crowd = common.crowd(self.count, commit);
        let Some(room) = self.room.clone() else {
            let (plan, bring) = ((setup, seed, seats), common.brought::<Arena>(self.count, self.players)?);
            return common.play_lockstep::<Arena>(crowd, plan, bring, sametick_arena::autopilot).await;
        };
        if common.copies.save.is_some() || common.copies.bring.is_some() {
            return Err(CopyError::InRoom.into());
        }
        let player =
            if self.light { RoomPlayer::Light(wander) } else { RoomPlayer::Pilot(sametick_arena::pilot) };
        let plan = RoomPlan::<Arena> { room, crowd, setup, seed, seats, player };
        let server = config::relay_or_last(common.connect.as_ref())?;
        let report = play_room(&server, &common.client.key()?, plan).await?;
        config::remember_relay(&server);
        common.client.print(&report)?;
        Ok(if report.played { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Walks in one direction for half a second, and shoots now and then.
fn wander(seat: Seat, tick: Tick) -> Input {
    let moment = u64::from(tick.0 + u32::from(seat.0)) / 15;
    let mut rng = Rng::new(moment << 16 | u64::from(seat.0));
    let walk = Walk::towards(rng.between(-1, 1), rng.between(-1, 1));
    Input { walk, aim: rng.next_u64() as u8, fire: rng.chance(1, 3), ..Input::default() }
}

/// Plays with headless bots of a program of this git commit.
pub(crate) async fn play_bots(game: &BotGame, commit: &'static str) -> Result<ExitCode, CommandError> {
    match game {
        BotGame::Pong(args) => args.play(commit).await,
        BotGame::Arena(args) => args.play(commit).await,
    }
}
