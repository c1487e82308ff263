//! Headless players: real links, real peers and views, no screen. In [lockstep](LockstepPlan) they compare what they ended up
//! with; in [rooms](RoomPlan) they say what they were told.

mod command;
mod light;
mod lockstep;
mod room;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_transport::hub::{App, Ended, Event, Hub, Key, Links};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use sametick_wire::netem::Profile;
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, LinkStats, Malformed, Time};

pub(crate) use command::{BotGame, play_bots};
pub use light::Wander;
pub use lockstep::{BotReport, BotsReport, LockstepPlan, play_lockstep};
pub use room::{RoomBotReport, RoomBotsReport, RoomPlan, RoomPlayer, play_room};

/// How many bots, for how long, over which network.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// How many.
    pub count: u32,
    /// For how long, once all have come.
    pub seconds: u64,
    /// A bad network in front of each, and its seed.
    pub netem: Option<(Profile, u64)>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// The server cannot be called.
    #[error("{url}: {error}")]
    Dial {
        /// Which.
        url: Locator,
        /// Why not.
        error: std::io::Error,
    },
    /// The message trace cannot be written.
    #[error("cannot write the message trace to {}: {error}", path.display())]
    Trace {
        /// Where.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A bot's link ended early.
    #[error("{url}: {ended}")]
    Ended {
        /// Which.
        url: Locator,
        /// Why.
        ended: Box<Ended>,
    },
    /// The session or room turned a bot down.
    #[error("{url}: {why}")]
    Refused {
        /// Which.
        url: Locator,
        /// Why.
        why: String,
    },
}

/// What a bot wants. Bytes are in the buffer that was given.
enum Want {
    Send(Channel),
    Path,
    WakeAt(Time),
    Nothing,
}

/// What is behind the link of a bot.
trait Mind {
    /// A message has arrived.
    fn hear(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), Malformed>;

    /// What the link counts, as was asked for.
    fn on_path(&mut self, now: Time, path: Path);

    /// The time has come.
    fn on_time(&mut self, now: Time);

    /// What it wants next.
    fn poll(&mut self, now: Time, buf: &mut Vec<u8>) -> Want;

    /// Why it was turned down, if it was.
    fn refused(&self) -> Option<String>;
}

struct Bot<M> {
    mind: M,
    wake_at: Option<Time>,
    stats: LinkStats,
}

/// Bots on a hub of their own. `B` makes one, from its number and the path to the server.
struct Bots<M, B> {
    crowd: Crowd,
    begin: B,
    bots: BTreeMap<Key, Bot<M>>,
    wakes: BTreeSet<(Time, Key)>,
    /// Set when all have come.
    end_at: Option<Time>,
    closing: bool,
    ended: u32,
    failed: Option<Ended>,
    refused: Option<String>,
    buf: Vec<u8>,
}

impl<M: Mind, B: FnMut(Time, usize, Path) -> M> Bots<M, B> {
    fn open(&mut self, now: Time, key: Key, links: &Links) {
        let stats = links.stats(key).unwrap_or_default();
        let mind = (self.begin)(now, self.bots.len() + 1, stats.into());
        self.bots.insert(key, Bot { mind, wake_at: None, stats });
        if self.bots.len() == self.crowd.count as usize {
            self.end_at = Some(now.plus_micros(self.crowd.seconds * 1_000_000));
        }
    }

    fn on_message(&mut self, now: Time, key: Key, links: &mut Links, channel: Channel, bytes: &[u8]) {
        let Some(bot) = self.bots.get_mut(&key) else { return };
        if bot.mind.hear(now, channel, bytes).is_err() {
            links.close(key, 1, "this is not the protocol");
        }
        if let Some(why) = bot.mind.refused() {
            self.refused = Some(why);
        }
        self.drain(now, key, links);
    }

    fn drain(&mut self, now: Time, key: Key, links: &mut Links) {
        let Some(bot) = self.bots.get_mut(&key) else { return };
        let wake_at = loop {
            match bot.mind.poll(now, &mut self.buf) {
                Want::Send(channel) => {
                    // A link that has ended says so itself.
                    let _ = links.send(key, channel, &self.buf);
                }
                Want::Path => bot.mind.on_path(now, links.stats(key).unwrap_or_default().into()),
                Want::WakeAt(at) => break Some(at),
                Want::Nothing => break None,
            }
        };
        let before = std::mem::replace(&mut bot.wake_at, wake_at);
        if before != wake_at {
            before.map(|at| self.wakes.remove(&(at, key)));
            wake_at.map(|at| self.wakes.insert((at, key)));
        }
    }

    fn on_time(&mut self, now: Time, links: &mut Links) {
        if self.end_at.is_some_and(|at| at <= now) && !self.closing {
            self.closing = true;
            for (key, bot) in &mut self.bots {
                bot.stats = links.stats(*key).unwrap_or_default();
                links.close(*key, 0, "done");
            }
        }
        while let Some((_, key)) = self.wakes.first().copied().filter(|(at, _)| *at <= now) {
            self.wakes.pop_first();
            if let Some(bot) = self.bots.get_mut(&key) {
                bot.wake_at = None;
                bot.mind.on_time(now);
            }
            self.drain(now, key, links);
        }
    }
}

impl<M: Mind, B: FnMut(Time, usize, Path) -> M> App for Bots<M, B> {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Err(Refusal::Other("this is a client".into()))
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => {
                self.open(now, key, links);
                self.drain(now, key, links);
            }
            Event::Message(key, channel, bytes) => self.on_message(now, key, links, channel, bytes),
            Event::Ended(_, ended, _) => {
                self.ended += 1;
                if !self.closing {
                    self.failed.get_or_insert(ended.clone());
                }
            }
            Event::Timeout => self.on_time(now, links),
        }
    }

    fn wake_at(&self) -> Option<Time> {
        let wakes = self.wakes.first().map(|(at, _)| *at);
        wakes.into_iter().chain(self.end_at).min().filter(|_| !self.closing)
    }

    fn is_done(&self) -> bool {
        self.failed.is_some() || self.refused.is_some() || self.ended == self.crowd.count
    }
}

/// Calls a server as many times as there are bots, and plays. Needs a runtime of one thread.
async fn run<M: Mind>(
    url: &Locator,
    key: &AccessKey,
    crowd: Crowd,
    (identity, intent): (Identity, Intent),
    begin: impl FnMut(Time, usize, Path) -> M,
) -> Result<Vec<Bot<M>>, BotError> {
    let clock = Clock::start();
    let mut hub = Hub::new(clock, None);
    if let Some((profile, seed)) = crowd.netem {
        hub.set_netem(profile, seed);
    }
    let dial = |error| BotError::Dial { url: url.clone(), error };
    for number in 1..=crowd.count {
        let hello = Hello { identity, intent: intent.clone(), name: name_of(number as usize), ticket: None };
        hub.add(url.dial(clock.now(), key, &hello).await.map_err(dial)?);
    }
    let mut bots = Bots {
        crowd,
        begin,
        bots: BTreeMap::new(),
        wakes: BTreeSet::new(),
        end_at: None,
        closing: false,
        ended: 0,
        failed: None,
        refused: None,
        buf: Vec::new(),
    };
    hub.run(&mut bots).await.map_err(dial)?;
    match (bots.refused, bots.failed) {
        (Some(why), _) => Err(BotError::Refused { url: url.clone(), why }),
        (None, Some(ended)) => Err(BotError::Ended { url: url.clone(), ended: Box::new(ended) }),
        (None, None) => Ok(bots.bots.into_values().collect()),
    }
}

/// What bots are called.
fn name_of(number: usize) -> String {
    format!("bot {number}")
}
