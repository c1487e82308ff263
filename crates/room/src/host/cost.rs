//! What entities cost in an update, as seen so far.

/// What a byte is counted as, so that entities may cost less than one.
const BYTE: u32 = 256;
/// No entity is taken to cost less.
const LEAST: u32 = BYTE / 16;

/// What so many bytes are counted as.
pub(super) fn of_bytes(bytes: usize) -> u64 {
    bytes as u64 * u64::from(BYTE)
}

/// What entities cost in an update: those that its base has, and those that it has not.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub fresh: Mean,
    pub known: Mean,
}

impl Cost {
    /// Before anything is known.
    pub const FIRST: Cost = Cost { fresh: Mean(10 * BYTE), known: Mean(3 * BYTE) };

    /// Of one entity.
    pub fn of(&self, is_fresh: bool) -> u64 {
        let Mean(cost) = if is_fresh { self.fresh } else { self.known };
        cost.into()
    }
}

/// What one costs lately.
#[derive(Clone, Copy)]
pub(super) struct Mean(u32);

impl Mean {
    /// So many had so many bytes. More is believed at once, less half of it: too long an update has to be made again.
    pub fn learn(&mut self, bytes: usize, entities: u32) {
        let seen = u32::try_from(bytes).unwrap_or(u32::MAX).saturating_mul(BYTE).checked_div(entities);
        if let Some(seen) = seen {
            self.0 = seen.max(seen.midpoint(self.0)).max(LEAST);
        }
    }
}
