//! Channels: independent message flows on a link, each with its own delivery guarantee (V1).

/// A message flow on a link. The number is sent on the wire; a lower one is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Channel {
    /// Session control: joining, leaving, rosters, saves. Reliable, ordered.
    Control = 0,
    /// Chat between players. Reliable, ordered.
    Chat = 1,
    /// Metrics and operator commands. Reliable, ordered.
    Diagnostics = 2,
    /// Bulk: chunks, snapshots, logs. Reliable, ordered, and of the lowest priority.
    Chunks = 3,
    /// Inputs and confirmed ticks: unreliable, each message repeated until it is acknowledged.
    Input = 4,
    /// Entity state: unreliable, the newest wins.
    State = 5,
}

/// The delivery guarantee of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Every message arrives, once, in the order it was sent in.
    Ordered,
    /// Every message is repeated in each packet until acknowledged; it arrives once, in order, and never waits: a
    /// message is skipped only if the sender gave it up.
    Redundant,
    /// Sent once. A message older than the last one that arrived is dropped.
    Newest,
}

/// The number of [`Delivery::Ordered`] channels: they are numbered from zero.
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

    /// The delivery guarantee.
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

/// The longest reliable message: a large snapshot fits, and a peer cannot make us buffer more than this.
pub const MAX_ORDERED_MESSAGE: usize = 16 << 20;

/// The longest message on [`Channel::State`]: it must fit one datagram on every carrier, acks and framing included.
pub const MAX_NEWEST_MESSAGE: usize = 1_000;

/// The longest message on [`Channel::Input`]: small, since it is repeated until acknowledged.
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
