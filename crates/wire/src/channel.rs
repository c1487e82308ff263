//! Channels: what a link carries side by side, each with its own promise of delivery (V1).

/// A lane of conversation on a link. The number is what travels; a lower one goes out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Channel {
    /// Session control: joining, leaving, rosters, saves. Reliable, ordered.
    Control = 0,
    /// What players say. Reliable, ordered.
    Chat = 1,
    /// Metrics and operator commands. Reliable, ordered.
    Diagnostics = 2,
    /// Bulk: chunks, snapshots, logs. Reliable, ordered, and never in the way of the others.
    Chunks = 3,
    /// Inputs and confirmed ticks: unreliable, each message repeated until it is acknowledged.
    Input = 4,
    /// Entity state: unreliable, the newest wins.
    State = 5,
}

/// What a channel promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Every message arrives, once, in the order it was sent in.
    Ordered,
    /// Every message is repeated in each packet until acknowledged; arrives once, in order, and never waits:
    /// a message is skipped only when the sender gave it up.
    Redundant,
    /// Sent once. What arrives is never older than what arrived before.
    Newest,
}

/// How many channels are [`Delivery::Ordered`]: they are numbered from zero.
pub const ORDERED_CHANNELS: usize = 4;

impl Channel {
    /// Every channel, most urgent reliable ones first.
    pub const ALL: [Channel; 6] = [
        Channel::Control,
        Channel::Chat,
        Channel::Diagnostics,
        Channel::Chunks,
        Channel::Input,
        Channel::State,
    ];

    /// What the channel promises.
    pub const fn delivery(self) -> Delivery {
        match self {
            Channel::Control | Channel::Chat | Channel::Diagnostics | Channel::Chunks => Delivery::Ordered,
            Channel::Input => Delivery::Redundant,
            Channel::State => Delivery::Newest,
        }
    }

    /// The channel with this number.
    pub fn from_number(number: u8) -> Option<Channel> {
        Channel::ALL.get(usize::from(number)).copied()
    }

    /// The channel's number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The longest message the channel takes.
    pub const fn max_message(self) -> usize {
        match self.delivery() {
            Delivery::Ordered => MAX_ORDERED_MESSAGE,
            Delivery::Redundant => MAX_REDUNDANT_MESSAGE,
            Delivery::Newest => MAX_NEWEST_MESSAGE,
        }
    }
}

/// The longest reliable message: a large snapshot fits, and a peer cannot make us gather more than this.
pub const MAX_ORDERED_MESSAGE: usize = 16 << 20;

/// The longest message on [`Channel::State`]: it must fit one datagram on every carrier, acks and framing included.
pub const MAX_NEWEST_MESSAGE: usize = 1_000;

/// The longest message on [`Channel::Input`]: repeated until acknowledged, so it had better be small.
pub const MAX_REDUNDANT_MESSAGE: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable() {
        for (number, channel) in (0u8..).zip(Channel::ALL) {
            assert_eq!(channel.number(), number);
            assert_eq!(Channel::from_number(number), Some(channel));
        }
        assert_eq!(Channel::from_number(6), None);
    }

    #[test]
    fn ordered_channels_come_first() {
        for channel in Channel::ALL {
            let first = usize::from(channel.number()) < ORDERED_CHANNELS;
            assert_eq!(first, channel.delivery() == Delivery::Ordered);
        }
    }
}
