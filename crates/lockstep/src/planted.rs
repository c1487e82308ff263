//! Planted bugs, to show that the simulator finds such bugs. Without the feature `planted` there are none.

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// An input is applied in its tick and in the next one.
    AcceptedTwice = 1,
    /// A late input is put into the next tick.
    LateIntoNext,
    /// A missing input is replaced by an empty one.
    OmissionForgotten,
    /// The last tick of a run that is sent again is left out.
    TickForgotten,
    /// When only one seat was predicted wrong, nothing is re-simulated.
    ResimulationSkipped,
    /// The record that a player has left is not written.
    LeaveUnwritten,
    /// Some answers to a check are counted for the check before.
    ChecksMixedUp,
    /// After ticks that were sent again, the next ones are read with the old table.
    TableKept,
    /// A tick's number is completed from the last confirmed tick instead of the last closed one.
    NumbersMisread,
    /// A peer goes on as if its own late input had been applied.
    OwnInputKept,
    /// A log is reported durable when it was only handed to the disk.
    AcknowledgedEarly,
    /// Inputs sent over a link are lost when their player resumes over another.
    HandedInLost,
    /// A peer that comes back is sent one tick too few.
    FirstMissed,
    /// Any claim of a session resumes any seat of it.
    AnyClaim,
    /// A session is resumed without a rewind record in its log.
    RewindUnwritten,
    /// One input is lost from the ticks given to a relay.
    GivenWrong,
    /// A peer that is rewound keeps the later table.
    TableAhead,
}

#[cfg(feature = "planted")]
mod present {
    use super::Bug;
    use core::sync::atomic::{AtomicU8, Ordering};

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Plants a bug in this process, or removes it.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
    }

    /// Whether this bug is planted.
    pub fn has(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted")]
pub use present::{has, plant};

/// Whether this bug is planted: never without the feature.
#[cfg(not(feature = "planted"))]
pub const fn has(_: Bug) -> bool {
    false
}
