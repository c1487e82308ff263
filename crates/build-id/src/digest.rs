//! BLAKE3 over length-prefixed parts, so that no two different lists of parts give the same bytes.

use crate::Id;

/// Changed whenever the meaning of the hashed bytes changes.
const DOMAIN: &str = "sametick 2026-11 build id v1";

/// A hash over length-prefixed parts.
pub(crate) struct Digest(blake3::Hasher);

impl Digest {
    pub(crate) fn new() -> Digest {
        Digest(blake3::Hasher::new_derive_key(DOMAIN))
    }

    /// Adds one part, with its length in front.
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a number of parts to come, so that a list cannot run into the next.
    pub(crate) fn count(&mut self, parts: usize) {
        self.0.update(&(parts as u64).to_le_bytes());
    }

    pub(crate) fn finish(&self) -> Id {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        Id(bytes)
    }
}
