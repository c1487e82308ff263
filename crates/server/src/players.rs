//! The database of players beside the rooms: asks it, writes to it, and never waits for it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sametick_sim::Time;
use sametick_store::players::{Answer, Keeper, KeeperOptions, PlayersStats, Question, Ticket, Token, Write};
use sametick_transport::clock::{random, unix_ms};
use sametick_wire::Member;

use tokio::sync::oneshot;

use crate::identity::SignedIn;
use crate::identity::tokens::{Issued, Issuing, Tokens};
use crate::rooms::{Mark, Rooms};

/// How often an answer is looked for, while one is to come.
const LOOK_EVERY_US: u64 = 4_000;

/// How long a server that ends waits for its database.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who comes is looked up after everything before it was written, or not at all: nobody gets an older state than the newest.
const ASK_WITHIN_US: u64 = 3_000_000;

/// How often it is said that something is wrong.
const WARN_EVERY_US: u64 = 60_000_000;

/// How often somebody is looked for who has signed in, where that is done.
const SIGN_IN_EVERY_US: u64 = 50_000;

/// What is on disk once its ticket is said to be.
enum Due {
    Mark(Mark),
    Token(oneshot::Sender<Issued>, Issued),
}

/// The database of players.
pub struct Players {
    keeper: Keeper,
    marks: VecDeque<(Ticket, Due)>,
    /// What is to be flushed.
    pending: Vec<Due>,
    counter: Option<Counter>,
    token_s: u64,
    /// Who is to be asked about once a ticket is on disk, and until when.
    waiting: VecDeque<(Ticket, Time, Member, Question)>,
    asked: usize,
    looked_at: Time,
    warned_at: Option<Time>,
}

impl Players {
    /// Opens the database in this file, or makes it. What was wrong with it is said.
    pub fn open(path: &Path, token_s: u64) -> Result<Players, String> {
        let at = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|why| {
            let folder = folder.display();
            format!("cannot write to the data folder {folder}: {why}; choose another with --data")
        })?;
        // Answers are looked for; nobody has to be woken.
        let (keeper, aside) =
            Keeper::open(path, KeeperOptions::default(), Box::new(|| {})).map_err(|why| at(&why))?;
        if let Some(aside) = aside {
            tracing::error!("{aside}");
        }
        Ok(Players {
            keeper,
            marks: VecDeque::new(),
            pending: Vec::new(),
            counter: None,
            token_s,
            waiting: VecDeque::new(),
            asked: 0,
            looked_at: Time::ZERO,
            warned_at: None,
        })
    }

    /// Where those who sign in are given tokens.
    pub fn counter(&mut self) -> Counter {
        self.counter.get_or_insert_default().clone()
    }

    /// Gives tokens to those who have signed in: once they are on disk.
    fn serve(&mut self) {
        let Some(counter) = &self.counter else { return };
        let Ok(mut queue) = counter.queue.lock() else { return };
        let queue: Vec<_> = queue.drain(..).collect();
        for (who, answer) in queue {
            let unix_ms = unix_ms();
            let token = Token::from_bytes(random());
            let expires_unix_s = unix_ms / 1_000 + self.token_s;
            let (player, name) = (who.player, who.name.clone().unwrap_or_default());
            self.keeper.save(Write::Player { player, name, subject: Some(who.subject), unix_ms });
            self.keeper.save(Write::Token { hash: token.hash(), player, expires_unix_s });
            let issued = Issued { token, name: who.name, expires_unix_s };
            self.pending.push(Due::Token(answer, issued));
        }
    }

    /// Asks about somebody.
    pub fn ask(&mut self, now: Time, member: Member, question: Question) {
        self.flush_pending();
        match self.marks.back() {
            Some((ticket, _)) => {
                self.waiting.push_back((*ticket, now.plus_micros(ASK_WITHIN_US), member, question));
            }
            None => self.ask_now(member, question),
        }
    }

    fn ask_now(&mut self, member: Member, question: Question) {
        self.asked += 1;
        self.keeper.ask(member.0, question);
    }

    /// Has something written.
    pub fn save(&mut self, write: Write) {
        self.keeper.save(write);
    }

    /// Has everything written, once the rooms have said all they want: whoever steps them is not to share its core with a writer.
    pub fn flush(&mut self, mark: Mark) {
        self.pending.push(Due::Mark(mark));
    }

    fn flush_pending(&mut self) {
        if !self.pending.is_empty() {
            let ticket = self.keeper.flush();
            self.marks.extend(self.pending.drain(..).map(|due| (ticket, due)));
        }
    }

    /// Tells the rooms what the database has answered. Returns whether there was anything.
    pub fn deliver(&mut self, now: Time, rooms: &mut Rooms) -> bool {
        self.looked_at = now;
        self.serve();
        self.flush_pending();
        let mut any = false;
        while let Some(answer) = self.keeper.poll() {
            any = true;
            match answer {
                Answer::Found(member, found) => {
                    self.asked = self.asked.saturating_sub(1);
                    if let Err(why) = &found {
                        tracing::error!(%why, "somebody could not be looked up");
                    }
                    rooms.found(now, Member(member), found.ok());
                }
                Answer::Saved(ticket) => {
                    while let Some((_, due)) = self.marks.pop_front_if(|(known, _)| *known <= ticket) {
                        match due {
                            Due::Mark(mark) => rooms.saved(now, mark),
                            // Whoever has hung up does not want it any more.
                            Due::Token(answer, issued) => drop(answer.send(issued)),
                        }
                    }
                    while let Some((.., member, question)) =
                        self.waiting.pop_front_if(|(known, ..)| *known <= ticket)
                    {
                        self.ask_now(member, question);
                    }
                }
                Answer::Trouble(why) => {
                    tracing::error!(why, "players are not being saved; nothing is lost yet");
                }
                Answer::Recovered => tracing::info!("players are being saved again"),
            }
        }
        while let Some((.., member, _)) = self.waiting.pop_front_if(|(_, until, ..)| *until <= now) {
            any = true;
            rooms.found(now, member, None);
        }
        self.warn(now);
        any
    }

    fn warn(&mut self, now: Time) {
        let is_due = self.warned_at.is_none_or(|at| now.micros_since(at) >= WARN_EVERY_US);
        if let Some(warning) = self.keeper.stats().warning().filter(|_| is_due) {
            tracing::warn!("{warning}");
            self.warned_at = Some(now);
        }
    }

    /// When to look again.
    pub fn wake_at(&self) -> Option<Time> {
        let waits = self.asked > 0 || !self.marks.is_empty();
        let every_us =
            if waits { Some(LOOK_EVERY_US) } else { self.counter.as_ref().map(|_| SIGN_IN_EVERY_US) };
        every_us.map(|every_us| self.looked_at.plus_micros(every_us))
    }

    /// How it goes.
    pub fn stats(&self) -> PlayersStats {
        self.keeper.stats()
    }

    /// Writes everything. Returns whether it is on disk.
    pub fn close(self) -> bool {
        self.keeper.close(PATIENCE)
    }
}

/// Those who have signed in, and where they wait.
type Queue = VecDeque<(SignedIn, oneshot::Sender<Issued>)>;

/// Where those who have signed in wait for a token.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    queue: Arc<Mutex<Queue>>,
}

impl Tokens for Counter {
    fn issue(&self, who: &SignedIn) -> Issuing {
        let (answer, issued) = oneshot::channel();
        if let Ok(mut queue) = self.queue.lock() {
            queue.push_back((who.clone(), answer));
        }
        Box::pin(async move { issued.await.ok() })
    }
}
