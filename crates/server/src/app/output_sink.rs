//! Where outputs of the relay and the rooms go: to links, and into logs.

use std::collections::{HashMap, VecDeque};

use sametick_lockstep::session::{CAME_BACK, SEAT_GIVEN};
use sametick_sim::record::Leaving;
use sametick_transport::hub::{Ended, Key, Links};
use sametick_wire::closing::{OVER_A_LIMIT, THROWN_OUT};
use sametick_wire::{Channel, Closed, Member};

use crate::hosting::{GAME_OVER, MOVED_ON};
use crate::recorder::Recorder;
use crate::spectator::Told;

/// Close reasons that are no failure.
const ORDINARY: [&str; 4] = [CAME_BACK, SEAT_GIVEN, MOVED_ON, GAME_OVER];

/// Sends outputs to links and hands records to the recorder.
pub(crate) struct OutputSink<'a> {
    pub links: &'a mut Links,
    pub keys: &'a HashMap<Member, Key>,
    pub recorder: &'a mut Recorder,
    /// Outcomes and crashes of the games of sessions.
    pub told: &'a mut VecDeque<Told>,
}

impl OutputSink<'_> {
    /// Whether the member's link is open.
    pub fn reaches(&self, member: Member) -> bool {
        self.keys.contains_key(&member)
    }

    /// Sends a message. A link with too much queued is closed (backpressure).
    pub fn send(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        let Some(key) = self.keys.get(&member) else { return };
        if let Err(error) = self.links.send(*key, channel, bytes) {
            self.links.close(*key, OVER_A_LIMIT, &error.to_string());
        }
    }

    /// Closes a link; the client must not reconnect.
    pub fn close(&mut self, member: Member, why: &str) {
        if let Some(key) = self.keys.get(&member) {
            if ORDINARY.contains(&why) {
                tracing::info!(player = member.0, why, "a player's link has ended");
            } else {
                tracing::warn!(player = member.0, why, "a player was closed");
            }
            self.links.close(*key, THROWN_OUT, why);
        }
    }
}

/// The log's word for the end of a link.
pub(crate) fn leaving(ended: &Ended) -> Leaving {
    match ended {
        Ended::Link(Closed::TimedOut) => Leaving::TimedOut,
        Ended::Link(Closed::Here | Closed::Violation(_)) => Leaving::Kicked,
        _ => Leaving::Left,
    }
}
