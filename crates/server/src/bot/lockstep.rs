//! Headless bots in lockstep sessions. They play, and compare their final states.

use std::collections::BTreeMap;
use std::rc::Rc;

use sametick_client::{Progress, SessionCopy, Side, Standing};
use sametick_lockstep::diagnostics::{Diagnostics, Level, Reading};
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_sim::diff::differences;
use sametick_sim::{Game, Seat, StateHash, Tick, from_canonical, to_canonical};
use sametick_transport::dial::Locator;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Identity, Intent};
use sametick_wire::identity::Token;
use sametick_wire::message_log::Described;
use sametick_wire::pacer::Path;
use sametick_wire::side::{Input, Output};
use sametick_wire::{Channel, Malformed, Time};
use serde::Serialize;

use super::{Bot, BotError, Copies, Crowd, name_of, run};
use crate::copies::{self, Keep};

/// For how many confirmed ticks back bots compare their states.
const COMPARED: usize = 120;

/// What bots do in a session.
#[derive(Clone, Debug)]
pub struct LockstepPlan<G: Game> {
    /// The session's name.
    pub session: String,
    /// How many bots, and for how long.
    pub crowd: Crowd,
    /// The setup with which the session begins, if it is not running.
    pub setup: G::Setup,
    /// The seed in that setup.
    pub seed: u64,
    /// The number of seats of a new session.
    pub seats: u16,
    /// Chooses the inputs.
    pub autopilot: fn(&G, Seat) -> G::Input,
    /// After this tick a bit of the first bot's state is flipped, to test the handling of desyncs.
    pub flip: Option<Tick>,
    /// The copy from which the session begins if the server has nothing of it.
    pub bring: Option<SessionCopy>,
    /// Where a copy of the session is kept at the end, if anywhere.
    pub keep: Option<Keep>,
}

/// The result of one bot.
#[derive(Clone, Debug, Serialize)]
pub struct BotReport {
    /// Its seat.
    pub seat: Option<u16>,
    /// Its last confirmed tick.
    pub tick: u32,
    /// The hash of its state at that tick.
    pub hash: String,
    /// Its inputs that arrived too late for their tick.
    pub omissions: u32,
    /// How many wrong predictions were rolled back.
    pub rollbacks: u64,
    /// Ticks simulated again.
    pub resimulated: u64,
    /// How often its state was desynced and had to be replaced.
    pub resyncs: u32,
    /// How often it lost its connection and reconnected.
    pub losses: u32,
    /// How often it found that the session had begun anew.
    pub restarts: u32,
    /// The round-trip time that the link estimates.
    pub rtt_us: Option<u64>,
    /// Bytes received from the transport.
    pub bytes_received: u64,
    /// Bytes handed to the transport.
    pub bytes_sent: u64,
    /// A sentence about its last second.
    pub verdict: &'static str,
    /// The figures behind that sentence.
    pub diagnostics: Diagnostics,
    /// Each figure with its normal range and its meaning.
    pub readings: [Reading; 7],
}

/// The results of all bots.
#[derive(Clone, Debug, Serialize)]
pub struct BotsReport {
    /// The relay's URL.
    pub url: String,
    /// Whether no two bots had different states at the same tick.
    pub agree: bool,
    /// How many pairs of states were compared.
    pub compared: usize,
    /// The result of each bot.
    pub bots: Vec<BotReport>,
    /// What happened to the copy that they brought.
    pub brought: Option<String>,
    /// Where a copy of the session is kept.
    pub saved: Option<String>,
}

impl std::fmt::Display for BotsReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.url)?;
        writeln!(f, "  seat    tick  hash              omissions  rollbacks      rtt  bytes in  bytes out")?;
        for bot in &self.bots {
            let seat = bot.seat.map_or("-".into(), |seat| seat.to_string());
            let rtt = bot.rtt_us.map_or("-".into(), |rtt_us| crate::report::Ms(rtt_us).to_string());
            writeln!(
                f,
                "  {seat:>4} {:>7}  {}  {:>9}  {:>9} {rtt:>8}  {:>8}  {:>9}",
                bot.tick, bot.hash, bot.omissions, bot.rollbacks, bot.bytes_received, bot.bytes_sent
            )?;
        }
        for bot in &self.bots {
            let seat = bot.seat.map_or("-".into(), |seat| seat.to_string());
            writeln!(f, "  seat {seat}: {}", bot.verdict)?;
            for reading in bot.readings.iter().filter(|reading| reading.level == Level::Concerning) {
                writeln!(f, "    {reading}")?;
            }
        }
        for line in self.brought.iter().chain(&self.saved) {
            writeln!(f, "  {line}")?;
        }
        let verdict = if self.agree { "all agree" } else { "THEY DISAGREE" };
        write!(f, "  {verdict} ({} states compared)", self.compared)
    }
}

/// How a bot takes part.
struct Part<G: Game> {
    join: JoinAs<G>,
    autopilot: fn(&G, Seat) -> G::Input,
    flip: Option<Tick>,
}

impl<G: Game> Clone for Part<G> {
    fn clone(&self) -> Part<G> {
        Part { join: self.join.clone(), autopilot: self.autopilot, flip: self.flip }
    }
}

/// A peer and the bot that plays it.
struct Player<G: Game> {
    peer: Peer<G>,
    part: Part<G>,
    hashes: BTreeMap<Tick, StateHash>,
    resyncs: u32,
    now: Time,
}

impl<G: Game> Player<G> {
    /// Flips the first bit whose flip still yields a valid, different state.
    fn flip(&mut self) {
        let Some((tick, state)) = self.peer.confirmed() else { return };
        let bytes = to_canonical(state).unwrap_or_default();
        let flipped = (0..bytes.len() * 8).rev().find_map(|bit| {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let flipped: G = from_canonical(&bytes).ok()?;
            (to_canonical(&flipped).ok()? == bytes).then_some(flipped)
        });
        let Some(flipped) = flipped else { return };
        let fields = differences(state, &flipped, 1);
        tracing::warn!(tick = tick.0, field = %fields[0], "a bit was flipped");
        self.peer.tamper(|state| *state = flipped);
    }

    /// Records the hash of the newest confirmed state.
    fn note(&mut self) {
        if self.peer.stats().resyncs > self.resyncs {
            // The desync has been found and the state replaced; only states after that are compared.
            self.resyncs = self.peer.stats().resyncs;
            self.hashes.clear();
        }
        let Some((tick, state)) = self.peer.confirmed() else { return };
        // Hashes of ticks that were undone do not count.
        self.hashes.split_off(&tick.next());
        if self.hashes.last_key_value().is_none_or(|(last, _)| *last < tick) {
            self.hashes.insert(tick, StateHash::of(state));
            if self.hashes.len() > COMPARED {
                self.hashes.pop_first();
            }
        }
    }
}

impl<G: Game> Side for Player<G>
where
    G::Input: Default,
{
    type Input = G::Input;
    type JoinAs = Part<G>;
    const NONSENSE: &'static str = Peer::<G>::NONSENSE;

    fn identity() -> Identity {
        Peer::<G>::identity()
    }

    fn intent(session: String) -> Intent {
        Peer::<G>::intent(session)
    }

    fn who(part: &Part<G>) -> (&str, bool) {
        Peer::<G>::who(&part.join)
    }

    fn new(now: Time, part: &Part<G>, path: Path) -> Player<G> {
        let peer = Peer::new(now, &part.join, path);
        Player { peer, part: part.clone(), hashes: BTreeMap::new(), resyncs: 0, now }
    }

    fn rejoin(&mut self, now: Time, path: Path) {
        self.peer.rejoin(now, path);
    }

    fn take_token(&mut self, token: Token) {
        Side::take_token(&mut self.peer, token);
    }

    fn bring(&mut self, copy: SessionCopy) {
        self.peer.bring(copy);
    }

    fn copy(&self, session: &str) -> Option<SessionCopy> {
        self.peer.copy(session)
    }

    fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.now = now;
        if !matches!(input, Input::Message(..)) {
            return self.peer.handle(now, input);
        }
        let heard = self.peer.handle(now, input);
        let confirmed = self.peer.confirmed().map(|(tick, _)| tick);
        if self.part.flip.is_some_and(|tick| confirmed >= Some(tick)) && self.peer.seat() == Some(Seat(0)) {
            self.part.flip = None;
            self.flip();
        }
        self.note();
        heard
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        loop {
            match self.peer.poll_output(buf) {
                Output::WantInput(_) => {
                    let played = self.peer.shown().zip(self.peer.seat());
                    let input = played.map(|((_, state), seat)| (self.part.autopilot)(state, seat));
                    // Input of the bot's own side is never malformed.
                    let _ = self.peer.handle(self.now, Input::Local(input.unwrap_or_default()));
                }
                output => return output,
            }
        }
    }

    fn standing(&self) -> Standing {
        self.peer.standing()
    }

    fn catching_up(&self) -> Progress {
        Side::catching_up(&self.peer)
    }

    fn reached(&self) -> Tick {
        self.peer.reached()
    }

    fn seat(&self) -> Option<Seat> {
        self.peer.seat()
    }

    fn describe(sent: bool, channel: Channel, bytes: &[u8], near: Tick) -> Described {
        Peer::<G>::describe(sent, channel, bytes, near)
    }

    fn run(&self) -> Option<u64> {
        self.peer.run()
    }
}

impl<G: Game> Bot<Player<G>> {
    fn report(&self) -> BotReport {
        let peer = &self.side.peer;
        let (stats, diagnostics) = (peer.stats(), peer.diagnostics());
        let (tick, hash) = peer
            .confirmed()
            .map_or((0, String::new()), |(tick, state)| (tick.0, StateHash::of(state).to_string()));
        BotReport {
            seat: peer.seat().map(|seat| seat.0),
            tick,
            hash,
            omissions: stats.omissions,
            rollbacks: stats.rollbacks,
            resimulated: stats.resimulated,
            resyncs: stats.resyncs,
            losses: self.totals.losses,
            restarts: self.totals.restarts,
            verdict: diagnostics.verdict(),
            diagnostics,
            readings: diagnostics.readings(),
            rtt_us: self.stats.rtt_us,
            bytes_received: self.totals.bytes_received,
            bytes_sent: self.totals.bytes_sent,
        }
    }
}

/// Whether all bots had the same state at every tick that two of them have recorded, and how many pairs were compared.
fn agreement<G: Game>(bots: &[Bot<Player<G>>]) -> (bool, usize) {
    let mut seen: BTreeMap<Tick, StateHash> = BTreeMap::new();
    let (mut agree, mut compared) = (true, 0);
    for (tick, hash) in bots.iter().flat_map(|bot| &bot.side.hashes) {
        match seen.get(tick) {
            Some(other) => {
                compared += 1;
                agree &= other == hash;
            }
            None => {
                seen.insert(*tick, *hash);
            }
        }
    }
    (agree, compared)
}

/// Plays in a session with headless bots and reports. Needs a single-threaded runtime.
pub async fn play_lockstep<G: Game>(
    url: &Locator,
    key: &AccessKey,
    plan: LockstepPlan<G>,
) -> Result<BotsReport, BotError>
where
    G::Input: Default,
{
    let LockstepPlan { session, crowd, setup, seed, seats, autopilot, flip, bring, keep } = plan;
    let (wait_for, commit) = (crowd.count as u16, crowd.commit);
    let join = |number| {
        let (player, commit, setup) = (name_of(number), commit.into(), setup.clone());
        let join = JoinAs { name: player, commit, setup, seed, seats, wait_for, watch: false, listed: true };
        Part::<G> { join, autopilot, flip }
    };
    let copies = Rc::new(Copies { bring, is_kept: keep.is_some(), ..Copies::default() });
    let bots = run::<Player<G>>(url, key, crowd, (&session, copies.clone()), join).await;
    let copy = copies.newest.take();
    let saved = keep.zip(copy).map(|(keep, copy)| keep.write(&copy)).transpose();
    // A copy is kept also if the server is gone: that is when it is needed.
    let saved = saved.map_err(BotError::from)?.map(|kept| kept.to_string());
    let bots = bots.map_err(|error| error.with_copy(saved.as_deref()))?;
    let (agree, compared) = agreement(&bots);
    let brought = bots.iter().find_map(|bot| bot.side.peer.brought()).map(copies::tell);
    let bots = bots.iter().map(Bot::report).collect();
    Ok(BotsReport { url: url.to_string(), agree, compared, bots, brought, saved })
}
