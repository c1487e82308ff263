//! The database of players beside the rooms: asks it, writes to it, and never waits for it.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use sametick_sim::Time;
use sametick_store::players::{
    Answer, Found, PlayerId, PlayerWriter, PlayerWriterOptions, PlayersStats, Question, Recovery, Ticket,
    Token, Write,
};
use sametick_transport::clock::{random, unix_ms};
use sametick_transport::hub_waker::HubWaker;
use sametick_wire::Member;

use tokio::sync::oneshot;

use crate::identity::tokens::{Counter, Issued};
use crate::rooms::{Mark, Rooms};

/// How long a server that ends waits for its database.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who comes is looked up after everything before it was written, or not at all: nobody gets an older state than the newest.
const ASK_WITHIN_US: u64 = 3_000_000;

/// How often it is looked whether something is wrong, and how often that is said.
const LOOK_EVERY_US: u64 = 1_000_000;
const WARN_EVERY_US: u64 = 60_000_000;

/// Visitors of the lobby are asked about with numbers from here on; members of rooms never get that far.
const FIRST_VISITOR: u64 = 1 << 62;

/// What is on disk once its ticket is said to be.
enum Due {
    Mark(Mark),
    Token(oneshot::Sender<Issued>, Issued),
}

/// The database of players.
pub struct Players {
    keeper: PlayerWriter,
    /// What became of a file that was damaged when it was opened.
    recovery: Option<Recovery>,
    marks: VecDeque<(Ticket, Due)>,
    /// What is to be flushed.
    pending: Vec<Due>,
    counter: Counter,
    token_s: u64,
    /// Who is to be asked about once a ticket is on disk, and until when.
    waiting: VecDeque<(Ticket, Time, Member, Question)>,
    /// When it is looked next whether something is wrong.
    warn_at: Time,
    /// Who visitors of the lobby are.
    visitors: VecDeque<(u64, Option<PlayerId>)>,
}

impl Players {
    /// Opens the database in this file, or makes it. What was wrong with it is said. The waker is rung when there is something to
    /// [deliver](Players::deliver).
    pub fn open(
        path: &Path,
        token_s: u64,
        backup_every: Option<Duration>,
        waker: HubWaker,
    ) -> Result<Players, String> {
        let at = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|why| {
            let folder = folder.display();
            format!("cannot write to the data folder {folder}: {why}; choose another with --data")
        })?;
        let counter = Counter::new(waker.clone());
        let waker = Box::new(move || waker.ring());
        let options = PlayerWriterOptions { backup_every, ..PlayerWriterOptions::default() };
        let (keeper, recovery) = PlayerWriter::open(path, options, waker).map_err(|why| at(&why))?;
        if let Some(recovery) = &recovery {
            tracing::error!("{recovery}");
        }
        Ok(Players {
            keeper,
            recovery,
            marks: VecDeque::new(),
            pending: Vec::new(),
            counter,
            token_s,
            waiting: VecDeque::new(),
            warn_at: Time::ZERO,
            visitors: VecDeque::new(),
        })
    }

    /// What became of a file that was damaged when it was opened.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// Where those who sign in are given tokens.
    pub fn counter(&self) -> Counter {
        self.counter.clone()
    }

    /// Gives tokens to those who have signed in: once they are on disk.
    fn serve(&mut self) {
        while let Some((who, answer)) = self.counter.next() {
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
            None => self.keeper.ask(member.0, question),
        }
    }

    /// Asks whose token a visitor of the lobby has shown.
    pub(crate) fn ask_visitor(&mut self, now: Time, visitor: u64, token: &Token) {
        let question = Question {
            token: Some(token.hash()),
            player: None,
            game: String::new(),
            code: String::new(),
            with_place: false,
            now_unix_s: unix_ms() / 1_000,
        };
        self.ask(now, Member(FIRST_VISITOR + visitor), question);
    }

    /// Who a visitor of the lobby is; nobody if their token is none.
    pub(crate) fn poll_visitor(&mut self) -> Option<(u64, Option<PlayerId>)> {
        self.visitors.pop_front()
    }

    /// The answer to a question, to whoever it concerns.
    fn answer(&mut self, now: Time, rooms: &mut Rooms, asker: u64, found: Option<Found>) {
        match asker.checked_sub(FIRST_VISITOR) {
            Some(visitor) if asker < 2 * FIRST_VISITOR => {
                let player = found.and_then(|found| found.player).map(|known| known.id);
                self.visitors.push_back((visitor, player));
            }
            _ => rooms.found(now, Member(asker), found),
        }
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
        self.serve();
        self.flush_pending();
        let mut any = false;
        while let Some(answer) = self.keeper.poll() {
            any = true;
            match answer {
                Answer::Found(member, found) => {
                    if let Err(why) = &found {
                        tracing::error!(%why, "somebody could not be looked up");
                    }
                    self.answer(now, rooms, member, found.ok());
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
                        self.keeper.ask(member.0, question);
                    }
                }
                Answer::Failing(why) => {
                    tracing::error!(why, "players are not being saved; nothing is lost yet");
                }
                Answer::Notice(what) => tracing::error!("{what}"),
                Answer::Recovered => tracing::info!("players are being saved again"),
            }
        }
        while let Some((.., member, _)) = self.waiting.pop_front_if(|(_, until, ..)| *until <= now) {
            any = true;
            self.answer(now, rooms, member.0, None);
        }
        self.warn(now);
        any
    }

    fn warn(&mut self, now: Time) {
        if now >= self.warn_at {
            let warning = self.keeper.stats().warning();
            let every_us = if warning.is_some() { WARN_EVERY_US } else { LOOK_EVERY_US };
            self.warn_at = now.plus_micros(every_us);
            warning.into_iter().for_each(|warning| tracing::warn!("{warning}"));
        }
    }

    /// When somebody has waited for too long.
    pub fn wake_at(&self) -> Option<Time> {
        self.waiting.front().map(|(_, until, ..)| *until)
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
