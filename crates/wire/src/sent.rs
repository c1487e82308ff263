//! What has been sent and what became of it: acknowledged, suspected, lost.

use alloc::collections::VecDeque;
use core::ops::Range;

use sametick_sim::Time;

use crate::channel::{Channel, ORDERED_CHANNELS};
use crate::codec::Malformed;
use crate::packet::{ACK_SPAN, Ack, widen};

/// How many packets are remembered. At 10,000 a second and 200 ms, half of that is in flight.
pub const MAX_REMEMBERED: usize = 4_096;

/// How many later packets must have arrived before an earlier one is suspected, and its reliable bytes sent again.
/// It counts as lost only when its time has passed as well, so reordering is not mistaken for loss.
pub const SUSPECT_AFTER: u64 = 3;

/// A piece of a reliable stream that a packet carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPiece {
    /// Whose stream.
    pub channel: Channel,
    /// Which bytes of it.
    pub range: Range<u64>,
}

/// What one packet carried.
#[derive(Clone, Debug, Default)]
pub struct Cargo {
    /// Reliable pieces, at most one for each stream.
    pub pieces: [Option<SentPiece>; ORDERED_CHANNELS],
    /// The packet carried every redundant message below this number.
    pub redundant_until: u64,
    /// Whether the packet wants an ack: it carried any frame.
    pub eliciting: bool,
    /// Whether the packet carried the close.
    pub close: bool,
}

impl Cargo {
    /// How many reliable bytes the packet carried.
    pub fn piece_bytes(&self) -> u64 {
        self.pieces.iter().flatten().map(|piece| piece.range.end - piece.range.start).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Flying,
    /// Its pieces go out again, but it may only be late.
    Suspected,
    Acked,
}

#[derive(Clone, Debug)]
struct Sent {
    at: Time,
    fate: Fate,
    cargo: Cargo,
}

/// What is told about a packet.
#[derive(Debug)]
pub enum Told<'a> {
    /// It arrived. The time is when it was sent; `suspected` if its pieces have been sent again.
    Acked {
        /// What it carried.
        cargo: &'a Cargo,
        /// Whether it had been suspected.
        suspected: bool,
    },
    /// It seems not to have arrived: send its pieces again.
    Suspected(&'a Cargo),
    /// It did not arrive.
    Lost,
}

/// The packets sent on one link.
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    packets: VecDeque<Sent>,
    /// The number of the first remembered packet.
    first: u64,
    newest_acked: Option<u64>,
    /// Every packet below this has been looked at for suspicion.
    looked_at: u64,
}

impl SentPackets {
    /// The number the next packet will have.
    pub fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Remembers a packet; it has the number that [`Self::next_number`] gave.
    pub fn push(&mut self, now: Time, cargo: Cargo) {
        self.packets.push_back(Sent { at: now, fate: Fate::Flying, cargo });
    }

    /// Takes an ack. Returns when its newest packet was sent, if that is news.
    pub fn on_ack(&mut self, ack: &Ack, mut tell: impl FnMut(Told<'_>)) -> Result<Option<Time>, Malformed> {
        let newest = widen(ack.newest, self.newest_acked.unwrap_or(0));
        if newest >= self.next_number() {
            return Err(Malformed::Forbidden);
        }
        let news = self.newest_acked.is_none_or(|before| newest > before);
        self.newest_acked = self.newest_acked.max(Some(newest));
        let sent_at = self.acked(newest, &mut tell).filter(|_| news);
        for before in 0..ACK_SPAN.min(newest) {
            if ack.missing >> before & 1 == 0 {
                self.acked(newest - 1 - before, &mut tell);
            }
        }
        Ok(sent_at)
    }

    fn acked(&mut self, number: u64, tell: &mut impl FnMut(Told<'_>)) -> Option<Time> {
        let sent = self.packets.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        if sent.fate == Fate::Acked {
            return None;
        }
        let suspected = sent.fate == Fate::Suspected;
        sent.fate = Fate::Acked;
        tell(Told::Acked { cargo: &sent.cargo, suspected });
        Some(sent.at)
    }

    /// Looks for packets that seem lost, and forgets those whose fate is known. `patience_us` is how long a packet
    /// and its ack may take.
    pub fn look(&mut self, now: Time, patience_us: u64, mut tell: impl FnMut(Told<'_>)) {
        let Some(newest) = self.newest_acked else { return };
        let until = (newest + 1).saturating_sub(SUSPECT_AFTER);
        let from = self.looked_at.max(self.first);
        for number in from..until {
            self.suspect((number - self.first) as usize, &mut tell);
        }
        self.looked_at = self.looked_at.max(until);
        while let Some(sent) = self.packets.front().filter(|_| self.first < newest) {
            let overdue = now.micros_since(sent.at) > patience_us || self.packets.len() > MAX_REMEMBERED;
            match sent.fate {
                Fate::Acked => {}
                Fate::Flying | Fate::Suspected if overdue => {
                    self.suspect(0, &mut tell);
                    tell(Told::Lost);
                }
                Fate::Flying | Fate::Suspected => break,
            }
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Suspects everything in flight: nothing has been heard for too long.
    pub fn suspect_all(&mut self, mut tell: impl FnMut(Told<'_>)) {
        (0..self.packets.len()).for_each(|at| self.suspect(at, &mut tell));
        while self.packets.len() > MAX_REMEMBERED {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    fn suspect(&mut self, at: usize, tell: &mut impl FnMut(Told<'_>)) {
        if let Some(sent) = self.packets.get_mut(at).filter(|sent| sent.fate == Fate::Flying) {
            sent.fate = Fate::Suspected;
            tell(Told::Suspected(&sent.cargo));
        }
    }

    /// Whether a packet that wants an ack has none, and none after it has one.
    pub fn awaits_ack(&self) -> bool {
        let from = self.newest_acked.map_or(0, |newest| (newest + 1).saturating_sub(self.first)) as usize;
        self.packets.iter().skip(from).any(|sent| sent.cargo.eliciting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn fates(sent: &mut SentPackets, ack: Ack, now: Time) -> (Vec<&'static str>, Option<Time>) {
        let mut told = vec![];
        let name = |t: Told<'_>| match t {
            Told::Acked { suspected: false, .. } => "acked",
            Told::Acked { suspected: true, .. } => "late",
            Told::Suspected(_) => "suspected",
            Told::Lost => "lost",
        };
        let at = sent.on_ack(&ack, |t| told.push(name(t))).unwrap();
        sent.look(now, 100_000, |t| told.push(name(t)));
        (told, at)
    }

    #[test]
    fn a_late_packet_is_suspected_but_not_lost() {
        let mut sent = SentPackets::default();
        (0..5).for_each(|ms| sent.push(Time::from_millis(ms), Cargo::default()));
        let now = Time::from_millis(50);
        let (told, at) = fates(&mut sent, Ack { newest: 4, delay: 0, missing: 0b1000 }, now);
        assert_eq!(told, ["acked", "acked", "acked", "acked", "suspected"]);
        assert_eq!(at, Some(Time::from_millis(4)));
        assert_eq!(fates(&mut sent, Ack { newest: 4, delay: 0, missing: 0 }, now), (vec!["late"], None));
    }

    #[test]
    fn a_packet_whose_time_has_passed_is_lost() {
        let mut sent = SentPackets::default();
        (0..3).for_each(|ms| sent.push(Time::from_millis(ms), Cargo::default()));
        let (told, _) = fates(&mut sent, Ack { newest: 2, delay: 0, missing: 0b10 }, Time::from_millis(200));
        assert_eq!(told, ["acked", "acked", "suspected", "lost"]);
        assert_eq!(sent.next_number(), 3);
    }

    #[test]
    fn acks_for_packets_that_were_never_sent_are_refused() {
        let mut sent = SentPackets::default();
        sent.push(Time::ZERO, Cargo::default());
        let ack = Ack { newest: 1, delay: 0, missing: 0 };
        assert_eq!(sent.on_ack(&ack, |_| {}), Err(Malformed::Forbidden));
    }
}
