//! Log player: a peer that sends inputs known beforehand, far ahead of their ticks, and reports what the relay closed.
//! Knows no game. It plays a log against a live relay (V8).

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Inputs, Seat, StateHash, Tick, Time};
use sametick_wire::{Channel, Malformed};

use crate::history::Excerpt;
use crate::message::{self, Join, Run, ToPeer, ToRelay, put_inputs, read_ticks};
use crate::rows::{BAD_TABLE, Opaque, Table};
use sametick_wire::outbox::Outbox;

/// How far ahead of the last closed tick inputs are sent: 1.5 s at 60 Hz, so that a busy machine is in time.
pub const AHEAD_TICKS: u32 = 90;

/// The most inputs sent together: even long ones fit into a message that is repeated.
const MAX_LINES: usize = 8;

/// The most runs of ticks kept while ticks before them are missing.
const MAX_EARLY: usize = 64;

/// Missing ticks are asked for again this often.
const ASK_AGAIN_US: u64 = 500_000;

/// An event for a log player.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A message arrived on the link.
    Message(Channel, &'a [u8]),
    /// The input of the tick asked for; none if there was no input.
    Line(Option<Opaque>),
    /// The hash of the state after a closed tick.
    Hash(Tick, StateHash),
}

/// What a log player wants done. Bytes are in the buffer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes on this channel.
    Send(Channel),
    /// Pass the input for this tick, with [`Input::Line`].
    WantLine(Tick),
    /// This tick was closed, with these inputs.
    Closed(Tick, Inputs<Opaque>),
    /// Wait for a message.
    Wait,
}

/// A peer that plays the inputs of a log.
pub struct LogPlayer {
    now: Time,
    outbox: Outbox<Channel>,
    /// Inputs that have been passed in and not been sent.
    lines: Vec<Opaque>,
    seat: Option<Seat>,
    refused: Option<String>,
    closed: Tick,
    /// The last tick whose input was passed in.
    recited: Tick,
    table: Table,
    rows: Inputs<Opaque>,
    news: VecDeque<(Tick, Inputs<Opaque>)>,
    early: VecDeque<Vec<u8>>,
    asked_at: Option<Time>,
}

impl LogPlayer {
    /// Joins a session.
    pub fn new(join: Join) -> LogPlayer {
        let mut outbox = Outbox::default();
        outbox.push(Channel::Control, |out| message::put(out, &ToRelay::Join(join)));
        LogPlayer {
            now: Time::ZERO,
            outbox,
            lines: Vec::new(),
            seat: None,
            refused: None,
            closed: Tick::ZERO,
            recited: Tick::ZERO,
            table: Table::default(),
            rows: Inputs::new(),
            news: VecDeque::new(),
            early: VecDeque::new(),
            asked_at: None,
        }
    }

    /// Why the relay refused the join, if it did.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Handles an event. An error means that the relay violates the protocol.
    pub fn handle(&mut self, now: Time, input: Input<'_>) -> Result<(), Malformed> {
        self.now = now;
        match input {
            Input::Message(Channel::Control | Channel::Chunks, bytes) => {
                self.on_control(message::from_bytes(bytes)?)
            }
            Input::Message(Channel::Input, bytes) => self.on_ticks(bytes),
            Input::Message(..) => Ok(()),
            Input::Line(input) => {
                self.recited = self.recited.next();
                match input {
                    Some(input) => self.lines.push(input),
                    None => self.send_lines(self.recited),
                }
                if self.lines.len() == MAX_LINES {
                    self.send_lines(self.recited.next());
                }
                Ok(())
            }
            Input::Hash(tick, hash) => {
                self.tell(&ToRelay::Check { tick, hash });
                Ok(())
            }
        }
    }

    /// What the log player wants next.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        if let Some((tick, rows)) = self.news.pop_front() {
            return Output::Closed(tick, rows);
        }
        if let Some(channel) = self.outbox.pop(buf) {
            return Output::Send(channel);
        }
        if self.seat.is_some() && self.recited < self.closed + AHEAD_TICKS {
            return Output::WantLine(self.recited.next());
        }
        self.send_lines(self.recited.next());
        self.outbox.pop(buf).map_or(Output::Wait, Output::Send)
    }

    /// Sends the inputs before this tick.
    fn send_lines(&mut self, before: Tick) {
        let lines = &self.lines;
        if !lines.is_empty() {
            let first = before - lines.len() as u32;
            self.outbox.push(Channel::Input, |out| put_inputs(out, first, lines.iter()));
            self.lines.clear();
        }
    }

    fn tell(&mut self, message: &ToRelay) {
        self.outbox.push(Channel::Control, |out| message::put(out, message));
    }

    fn on_control(&mut self, message: ToPeer) -> Result<(), Malformed> {
        match message {
            ToPeer::Welcome { seat, closed, .. } => {
                self.seat = seat;
                // Inputs for closed ticks are no longer sent.
                self.recited = closed;
                self.use_early()
            }
            ToPeer::Refused { why } => {
                self.refused = Some(why);
                Ok(())
            }
            ToPeer::Ticks { first, ticks, table, bytes } => {
                let start = Table::from_bytes(&table).map_err(|_| BAD_TABLE)?;
                let (mut fresh, before) = (false, self.closed);
                let excerpt = Excerpt { first, ticks, start, bytes };
                let table = excerpt.read(|tick, rows| {
                    if tick > before {
                        fresh = true;
                        self.closed = tick;
                        self.news.push_back((tick, rows.clone()));
                    }
                });
                let table = table
                    .map_err(|_| Malformed::Forbidden("ticks can be read with the table before them"))?;
                if fresh {
                    self.table = table;
                }
                self.use_early()
            }
            ToPeer::GiveSave { tick } | ToPeer::GivePiece { tick, .. } => {
                self.tell(&ToRelay::Offer { tick, bytes: None });
                Ok(())
            }
            // A log player has no state to give.
            ToPeer::Piece(_)
            | ToPeer::Load(_)
            | ToPeer::GiveHashes { .. }
            | ToPeer::GiveState { .. }
            | ToPeer::GiveTicks { .. }
            | ToPeer::Resync { .. }
            | ToPeer::Roster { .. } => Ok(()),
        }
    }

    fn on_ticks(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.early.len() == MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back(bytes.to_vec());
        self.use_early()
    }

    fn use_early(&mut self) -> Result<(), Malformed> {
        let LogPlayer { early, table, rows, closed, news, .. } = self;
        let (mut result, mut progress) = (Ok(()), true);
        while core::mem::take(&mut progress) {
            early.retain(|bytes| {
                let mut last = *closed;
                let run = read_ticks(bytes, (*closed, *closed), table, rows, |tick, rows| {
                    last = tick;
                    news.push_back((tick, rows.clone()));
                });
                *closed = last;
                progress |= run == Ok(Run::Next);
                result = result.and(run.map(|_| ()));
                run == Ok(Run::Early)
            });
        }
        if self.early.is_empty() {
            self.asked_at = None;
        } else if self.asked_at.is_none_or(|at| self.now.micros_since(at) >= ASK_AGAIN_US) {
            self.asked_at = Some(self.now);
            self.tell(&ToRelay::Resend { from: self.closed.next() });
        }
        result
    }
}
