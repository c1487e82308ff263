//! One client: a machine with a clock of its own, and the peer on it while it takes part.

use sametick_lockstep::peer::Peer;
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::{Rng, Tick, Time};
use sametick_wire::netem::Profile;

use crate::cable::Handed;
use crate::clock::Clock;
use crate::games::Playable;

/// What a client has while it is connected.
pub struct Online<G: Playable> {
    /// Its cable, by number.
    pub cable: usize,
    /// The peer.
    pub peer: Peer<G>,
    /// When the peer wants to be woken, in the client's time.
    pub wake_at: Option<Time>,
    /// The session that its state is of, and who it was when it was last welcome there.
    pub welcome: Option<(SessionId, Member)>,
    /// The last confirmed tick that was looked at.
    pub confirmed: Tick,
    /// How often its state was replaced.
    pub resyncs: u32,
    /// How often it began with a save.
    pub loads: u32,
    /// Since which tick its state is wrong: it was tampered with and not replaced yet.
    pub tampered: Option<Tick>,
    /// What it handed in over its last link, which it may have to do again.
    pub handed: Option<Handed>,
    /// What the player does.
    pub held: Option<G::Input>,
}

impl<G: Playable> Online<G> {
    /// Looks whether it has been made welcome as `member` of a session. What it had of another session is void.
    pub fn note_welcome(&mut self, session: Option<SessionId>, member: Member) {
        let Some(session) = session.filter(|_| self.peer.status().takes_part()) else { return };
        if self.welcome.is_none_or(|(before, _)| before != session) {
            (self.confirmed, self.tampered) = (Tick::ZERO, None);
        }
        self.welcome = Some((session, member));
    }
}

/// One client.
pub struct Client<G: Playable> {
    /// Its clock.
    pub clock: Clock,
    /// While it takes part.
    pub online: Option<Online<G>>,
    /// What it has from the last time, if it has not forgotten it.
    pub kept: Option<Online<G>>,
    /// When it tries to connect, while it does not.
    pub dial_at: Time,
    /// Its process does nothing.
    pub stalled: bool,
    /// Nothing gets through from it, and to it.
    pub cut: [bool; 2],
    /// Its network.
    pub profile: Profile,
    /// Only watches, from the next time on.
    pub watch: bool,
    /// What the player does is drawn from this.
    pub rng: Rng,
    /// When something happens next here.
    pub next_at: Time,
}

impl<G: Playable> Client<G> {
    /// A client that will connect.
    pub fn new(drift_ppm: i64, dial_at: Time, profile: Profile, seed: u64) -> Client<G> {
        Client {
            clock: Clock::new(drift_ppm),
            online: None,
            kept: None,
            dial_at,
            stalled: false,
            cut: [false; 2],
            profile,
            watch: false,
            rng: Rng::new(seed),
            next_at: dial_at,
        }
    }

    /// Whether something keeps it from talking to the relay.
    pub fn is_silenced(&self) -> bool {
        self.stalled || self.cut.contains(&true)
    }
}
