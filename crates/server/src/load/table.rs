//! A pair of simulated players who meet, play and leave, over and over.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sametick_client::Status;
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_pong::{Input, Pong, Setup, autopilot};
use sametick_sim::Seat;
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_wire::hello::MAX_PASS;
use sametick_wire::hex::read_hex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::member::{Member, Place};
use super::people::Visitor;
use super::report::Tally;
use crate::calling::Caller;

/// Time-out of a game.
const LONGEST_GAME: Duration = Duration::from_secs(180);

/// The pause after a failure, as a person would take.
const MOMENT: Duration = Duration::from_secs(1);

/// A pair of simulated players.
pub(super) struct Table {
    place: Place,
    number: u32,
    /// The git commit of the program.
    commit: &'static str,
}

/// A bot in a game, for a member.
struct Bot {
    /// The play address it was told.
    play: Value,
    playing: JoinHandle<()>,
}

impl Drop for Bot {
    fn drop(&mut self) {
        self.playing.abort();
    }
}

impl Table {
    pub fn new(place: Place, number: u32, commit: &'static str) -> Table {
        Table { place, number, commit }
    }

    /// Plays one session after the other until the deadline.
    pub async fn play(&self, until: Instant) {
        while Instant::now() < until {
            if let Err(why) = self.play_once().await {
                self.place.tally.borrow_mut().fail(&why);
                sleep(MOMENT).await;
            }
        }
    }

    /// Joins a session and does nothing there.
    pub async fn wait(&self, until: Instant) {
        let waited: Result<(), String> = async {
            let (mut first, mut second) = self.meet().await?;
            tokio::try_join!(first.stay(until), second.stay(until))?;
            second.does("leave", &json!({})).await?;
            first.does("leave", &json!({})).await
        }
        .await;
        if let Err(why) = waited {
            self.place.tally.borrow_mut().fail(&why);
        }
    }

    /// Creates a session with two members.
    async fn meet(&self) -> Result<(Member, Member), String> {
        let settings = json!({"name": format!("load {}", self.number), "game": "pong", "mode": "lockstep", "scenario": "short",
            "difficulty": 1, "groups": 1, "listed": true});
        let Place { gateway, key, .. } = &self.place;
        let mut creator = Visitor::come(gateway, key, None).await?;
        let mut joiner = Visitor::come(gateway, key, None).await?;
        let began = Instant::now();
        let way = creator.create(gateway, &settings).await?;
        let first = Member::arrive(&self.place, &way, &creator.token).await?;
        self.note(|tally| {
            tally.created += 1;
            tally.create_us.push(micros(began));
        });
        let began = Instant::now();
        let way = joiner.join(gateway, &way.session).await?;
        let second = Member::arrive(&self.place, &way, &joiner.token).await?;
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
        let (here, there) = (self.begin(&mut first).await?, self.begin(&mut second).await?);
        self.note(|tally| tally.start_us.push(micros(began)));
        let began = Instant::now();
        let both = async {
            tokio::try_join!(self.play_to_the_end(&mut first, here), self.play_to_the_end(&mut second, there))
        };
        timeout(LONGEST_GAME, both).await.map_err(|_| "a game does not end")??;
        self.note(|tally| {
            tally.played += 1;
            tally.game_us.push(micros(began));
        });
        second.does("leave", &json!({})).await?;
        first.does("leave", &json!({})).await
    }

    /// Waits for a member's play address, and starts a bot there.
    async fn begin(&self, member: &mut Member) -> Result<Bot, String> {
        loop {
            let (_, play) = member.event(&["play"]).await?;
            if play.is_object() {
                return self.bot(member, play, false);
            }
        }
    }

    /// Waits for the results that a member is told. A bot that is told another play address moves there.
    async fn play_to_the_end(&self, member: &mut Member, mut bot: Bot) -> Result<(), String> {
        loop {
            match member.event(&["phase", "play"]).await? {
                ("phase", phase) if phase["phase"] == "results" => return Ok(()),
                ("play", play) if play.is_object() && play != bot.play => {
                    bot = self.bot(member, play, true)?;
                }
                _ => {}
            }
        }
    }

    /// Starts a bot at a play address, for the first time or again. On the second seat it does not move.
    fn bot(&self, member: &Member, play: Value, is_back: bool) -> Result<Bot, String> {
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
            commit: self.commit.into(),
            watch: false,
            listed: false,
        };
        let place = (text("place").to_owned(), Some(pass));
        let caller = Caller::<Peer<Pong>>::with_pass(Clock::start(), &url, &self.place.key, place, join);
        let caller = caller.map_err(|error| error.to_string())?;
        let playing = tokio::task::spawn_local(play_pong(caller, is_back, self.place.tally.clone()));
        Ok(Bot { play, playing })
    }

    fn note(&self, note: impl FnOnce(&mut Tally)) {
        note(&mut self.place.tally.borrow_mut());
    }
}

/// Plays until the game is over, and counts reconnects to the game.
async fn play_pong(mut caller: Caller<Peer<Pong>>, is_back: bool, tally: Rc<RefCell<Tally>>) {
    let mut found_again = if is_back { None } else { Some(0) };
    while !caller.is_done() {
        caller.drain(|peer, _| match (peer.shown(), peer.seat()) {
            (Some((_, state)), Some(seat @ Seat(0))) => autopilot(state, seat),
            _ => Input::default(),
        });
        let losses = caller.client().totals().losses;
        if caller.client().status() == Status::Playing && found_again != Some(losses) {
            tally.borrow_mut().games_resumed += 1;
            found_again = Some(losses);
        }
        caller.wait(None).await;
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
