//! Headless bots in authoritative rooms. They play by the updates they receive, and report how much they received.

use std::rc::Rc;

use sametick_client::{Progress, Side, Standing};
use sametick_room::message::Join;
use sametick_room::view::{Errors, JoinAs, View};
use sametick_sim::replica::{Hosted, Scene};
use sametick_sim::{Seat, Tick, to_canonical};
use sametick_transport::dial::Locator;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Identity, Intent};
use sametick_wire::identity::Token;
use sametick_wire::message_log::Described;
use sametick_wire::pacer::Path;
use sametick_wire::side::{Input, Output};
use sametick_wire::{Channel, Malformed, Time};
use serde::Serialize;

use super::light::{Light, Wander};
use super::{Bot, BotError, Crowd, name_of, run};

/// What bots do in a room.
#[derive(Clone)]
pub struct RoomPlan<G: Hosted> {
    /// The room's code.
    pub room: String,
    /// How many bots, and for how long.
    pub crowd: Crowd,
    /// The setup with which the room begins, if it is not open.
    pub setup: G::Setup,
    /// The seed in that setup.
    pub seed: u64,
    /// The number of seats of a new room.
    pub seats: u16,
    /// The kind of player.
    pub player: RoomPlayer<G>,
}

/// The kind of player that a bot is in a room.
#[derive(Clone, Copy)]
pub enum RoomPlayer<G: Hosted> {
    /// A pilot that chooses inputs from its own predicted state, what is known of others, the tick, and the seed.
    Pilot(fn(&G::Own, &Scene, Tick, u64) -> G::Input),
    /// A light bot that decodes no updates: many of them fit on one machine.
    Light(Wander<G>),
}

/// The result of one bot.
#[derive(Clone, Debug, Serialize)]
pub struct RoomBotReport {
    /// Its seat.
    pub seat: Option<u16>,
    /// The tick of its last update.
    pub tick: u32,
    /// How many players were in the room at the end, itself included.
    pub players: usize,
    /// Entities it knew of at the end.
    pub entities: usize,
    /// Updates that arrived.
    pub updates: u64,
    /// Updates that did not arrive, or arrived too late.
    pub updates_lost: u64,
    /// The mean size of an update in bytes.
    pub update_bytes: u64,
    /// Its inputs that arrived too late for their tick.
    pub omissions: u32,
    /// The mean error of its prediction, as a time.
    pub error_mean_ms: f64,
    /// The largest error of its prediction.
    pub error_max_ms: f32,
    /// How often the error was so large that it was corrected at once, without smoothing.
    pub snaps: u64,
    /// How often it lost its connection and reconnected.
    pub losses: u32,
    /// The round-trip time that the link estimates.
    pub rtt_us: Option<u64>,
    /// Bytes received from the transport.
    pub bytes_received: u64,
    /// Bytes handed to the transport.
    pub bytes_sent: u64,
}

/// The results of all bots.
#[derive(Clone, Debug, Serialize)]
pub struct RoomBotsReport {
    /// The server's URL.
    pub url: String,
    /// The room's code.
    pub room: String,
    /// Whether every bot had a seat and received an update.
    pub played: bool,
    /// The result of each bot.
    pub bots: Vec<RoomBotReport>,
}

impl std::fmt::Display for RoomBotsReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} room {}", self.url, self.room)?;
        writeln!(
            f,
            "  seat    tick  updates   lost  bytes each  omissions  error mean     max      rtt  bytes in  bytes out"
        )?;
        for bot in &self.bots {
            let seat = bot.seat.map_or("-".into(), |seat| seat.to_string());
            let rtt = bot.rtt_us.map_or("-".into(), |rtt_us| crate::report::Ms(rtt_us).to_string());
            writeln!(
                f,
                "  {seat:>4} {:>7}  {:>7} {:>6}  {:>10}  {:>9}  {:>7.1} ms {:>4.0} ms {rtt:>8}  {:>8}  {:>9}",
                bot.tick,
                bot.updates,
                bot.updates_lost,
                bot.update_bytes,
                bot.omissions,
                bot.error_mean_ms,
                bot.error_max_ms,
                bot.bytes_received,
                bot.bytes_sent
            )?;
        }
        let there = self.bots.iter().map(|bot| bot.players).max().unwrap_or(0);
        let verdict = if self.played { "all played" } else { "NOT ALL PLAYED" };
        write!(f, "  {verdict} ({} in the room)", crate::report::Count(there as u64, "player"))
    }
}

/// How a bot takes part.
struct Part<G: Hosted> {
    join: JoinAs<G>,
    seed: u64,
    pilot: Pilot<G>,
}

/// Chooses a bot's input from what it sees.
type Pilot<G> = fn(&<G as Hosted>::Own, &Scene, Tick, u64) -> <G as sametick_sim::Game>::Input;

impl<G: Hosted> Clone for Part<G> {
    fn clone(&self) -> Part<G> {
        Part { join: self.join.clone(), seed: self.seed, pilot: self.pilot }
    }
}

/// A view and the bot that plays it.
struct Player<G: Hosted> {
    view: View<G>,
    part: Part<G>,
    /// How many players the last join or leave has left.
    players: usize,
    now: Time,
}

impl<G: Hosted> Side for Player<G>
where
    G::Input: Default,
{
    type Input = G::Input;
    type JoinAs = Part<G>;
    const NONSENSE: &'static str = View::<G>::NONSENSE;

    fn identity() -> Identity {
        View::<G>::identity()
    }

    fn intent(room: String) -> Intent {
        View::<G>::intent(room)
    }

    fn who(part: &Part<G>) -> (&str, bool) {
        View::<G>::who(&part.join)
    }

    fn new(now: Time, part: &Part<G>, path: Path) -> Player<G> {
        Player { view: View::new(now, &part.join, path), part: part.clone(), players: 0, now }
    }

    fn rejoin(&mut self, now: Time, path: Path) {
        self.view.rejoin(now, path);
    }

    fn take_token(&mut self, token: Token) {
        self.view.take_token(token);
    }

    fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.now = now;
        let heard = self.view.handle(now, input);
        self.players = self.players.max(self.view.roster().len());
        heard
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        loop {
            match self.view.poll_output(buf) {
                Output::WantInput(tick) => {
                    let own = self.view.predicted().map(|(_, own)| own);
                    let Part { pilot, seed, .. } = &self.part;
                    let input = own.map(|own| pilot(own, self.view.newest(), tick, *seed));
                    // Input of the bot's own side is never malformed.
                    let _ = self.view.handle(self.now, Input::Local(input.unwrap_or_default()));
                }
                output => return output,
            }
        }
    }

    fn standing(&self) -> Standing {
        self.view.standing()
    }

    fn catching_up(&self) -> Progress {
        Side::catching_up(&self.view)
    }

    fn reached(&self) -> Tick {
        self.view.reached()
    }

    fn seat(&self) -> Option<Seat> {
        self.view.seat()
    }

    fn describe(sent: bool, channel: Channel, bytes: &[u8], near: Tick) -> Described {
        View::<G>::describe(sent, channel, bytes, near)
    }
}

/// What a bot has received.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub seat: Option<Seat>,
    pub tick: Tick,
    pub players: usize,
    pub entities: usize,
    pub updates: u64,
    pub lost: u64,
    pub bytes: u64,
    pub omissions: u32,
    pub errors: Errors,
}

/// A bot that can report what it has received of a room.
pub(super) trait Told {
    fn seen(&self) -> Seen;
}

impl<G: Hosted> Told for Player<G> {
    fn seen(&self) -> Seen {
        let stats = self.view.stats();
        Seen {
            seat: self.view.seat(),
            tick: self.view.newest_tick(),
            players: self.players,
            entities: stats.entities,
            updates: stats.updates,
            lost: stats.lost,
            bytes: stats.bytes,
            omissions: stats.omissions,
            errors: stats.errors,
        }
    }
}

impl<M: Told> Bot<M> {
    fn report(&self) -> RoomBotReport {
        let seen = self.side.seen();
        RoomBotReport {
            seat: seen.seat.map(|seat| seat.0),
            tick: seen.tick.0,
            players: seen.players,
            entities: seen.entities,
            updates: seen.updates,
            updates_lost: seen.lost,
            update_bytes: seen.bytes / seen.updates.max(1),
            omissions: seen.omissions,
            error_mean_ms: seen.errors.mean_ms(),
            error_max_ms: seen.errors.max_ms,
            snaps: seen.errors.snaps,
            losses: self.totals.losses,
            rtt_us: self.stats.rtt_us,
            bytes_received: self.totals.bytes_received,
            bytes_sent: self.totals.bytes_sent,
        }
    }
}

/// Plays in a room with headless bots and reports. Needs a single-threaded runtime.
pub async fn play_room<G: Hosted>(
    url: &Locator,
    key: &AccessKey,
    plan: RoomPlan<G>,
) -> Result<RoomBotsReport, BotError>
where
    G::Input: Default,
{
    let RoomPlan { room, crowd, setup, seed, seats, player } = plan;
    let commit = crowd.commit;
    let bots: Vec<RoomBotReport> = match player {
        RoomPlayer::Pilot(pilot) => {
            let join = |number| {
                let (name, commit, setup) = (name_of(number), commit.into(), setup.clone());
                let join = JoinAs::<G> { name, commit, setup, seed, seats, watch: false, listed: true };
                Part { join, seed, pilot }
            };
            run::<Player<G>>(url, key, crowd, (&room, Rc::default()), join)
                .await?
                .iter()
                .map(Bot::report)
                .collect()
        }
        RoomPlayer::Light(wander) => {
            let setup = to_canonical(&setup).expect("a setup serialises");
            let join = |number| {
                let join = Join {
                    game: G::NAME.into(),
                    commit: commit.into(),
                    name: name_of(number),
                    setup: setup.clone(),
                    seed,
                    seats,
                    watch: false,
                    listed: true,
                    resume: None,
                    token: None,
                    must_resume: false,
                };
                (join, wander)
            };
            run::<Light<G>>(url, key, crowd, (&room, Rc::default()), join)
                .await?
                .iter()
                .map(Bot::report)
                .collect()
        }
    };
    let played = bots.iter().all(|bot| bot.seat.is_some() && bot.updates > 0);
    Ok(RoomBotsReport { url: url.to_string(), room, played, bots })
}
