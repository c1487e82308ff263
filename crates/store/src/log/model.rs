//! What the coder expects: chances of bits that adapt to what has come so far, and start anew with every group.

/// The chance of one kind of bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bit {
    /// The chance of a one in 65,536ths; never 0 and never 65,536.
    ones: u16,
    seen: u8,
}

impl Bit {
    /// Nothing is known.
    pub(super) const NEW: Bit = Bit { ones: 1 << 15, seen: 0 };

    /// Later bits move the chance by 1/128: sure enough for idle players, quick enough to follow a change of habits.
    const SLOWEST: u32 = 7;

    pub(super) fn chance(self) -> u64 {
        u64::from(self.ones)
    }

    pub(super) fn learn(&mut self, bit: bool) {
        let rate = (u32::from(self.seen) + 3).ilog2();
        if rate < Self::SLOWEST {
            self.seen += 1;
        }
        if bit {
            self.ones += (u16::MAX - self.ones) >> rate;
        } else {
            self.ones -= self.ones >> rate;
        }
    }
}

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
