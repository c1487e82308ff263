//! A player's side of a session, as far as a client cares: a peer in lockstep, or a view of a room that a host decides.

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

/// What a side is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has asked to take part, and nothing is known yet.
    Joining,
    /// What happened before it came is being simulated.
    CatchingUp,
    /// It plays, or watches.
    Playing,
    /// It is as far ahead of what it knows as it may be.
    Ahead,
    /// It is not let in, and why.
    Refused(String),
}

/// A player's side of a session: what a [`Client`](crate::Client) opens once the server has let it in.
pub trait Side {
    /// What a player does in one tick.
    type Input;
    /// How to take part.
    type JoinAs: Clone;
    /// What is said of a server that talks nonsense.
    const NONSENSE: &'static str;

    /// What a server has to have in common with this build.
    fn identity() -> Identity;

    /// What is asked of it, for the session of this name.
    fn intent(session: String) -> Intent;

    /// The player's name, and whether they only watch.
    fn who(join: &Self::JoinAs) -> (&str, bool);

    /// One that asks to take part over a link that has just opened.
    fn new(now: Time, join: &Self::JoinAs, path: Path) -> Self;

    /// Comes back over another link, as who it was.
    fn rejoin(&mut self, now: Time, path: Path);

    /// Is known by this token from the next link on, where players are known.
    fn take_token(&mut self, token: Token);

    /// What brings it back to its seat, for a program that is started anew; none before the server has let it in. A secret.
    fn claim(&self) -> Option<Vec<u8>> {
        None
    }

    /// Comes back with this claim over the next link. Returns whether the bytes are a claim to something like this.
    fn take_claim(&mut self, _claim: &[u8]) -> bool {
        false
    }

    /// Brings a copy of the session over the next link, in case the server has nothing of it.
    fn bring(&mut self, _copy: SessionCopy) {}

    /// What became of the copy that was brought, once that is known.
    fn brought(&self) -> Option<Brought> {
        None
    }

    /// A copy of the session of this name, as far as it is confirmed; none where a player never has all of it.
    fn copy(&self, _session: &str) -> Option<SessionCopy> {
        None
    }

    /// Takes what happened. After an error the other end does not speak the protocol.
    fn handle(&mut self, now: Time, input: Input<'_, Self::Input>) -> Result<(), Malformed>;

    /// What it wants next.
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output;

    /// What it is doing.
    fn standing(&self) -> Standing;

    /// How far it has come with what happened before it came.
    fn catching_up(&self) -> Progress;

    /// The last tick that it knows to have happened. It goes back where a session has begun anew, or its server was restarted.
    fn reached(&self) -> Tick;

    /// Where the player sits, if that is known.
    fn seat(&self) -> Option<Seat>;

    /// What a message is about that a side like this sent or received, for people who read message logs. Ticks are near `near`.
    fn describe(sent: bool, channel: Channel, bytes: &[u8], near: Tick) -> Described;

    /// What tells the session from others of its name, if that is known.
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

    /// In a session nobody is known.
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
            // What is shown stands still for a moment whenever an update is lost; silence is the client's to notice.
            view::Status::Playing | view::Status::Frozen => Standing::Playing,
        }
    }

    /// What a view is shown begins with the present.
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
