//! Tracks sent packets until they are acknowledged or lost.

use alloc::collections::{VecDeque, vec_deque};
use core::ops::Range;

use sametick_sim::Time;

use crate::channel::Channel;
use crate::codec::Malformed;
use crate::packet::{ACK_SPAN, Ack, Newest, SHORT_SPAN, widen};

/// The most packets that are remembered. At 5,000 a second and 200 ms, half of that is in flight; it takes 48 KiB.
pub const MAX_REMEMBERED: usize = 2_048;

/// How many later packets must have arrived before an earlier one is suspected, and its reliable bytes sent again.
/// It counts as lost only when its time has passed as well, so reordering is not mistaken for loss.
pub const SUSPECT_AFTER: u64 = 3;

/// A piece of a reliable stream that a packet carried, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPiece {
    channel: Channel,
    len: u16,
    offset: u64,
}

impl SentPiece {
    /// These bytes of that channel's stream; no more than fit a datagram.
    pub fn new(channel: Channel, range: &Range<u64>) -> SentPiece {
        let len = u16::try_from(range.end - range.start).expect("a piece fits a datagram");
        SentPiece { channel, len, offset: range.start }
    }

    /// The channel of the stream.
    pub const fn channel(&self) -> Channel {
        self.channel
    }

    /// The bytes of the stream.
    pub const fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len as u64
    }
}

/// The contents of a packet besides pieces of reliable streams.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketContents {
    /// The packet carried every redundant message below this number.
    pub redundant_until: u64,
    /// Whether the packet wants an ack: it carried any frame.
    pub eliciting: bool,
    /// Whether it wants that ack soon.
    pub urgent: bool,
    /// Whether the packet carried the close.
    pub close: bool,
    /// The newest number of the other side that the packet acknowledged.
    pub told: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Flying,
    /// Its pieces are sent again, but it may only be late.
    Suspected,
    Acked,
}

/// One of these is kept for each packet, however small: 24 bytes.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    redundant_until: u64,
    /// The number of pieces sent before those of this packet; the low bits are enough.
    pieces_from: u32,
    /// The low bits of the newest number it acknowledged, if it acknowledged any.
    told: u16,
    fate: Fate,
    eliciting: bool,
}

/// The pieces that one packet carried.
pub type Pieces<'a> = vec_deque::Iter<'a, SentPiece>;

/// The number of bytes in the pieces.
pub fn piece_bytes(pieces: Pieces<'_>) -> u64 {
    pieces.map(|piece| u64::from(piece.len)).sum()
}

/// A report about a packet.
#[derive(Debug)]
pub enum PacketReport<'a> {
    /// It arrived.
    Acked {
        /// It carried every redundant message below this number.
        redundant_until: u64,
        /// Whether it wanted an ack.
        eliciting: bool,
        /// Whether it carried the close.
        close: bool,
        /// The low bits of the newest number that it acknowledged.
        told: Option<u16>,
        /// The reliable pieces it carried.
        pieces: Pieces<'a>,
        /// Whether it had been suspected, and its pieces sent again.
        suspected: bool,
    },
    /// It seems lost: send its pieces again.
    Suspected(Pieces<'a>),
    /// It was lost.
    Lost,
}

/// The packets sent on one link.
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    packets: VecDeque<Sent>,
    /// The pieces of all these packets and of the next one.
    pieces: VecDeque<SentPiece>,
    /// The number of pieces sent before the first of `pieces`; the low bits.
    pieces_before: u32,
    /// The number of pieces in the next packet so far.
    loaded: u8,
    /// The number of the first remembered packet.
    first: u64,
    newest_acked: Option<u64>,
    newest_eliciting: Option<u64>,
    newest_urgent: Option<u64>,
    /// The first packet that acknowledged something; all later ones do. The first that carried the close; likewise.
    acks_from: Option<u64>,
    close_from: Option<u64>,
    /// Every packet below this has been examined for suspicion.
    looked_at: u64,
}

impl SentPackets {
    /// The number the next packet will have.
    pub fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Adds a piece to the next packet: at most one for each stream.
    pub fn load(&mut self, piece: SentPiece) {
        self.loaded += 1;
        self.pieces.push_back(piece);
    }

    /// Remembers a packet with the loaded pieces; it has the number that [`Self::next_number`] returned.
    pub fn push(&mut self, now: Time, cargo: PacketContents) {
        let PacketContents { redundant_until, eliciting, urgent, close, told } = cargo;
        let number = self.next_number();
        let pieces = core::mem::take(&mut self.loaded);
        let pieces_from =
            self.pieces_before.wrapping_add(self.pieces.len() as u32).wrapping_sub(u32::from(pieces));
        if eliciting {
            self.newest_eliciting = Some(number);
        }
        if urgent {
            self.newest_urgent = Some(number);
        }
        if close {
            self.close_from.get_or_insert(number);
        }
        if told.is_some() {
            self.acks_from.get_or_insert(number);
        }
        self.packets.push_back(Sent {
            at: now,
            redundant_until,
            pieces_from,
            told: told.unwrap_or(0) as u16,
            fate: Fate::Flying,
            eliciting,
        });
    }

    /// Handles an ack; `in_order` says that no later packet has brought one. Returns when its newest packet was sent,
    /// if that is new.
    pub fn on_ack(
        &mut self,
        ack: &Ack,
        in_order: bool,
        mut tell: impl FnMut(PacketReport<'_>),
    ) -> Result<Option<Time>, Malformed> {
        let before = self.newest_acked.unwrap_or(0);
        let newest = match ack.newest {
            // A later ack has covered all of this one.
            Newest::Short(_) if !in_order => return Ok(None),
            Newest::Short(low) => before + (u64::from(low).wrapping_sub(before) & (SHORT_SPAN - 1)),
            Newest::Long(low) => widen(low, before),
        };
        if newest >= self.next_number() {
            return Err(Malformed::Forbidden("only packets that were sent are acknowledged"));
        }
        let news = self.newest_acked.is_none_or(|before| newest > before);
        self.newest_acked = self.newest_acked.max(Some(newest));
        let sent_at = self.acked(newest, &mut tell).filter(|_| news);
        // The fate of packets before the first is already decided.
        for before in 0..ACK_SPAN.min(newest.saturating_sub(self.first)) {
            if ack.missing >> before & 1 == 0 {
                self.acked(newest - 1 - before, &mut tell);
            }
        }
        Ok(sent_at)
    }

    fn acked(&mut self, number: u64, tell: &mut impl FnMut(PacketReport<'_>)) -> Option<Time> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let sent = self.packets.get_mut(at).filter(|sent| sent.fate != Fate::Acked)?;
        let suspected = sent.fate == Fate::Suspected;
        sent.fate = Fate::Acked;
        let Sent { redundant_until, eliciting, told, at: sent_at, .. } = *sent;
        let is_from = |from: Option<u64>| from.is_some_and(|from| number >= from);
        tell(PacketReport::Acked {
            redundant_until,
            eliciting,
            close: is_from(self.close_from),
            told: is_from(self.acks_from).then_some(told),
            pieces: self.pieces_of(at),
            suspected,
        });
        Some(sent_at)
    }

    /// The pieces of the packet at a place: up to those of the next one.
    fn pieces_of(&self, at: usize) -> Pieces<'_> {
        let from = |sent: &Sent| sent.pieces_from.wrapping_sub(self.pieces_before) as usize;
        let end = self.pieces.len() - usize::from(self.loaded);
        let place = |at: usize| self.packets.get(at).map_or(end, from);
        self.pieces.range(place(at)..place(at + 1))
    }

    /// Looks for packets that seem lost, and forgets those whose fate is decided. `patience_us` is how long a packet
    /// and its ack may take if that is urgent, `held_us` how long otherwise.
    pub fn look(
        &mut self,
        now: Time,
        patience_us: u64,
        held_us: u64,
        mut tell: impl FnMut(PacketReport<'_>),
    ) {
        let Some(newest) = self.newest_acked else { return };
        let until = (newest + 1).saturating_sub(SUSPECT_AFTER);
        self.looked_at = self.looked_at.max(self.first);
        while self.looked_at < newest {
            let at = (self.looked_at - self.first) as usize;
            let overdue = |sent: &Sent| now.micros_since(sent.at) > patience_us;
            if self.looked_at >= until && !self.packets.get(at).is_some_and(overdue) {
                break;
            }
            self.suspect(at, &mut tell);
            self.looked_at += 1;
        }
        while let Some(sent) = self.packets.front().filter(|_| self.first < newest) {
            let overdue = now.micros_since(sent.at) > held_us;
            match sent.fate {
                Fate::Acked => {}
                Fate::Flying | Fate::Suspected if overdue => {
                    // It is not lost before it is suspected, however the estimates change in between.
                    self.suspect(0, &mut tell);
                    tell(PacketReport::Lost);
                }
                Fate::Flying | Fate::Suspected => break,
            }
            self.forget_first();
        }
    }

    /// When a packet with pieces becomes overdue: a later one has arrived, but too few to suspect it already.
    pub fn overdue_at(&self, patience_us: u64) -> Option<Time> {
        let until = self.newest_acked?.saturating_sub(self.first) as usize;
        let from = self.looked_at.saturating_sub(self.first) as usize;
        let waits = |at: &usize| self.packets[*at].fate == Fate::Flying && self.pieces_of(*at).len() > 0;
        let at = (from..until.min(self.packets.len())).find(waits)?;
        Some(self.packets[at].at.plus_micros(patience_us + 1))
    }

    /// Suspects everything in flight, after a silence that is too long.
    pub fn suspect_all(&mut self, mut tell: impl FnMut(PacketReport<'_>)) {
        (0..self.packets.len()).for_each(|at| self.suspect(at, &mut tell));
    }

    /// Makes room for one more packet, counting the oldest as lost if necessary: a peer that never acknowledges cannot
    /// make us remember more.
    pub fn make_room(&mut self, mut tell: impl FnMut(PacketReport<'_>)) {
        while self.packets.len() >= MAX_REMEMBERED {
            self.suspect(0, &mut tell);
            if self.packets.front().is_some_and(|sent| sent.fate != Fate::Acked) {
                tell(PacketReport::Lost);
            }
            self.forget_first();
        }
    }

    fn suspect(&mut self, at: usize, tell: &mut impl FnMut(PacketReport<'_>)) {
        if let Some(sent) = self.packets.get_mut(at).filter(|sent| sent.fate == Fate::Flying) {
            sent.fate = Fate::Suspected;
            tell(PacketReport::Suspected(self.pieces_of(at)));
        }
    }

    fn forget_first(&mut self) {
        let pieces = self.pieces_of(0).len();
        if self.packets.pop_front().is_some() {
            self.pieces.drain(..pieces);
            self.pieces_before = self.pieces_before.wrapping_add(pieces as u32);
            self.first += 1;
        }
    }

    /// Whether a packet that wants an ack has none, and no later one has either.
    pub fn awaits_ack(&self) -> bool {
        self.newest_eliciting > self.newest_acked
    }

    /// Whether a packet that wants an ack soon has none, and no later one has either.
    pub fn awaits_ack_soon(&self) -> bool {
        self.newest_urgent > self.newest_acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn ack(newest: u16, missing: u64) -> Ack {
        Ack { newest: Newest::Long(newest), delay: None, missing }
    }

    fn fates(sent: &mut SentPackets, ack: Ack, now: Time) -> (Vec<&'static str>, Option<Time>) {
        let mut told = vec![];
        let name = |t: PacketReport<'_>| match t {
            PacketReport::Acked { suspected: false, .. } => "acked",
            PacketReport::Acked { suspected: true, .. } => "late",
            PacketReport::Suspected(_) => "suspected",
            PacketReport::Lost => "lost",
        };
        let at = sent.on_ack(&ack, true, |t| told.push(name(t))).unwrap();
        sent.look(now, 100_000, 100_000, |t| told.push(name(t)));
        (told, at)
    }

    #[test]
    fn a_late_packet_is_suspected_but_not_lost() {
        let mut sent = SentPackets::default();
        (0..5).for_each(|ms| sent.push(Time::from_millis(ms), PacketContents::default()));
        let now = Time::from_millis(50);
        let (told, at) = fates(&mut sent, ack(4, 0b1000), now);
        assert_eq!(told, ["acked", "acked", "acked", "acked", "suspected"]);
        assert_eq!(at, Some(Time::from_millis(4)));
        assert_eq!(fates(&mut sent, ack(4, 0), now), (vec!["late"], None));
    }

    #[test]
    fn a_packet_whose_time_has_passed_is_lost() {
        let mut sent = SentPackets::default();
        (0..3).for_each(|ms| sent.push(Time::from_millis(ms), PacketContents::default()));
        let (told, _) = fates(&mut sent, ack(2, 0b10), Time::from_millis(200));
        assert_eq!(told, ["acked", "acked", "suspected", "lost"]);
        assert_eq!(sent.next_number(), 3);
    }

    #[test]
    fn a_peer_that_never_acknowledges_uses_bounded_memory() {
        let mut sent = SentPackets::default();
        let (mut given_back, mut lost) = (vec![], 0);
        for number in 0..3 * MAX_REMEMBERED as u64 {
            sent.make_room(|told| match told {
                PacketReport::Suspected(pieces) => given_back.extend(pieces.map(|piece| piece.offset)),
                _ => lost += 1,
            });
            sent.load(SentPiece::new(Channel::Chat, &(number..number + 1)));
            sent.push(Time::ZERO, PacketContents::default());
        }
        assert!(sent.packets.len() == MAX_REMEMBERED && sent.pieces.len() == MAX_REMEMBERED);
        assert_eq!(lost, 2 * MAX_REMEMBERED);
        assert!(given_back.into_iter().eq(0..2 * MAX_REMEMBERED as u64));
        assert_eq!(sent.next_number(), 3 * MAX_REMEMBERED as u64);
        assert!(size_of::<Sent>() <= 24 && size_of::<SentPiece>() <= 16);
    }

    #[test]
    fn every_packet_keeps_its_own_pieces() {
        let mut sent = SentPackets { pieces_before: u32::MAX - 3, ..SentPackets::default() };
        let piece = |number: u64| SentPiece::new(Channel::Chat, &(number..number + 10));
        for number in 0..300u64 {
            (0..number % 4).for_each(|n| sent.load(piece(10 * number + n)));
            sent.push(Time::ZERO, PacketContents::default());
            if number >= 10 {
                let ack = ack((number - 10) as u16, u64::MAX);
                let mut got = vec![];
                let tell = |told: PacketReport<'_>| {
                    if let PacketReport::Acked { pieces, .. } = told {
                        got.extend(pieces.copied());
                    }
                };
                sent.on_ack(&ack, true, tell).unwrap();
                let expected: Vec<_> =
                    (0..(number - 10) % 4).map(|n| piece(10 * (number - 10) + n)).collect();
                assert_eq!(got, expected);
                sent.look(Time::ZERO, 0, 0, |_| {});
            }
        }
        assert!(sent.pieces.len() < 40);
    }

    #[test]
    fn acks_for_packets_that_were_never_sent_are_refused() {
        let mut sent = SentPackets::default();
        sent.push(Time::ZERO, PacketContents::default());
        assert_eq!(
            sent.on_ack(&ack(1, 0), true, |_| {}),
            Err(Malformed::Forbidden("only packets that were sent are acknowledged"))
        );
    }

    #[test]
    fn a_short_ack_goes_on_from_the_highest_acknowledged() {
        let mut sent = SentPackets::default();
        (0..200).for_each(|_| sent.push(Time::ZERO, PacketContents::default()));
        let short = |number: u8| Ack { newest: Newest::Short(number & 31), delay: None, missing: 0 };
        sent.on_ack(&ack(100, 0), true, |_| {}).unwrap();
        for (number, in_order, expected) in
            [(100, true, 100), (131, true, 131), (99, false, 131), (162, true, 162)]
        {
            sent.on_ack(&short(number), in_order, |_| {}).unwrap();
            assert_eq!(sent.newest_acked, Some(expected));
        }
    }
}
