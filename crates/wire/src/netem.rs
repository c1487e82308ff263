//! A simulated bad network as a library: one direction of one link, seeded, in virtual time, without I/O.
//!
//! Everything about a packet is decided when it is sent, in this order: is the link [down](Netem::set_down), is the
//! packet lost, is there a second copy; then, for each copy, does the bottleneck's queue have room, when does it
//! arrive, and are bits flipped. So one seed and one sequence of calls give one result.
//!
//! **Jitter alone never reorders**: a packet arrives no earlier than the one sent before it, as in a queue along a real
//! path. Only packets picked by [`Reorder`] are out of order: they arrive late and the ones behind do not wait.
//!
//! ```
//! use sametick_sim::Time;
//! use sametick_wire::netem::{Netem, Profile};
//!
//! let profile: Profile = "rtt=100ms".parse()?;
//! let mut link = Netem::new(profile, 7);
//! link.send(Time::ZERO, (), b"hello");
//!
//! let mut packet = Vec::new();
//! assert_eq!(link.next_delivery(), Some(Time::from_millis(50)));
//! assert_eq!(link.poll(Time::from_millis(49), &mut packet), None);
//! assert_eq!(link.poll(Time::from_millis(50), &mut packet), Some(()));
//! assert_eq!(packet, b"hello");
//! # Ok::<(), sametick_wire::netem::ProfileError>(())
//! ```

mod profile;
mod text;

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Ordering;

use sametick_sim::{Rng, Time};

pub use profile::{Bandwidth, Chance, Loss, Profile, Reorder};
pub use text::ProfileError;

/// The most packets in flight. Beyond it packets are dropped and counted: at 10,000 packets a second this is more than
/// six seconds of latency, so only a runaway sender reaches it.
pub const MAX_IN_FLIGHT_PACKETS: usize = 65_536;

/// The most bytes in flight, for the same reason: four seconds of a full 100 Mbit/s link.
pub const MAX_IN_FLIGHT_BYTES: usize = 50_000_000;

/// Capacity kept for reuse after delivery. Enough for 10,000 packets of full size; a burst beyond it gives its
/// memory back.
const MAX_SPARE_BYTES: usize = 16_000_000;

/// The most bits one corruption flips: enough to defeat a parity bit, few enough that a weak checksum is tested.
const MAX_FLIPPED_BITS: u64 = 8;

/// The most losses in a row of one packet of a stream: it arrives in the end.
const MAX_REPEATS: u32 = 20;

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Statistics of a link.
///
/// `sent + duplicated` is always the sum of `delivered`, `lost`, `cut`, `queue_dropped`, `overflowed` and what is still
/// [in flight](Netem::in_flight). On a [stream](Netem::stream) nothing is lost for good: `lost` counts what was sent
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets given to `send`.
    pub sent: u64,
    /// Packets, copies included, that came out of `poll`.
    pub delivered: u64,
    /// Packets lost by the profile's [`Loss`].
    pub lost: u64,
    /// Packets sent while the link was down.
    pub cut: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Packets, copies included, with flipped bits.
    pub corrupted: u64,
    /// Packets, copies included, that came out after one sent later.
    pub reordered: u64,
    /// Packets, copies included, that met a full queue at the bottleneck.
    pub queue_dropped: u64,
    /// Packets, copies included, dropped because too much was in flight.
    pub overflowed: u64,
    /// Bytes given to `send`.
    pub bytes_sent: u64,
    /// Bytes that came out of `poll`.
    pub bytes_delivered: u64,
}

/// One direction of one link. `T` travels with each packet, for example its destination.
#[derive(Clone, Debug)]
pub struct Netem<T: Copy = ()> {
    profile: Profile,
    rng: Rng,
    down: bool,
    in_burst: bool,
    /// Whether it carries a reliable stream, and when its last packet was sent.
    stream: bool,
    sent_at: Time,
    /// When the bottleneck has sent everything in its queue.
    idle_at_ns: u64,
    /// The earliest arrival that keeps packets in order.
    in_line_from: Time,
    in_flight: BinaryHeap<Packet<T>>,
    in_flight_bytes: usize,
    /// Counts scheduled copies, so that equal arrival times keep the order of sending.
    next_order: u64,
    /// One more than the number of the newest packet delivered.
    newest_delivered: u64,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    stats: Stats,
}

impl<T: Copy> Netem<T> {
    /// A link with this profile; its behaviour follows from `seed` alone.
    pub fn new(profile: Profile, seed: u64) -> Netem<T> {
        Netem {
            profile,
            rng: Rng::new(seed),
            down: false,
            in_burst: false,
            stream: false,
            sent_at: Time::ZERO,
            idle_at_ns: 0,
            in_line_from: Time::ZERO,
            in_flight: BinaryHeap::new(),
            in_flight_bytes: 0,
            next_order: 0,
            newest_delivered: 0,
            spare: Vec::new(),
            spare_bytes: 0,
            stats: Stats::default(),
        }
    }

    /// The same for the packets of one reliable stream (TCP). Nothing is lost, duplicated or damaged: a packet that the
    /// network loses is sent again, once the ack of a later one has shown it missing, and later packets wait for it.
    pub fn stream(profile: Profile, seed: u64) -> Netem<T> {
        Netem { stream: true, ..Netem::new(profile.of_stream(), seed) }
    }

    /// The present profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Changes the profile for packets sent from now on. Those in flight arrive as decided.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = if self.stream { profile.of_stream() } else { profile };
        self.in_burst = false;
    }

    /// Partitions the link, or heals it. Packets sent while it is down are lost; those in flight still arrive. A
    /// carrier that retransmits should stop sending and polling instead.
    pub fn set_down(&mut self, down: bool) {
        self.down = down;
    }

    /// The statistics so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Packets in flight, copies included.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether `len` more bytes would exceed the limit in flight. A carrier that must not lose asks before it sends.
    pub fn is_full(&self, len: usize) -> bool {
        self.in_flight.len() >= MAX_IN_FLIGHT_PACKETS || self.in_flight_bytes + len > MAX_IN_FLIGHT_BYTES
    }

    /// When the next packet arrives, if nothing more is sent.
    pub fn next_delivery(&self) -> Option<Time> {
        self.in_flight.peek().map(|packet| packet.at)
    }

    /// Puts a packet on the link.
    pub fn send(&mut self, now: Time, tag: T, bytes: &[u8]) {
        let number = self.stats.sent;
        self.stats.sent += 1;
        self.stats.bytes_sent += bytes.len() as u64;
        if self.down {
            self.stats.cut += 1;
            return;
        }
        if self.stream {
            let repeated_us = self.draw_repeats(now);
            return self.carry(now, repeated_us, number, tag, bytes);
        }
        if self.draw_loss() {
            self.stats.lost += 1;
            return;
        }
        self.carry(now, 0, number, tag, bytes);
        if self.draw(self.profile.duplicate) {
            self.stats.duplicated += 1;
            self.carry(now, 0, number, tag, bytes);
        }
    }

    /// Takes the next packet that has arrived by `now`: its bytes replace the contents of `buf`. Call it until it
    /// returns `None`.
    pub fn poll(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<T> {
        if self.next_delivery()? > now {
            return None;
        }
        let Packet { number, tag, bytes, .. } = self.in_flight.pop()?;
        buf.clear();
        buf.extend_from_slice(&bytes);
        self.in_flight_bytes -= bytes.len();
        self.stats.delivered += 1;
        self.stats.bytes_delivered += bytes.len() as u64;
        if number + 1 < self.newest_delivered {
            self.stats.reordered += 1;
        }
        self.newest_delivered = self.newest_delivered.max(number + 1);
        self.recycle(bytes);
        Some(tag)
    }

    /// How much later a packet of a stream arrives because it was lost, once or several times. As TCP does it (RACK):
    /// it counts as missing when the ack of the next packet arrives and a quarter of a round trip has passed.
    fn draw_repeats(&mut self, now: Time) -> u64 {
        let rtt_us = 2 * self.profile.latency_us;
        let next_us = now.micros_since(self.sent_at).min(rtt_us);
        self.sent_at = now;
        let mut late_us = 0;
        for _ in 0..MAX_REPEATS {
            if !self.draw_loss() {
                break;
            }
            self.stats.lost += 1;
            late_us += next_us + rtt_us * 5 / 4;
        }
        late_us
    }

    /// Sends a copy that was not lost: through the bottleneck, along the path, into the queue of arrivals.
    fn carry(&mut self, now: Time, late_us: u64, number: u64, tag: T, bytes: &[u8]) {
        if self.is_full(bytes.len()) {
            self.stats.overflowed += 1;
            return;
        }
        let Some(departure) = self.pass_bottleneck(now, bytes.len()) else {
            self.stats.queue_dropped += 1;
            return;
        };
        let at = self.draw_arrival(departure.plus_micros(late_us));
        let mut copy = self.take_spare();
        copy.extend_from_slice(bytes);
        if self.draw(self.profile.corrupt) && !copy.is_empty() {
            self.flip_bits(&mut copy);
            self.stats.corrupted += 1;
        }
        self.in_flight_bytes += copy.len();
        let order = self.next_order;
        self.next_order += 1;
        self.in_flight.push(Packet { at, order, number, tag, bytes: copy });
    }

    /// When the last bit has left the bottleneck, or `None` if its queue had no room.
    fn pass_bottleneck(&mut self, now: Time, len: usize) -> Option<Time> {
        let Some(Bandwidth { bytes_per_second, queue_bytes }) = self.profile.bandwidth else {
            return Some(now);
        };
        let rate = bytes_per_second.max(1);
        let len = len as u64;
        let now_ns = now.as_micros().saturating_mul(NANOS_PER_MICRO);
        let backlog_ns = self.idle_at_ns.saturating_sub(now_ns);
        let backlog = u128::from(backlog_ns) * u128::from(rate) / u128::from(NANOS_PER_SECOND);
        let has_room = queue_bytes.is_none_or(|limit| backlog + u128::from(len) <= u128::from(limit));
        // A packet that finds the bottleneck idle never waits, so it needs no room in the queue.
        if backlog_ns > 0 && !has_room {
            return None;
        }
        let sending_ns = len.saturating_mul(NANOS_PER_SECOND).div_ceil(rate);
        self.idle_at_ns = self.idle_at_ns.max(now_ns).saturating_add(sending_ns);
        Some(Time::from_micros(self.idle_at_ns.div_ceil(NANOS_PER_MICRO)))
    }

    fn draw_arrival(&mut self, departure: Time) -> Time {
        let Profile { latency_us, jitter_us, reorder, .. } = self.profile;
        let delay_us =
            self.draw_between(latency_us.saturating_sub(jitter_us), latency_us.saturating_add(jitter_us));
        let in_line = departure.plus_micros(delay_us).max(self.in_line_from);
        if let Some(Reorder { chance, min_us, max_us }) = reorder
            && self.draw(chance)
        {
            return in_line.plus_micros(self.draw_between(min_us, max_us));
        }
        self.in_line_from = in_line;
        in_line
    }

    fn draw_loss(&mut self) -> bool {
        match self.profile.loss {
            Loss::None => false,
            Loss::Uniform(mean) => self.draw(mean),
            Loss::Burst { mean, burst_packets } => {
                self.in_burst = self.draw_burst(mean, u64::from(burst_packets.max(1)));
                self.in_burst
            }
        }
    }

    /// One step of the Gilbert chain: bursts lose everything, the time between them nothing. Entering and leaving are
    /// balanced so that the share of packets in a burst is `mean`; where `mean` is too high for bursts as short as
    /// `length`, bursts follow each other with one packet between them and grow until `mean` is met.
    fn draw_burst(&mut self, mean: Chance, length: u64) -> bool {
        let lost = mean.ppm();
        let kept = Chance::ALWAYS.ppm() - lost;
        let (lost, kept) = (u64::from(lost), u64::from(kept));
        let crowded = lost > length * kept;
        match (self.in_burst, crowded) {
            (true, true) => !self.rng.chance(kept, lost),
            (true, false) => !self.rng.chance(1, length),
            (false, _) => self.rng.chance(lost, length * kept),
        }
    }

    fn draw(&mut self, chance: Chance) -> bool {
        // Draws nothing for a chance of zero: a fault that is switched off costs no time.
        chance != Chance::NEVER && self.rng.chance(u64::from(chance.ppm()), u64::from(Chance::ALWAYS.ppm()))
    }

    fn draw_between(&mut self, low: u64, high: u64) -> u64 {
        if high <= low {
            return low;
        }
        low + self.rng.below((high - low).saturating_add(1))
    }

    /// Flips at least one bit. A place drawn twice is flipped once, or the two flips would cancel out.
    fn flip_bits(&mut self, bytes: &mut [u8]) {
        let mut flipped = [None; MAX_FLIPPED_BITS as usize];
        let count = 1 + self.rng.below(MAX_FLIPPED_BITS) as usize;
        for turn in 0..count {
            let place = self.rng.below(bytes.len() as u64 * 8);
            if flipped.contains(&Some(place)) {
                continue;
            }
            flipped[turn] = Some(place);
            bytes[(place / 8) as usize] ^= 1 << (place % 8);
        }
    }

    fn take_spare(&mut self) -> Vec<u8> {
        let bytes = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= bytes.capacity();
        bytes
    }

    fn recycle(&mut self, mut bytes: Vec<u8>) {
        if self.spare_bytes + bytes.capacity() <= MAX_SPARE_BYTES {
            bytes.clear();
            self.spare_bytes += bytes.capacity();
            self.spare.push(bytes);
        }
    }
}

/// A copy in flight. Ordered so that the heap's greatest is the next to arrive.
#[derive(Clone, Debug)]
struct Packet<T> {
    at: Time,
    order: u64,
    number: u64,
    tag: T,
    bytes: Vec<u8>,
}

impl<T> Ord for Packet<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<T> PartialOrd for Packet<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Packet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Packet<T> {}

/// The length of a [`put_check`].
const CHECK: usize = 8;

/// Appends a checksum. Carriers drop damaged packets; where a link uses [`Netem`] without a carrier, this replaces that
/// check.
pub fn put_check(packet: &mut Vec<u8>) {
    let check = check(packet);
    packet.extend_from_slice(&check);
}

/// The packet without its checksum, if it is undamaged.
pub fn intact(packet: &[u8]) -> Option<&[u8]> {
    let (bytes, sum) = packet.split_last_chunk::<CHECK>()?;
    (check(bytes) == *sum).then_some(bytes)
}

fn check(bytes: &[u8]) -> [u8; CHECK] {
    // FNV-1a: enough to detect flipped bits on a simulated network.
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash).to_le_bytes()
}
