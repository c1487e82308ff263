//! Who may talk at all: keys from a shared passphrase, proofs of knowing it, and the memory of proofs already used
//! (L14). Nothing here reads a clock or makes randomness: both are passed in.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use subtle::ConstantTimeEq;

/// How far a proof's time may be off, in seconds: clocks of players are rarely better.
pub const PROOF_WINDOW_S: u64 = 120;

/// How many used proofs are remembered. Only those who know the passphrase can fill this; when it is full, nobody
/// new gets in until the oldest have become stale.
pub const MAX_REMEMBERED: usize = 65_536;

/// Argon2id: 19 MiB, two passes, one lane. Guessing a passphrase from a captured first packet costs this per guess.
const KDF: (u32, u32, u32) = (19 * 1024, 2, 1);

/// Both sides must come to the same key before they have exchanged anything, so the salt is fixed.
const SALT: &[u8] = b"sametick access 1";

/// What a passphrase is stretched to, and everything else derived from: as good as the passphrase itself, for whoever keeps it.
/// Slow on purpose.
pub fn root_of(passphrase: &str) -> [u8; 32] {
    stretch(passphrase, SALT)
}

/// What a word that people choose comes down to, so that each guess is slow. A salt has at least eight bytes.
pub fn stretch(word: &str, salt: &[u8]) -> [u8; 32] {
    let (memory, passes, lanes) = KDF;
    let params = argon2::Params::new(memory, passes, lanes, Some(32)).expect("the parameters are in range");
    let kdf = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let mut root = [0; 32];
    kdf.hash_password_into(word.as_bytes(), salt, &mut root).expect("salt and output have good lengths");
    root
}

/// What a passphrase comes down to: a key for each use, derived once, since every stranger's packet is checked with one.
/// Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    noise_psk: [u8; 32],
    hello: [u8; 32],
    connection_id: [u8; 32],
    page: [u8; 32],
}

impl core::fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AccessKey(…)")
    }
}

impl AccessKey {
    /// The key of a server that asks for no passphrase. Traffic is encrypted all the same.
    pub fn open() -> AccessKey {
        AccessKey::from_root(&blake3::derive_key("sametick 1 open access", &[]))
    }

    /// The key that a root comes down to, see [`root_of`].
    pub fn from_root(root: &[u8; 32]) -> AccessKey {
        AccessKey {
            page: blake3::derive_key("sametick 1 page", root),
            noise_psk: blake3::derive_key("sametick 1 noise psk", root),
            hello: blake3::derive_key("sametick 1 hello", root),
            connection_id: blake3::derive_key("sametick 1 quic connection id", root),
        }
    }

    /// Derives the key of a passphrase. Slow on purpose: tens of milliseconds and 19 MiB. An empty one means open.
    pub fn from_passphrase(passphrase: &str) -> AccessKey {
        if passphrase.is_empty() { AccessKey::open() } else { AccessKey::from_root(&root_of(passphrase)) }
    }

    /// What a page shows to be told of sessions, in this minute of Unix time: it proves the passphrase and is of no use for
    /// anything else.
    pub fn page_proof(&self, unix_minute: u64) -> [u8; 32] {
        *blake3::keyed_hash(&self.page, &unix_minute.to_le_bytes()).as_bytes()
    }

    /// Whether that is shown, give or take a minute.
    pub fn is_page_proof(&self, unix_minute: u64, proof: &[u8; 32]) -> bool {
        let near = unix_minute.saturating_sub(1)..=unix_minute.saturating_add(1);
        near.into_iter().any(|minute| bool::from(self.page_proof(minute).ct_eq(proof)))
    }

    /// The pre-shared key of raw UDP's Noise handshake.
    pub fn noise_psk(&self) -> [u8; 32] {
        self.noise_psk
    }

    /// The keyed hash of a first message.
    pub(crate) fn hello_mac(&self, parts: [&[u8]; 2]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.hello);
        parts.iter().for_each(|part| {
            hasher.update(part);
        });
        hasher.finalize()
    }

    fn connection_mac(&self, stamped: &[u8]) -> [u8; MAC_LEN] {
        let hash = blake3::keyed_hash(&self.connection_id, stamped);
        *hash.as_bytes().first_chunk().expect("a hash is longer")
    }

    /// A first connection id for native QUIC that proves the passphrase: seconds, nonce, keyed hash.
    pub fn connection_id(&self, unix_s: u64, nonce: [u8; NONCE_LEN]) -> [u8; CONNECTION_ID_LEN] {
        let mut id = [0; CONNECTION_ID_LEN];
        id[..4].copy_from_slice(&(unix_s as u32).to_le_bytes());
        id[4..STAMP_LEN].copy_from_slice(&nonce);
        let mac = self.connection_mac(&id[..STAMP_LEN]);
        id[STAMP_LEN..].copy_from_slice(&mac);
        id
    }

    /// Checks a first connection id. What comes back must still be [`UsedProofs::note`]d.
    pub fn check_connection_id(&self, unix_s: u64, id: &[u8]) -> Result<ProofId, Silence> {
        let id: &[u8; CONNECTION_ID_LEN] = id.try_into().map_err(|_| Silence::NoProof)?;
        let (stamp, mac) = id.split_at(STAMP_LEN);
        if !bool::from(self.connection_mac(stamp).ct_eq(mac)) {
            return Err(Silence::NoProof);
        }
        let low = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
        // The nearest moment with these low bits; the distance is what counts.
        let ahead = low.wrapping_sub(unix_s as u32) as i32;
        let stamped_s = unix_s.checked_add_signed(i64::from(ahead)).ok_or(Silence::Stale)?;
        check_time(unix_s, stamped_s)?;
        let mut proof = [0; 16];
        proof.copy_from_slice(&id[..16]);
        Ok(ProofId { id: proof, stamped_s })
    }
}

/// How long a first connection id is: the longest that QUIC allows.
pub const CONNECTION_ID_LEN: usize = 20;

/// How long its random part is.
pub const NONCE_LEN: usize = 6;

const STAMP_LEN: usize = 4 + NONCE_LEN;
const MAC_LEN: usize = CONNECTION_ID_LEN - STAMP_LEN;

/// Why nothing at all is answered. For counters; never told to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Not a proof of our passphrase, or not even the right form.
    NoProof,
    /// A proof from too long ago, or from the future.
    Stale,
    /// A proof that has been used.
    Replayed,
    /// Too many proofs to remember one more.
    Full,
}

/// Whether a stamp lies within [`PROOF_WINDOW_S`] of now.
pub(crate) fn check_time(unix_s: u64, stamped_s: u64) -> Result<(), Silence> {
    if unix_s.abs_diff(stamped_s) > PROOF_WINDOW_S { Err(Silence::Stale) } else { Ok(()) }
}

/// What makes a proof unique, and when it says it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofId {
    /// Unique for each proof.
    pub id: [u8; 16],
    /// In Unix seconds.
    pub stamped_s: u64,
}

/// The length of a [`ProofId`] on disk.
pub const RECORD_LEN: usize = 24;

impl ProofId {
    /// The form that is kept on disk, so that a proof stays used after a restart.
    pub fn to_record(self) -> [u8; RECORD_LEN] {
        let mut record = [0; RECORD_LEN];
        record[..16].copy_from_slice(&self.id);
        record[16..].copy_from_slice(&self.stamped_s.to_le_bytes());
        record
    }

    /// Reads the form that is kept on disk.
    pub fn from_record(record: &[u8; RECORD_LEN]) -> ProofId {
        let (id, stamp) = record.split_at(16);
        let (mut proof, mut seconds) = ([0; 16], [0; 8]);
        proof.copy_from_slice(id);
        seconds.copy_from_slice(stamp);
        ProofId { id: proof, stamped_s: u64::from_le_bytes(seconds) }
    }
}

/// The proofs that have been used and could still be replayed.
#[derive(Clone, Debug, Default)]
pub struct UsedProofs {
    ids: BTreeSet<[u8; 16]>,
    by_end: BTreeSet<(u64, [u8; 16])>,
}

impl UsedProofs {
    /// Uses a proof: only the first time goes through.
    pub fn note(&mut self, unix_s: u64, proof: ProofId) -> Result<(), Silence> {
        self.forget(unix_s);
        if self.ids.contains(&proof.id) {
            return Err(Silence::Replayed);
        }
        if self.ids.len() >= MAX_REMEMBERED {
            return Err(Silence::Full);
        }
        self.ids.insert(proof.id);
        // Twice the window, so that a clock that is set back does not bring a proof to life again.
        let end_s = unix_s.max(proof.stamped_s).saturating_add(2 * PROOF_WINDOW_S);
        self.by_end.insert((end_s, proof.id));
        Ok(())
    }

    fn forget(&mut self, unix_s: u64) {
        while let Some((_, id)) = self.by_end.first().filter(|(end_s, _)| *end_s < unix_s).copied() {
            self.by_end.pop_first();
            self.ids.remove(&id);
        }
    }

    /// What must survive a restart, as records for [`ProofId::from_record`].
    pub fn records(&self) -> Vec<[u8; RECORD_LEN]> {
        let record = |(end_s, id): &(u64, [u8; 16])| {
            ProofId { id: *id, stamped_s: end_s.saturating_sub(2 * PROOF_WINDOW_S) }.to_record()
        };
        self.by_end.iter().map(record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn golden_connection_id() {
        let id = AccessKey::open().connection_id(NOW, [1, 2, 3, 4, 5, 6]);
        assert_eq!(&id[..10], [0, 0xd2, 0x49, 0x6b, 1, 2, 3, 4, 5, 6]);
        let hex: alloc::string::String = id[10..].iter().map(|byte| alloc::format!("{byte:02x}")).collect();
        assert_eq!(hex, "413a9667919fd9d0d10d");
    }

    #[test]
    fn a_passphrase_decides_the_key() {
        let key = AccessKey::from_passphrase("correct horse");
        assert_eq!(key, AccessKey::from_passphrase("correct horse"));
        assert_ne!(key, AccessKey::from_passphrase("battery staple"));
        assert_ne!(key, AccessKey::open());
        assert_eq!(AccessKey::from_passphrase(""), AccessKey::open());
        assert_eq!(alloc::format!("{key:?}"), "AccessKey(…)");
    }

    proptest! {
        #[test]
        fn only_a_fresh_proof_of_the_same_key_goes_through(
            nonce: [u8; NONCE_LEN], off in -400i64..400, flip in 0usize..CONNECTION_ID_LEN * 8,
        ) {
            let key = AccessKey::open();
            let mut id = key.connection_id(NOW.checked_add_signed(off).unwrap(), nonce);
            let checked = key.check_connection_id(NOW, &id);
            prop_assert_eq!(checked.is_ok(), off.unsigned_abs() <= PROOF_WINDOW_S);
            prop_assert!(AccessKey::from_root(&[7; 32]).check_connection_id(NOW, &id).is_err());
            id[flip / 8] ^= 1 << (flip % 8);
            prop_assert!(key.check_connection_id(NOW, &id).is_err());
        }

        #[test]
        fn a_proof_is_good_once_also_after_a_restart(ids: Vec<[u8; 16]>, off in -100i64..100) {
            let mut used = UsedProofs::default();
            let mut seen = BTreeSet::new();
            for id in &ids {
                let proof = ProofId { id: *id, stamped_s: NOW.checked_add_signed(off).unwrap() };
                prop_assert_eq!(used.note(NOW, proof).is_ok(), seen.insert(id));
            }
            let mut restarted = UsedProofs::default();
            for record in used.records() {
                restarted.note(NOW, ProofId::from_record(&record)).unwrap();
            }
            for id in ids {
                let proof = ProofId { id, stamped_s: NOW };
                prop_assert_eq!(restarted.note(NOW + 60, proof), Err(Silence::Replayed));
            }
        }
    }

    #[test]
    fn used_proofs_are_forgotten_when_they_are_stale() {
        let mut used = UsedProofs::default();
        for second in 0..10_000u64 {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&second.to_le_bytes());
            used.note(NOW + second, ProofId { id, stamped_s: NOW + second }).unwrap();
        }
        assert!(used.ids.len() <= 2 * PROOF_WINDOW_S as usize + 1);
        assert_eq!(used.ids.len(), used.by_end.len());
    }
}
