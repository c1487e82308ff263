//! One client: a machine with a clock of its own, and its peer while it takes part.

use sametick_lockstep::peer::Peer;
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::{Rng, Tick, Time};
use sametick_wire::netem::Profile;

use crate::cable::Handed;
use crate::clock::Clock;
use crate::games::Playable;

/// The state of a connected client.
pub struct Online<G: Playable> {
    /// The number of its cable.
    pub cable: usize,
    /// The peer.
    pub peer: Peer<G>,
    /// The next wake-up of the peer, in the client's time.
    pub wake_at: Option<Time>,
    /// The session of its state, and its member id in its last welcome there.
    pub welcome: Option<(SessionId, Member)>,
    /// The last confirmed tick that was checked.
    pub confirmed: Tick,
    /// How often its state was replaced.
    pub resyncs: u32,
    /// How often it started from a save.
    pub loads: u32,
    /// Since which tick its state is wrong: corrupted by the test and not replaced yet.
    pub tampered: Option<Tick>,
    /// The inputs it sent over its last link, which it may have to repeat.
    pub handed: Option<Handed>,
    /// The current input of the player.
    pub held: Option<G::Input>,
}

impl<G: Playable> Online<G> {
    /// Checks whether it was welcomed as `member` of a session. State of another session is discarded.
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
    /// The connected state, while it takes part.
    pub online: Option<Online<G>>,
    /// The state of the last connection, if it was not discarded.
    pub kept: Option<Online<G>>,
    /// The time of its next connection attempt, while it is not connected.
    pub dial_at: Time,
    /// Whether its process is stalled.
    pub stalled: bool,
    /// Whether its network is cut, from it and to it.
    pub cut: [bool; 2],
    /// Its network.
    pub profile: Profile,
    /// Whether it joins as a spectator from the next connection on.
    pub watch: bool,
    /// The source of the player's random inputs.
    pub rng: Rng,
    /// The time of its next event.
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

    /// Whether a fault keeps it from talking to the relay.
    pub fn is_silenced(&self) -> bool {
        self.stalled || self.cut.contains(&true)
    }
}
