//! Headless players: real links, real peers and views, no screen. In [lockstep](LockstepPlan) they compare what they ended up
//! with; in [rooms](RoomPlan) they say what they were told.

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

/// What is brought, and the newest copy that any of the bots had when it ended.
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
    /// How many.
    pub count: u32,
    /// For how long, once all have come.
    pub seconds: u64,
    /// A bad network in front of each, and its seed.
    pub netem: Option<(Profile, u64)>,
    /// For how many seconds they look for a server that is gone.
    pub patience: u64,
    /// What a member of a session shows to be let in to its game: there is one bot then.
    pub pass: Option<Vec<u8>>,
    /// Every message goes into this file, if any.
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
        /// Where.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The server was never reached.
    #[error("{url}: {why}")]
    NotReached {
        /// Which.
        url: Locator,
        /// Why not.
        why: String,
    },
    /// The server is gone.
    #[error("{url}: the connection was lost, and not found again: {why}")]
    Lost {
        /// Which.
        url: Locator,
        /// Why.
        why: String,
    },
    /// The session or room turned a bot down.
    #[error("{url}: {why}")]
    Refused {
        /// Which.
        url: Locator,
        /// Why.
        why: String,
    },
    /// The copy of the session cannot be kept.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// They could not go on, but a copy of the session is kept.
    #[error("{error}\n  {saved}")]
    Saved {
        /// Why they could not go on.
        error: Box<BotError>,
        /// Where the copy is.
        saved: String,
    },
}

impl BotError {
    /// The same, if a copy of the session was kept.
    fn with_copy(self, saved: Option<&str>) -> BotError {
        match saved {
            Some(saved) => BotError::Saved { error: Box::new(self), saved: saved.to_owned() },
            None => self,
        }
    }
}

/// What is left of a bot.
struct Bot<S> {
    side: S,
    stats: LinkStats,
    totals: Totals,
}

/// When bots have all come, and when they leave.
struct Meeting {
    missing: Cell<u32>,
    end_at: Cell<Option<Time>>,
    all_came: Notify,
    copies: Rc<Copies>,
}

/// One bot, from its call until its farewell.
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

/// The same until it has left, or cannot go on.
async fn play_on<S: Side>(
    caller: &mut Caller<S>,
    url: Locator,
    clock: Clock,
    crowd: Crowd,
    meeting: &Meeting,
) -> Result<LinkStats, BotError> {
    let (mut has_come, mut stats) = (false, None);
    // Since when it is away, and why: what is said later of a server that is gone says less.
    let mut away: Option<(Time, String)> = None;
    loop {
        // Bots know themselves what they do.
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

/// Calls a server as many times as there are bots, and plays. `join` says how the one of a number takes part. Needs a runtime
/// of one thread.
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
            // All of them: nobody knows who comes first.
            caller.client_mut().bring(copy.clone());
        }
        if let Some((profile, seed)) = crowd.netem {
            caller.client_mut().set_netem(Some(profile), seed.wrapping_add(number as u64) << 16);
        }
        trace.iter().for_each(|trace| caller.set_trace(trace.clone()));
        bots.spawn_local_on(play(caller, url.clone(), clock, crowd.clone(), meeting.clone()), &room);
    }
    // Whoever ends them wants to know how it went.
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
            // A bot that panics takes everything with it.
            played.extend(bot.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?);
        }
        Ok(played)
    })
    .await
}

/// What bots are called.
fn name_of(number: usize) -> String {
    format!("bot {number}")
}
