//! A player's side of a session, as the client uses it: a peer in lockstep, or a view of a room that a host simulates.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_lockstep::copy::SessionCopy;
use sametick_lockstep::peer::{self, Brought, Peer, Progress};
use sametick_room::view::{self, View};
use sametick_sim::replica::{Hosted, hosted_schema_of};
use sametick_sim::{Game, Seat, Tick, Time, from_canonical, schema_hash_of, to_canonical};
use sametick_wire::hello::{Identity, Intent};
use sametick_wire::identity::Token;
use sametick_wire::message_log::Described;
use sametick_wire::pacer::Path;
use sametick_wire::side::{Input, Output};
use sametick_wire::{Channel, Malformed};

/// The state of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has asked to join and waits for the answer.
    Joining,
    /// It is simulating the ticks before it joined.
    CatchingUp,
    /// It plays or spectates.
    Playing,
    /// It has predicted as far ahead as it may.
    Ahead,
    /// Its join was refused, for this reason.
    Refused(String),
}

/// A player's side of a session: what a [`Client`](crate::Client) opens once the server has admitted it.
pub trait Side {
    /// A player's input for one tick.
    type Input;
    /// The parameters of a join.
    type JoinAs: Clone;
    /// The error text for a server that sends malformed messages.
    const NONSENSE: &'static str;

    /// The identity that a server has to share with this build.
    fn identity() -> Identity;

    /// The request for the session of this name.
    fn intent(session: String) -> Intent;

    /// The player's name, and whether they only spectate.
    fn who(join: &Self::JoinAs) -> (&str, bool);

    /// A side that asks to join over a link that has just opened.
    fn new(now: Time, join: &Self::JoinAs, path: Path) -> Self;

    /// Rejoins over another link, with the same identity.
    fn rejoin(&mut self, now: Time, path: Path);

    /// Uses this identity token from the next link on, where players have tokens.
    fn take_token(&mut self, token: Token);

    /// The claim that resumes the seat in a restarted program; none before the server has admitted it. A secret.
    fn claim(&self) -> Option<Vec<u8>> {
        None
    }

    /// Uses this claim on the next link. Returns whether the bytes are a claim for this kind of side.
    fn take_claim(&mut self, _claim: &[u8]) -> bool {
        false
    }

    /// Offers a copy of the session over the next link, in case the server has lost it.
    fn bring(&mut self, _copy: SessionCopy) {}

    /// The result of the offered copy, once it is known.
    fn brought(&self) -> Option<Brought> {
        None
    }

    /// A copy of the session of this name up to its confirmed tick; none where a player never has the full state.
    fn copy(&self, _session: &str) -> Option<SessionCopy> {
        None
    }

    /// Handles an event. After an error, the other end does not speak the protocol.
    fn handle(&mut self, now: Time, input: Input<'_, Self::Input>) -> Result<(), Malformed>;

    /// The next output.
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output;

    /// The state of the side.
    fn standing(&self) -> Standing;

    /// The progress of catching up.
    fn catching_up(&self) -> Progress;

    /// The last tick that is known to have happened. It decreases when a session or its server is restarted.
    fn reached(&self) -> Tick;

    /// The player's seat, if it is known.
    fn seat(&self) -> Option<Seat>;

    /// Describes a message that such a side sent or received, for message logs. Ticks are near `near`.
    fn describe(sent: bool, channel: Channel, bytes: &[u8], near: Tick) -> Described;

    /// A number that tells the session from others of its name, if it is known.
    fn run(&self) -> Option<u64> {
        None
    }
}

impl<G: Game> Side for Peer<G> {
    type Input = G::Input;
    type JoinAs = peer::JoinAs<G>;
    const NONSENSE: &'static str = "the relay does not speak the lockstep protocol of this build";

    fn identity() -> Identity {
        Identity { build: G::BUILD, schema: schema_hash_of::<G>() }
    }

    fn intent(session: String) -> Intent {
        Intent::Join { session }
    }

    fn who(join: &peer::JoinAs<G>) -> (&str, bool) {
        (&join.name, join.watch)
    }

    fn new(now: Time, join: &peer::JoinAs<G>, path: Path) -> Peer<G> {
        Peer::new(now, join, path)
    }

    fn rejoin(&mut self, now: Time, path: Path) {
        self.rejoin(now, path);
    }

    /// A session in lockstep has no identity tokens.
    fn take_token(&mut self, _: Token) {}

    fn claim(&self) -> Option<Vec<u8>> {
        self.claim().and_then(|claim| to_canonical(&claim).ok())
    }

    fn take_claim(&mut self, claim: &[u8]) -> bool {
        from_canonical(claim).map(|claim| self.take_claim(claim)).is_ok()
    }

    fn bring(&mut self, copy: SessionCopy) {
        self.bring(copy);
    }

    fn brought(&self) -> Option<Brought> {
        self.brought()
    }

    fn copy(&self, session: &str) -> Option<SessionCopy> {
        self.copy(session)
    }

    fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.handle(now, input)
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        self.poll_output(buf)
    }

    fn standing(&self) -> Standing {
        match self.status() {
            peer::Status::Joining => Standing::Joining,
            peer::Status::CatchingUp => Standing::CatchingUp,
            peer::Status::Playing => Standing::Playing,
            peer::Status::WaitingForRelay => Standing::Ahead,
            peer::Status::Refused(why) => Standing::Refused(why.clone()),
        }
    }

    fn catching_up(&self) -> Progress {
        self.catching_up()
    }

    fn reached(&self) -> Tick {
        self.confirmed().map_or(Tick::ZERO, |(tick, _)| tick)
    }

    fn seat(&self) -> Option<Seat> {
        self.seat()
    }

    fn describe(sent: bool, channel: Channel, bytes: &[u8], near: Tick) -> Described {
        use sametick_lockstep::message::{Way, describe};
        describe(if sent { Way::ToRelay } else { Way::ToPeer }, channel, bytes, near)
    }

    fn run(&self) -> Option<u64> {
        Peer::run(self)
    }
}

impl<G: Hosted> Side for View<G> {
    type Input = G::Input;
    type JoinAs = view::JoinAs<G>;
    const NONSENSE: &'static str = "the host does not speak the protocol of rooms of this build";

    fn identity() -> Identity {
        Identity { build: G::BUILD, schema: hosted_schema_of::<G>() }
    }

    fn intent(room: String) -> Intent {
        Intent::Enter { room }
    }

    fn who(join: &view::JoinAs<G>) -> (&str, bool) {
        (&join.name, join.watch)
    }

    fn new(now: Time, join: &view::JoinAs<G>, path: Path) -> View<G> {
        View::new(now, join, path)
    }

    fn rejoin(&mut self, now: Time, path: Path) {
        self.rejoin(now, path);
    }

    fn take_token(&mut self, token: Token) {
        self.take_token(token);
    }

    fn claim(&self) -> Option<Vec<u8>> {
        self.claim().and_then(|claim| to_canonical(&claim).ok())
    }

    fn take_claim(&mut self, claim: &[u8]) -> bool {
        from_canonical(claim).map(|claim| self.take_claim(claim)).is_ok()
    }

    fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.handle(now, input)
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        self.poll_output(buf)
    }

    fn standing(&self) -> Standing {
        match self.status() {
            view::Status::Joining | view::Status::Waiting => Standing::Joining,
            view::Status::Refused(why) => Standing::Refused(why),
            // The picture freezes for a moment whenever an update is lost; the client detects silence by itself.
            view::Status::Playing | view::Status::Frozen => Standing::Playing,
        }
    }

    /// A view starts with the present state.
    fn catching_up(&self) -> Progress {
        Progress::default()
    }

    fn reached(&self) -> Tick {
        self.newest_tick()
    }

    fn seat(&self) -> Option<Seat> {
        self.seat()
    }

    fn describe(sent: bool, channel: Channel, bytes: &[u8], near: Tick) -> Described {
        use sametick_room::message::{Way, describe};
        describe(if sent { Way::ToHost } else { Way::ToView }, channel, bytes, near)
    }
}
