//! The parameters of a simulated bad network: exact integers, so that profiles can be compared and written down.

/// A probability in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chance(u32);

impl Chance {
    /// It does not happen.
    pub const NEVER: Chance = Chance(0);

    /// It happens every time.
    pub const ALWAYS: Chance = Chance(1_000_000);

    /// `ppm` parts per million; more than a million is [`Chance::ALWAYS`].
    pub const fn from_ppm(ppm: u32) -> Chance {
        if ppm > Chance::ALWAYS.0 { Chance::ALWAYS } else { Chance(ppm) }
    }

    /// `percent` in a hundred; more than a hundred is [`Chance::ALWAYS`].
    pub const fn from_percent(percent: u32) -> Chance {
        Chance::from_ppm(percent.saturating_mul(10_000))
    }

    /// In parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }
}

/// How packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Each with the same chance, independently.
    Uniform(Chance),
    /// Several in a row (Gilbert–Elliott: bursts lose everything, the time between them nothing).
    Burst {
        /// The share lost over a long time.
        mean: Chance,
        /// How many are lost in a row on average; zero counts as one. If `mean` cannot be reached with bursts this
        /// short, they are longer.
        burst_packets: u32,
    },
}

/// Packets that are out of order: they arrive later than they should, and those behind them do not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// The share of such packets.
    pub chance: Chance,
    /// They are late by at least this.
    pub min_us: u64,
    /// They are late by at most this.
    pub max_us: u64,
}

/// A bottleneck with a queue in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// The throughput; zero counts as one.
    pub bytes_per_second: u64,
    /// The most bytes in the queue, including the packet being sent. Packets that meet a full queue are dropped; `None`
    /// means no limit.
    pub queue_bytes: Option<u64>,
}

/// The parameters of one direction of a link. The default is the perfect network.
///
/// The text form is a list of `key=value`:
///
/// | key | value | meaning |
/// |---|---|---|
/// | `rtt` | `100ms` | half of it is the latency of each direction |
/// | `latency` | `50ms` | of this direction; instead of `rtt` |
/// | `jitter` | `20ms` | the delay is drawn from latency ± jitter, never below zero |
/// | `loss` | `2%`, `0.02` | share of packets lost |
/// | `burst` | `4` | losses come that many in a row on average; needs `loss` |
/// | `dup` | `1%` | share of packets that arrive twice |
/// | `reorder` | `5%` | share of packets that arrive late, out of order |
/// | `late` | `10ms..50ms` | how late those are; needs `reorder` |
/// | `corrupt` | `0.1%` | share of packets with flipped bits |
/// | `rate` | `1mbit`, `125kB` | bytes or bits per second through the bottleneck |
/// | `queue` | `64kB`, `unlimited` | how much waits there; needs `rate` |
///
/// ```
/// use sametick_wire::netem::{Chance, Loss, Profile};
///
/// let profile: Profile = "rtt=100ms,jitter=20ms,loss=2%".parse()?;
/// assert_eq!(profile.latency_us, 50_000);
/// assert_eq!(profile.loss, Loss::Uniform(Chance::from_percent(2)));
/// assert_eq!(profile.to_string(), "latency=50ms,jitter=20ms,loss=2%");
/// # Ok::<(), sametick_wire::netem::ProfileError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The latency, besides jitter and queueing.
    pub latency_us: u64,
    /// The delay is drawn evenly from latency ± jitter, never below zero. Jitter does not reorder: a packet that
    /// would overtake arrives together with the one before it, so close packets are delayed more than `latency_us`
    /// on average.
    pub jitter_us: u64,
    /// How packets are lost.
    pub loss: Loss,
    /// The share of the packets that are not lost which arrive twice. The second copy has its own delay and its own
    /// chance of being reordered or corrupted, and takes its own share of the bandwidth.
    pub duplicate: Chance,
    /// The reordering, if there is any.
    pub reorder: Option<Reorder>,
    /// The share with 1 to 8 flipped bits.
    pub corrupt: Chance,
    /// The bottleneck, if there is one.
    pub bandwidth: Option<Bandwidth>,
}

impl Profile {
    /// The part that applies to a carrier that neither loses nor duplicates nor reorders (a stream): latency, jitter,
    /// losses, which delay what is behind them, and the bottleneck with an unlimited queue.
    pub fn of_stream(&self) -> Profile {
        Profile {
            latency_us: self.latency_us,
            jitter_us: self.jitter_us,
            loss: self.loss,
            bandwidth: self.bandwidth.map(|bandwidth| Bandwidth { queue_bytes: None, ..bandwidth }),
            ..Profile::default()
        }
    }
}
