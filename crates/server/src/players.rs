//! The database of players beside the rooms: asks it, writes to it, and never waits for it.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use sametick_sim::Time;
use sametick_store::players::{Answer, Keeper, KeeperOptions, PlayersStats, Question, Ticket, Write};
use sametick_wire::Member;

use crate::rooms::{Mark, Rooms};

/// How often an answer is looked for, while one is to come.
const LOOK_EVERY_US: u64 = 4_000;

/// How long a server that ends waits for its database.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who comes is looked up after everything before it was written, or not at all: nobody gets an older state than the newest.
const ASK_WITHIN_US: u64 = 3_000_000;

/// How often it is said that something is wrong.
const WARN_EVERY_US: u64 = 60_000_000;

/// The database of players.
pub struct Players {
    keeper: Keeper,
    /// What is on disk once its ticket is said to be.
    marks: VecDeque<(Ticket, Mark)>,
    /// Who is to be asked about once a ticket is on disk, and until when.
    waiting: VecDeque<(Ticket, Time, Member, Question)>,
    asked: usize,
    looked_at: Time,
    warned_at: Option<Time>,
}

impl Players {
    /// Opens the database in this file, or makes it. What was wrong with it is said.
    pub fn open(path: &Path) -> Result<Players, String> {
        let at = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|why| at(&why))?;
        // Answers are looked for; nobody has to be woken.
        let (keeper, aside) =
            Keeper::open(path, KeeperOptions::default(), Box::new(|| {})).map_err(|why| at(&why))?;
        if let Some(aside) = aside {
            tracing::error!("{aside}");
        }
        Ok(Players {
            keeper,
            marks: VecDeque::new(),
            waiting: VecDeque::new(),
            asked: 0,
            looked_at: Time::ZERO,
            warned_at: None,
        })
    }

    /// Asks about somebody.
    pub fn ask(&mut self, now: Time, member: Member, question: Question) {
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

    /// Has everything written now.
    pub fn flush(&mut self, mark: Mark) {
        self.marks.push_back((self.keeper.flush(), mark));
    }

    /// Tells the rooms what the database has answered. Returns whether there was anything.
    pub fn deliver(&mut self, now: Time, rooms: &mut Rooms) -> bool {
        self.looked_at = now;
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
                    while let Some((_, mark)) = self.marks.pop_front_if(|(known, _)| *known <= ticket) {
                        rooms.saved(now, mark);
                    }
                    while let Some((.., member, question)) =
                        self.waiting.pop_front_if(|(known, ..)| *known <= ticket)
                    {
                        self.ask_now(member, question);
                    }
                }
                Answer::Trouble(why) => {
                    tracing::error!(why, "players are not being saved; nothing is lost yet")
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
        waits.then(|| self.looked_at.plus_micros(LOOK_EVERY_US))
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
