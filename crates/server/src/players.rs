//! The driver of the player database: queues reads and writes for it, and never waits for it.

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

/// How long a server that stops waits for its database.
const PATIENCE: Duration = Duration::from_secs(10);

/// A lookup runs after all earlier writes are on disk, or fails after this time: a player never gets an outdated state.
const ASK_WITHIN_US: u64 = 3_000_000;

/// How often database errors are checked, and how often they are logged.
const LOOK_EVERY_US: u64 = 1_000_000;
const WARN_EVERY_US: u64 = 60_000_000;

/// Lookups for lobby visitors have numbers from here on; members of rooms never get that far.
const FIRST_VISITOR: u64 = 1 << 62;

/// What to do once a ticket is on disk.
enum Due {
    Mark(Mark),
    Token(oneshot::Sender<Issued>, Issued),
}

/// The database of players.
pub struct Players {
    keeper: PlayerWriter,
    /// The result of repairing a file that was damaged when it was opened.
    recovery: Option<Recovery>,
    marks: VecDeque<(Ticket, Due)>,
    /// Writes to flush.
    pending: Vec<Due>,
    counter: Counter,
    token_s: u64,
    /// Lookups that wait for a ticket to be on disk, and their deadlines.
    waiting: VecDeque<(Ticket, Time, Member, Question)>,
    /// When database errors are checked next.
    warn_at: Time,
    /// Results of lookups for lobby visitors.
    visitors: VecDeque<(u64, Option<PlayerId>)>,
}

impl Players {
    /// Opens or creates the database in this file. Damage is logged. Rings the waker when there is something to
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

    /// The result of repairing a file that was damaged when it was opened.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// The queue in which sign-ins wait for tokens.
    pub fn counter(&self) -> Counter {
        self.counter.clone()
    }

    /// Issues tokens for sign-ins. A token is sent once it is on disk.
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

    /// Looks up a player for a member.
    pub fn ask(&mut self, now: Time, member: Member, question: Question) {
        self.flush_pending();
        match self.marks.back() {
            Some((ticket, _)) => {
                self.waiting.push_back((*ticket, now.plus_micros(ASK_WITHIN_US), member, question));
            }
            None => self.keeper.ask(member.0, question),
        }
    }

    /// Looks up the token of a lobby visitor.
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

    /// The next result for a lobby visitor; no player if the token is invalid.
    pub(crate) fn poll_visitor(&mut self) -> Option<(u64, Option<PlayerId>)> {
        self.visitors.pop_front()
    }

    /// Passes the result of a lookup to the rooms or to the lobby visitor.
    fn answer(&mut self, now: Time, rooms: &mut Rooms, asker: u64, found: Option<Found>) {
        match asker.checked_sub(FIRST_VISITOR) {
            Some(visitor) if asker < 2 * FIRST_VISITOR => {
                let player = found.and_then(|found| found.player).map(|known| known.id);
                self.visitors.push_back((visitor, player));
            }
            _ => rooms.found(now, Member(asker), found),
        }
    }

    /// Queues a write.
    pub fn save(&mut self, write: Write) {
        self.keeper.save(write);
    }

    /// Flushes all writes, once the rooms have no more outputs: the thread that steps rooms must not share its core
    /// with the writer.
    pub fn flush(&mut self, mark: Mark) {
        self.pending.push(Due::Mark(mark));
    }

    fn flush_pending(&mut self) {
        if !self.pending.is_empty() {
            let ticket = self.keeper.flush();
            self.marks.extend(self.pending.drain(..).map(|due| (ticket, due)));
        }
    }

    /// Passes answers of the database to the rooms. Returns whether there were any.
    pub fn deliver(&mut self, now: Time, rooms: &mut Rooms) -> bool {
        self.serve();
        self.flush_pending();
        let mut any = false;
        while let Some(answer) = self.keeper.poll() {
            any = true;
            match answer {
                Answer::Found(member, found) => {
                    if let Err(why) = &found {
                        tracing::error!(%why, "a player could not be looked up");
                    }
                    self.answer(now, rooms, member, found.ok());
                }
                Answer::Saved(ticket) => {
                    while let Some((_, due)) = self.marks.pop_front_if(|(known, _)| *known <= ticket) {
                        match due {
                            Due::Mark(mark) => rooms.saved(now, mark),
                            // The requester may have hung up.
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

    /// When the next lookup times out.
    pub fn wake_at(&self) -> Option<Time> {
        self.waiting.front().map(|(_, until, ..)| *until)
    }

    /// Statistics of the database.
    pub fn stats(&self) -> PlayersStats {
        self.keeper.stats()
    }

    /// Flushes and closes the database. Returns whether everything is on disk.
    pub fn close(self) -> bool {
        self.keeper.close(PATIENCE)
    }
}
