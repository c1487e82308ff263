//! The client state machine, from dialling to leaving.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sametick_lockstep::copy::SessionCopy;
use sametick_lockstep::peer::Progress;
use sametick_sim::{Tick, Time};
use sametick_wire::closing::LEAVING;
use sametick_wire::hello::{Answer, Hello, HelloError, Refusal, Stamp};
use sametick_wire::identity::Token;
use sametick_wire::message_log::MessageLog;
use sametick_wire::netem::Profile;
use sametick_wire::netem_carrier::NetemCarrier;
use sametick_wire::pacer::Path;
use sametick_wire::{LaneId, Link, LinkStats, link, side};

use crate::plan::Plan;
use crate::route::{Attempt, Routes};
use crate::side::{Side, Standing};
use crate::status::{Status, Totals};

/// The time-out of a connection. A relay or a host sends many times a second, so a longer silence means that the
/// connection is dead, whatever its carrier says, and another is dialled. Twice the longest stall of a good network.
const SILENCE_US: u64 = 4_000_000;

/// The silence after which the client reports a stall and dials a second connection beside the first (L12): a network
/// that is back, or another route, answers sooner than the first connection times out.
const STALL_US: u64 = 1_000_000;

/// How soon the second connection is dialled again if there is no answer.
const BESIDE_EVERY_US: u64 = 500_000;

/// A call that is this late means that the process was suspended: packets that came meanwhile are handled before
/// time-outs.
const ASLEEP_US: u64 = 500_000;

/// The relay of a running session answers at once; a longer wait means that it waits for players.
const WAITING_US: u64 = 1_500_000;

/// The most time for a goodbye.
const FAREWELL_US: u64 = 1_000_000;

mod drain;
mod messages;

/// What happens to a client.
#[derive(Debug)]
pub enum Input<'a, I> {
    /// An event of a carrier that was dialled.
    Carrier(Attempt, Carried<'a>),
    /// The player's input for the tick of [`Output::WantInput`].
    Local(I),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a carrier brings.
#[derive(Clone, Copy, Debug)]
pub enum Carried<'a> {
    /// The server's answer to the hello.
    Answer(&'a [u8]),
    /// A datagram.
    Datagram(&'a [u8]),
    /// The next bytes of a lane.
    Datagrams(bool),
    /// The next bytes of a lane.
    Stream(LaneId, &'a [u8]),
    /// The carrier has ended, and why.
    Gone(&'a str),
}

/// What a client asks its driver to do. Bytes are in the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open this route and send these bytes as the hello.
    Dial(Attempt, usize),
    /// Send this datagram.
    Datagram(Attempt),
    /// Send these bytes on this lane.
    Stream(Attempt, LaneId),
    /// Close the carrier, after what has been sent on it.
    HangUp(Attempt),
    /// Return the player's input for this tick, with [`Input::Local`].
    WantInput(Tick),
    /// Nothing to do before this time, unless something arrives.
    WakeAt(Time),
    /// Nothing to do ever again: see [`Client::status`].
    Done,
}

enum Stage {
    /// Since when the client waits for an answer.
    Dialling(Time),
    Open {
        link: Box<Link>,
        opened_at: Time,
        heard_at: Time,
        /// The deadline of the goodbye, once the client leaves.
        leave_by: Option<Time>,
    },
    /// Dials at this time; and the reason.
    Pausing(Time, String),
    Refused(String),
    Left,
}

/// A second carrier, dialled beside a link that went silent.
struct Beside {
    attempt: Attempt,
    since: Time,
}

/// A complete client, for a [`Peer`](sametick_lockstep::peer::Peer) or a [`View`](sametick_room::View).
pub struct Client<S: Side> {
    now: Time,
    began: Time,
    plan: Plan<S>,
    hello: Hello,
    routes: Routes,
    attempt: Attempt,
    /// The number of the latest carrier that was dialled.
    dialled: Attempt,
    beside: Option<Beside>,
    /// No second connection is dialled before this time.
    beside_at: Time,
    stage: Stage,
    side: Option<S>,
    /// The identity token for the first join.
    token: Option<Token>,
    /// The claim for the first join, to a seat that another program of this player had.
    claim: Option<Vec<u8>>,
    /// The session copy for the first join.
    copy: Option<SessionCopy>,
    /// Pending outputs that open or close carriers.
    calls: VecDeque<Output>,
    /// The simulated bad network in front of the link, if there is one.
    netem: Option<(Profile, u64)>,
    trouble: Option<NetemCarrier<()>>,
    totals: Totals,
    /// The last tick that is known to have happened, and in which session, to detect a restart of the session.
    reached: Tick,
    run: Option<u64>,
    /// When the client wants to be called at the latest.
    wake_at: Time,
    /// The messages in both directions, if they are recorded.
    messages: Option<MessageLog>,
}

impl<S: Side> Client<S> {
    /// A client that dials at once. Fails if a name is too long.
    ///
    /// # Panics
    /// If there is no route, or the setup is too long for a session.
    pub fn new(now: Time, plan: Plan<S>) -> Result<Client<S>, HelloError> {
        assert!(!plan.routes.is_empty(), "a client needs a way to its server");
        let (identity, intent) = (S::identity(), S::intent(plan.session.clone()));
        let hello = Hello { identity, intent, name: S::who(&plan.join).0.into(), pass: plan.pass.clone() };
        hello.to_bytes(&plan.key, Stamp { unix_s: plan.unix_s, nonce: [0; 16] })?;
        let [a, b, c, d, e, f, g, h, ..] = plan.random;
        let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let mut client = Client {
            now,
            began: now,
            routes: Routes::new(plan.routes.len(), seed),
            plan,
            hello,
            attempt: Attempt(0),
            dialled: Attempt(0),
            beside: None,
            beside_at: now,
            stage: Stage::Left,
            side: None,
            token: None,
            claim: None,
            copy: None,
            calls: VecDeque::new(),
            netem: None,
            trouble: None,
            totals: Totals::default(),
            reached: Tick::ZERO,
            run: None,
            wake_at: now,
            messages: None,
        };
        client.dial();
        Ok(client)
    }

    /// The client's present state.
    pub fn status(&self) -> Status {
        match &self.stage {
            Stage::Dialling(_) => Status::Connecting,
            Stage::Open { heard_at, .. } if self.now.micros_since(*heard_at) >= self.stall_us() => {
                Status::Stalled { since: *heard_at }
            }
            Stage::Open { opened_at, heard_at, .. } => match self.side.as_ref().map(S::standing) {
                Some(Standing::CatchingUp) => Status::CatchingUp,
                Some(Standing::Playing) if S::who(&self.plan.join).1 => Status::Watching,
                Some(Standing::Playing) => Status::Playing,
                Some(Standing::Ahead) => Status::Stalled { since: *heard_at },
                _ if self.now.micros_since(*opened_at) >= WAITING_US => Status::Waiting,
                _ => Status::Joining,
            },
            Stage::Pausing(retry_at, why) => Status::Lost { retry_at: *retry_at, why: why.clone() },
            Stage::Refused(why) => Status::Refused(why.clone()),
            Stage::Left => Status::Left,
        }
    }

    /// The player's side of the session, once the server has admitted it. It stays while the connection is lost.
    pub fn side(&self) -> Option<&S> {
        self.side.as_ref()
    }

    /// The same, mutable: looking at a side advances what it shows.
    pub fn side_mut(&mut self) -> Option<&mut S> {
        self.side.as_mut()
    }

    /// The progress of catching up: bytes of the save received, and ticks simulated since.
    pub fn catching_up(&self) -> Progress {
        self.side.as_ref().map(S::catching_up).unwrap_or_default()
    }

    /// The player's side, when the client has finished.
    pub fn into_side(self) -> Option<S> {
        self.side
    }

    /// The carrier in use, or the latest one that was dialled to be.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The route in use, or the next one to dial.
    pub fn route(&self) -> usize {
        self.routes.current()
    }

    /// Statistics of the open link.
    pub fn link_stats(&self) -> Option<LinkStats> {
        match &self.stage {
            Stage::Open { link, .. } => Some(link.stats()),
            _ => None,
        }
    }

    /// Statistics of all links.
    pub fn totals(&self) -> Totals {
        self.totals.with(self.link_stats().unwrap_or_default())
    }

    /// Puts a simulated bad network in front of the link, both ways, or removes it. Hellos and their answers do not
    /// pass through it. Its behaviour is derived from the seed, differently for each link.
    pub fn set_netem(&mut self, profile: Option<Profile>, seed: u64) {
        self.netem = profile.map(|profile| (profile, seed));
        match (&mut self.trouble, profile) {
            // Packets in transit still arrive.
            (Some(trouble), profile) => trouble.set_profile(profile.unwrap_or_default()),
            (None, Some(_)) => self.trouble = self.fresh_trouble(),
            (None, None) => {}
        }
    }

    /// Uses this identity token from the next link on. A token that the server assigns later replaces it.
    pub fn come_as(&mut self, token: Token) {
        match &mut self.side {
            Some(side) => side.take_token(token),
            None => self.token = Some(token),
        }
    }

    /// Resumes the seat of a client that is gone, with that client's [`Side::claim`]. Call it before the first link is
    /// open; after that the client has a claim of its own.
    pub fn come_back(&mut self, claim: Vec<u8>) {
        self.claim = Some(claim);
    }

    /// Offers a copy of the session, in case the server has lost it. Call it before the first link is open.
    pub fn bring(&mut self, copy: SessionCopy) {
        self.copy = Some(copy);
    }

    /// A copy of the session up to its confirmed tick; none in a room, whose full state a player never has.
    pub fn copy(&self) -> Option<SessionCopy> {
        self.side.as_ref()?.copy(&self.plan.session)
    }

    /// Cuts the connection without a goodbye, and dials again after this time.
    pub fn drop_link(&mut self, now: Time, for_us: u64) {
        self.wake(now);
        if !matches!(self.stage, Stage::Refused(_) | Stage::Left) {
            self.hang_up_beside();
            self.hang_up();
            self.stage = Stage::Pausing(self.now.plus_micros(for_us), "cut on purpose".into());
        }
    }

    /// Leaves for good, with a goodbye.
    pub fn leave(&mut self, now: Time) {
        self.wake(now);
        match &mut self.stage {
            Stage::Open { link, leave_by, .. } => {
                link.close(now, LEAVING, "the player leaves");
                *leave_by = Some(now.plus_micros(FAREWELL_US));
                self.hang_up_beside();
            }
            Stage::Refused(_) => {}
            _ => self.end(Stage::Left),
        }
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Time, input: Input<'_, S::Input>) {
        self.wake(now);
        match input {
            Input::Carrier(attempt, carried) if attempt == self.attempt => self.on_carried(carried),
            Input::Carrier(attempt, carried) => {
                if self.beside.as_ref().is_some_and(|beside| beside.attempt == attempt) {
                    self.on_beside(carried);
                }
            }
            Input::Local(input) => self.tell_side(side::Input::Local(input)),
            Input::Timeout => {
                if let Stage::Open { link, .. } = &mut self.stage {
                    // Time is never malformed.
                    let _ = link.handle(self.now, link::Input::Timeout);
                    self.tell_side(side::Input::Timeout);
                }
            }
        }
    }

    /// Input from the client itself is never malformed.
    fn tell_side(&mut self, input: side::Input<'_, S::Input>) {
        if let Some(side) = &mut self.side {
            let _ = side.handle(self.now, input);
        }
    }

    /// Advances the time, except after a suspend.
    fn wake(&mut self, now: Time) {
        self.now = self.now.max(now);
        let late_us = self.now.micros_since(self.wake_at);
        if let Stage::Open { heard_at, .. } = &mut self.stage
            && late_us >= ASLEEP_US
        {
            *heard_at = heard_at.plus_micros(late_us);
            self.wake_at = self.now;
        }
    }

    /// The second connection receives something before the first link does.
    fn on_beside(&mut self, carried: Carried<'_>) {
        match carried {
            Carried::Answer(bytes) if matches!(Answer::from_bytes(bytes), Ok(Answer::Welcome)) => {
                let beside = self.beside.take();
                self.hang_up();
                self.attempt = beside.map_or(self.attempt, |beside| beside.attempt);
                self.open();
            }
            // Whatever the answer: a player who is refused a second connection may still have the first.
            Carried::Answer(_) | Carried::Gone(_) => self.hang_up_beside(),
            Carried::Datagram(_) | Carried::Datagrams(_) | Carried::Stream(..) => {}
        }
    }

    fn on_answer(&mut self, bytes: &[u8]) {
        match Answer::from_bytes(bytes) {
            Ok(Answer::Welcome) => self.open(),
            // For example that the server is stopping: another one may take its place.
            Ok(Answer::Refused(Refusal::Other(why))) => self.lose(why),
            Ok(Answer::Refused(refusal)) => self.end(Stage::Refused(refusal.to_string())),
            Err(_) => self.on_unanswered("the server does not speak this protocol"),
        }
    }

    fn open(&mut self) {
        self.routes.on_open();
        let carrier = self.carrier();
        let (now, link) = (self.now, Box::new(Link::new(self.now, carrier)));
        let path = link.stats().into();
        self.trouble = self.fresh_trouble();
        self.stage = Stage::Open { link, opened_at: now, heard_at: now, leave_by: None };
        match &mut self.side {
            Some(side) => side.rejoin(now, path),
            None => {
                let side = self.come(path);
                self.side = Some(side);
            }
        }
    }

    /// Joins for the first time.
    fn come(&mut self, path: Path) -> S {
        let mut side = S::new(self.now, &self.plan.join, path);
        let has_token = self.token.map(|token| side.take_token(token)).is_some();
        let has_claim = self.claim.as_deref().is_some_and(|claim| side.take_claim(claim));
        let has_copy = self.copy.take().map(|copy| side.bring(copy)).is_some();
        if has_token || has_claim || has_copy {
            side.rejoin(self.now, path);
        }
        side
    }

    fn fresh_trouble(&self) -> Option<NetemCarrier<()>> {
        self.netem.map(|(profile, seed)| NetemCarrier::new(profile, seed.wrapping_add(self.attempt.0.into())))
    }

    fn on_gone(&mut self, why: &str) {
        match &self.stage {
            Stage::Dialling(_) => self.on_unanswered(why),
            Stage::Open { leave_by: Some(_), .. } => self.end(Stage::Left),
            Stage::Open { .. } => self.lose(why.into()),
            _ => {}
        }
    }

    /// A route gave no answer.
    fn on_unanswered(&mut self, why: &str) {
        let retry_at = self.routes.on_unanswered(self.now);
        self.pause(retry_at, why.into());
    }

    /// The server answered, and the link was lost or refused.
    fn lose(&mut self, why: String) {
        let retry_at = self.routes.on_lost(self.now);
        self.pause(retry_at, why);
    }

    fn pause(&mut self, retry_at: Time, why: String) {
        if let Some(beside) = self.beside.take() {
            // The answer of the second carrier is as good as that of a new one.
            self.hang_up();
            self.attempt = beside.attempt;
            self.stage = Stage::Dialling(beside.since);
            return;
        }
        self.hang_up();
        self.stage = Stage::Pausing(retry_at, why);
        if retry_at <= self.now {
            self.dial();
        }
    }

    fn end(&mut self, stage: Stage) {
        self.hang_up_beside();
        self.hang_up();
        self.stage = stage;
    }

    fn hang_up(&mut self) {
        self.totals = self.totals();
        self.totals.losses += u32::from(matches!(self.stage, Stage::Open { leave_by: None, .. }));
        if matches!(self.stage, Stage::Dialling(_) | Stage::Open { .. }) {
            self.calls.push_back(Output::HangUp(self.attempt));
        }
        self.trouble = None;
    }

    fn dial(&mut self) {
        self.attempt = self.call();
        self.stage = Stage::Dialling(self.now);
    }

    fn dial_beside(&mut self) {
        self.beside = Some(Beside { attempt: self.call(), since: self.now });
    }

    fn call(&mut self) -> Attempt {
        self.dialled.0 += 1;
        self.calls.push_back(Output::Dial(self.dialled, self.routes.current()));
        self.dialled
    }

    fn hang_up_beside(&mut self) {
        if let Some(beside) = self.beside.take() {
            self.calls.push_back(Output::HangUp(beside.attempt));
            self.beside_at = self.now.plus_micros(BESIDE_EVERY_US);
        }
    }

    /// A hello with fresh nonces.
    fn put_hello(&self, attempt: Attempt, buf: &mut Vec<u8>) {
        let unix_s = self.plan.unix_s + self.now.micros_since(self.began) / 1_000_000;
        let mut nonce = [0; 16];
        let hash = blake3::keyed_hash(&self.plan.random, &attempt.0.to_le_bytes());
        nonce.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
        let hello = self.hello.to_bytes(&self.plan.key, Stamp { unix_s, nonce });
        *buf = hello.expect("lengths were checked at the beginning");
    }
}
