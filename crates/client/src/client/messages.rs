//! The client's message log (L7): the messages between its side and the server, over all links.

use sametick_sim::{Tick, Time};
use sametick_wire::Channel;
use sametick_wire::message_log::{DroppedLine, Logged, MessageLine, MessageLog};

use super::Client;
use crate::side::Side;

impl<S: Side> Client<S> {
    /// Records the newest messages in both directions from now on, in about this many bytes.
    pub fn keep_messages(&mut self, max_bytes: usize) {
        self.messages = Some(MessageLog::new(max_bytes));
    }

    /// The recorded messages as lines, the oldest first: the number of dropped messages if there are any, then every
    /// message. `unix_us` converts a time of this client to Unix time.
    pub fn message_lines(
        &self,
        unix_us: impl Fn(Time) -> u64,
        mut on_dropped: impl FnMut(&DroppedLine<'_>),
        mut on_message: impl FnMut(&MessageLine<'_>),
    ) {
        let (Some(log), session) = (&self.messages, self.plan.session.as_str()) else { return };
        if log.dropped() > 0 {
            on_dropped(&DroppedLine::new(session, log.dropped()));
        }
        log.for_each(|logged, bytes| {
            let about = S::describe(logged.sent, logged.channel, bytes, logged.near);
            on_message(&MessageLine::new(unix_us(logged.at), session, logged, about, bytes));
        });
    }

    /// Drops the recorded messages: they have been written elsewhere.
    pub fn forget_messages(&mut self) {
        if let Some(log) = &mut self.messages {
            log.clear();
        }
    }

    pub(super) fn log_message(&mut self, sent: bool, channel: Channel, bytes: &[u8]) {
        if let Some(log) = &mut self.messages {
            let (seat, near) =
                self.side.as_ref().map_or((None, Tick::ZERO), |side| (side.seat(), side.reached()));
            log.push(Logged { at: self.now, sent, channel, seat, near }, bytes);
        }
    }
}
