//! Headless bots: real links, real peers and views, no screen. In [lockstep](LockstepPlan) they compare their final
//! states; in [rooms](RoomPlan) they report what they have received.

mod command;
mod light;
mod lockstep;
mod room;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use sametick_client::{Client, SessionCopy, Side, Status, Totals};
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_wire::access::AccessKey;
use sametick_wire::netem::Profile;
use sametick_wire::{LinkStats, Time};
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};

pub(crate) use command::{BotGame, play_bots};
pub use light::Wander;
pub use lockstep::{BotReport, BotsReport, LockstepPlan, play_lockstep};
pub use room::{RoomBotReport, RoomBotsReport, RoomPlan, RoomPlayer, play_room};

use crate::calling::Caller;
use crate::copies::CopyError;
use crate::signals::Stops;
use crate::trace::Trace;

/// The copy to bring, and the newest copy that any of the bots had when it ended.
#[derive(Default)]
struct Copies {
    bring: Option<SessionCopy>,
    newest: RefCell<Option<SessionCopy>>,
    is_kept: bool,
}

impl Copies {
    fn note<S: Side>(&self, client: &Client<S>) {
        let reached = client.side().map(S::reached);
        let newest = self.newest.borrow().as_ref().map(|copy| copy.save.tick);
        if self.is_kept && reached > newest {
            let copy = client.copy();
            if copy.is_some() {
                *self.newest.borrow_mut() = copy;
            }
        }
    }
}

/// How many bots, for how long, over which network.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// The number of bots.
    pub count: u32,
    /// For how many seconds they play, once all have joined.
    pub seconds: u64,
    /// A simulated bad network in front of each bot, and its seed.
    pub netem: Option<(Profile, u64)>,
    /// For how many seconds a bot tries to reconnect to a server that is gone.
    pub patience: u64,
    /// The pass with which a member of a session is let in to its game: there is one bot then.
    pub pass: Option<Vec<u8>>,
    /// The file that every message is written to, if any.
    pub trace: Option<PathBuf>,
    /// The git commit that this program was built from, for the log: [`commit!()`](crate::commit).
    pub commit: &'static str,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// The message log cannot be written.
    #[error("cannot write the message log to {}: {error}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// The server was never reached.
    #[error("{url}: {why}")]
    NotReached {
        /// The URL.
        url: Locator,
        /// The reason.
        why: String,
    },
    /// The connection to the server was lost.
    #[error("{url}: the connection was lost, and not found again: {why}")]
    Lost {
        /// The URL.
        url: Locator,
        /// The reason.
        why: String,
    },
    /// The session or room refused a bot.
    #[error("{url}: {why}")]
    Refused {
        /// The URL.
        url: Locator,
        /// The reason.
        why: String,
    },
    /// The copy of the session cannot be kept.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The bots could not go on, but a copy of the session is kept.
    #[error("{error}\n  {saved}")]
    Saved {
        /// The error that ended them.
        error: Box<BotError>,
        /// Where the copy is.
        saved: String,
    },
}

impl BotError {
    /// Adds where the copy of the session was kept, if it was.
    fn with_copy(self, saved: Option<&str>) -> BotError {
        match saved {
            Some(saved) => BotError::Saved { error: Box::new(self), saved: saved.to_owned() },
            None => self,
        }
    }
}

/// A bot that has ended.
struct Bot<S> {
    side: S,
    stats: LinkStats,
    totals: Totals,
}

/// When all bots have joined, and when they leave.
struct Meeting {
    missing: Cell<u32>,
    end_at: Cell<Option<Time>>,
    all_came: Notify,
    copies: Rc<Copies>,
}

/// Runs one bot from its first connection until it has left.
async fn play<S: Side>(
    mut caller: Caller<S>,
    url: Locator,
    clock: Clock,
    crowd: Crowd,
    meeting: Rc<Meeting>,
) -> Result<Option<Bot<S>>, BotError> {
    let played = play_on(&mut caller, url, clock, crowd, &meeting).await;
    meeting.copies.note(caller.client());
    let (stats, totals) = (played?, caller.client().totals());
    Ok(caller.finish().await.map(|side| Bot { side, stats, totals }))
}

/// Runs a connected bot until it has left or cannot go on.
async fn play_on<S: Side>(
    caller: &mut Caller<S>,
    url: Locator,
    clock: Clock,
    crowd: Crowd,
    meeting: &Meeting,
) -> Result<LinkStats, BotError> {
    let (mut has_come, mut stats) = (false, None);
    // When the connection was lost, and why. Later errors of a server that is gone say less.
    let mut away: Option<(Time, String)> = None;
    loop {
        // Bots produce their own inputs.
        caller.drain(|_, _| unreachable!("a bot is not asked"));
        let client = caller.client();
        match client.status() {
            Status::Refused(why) => return Err(BotError::Refused { url, why }),
            Status::Lost { why, .. } if !has_come => return Err(BotError::NotReached { url, why }),
            Status::Lost { why, .. } => {
                let (since, why) = away.get_or_insert((clock.now(), why));
                if clock.now().micros_since(*since) >= crowd.patience * 1_000_000 {
                    return Err(BotError::Lost { url, why: std::mem::take(why) });
                }
            }
            Status::Playing => away = None,
            _ if caller.is_done() => break,
            _ => {}
        }
        if !has_come && client.side().is_some() {
            has_come = true;
            meeting.missing.set(meeting.missing.get() - 1);
            if meeting.missing.get() == 0 {
                meeting.end_at.set(Some(clock.now().plus_micros(crowd.seconds * 1_000_000)));
                meeting.all_came.notify_waiters();
            }
        }
        let end_at = meeting.end_at.get().filter(|_| stats.is_none());
        if end_at.is_some_and(|at| at <= clock.now()) {
            stats = Some(client.link_stats().unwrap_or_default());
            caller.client_mut().leave(clock.now());
            continue;
        }
        tokio::select! {
            () = caller.wait(end_at) => {}
            () = meeting.all_came.notified() => {}
        }
    }
    Ok(stats.unwrap_or_default())
}

/// Connects the given number of bots to a server, and plays. `join` says how the bot with a given number takes part.
/// Needs a single-threaded runtime.
async fn run<S: Side + 'static>(
    url: &Locator,
    key: &AccessKey,
    crowd: Crowd,
    (session, copies): (&str, Rc<Copies>),
    mut join: impl FnMut(usize) -> S::JoinAs,
) -> Result<Vec<Bot<S>>, BotError> {
    let clock = Clock::start();
    let create =
        |path: &PathBuf| Trace::create(path).map_err(|error| BotError::Trace { path: path.clone(), error });
    let trace = crowd.trace.as_ref().map(create).transpose()?.map(|trace| Rc::new(RefCell::new(trace)));
    let (missing, end_at, all_came) = (Cell::new(crowd.count), Cell::new(None), Notify::new());
    let meeting = Rc::new(Meeting { missing, end_at, all_came, copies: copies.clone() });
    let room = LocalSet::new();
    let mut bots = JoinSet::new();
    for number in 1..=crowd.count as usize {
        let refused = |why: String| BotError::NotReached { url: url.clone(), why };
        let place = (session.to_owned(), crowd.pass.clone());
        let caller = Caller::<S>::with_pass(clock, url, key, place, join(number));
        let mut caller = caller.map_err(|error| refused(error.to_string()))?;
        if let Some(copy) = &copies.bring {
            // Every bot gets the copy, because the order in which they join is not known.
            caller.client_mut().bring(copy.clone());
        }
        if let Some((profile, seed)) = crowd.netem {
            caller.client_mut().set_netem(Some(profile), seed.wrapping_add(number as u64) << 16);
        }
        trace.iter().for_each(|trace| caller.set_trace(trace.clone()));
        bots.spawn_local_on(play(caller, url.clone(), clock, crowd.clone(), meeting.clone()), &room);
    }
    // Interrupted bots still print a report.
    room.spawn_local(async move {
        let Ok(mut stops) = Stops::listen() else { return };
        if stops.next().await.is_ok() {
            meeting.end_at.set(Some(clock.now()));
            meeting.all_came.notify_waiters();
        }
    });
    room.run_until(async {
        let mut played = Vec::new();
        while let Some(bot) = bots.join_next().await {
            // A bot that panics ends the whole run.
            played.extend(bot.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?);
        }
        Ok(played)
    })
    .await
}

/// The name of a bot.
fn name_of(number: usize) -> String {
    format!("bot {number}")
}
