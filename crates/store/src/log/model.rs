//! What the coder expects: chances of bits that adapt to what has come so far, and start anew with every group.

use sametick_wire::range::Bit;

/// Ticks since the last check that are told apart; checks come every 30 ticks.
const EVENT_CONTEXTS: usize = 64;

/// Bytes of an input that have chances of their own; the last of them stands for all that follow.
const BYTE_CONTEXTS: usize = 8;

/// The chances that all seats share.
#[derive(Clone, Debug)]
pub(super) struct Models {
    event: [Bit; EVENT_CONTEXTS],
    since_check: usize,
    pub(super) kind: [Bit; 16],
    pub(super) back: [Bit; 64],
    pub(super) same_commit: Bit,
    pub(super) resized: Bit,
    pub(super) length: [Bit; 128],
    bytes: Box<[[Bit; 256]; BYTE_CONTEXTS]>,
}

impl Models {
    pub(super) fn new() -> Models {
        Models {
            event: [Bit::NEW; EVENT_CONTEXTS],
            since_check: 0,
            kind: [Bit::NEW; 16],
            back: [Bit::NEW; 64],
            same_commit: Bit::NEW,
            resized: Bit::NEW,
            length: [Bit::NEW; 128],
            bytes: Box::new([[Bit::NEW; 256]; BYTE_CONTEXTS]),
        }
    }

    /// Forgets everything, in place.
    pub(super) fn reset(&mut self) {
        self.bytes.fill([Bit::NEW; 256]);
        self.length = [Bit::NEW; 128];
        self.event = [Bit::NEW; EVENT_CONTEXTS];
        self.kind = [Bit::NEW; 16];
        self.back = [Bit::NEW; 64];
        (self.same_commit, self.resized, self.since_check) = (Bit::NEW, Bit::NEW, 0);
    }

    /// Whether something other than a tick comes next.
    pub(super) fn event(&mut self) -> &mut Bit {
        &mut self.event[self.since_check.min(EVENT_CONTEXTS - 1)]
    }

    /// How the byte at a place in an input differs from the one before.
    pub(super) fn byte(&mut self, place: usize) -> &mut [Bit; 256] {
        &mut self.bytes[place.min(BYTE_CONTEXTS - 1)]
    }

    /// A tick has been coded.
    pub(super) fn note_tick(&mut self) {
        self.since_check += 1;
    }

    /// A check has been coded.
    pub(super) fn note_check(&mut self) {
        self.since_check = 0;
    }
}

/// The chances of one seat.
#[derive(Clone, Debug)]
pub(super) struct SeatModels {
    present: [Bit; 2],
    changed: [Bit; 8],
    was_present: bool,
    since_change: u32,
}

impl SeatModels {
    pub(super) const NEW: SeatModels =
        SeatModels { present: [Bit::NEW; 2], changed: [Bit::NEW; 8], was_present: true, since_change: 0 };

    /// Whether an input arrived in time.
    pub(super) fn present(&mut self) -> &mut Bit {
        &mut self.present[usize::from(self.was_present)]
    }

    /// Whether the input differs from the one before: the longer it has not, the less likely.
    pub(super) fn changed(&mut self) -> &mut Bit {
        let context = (self.since_change + 1).ilog2() as usize;
        &mut self.changed[context.min(7)]
    }

    /// An input was coded, or its omission.
    pub(super) fn note(&mut self, present: bool, changed: bool) {
        self.was_present = present;
        self.since_change = if changed { 0 } else { self.since_change.saturating_add(1) };
    }
}
