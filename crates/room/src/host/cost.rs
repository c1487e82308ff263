//! Measured cost of entities in an update.

/// The unit of cost: fractions of a byte, so that entities may cost less than one.
const BYTE: u32 = 256;
/// The least cost of an entity.
const LEAST: u32 = BYTE / 16;

/// This many bytes, in units of cost.
pub(super) fn of_bytes(bytes: usize) -> u64 {
    bytes as u64 * u64::from(BYTE)
}

/// The mean cost of entities in an update: those that its base has, and those that it lacks.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub fresh: Mean,
    pub known: Mean,
}

impl Cost {
    /// Estimates before anything is measured.
    pub const FIRST: Cost = Cost { fresh: Mean(10 * BYTE), known: Mean(3 * BYTE) };

    /// The cost of one entity.
    pub fn of(&self, is_fresh: bool) -> u64 {
        let Mean(cost) = if is_fresh { self.fresh } else { self.known };
        cost.into()
    }
}

/// The recent mean cost of one entity.
#[derive(Clone, Copy)]
pub(super) struct Mean(u32);

impl Mean {
    /// Learns from a number of entities and their bytes. A higher cost is adopted at once, a lower one by half: too
    /// long an update has to be made again.
    pub fn learn(&mut self, bytes: usize, entities: u32) {
        let seen = u32::try_from(bytes).unwrap_or(u32::MAX).saturating_mul(BYTE).checked_div(entities);
        if let Some(seen) = seen {
            self.0 = seen.max(seen.midpoint(self.0)).max(LEAST);
        }
    }
}
