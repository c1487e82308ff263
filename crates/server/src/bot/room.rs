//! Headless players of authoritative rooms. They play by what they are told, and say how much that was.

use sametick_room::view::{Input, JoinAs, Output, Status, View};
use sametick_sim::Tick;
use sametick_sim::replica::{Hosted, Scene, hosted_schema_of};
use sametick_transport::dial::Locator;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Identity, Intent};
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, Malformed, Time};
use serde::Serialize;

use super::{Bot, BotError, Crowd, Mind, Want, name_of, run};

/// What bots should do in a room.
#[derive(Clone, Debug)]
pub struct RoomPlan<G: Hosted> {
    /// The room's code.
    pub room: String,
    /// How many, for how long.
    pub crowd: Crowd,
    /// What the room begins with, if it is not open.
    pub setup: G::Setup,
    /// The seed in that.
    pub seed: u64,
    /// How many seats it has then.
    pub seats: u16,
    /// Who plays: by what is foreseen of oneself, what is known of others, the tick, and the seed.
    pub pilot: fn(&G::Own, &Scene, Tick, u64) -> G::Input,
}

/// What one bot was told, and how it went.
#[derive(Clone, Debug, Serialize)]
pub struct RoomBotReport {
    /// Where it sat.
    pub seat: Option<u16>,
    /// The tick of its last update.
    pub tick: u32,
    /// Who was there in the end, itself included.
    pub players: usize,
    /// Entities it knew of in the end.
    pub entities: usize,
    /// Updates that arrived.
    pub updates: u64,
    /// Updates that did not, or too late.
    pub updates_lost: u64,
    /// The mean bytes of an update.
    pub update_bytes: u64,
    /// Its inputs that missed their tick.
    pub omissions: u32,
    /// How wrong its foresight was on average, as a time.
    pub error_mean_ms: f64,
    /// And at worst.
    pub error_max_ms: f32,
    /// How often it was so wrong that it was mended at once.
    pub snaps: u64,
    /// As the link estimates it.
    pub rtt_us: Option<u64>,
    /// Bytes taken from the carrier.
    pub bytes_received: u64,
    /// Bytes given to it.
    pub bytes_sent: u64,
}

/// What all of them were told.
#[derive(Clone, Debug, Serialize)]
pub struct RoomBotsReport {
    /// The server.
    pub url: String,
    /// The room.
    pub room: String,
    /// Whether every one of them had a seat and was told something.
    pub played: bool,
    /// Each bot.
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

struct Player<G: Hosted> {
    view: View<G>,
    seed: u64,
    pilot: fn(&G::Own, &Scene, Tick, u64) -> G::Input,
    /// Who was there when somebody last came or went.
    players: usize,
}

impl<G: Hosted> Mind for Player<G>
where
    G::Input: Default,
{
    fn hear(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), Malformed> {
        let heard = self.view.handle(now, Input::Message(channel, bytes));
        self.players = self.players.max(self.view.roster().len());
        heard
    }

    fn on_path(&mut self, now: Time, path: Path) {
        // What this side says of itself is never malformed.
        let _ = self.view.handle(now, Input::Path(path));
    }

    fn on_time(&mut self, now: Time) {
        // Nor is a time-out.
        let _ = self.view.handle(now, Input::Timeout);
    }

    fn poll(&mut self, now: Time, buf: &mut Vec<u8>) -> Want {
        loop {
            match self.view.poll_output(buf) {
                Output::Send(channel) => return Want::Send(channel),
                Output::WantInput(tick) => {
                    let own = self.view.foreseen().map(|(_, own)| own);
                    let input = own.map(|own| (self.pilot)(own, self.view.newest(), tick, self.seed));
                    // Nor is an input that was asked for.
                    let _ = self.view.handle(now, Input::Local(input.unwrap_or_default()));
                }
                Output::WantPath => return Want::Path,
                Output::WakeAt(at) => return Want::WakeAt(at),
                Output::Wait => return Want::Nothing,
            }
        }
    }

    fn refused(&self) -> Option<String> {
        match self.view.status() {
            Status::Refused(why) => Some(why),
            _ => None,
        }
    }
}

impl<G: Hosted> Bot<Player<G>> {
    fn report(&self) -> RoomBotReport {
        let (view, stats) = (&self.mind.view, self.mind.view.stats());
        RoomBotReport {
            seat: view.seat().map(|seat| seat.0),
            tick: view.newest_tick().0,
            players: self.mind.players,
            entities: stats.entities,
            updates: stats.updates,
            updates_lost: stats.lost,
            update_bytes: stats.bytes / stats.updates.max(1),
            omissions: stats.omissions,
            error_mean_ms: stats.errors.mean_ms(),
            error_max_ms: stats.errors.max_ms,
            snaps: stats.errors.snaps,
            rtt_us: self.stats.rtt_us,
            bytes_received: self.stats.bytes_received,
            bytes_sent: self.stats.bytes_sent,
        }
    }
}

/// Plays in a room with headless players and reports. Needs a runtime of one thread.
pub async fn play_room<G: Hosted>(
    url: &Locator,
    key: &AccessKey,
    plan: RoomPlan<G>,
) -> Result<RoomBotsReport, BotError>
where
    G::Input: Default,
{
    let RoomPlan { room, crowd, setup, seed, seats, pilot } = plan;
    let identity = Identity { build: G::BUILD, schema: hosted_schema_of::<G>() };
    let begin = |now, number, path| {
        let (name, commit, setup) = (name_of(number), crate::COMMIT.into(), setup.clone());
        let join = JoinAs::<G> { name, commit, setup, seed, seats, watch: false, listed: true };
        Player { view: View::new(now, &join, path), seed, pilot, players: 0 }
    };
    let intent = Intent::Enter { room: room.clone() };
    let bots = run(url, key, crowd, (identity, intent), begin).await?;
    let bots: Vec<RoomBotReport> = bots.iter().map(Bot::report).collect();
    let played = bots.iter().all(|bot| bot.seat.is_some() && bot.updates > 0);
    Ok(RoomBotsReport { url: url.to_string(), room, played, bots })
}
