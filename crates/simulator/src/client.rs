//! One client: a machine with a clock of its own, and the peer on it while it takes part.

use sametick_lockstep::peer::Peer;
use sametick_sim::{Rng, Tick, Time};
use sametick_wire::netem::Profile;

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
    /// The last confirmed tick that was looked at.
    pub confirmed: Tick,
    /// How often its state was replaced.
    pub resyncs: u32,
    /// Its state was tampered with and not replaced yet.
    pub tampered: bool,
    /// What the player does.
    pub held: Option<G::Input>,
}

/// One client.
pub struct Client<G: Playable> {
    /// Its clock.
    pub clock: Clock,
    /// While it takes part.
    pub online: Option<Online<G>>,
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
