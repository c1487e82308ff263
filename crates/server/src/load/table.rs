//! Two people who meet, play and part, over and over.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_pong::{Input, Pong, Setup, autopilot};
use sametick_sim::Seat;
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::MAX_PASS;
use sametick_wire::hex::read_hex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::people::{Member, Visitor};
use super::report::Tally;
use crate::calling::Caller;

/// A game takes less than this, or it hangs.
const LONGEST_GAME: Duration = Duration::from_secs(180);

/// After something has failed, a person would wait a moment.
const MOMENT: Duration = Duration::from_secs(1);

/// How often somebody who waits says something.
const PING: Duration = Duration::from_secs(5);

/// Two people.
pub(super) struct Table {
    gateway: String,
    key: AccessKey,
    number: u32,
    tally: Rc<RefCell<Tally>>,
}

impl Table {
    pub fn new(gateway: String, key: AccessKey, number: u32, tally: Rc<RefCell<Tally>>) -> Table {
        Table { gateway, key, number, tally }
    }

    /// Plays one session after the other, until no more are to begin.
    pub async fn play(&self, until: Instant) {
        while Instant::now() < until {
            if let Err(why) = self.play_once().await {
                self.tally.borrow_mut().fail(&why);
                sleep(MOMENT).await;
            }
        }
    }

    /// Is in a session, and does nothing there.
    pub async fn wait(&self, until: Instant) {
        let waited: Result<(), String> = async {
            let (mut first, mut second) = self.meet().await?;
            while Instant::now() < until {
                sleep(PING.min(until.saturating_duration_since(Instant::now()))).await;
                first.talk.ping().await?;
                second.talk.ping().await?;
            }
            second.does("leave", &json!({})).await?;
            first.does("leave", &json!({})).await
        }
        .await;
        if let Err(why) = waited {
            self.tally.borrow_mut().fail(&why);
        }
    }

    /// Two who are in the same session.
    async fn meet(&self) -> Result<(Member, Member), String> {
        let settings = json!({"name": format!("load {}", self.number), "game": "pong", "mode": "lockstep", "scenario": "short",
            "difficulty": 1, "groups": 1, "listed": true});
        let (gateway, key) = (&self.gateway[..], &self.key);
        let mut creator = Visitor::come(gateway, key).await?;
        let mut joiner = Visitor::come(gateway, key).await?;
        let began = Instant::now();
        let way = creator.create(gateway, &settings).await?;
        let first = Member::arrive(&way, key).await?;
        self.note(|tally| {
            tally.created += 1;
            tally.create_us.push(micros(began));
        });
        let began = Instant::now();
        let second = Member::arrive(&joiner.join(gateway, &way.session).await?, key).await?;
        self.note(|tally| {
            tally.joined += 2;
            tally.join_us.push(micros(began));
        });
        Ok((first, second))
    }

    async fn play_once(&self) -> Result<(), String> {
        let (mut first, mut second) = self.meet().await?;
        first.does("take", &json!({"seat": 0})).await?;
        second.does("take", &json!({"seat": 1})).await?;
        first.does("ready", &json!({"ready": true})).await?;
        let began = Instant::now();
        first.does("start", &json!({})).await?;
        let plays = (first.event("play").await?, second.event("play").await?);
        let bots = [self.bot(&first, &plays.0)?, self.bot(&second, &plays.1)?];
        self.note(|tally| tally.start_us.push(micros(began)));
        let began = Instant::now();
        let both = async { tokio::join!(results(&mut first), results(&mut second)) };
        let ended = timeout(LONGEST_GAME, both).await;
        bots.iter().for_each(JoinHandle::abort);
        let (here, there) = ended.map_err(|_| "a game does not end")?;
        here.and(there)?;
        self.note(|tally| {
            tally.played += 1;
            tally.game_us.push(micros(began));
        });
        second.does("leave", &json!({})).await?;
        first.does("leave", &json!({})).await
    }

    /// A bot in the game that somebody was told to play. On the second seat it does not move.
    fn bot(&self, member: &Member, play: &Value) -> Result<JoinHandle<()>, String> {
        let text = |name: &str| play[name].as_str().unwrap_or_default();
        let name = member.authority.rsplit_once(':').map_or(&member.authority[..], |(name, _)| name);
        let url: Locator = format!("ws://{name}:{}", play["websocket"])
            .parse()
            .map_err(|_| "this is no address to play at")?;
        let pass = read_hex(text("pass"), MAX_PASS).ok_or("this is no pass")?;
        let join = JoinAs::<Pong> {
            setup: Setup::default(),
            seed: 0,
            seats: 2,
            wait_for: 1,
            name: String::new(),
            commit: crate::COMMIT.into(),
            watch: false,
            listed: false,
        };
        let place = (text("place").to_owned(), Some(pass));
        let caller = Caller::<Peer<Pong>>::with_pass(Clock::start(), &url, &self.key, place, join);
        let mut caller = caller.map_err(|error| error.to_string())?;
        Ok(tokio::task::spawn_local(async move {
            while !caller.is_done() {
                caller.drain(|peer, _| match (peer.shown(), peer.seat()) {
                    (Some((_, state)), Some(seat @ Seat(0))) => autopilot(state, seat),
                    _ => Input::default(),
                });
                caller.wait(None).await;
            }
        }))
    }

    fn note(&self, note: impl FnOnce(&mut Tally)) {
        note(&mut self.tally.borrow_mut());
    }
}

/// Waits until somebody was told how it went.
async fn results(member: &mut Member) -> Result<(), String> {
    loop {
        // A page says something every two seconds; what it is told comes in between.
        match timeout(PING, member.event("phase")).await {
            Ok(phase) if phase.as_ref().is_ok_and(|phase| phase["phase"] == "results") => return Ok(()),
            Ok(phase) => drop(phase?),
            Err(_) => member.talk.ping().await?,
        }
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
