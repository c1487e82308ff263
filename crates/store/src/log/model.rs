//! The adaptive bit models of the coder, reset with every group.

use sametick_wire::range::Bit;

/// How many distances from the last check are told apart; checks come every 30 ticks.
const EVENT_CONTEXTS: usize = 64;

/// Input bytes that have models of their own; the last one also covers all that follow.
const BYTE_CONTEXTS: usize = 8;

/// The models that all seats share.
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

    /// Resets all models in place.
    pub(super) fn reset(&mut self) {
        self.bytes.fill([Bit::NEW; 256]);
        self.length = [Bit::NEW; 128];
        self.event = [Bit::NEW; EVENT_CONTEXTS];
        self.kind = [Bit::NEW; 16];
        self.back = [Bit::NEW; 64];
        (self.same_commit, self.resized, self.since_check) = (Bit::NEW, Bit::NEW, 0);
    }

    /// The bit that says that an event, not a tick, comes next.
    pub(super) fn event(&mut self) -> &mut Bit {
        &mut self.event[self.since_check.min(EVENT_CONTEXTS - 1)]
    }

    /// The models of the difference of the byte at a place in an input.
    pub(super) fn byte(&mut self, place: usize) -> &mut [Bit; 256] {
        &mut self.bytes[place.min(BYTE_CONTEXTS - 1)]
    }

    /// Notes a coded tick.
    pub(super) fn note_tick(&mut self) {
        self.since_check += 1;
    }

    /// Notes a coded check.
    pub(super) fn note_check(&mut self) {
        self.since_check = 0;
    }
}

/// The models of one seat.
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

    /// The bit that says that an input arrived in time.
    pub(super) fn present(&mut self) -> &mut Bit {
        &mut self.present[usize::from(self.was_present)]
    }

    /// The bit that says that the input changed: the longer it has not, the less likely.
    pub(super) fn changed(&mut self) -> &mut Bit {
        let context = (self.since_change + 1).ilog2() as usize;
        &mut self.changed[context.min(7)]
    }

    /// Notes a coded input, or its omission.
    pub(super) fn note(&mut self, present: bool, changed: bool) {
        self.was_present = present;
        self.since_change = if changed { 0 } else { self.since_change.saturating_add(1) };
    }
}
