//! Bugs on purpose, so that it can be shown that the simulator finds such things. Without the feature `planted` none of
//! them is there.

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// An input counts for its tick and for the next one.
    AcceptedTwice = 1,
    /// An input that comes too late is put into the next tick.
    LateIntoNext,
    /// An input that did not come is taken to be empty.
    OmissionForgotten,
    /// The last tick of a run that is sent again is left out.
    TickForgotten,
    /// When only one seat was guessed wrong, nothing is simulated again.
    ResimulationSkipped,
    /// It is not written down that somebody has left.
    LeaveUnwritten,
    /// Some answers to a check are held against the check before.
    ChecksMixedUp,
    /// After ticks that were sent again, the next ones are read as if they had not been.
    TableKept,
    /// The last bits of a tick's number are taken to be those of a tick near the last one that was confirmed.
    NumbersMisread,
    /// A peer goes on as if its own input had counted that came too late.
    OwnInputKept,
    /// A log is called durable when it was handed to the disk.
    AcknowledgedEarly,
    /// What was handed in over a link is lost when its player comes back over another.
    HandedInLost,
    /// Whoever comes back is sent one tick too few.
    FirstMissed,
    /// Any claim of a session is good for any seat of it.
    AnyClaim,
    /// A session that is taken up again goes on without what was taken back being written down.
    RewindUnwritten,
    /// Of the ticks that a relay is given, one input is lost.
    GivenWrong,
    /// A peer that goes back goes on coding against what it knew last.
    TableAhead,
}

#[cfg(feature = "planted")]
mod present {
    use super::Bug;
    use core::sync::atomic::{AtomicU8, Ordering};

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Plants a bug in every machine of this process, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
    }

    /// Whether this bug is there.
    pub fn has(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted")]
pub use present::{has, plant};

/// Whether this bug is there: it is not.
#[cfg(not(feature = "planted"))]
pub const fn has(_: Bug) -> bool {
    false
}
