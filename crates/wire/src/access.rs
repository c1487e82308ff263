//! Access by a shared passphrase: its keys, proofs of knowing it, and the memory of spent proofs against replay (L14).
//! Nothing here reads a clock or makes randomness: both are passed in.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;

use subtle::ConstantTimeEq;

/// The client's error for a missing answer: a server does not answer a client that cannot prove its passphrase.
pub const NO_ANSWER: &str = "no answer: nobody listens there, or the passphrase is another one";

/// How far a proof's time may be off, in seconds: clocks of players are rarely better.
pub const PROOF_WINDOW_S: u64 = 120;

/// The most spent proofs that are remembered besides those from before a restart: 270 a second over their lifetime. The
/// limits below decide which sources are refused first.
pub const MAX_REMEMBERED: usize = 65_536;

/// The most proofs from unproven source addresses: a client that knows the passphrase can spoof any number of
/// addresses, and must not keep out clients with proven ones.
pub const MAX_UNPROVEN: usize = MAX_REMEMBERED / 2;

/// The most proofs from one source.
pub const MAX_PER_SOURCE: usize = MAX_REMEMBERED / 8;

/// The last places are for sources that have fewer than [`FEW`]: a few busy sources together cannot keep others out.
const RESERVED: usize = MAX_REMEMBERED / 8;
const FEW: usize = 16;

/// The most proofs that are restored after a restart; they do not count against the other limits, so that a restart
/// locks no client out.
const MAX_RESTORED: usize = 2 * MAX_REMEMBERED;

/// Argon2id: 19 MiB, two passes, one lane. Guessing a passphrase from a captured first packet costs this per guess.
const KDF: (u32, u32, u32) = (19 * 1024, 2, 1);

/// Both sides have to derive the same key before they have exchanged anything, so the salt is fixed.
const SALT: &[u8] = b"sametick access 1";

/// The root key of a passphrase, from which all others are derived: it has to be protected like the passphrase itself.
/// Slow on purpose.
pub fn root_of(passphrase: &str) -> [u8; 32] {
    stretch(passphrase, SALT)
}

/// A slow hash of a password, so that each guess is slow. A salt has at least eight bytes.
pub fn stretch(word: &str, salt: &[u8]) -> [u8; 32] {
    let (memory, passes, lanes) = KDF;
    let params = argon2::Params::new(memory, passes, lanes, Some(32)).expect("the parameters are in range");
    let kdf = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let mut root = [0; 32];
    kdf.hash_password_into(word.as_bytes(), salt, &mut root).expect("salt and output have good lengths");
    root
}

/// The keys of a passphrase, one for each use, derived once because every first packet is checked with one. Never
/// printed.
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
    /// The key of a server without a passphrase. Traffic is encrypted all the same.
    pub fn open() -> AccessKey {
        AccessKey::from_root(&blake3::derive_key("sametick 1 open access", &[]))
    }

    /// The keys of a root key, see [`root_of`].
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

    /// The proof with which a page may list sessions, in this minute of Unix time: it proves the passphrase and is of
    /// no other use.
    pub fn page_proof(&self, unix_minute: u64) -> [u8; 32] {
        *blake3::keyed_hash(&self.page, &unix_minute.to_le_bytes()).as_bytes()
    }

    /// Whether the proof is valid, give or take a minute.
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

    /// Checks a first connection id. The result still has to be noted ([`UsedProofs::note`]).
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

/// The length of a first connection id: the longest that QUIC allows.
pub const CONNECTION_ID_LEN: usize = 20;

/// The length of its random part.
pub const NONCE_LEN: usize = 6;

const STAMP_LEN: usize = 4 + NONCE_LEN;
const MAC_LEN: usize = CONNECTION_ID_LEN - STAMP_LEN;

/// Why a first message is not answered. For counters; never told to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Not a proof of our passphrase, or not even the right form.
    NoProof,
    /// A proof from too long ago, or from the future.
    Stale,
    /// A proof that has been spent.
    Replayed,
    /// The memory of spent proofs has no room for another one of this source.
    Full,
}

/// Whether a stamp lies within [`PROOF_WINDOW_S`] of now.
pub(crate) fn check_time(unix_s: u64, stamped_s: u64) -> Result<(), Silence> {
    if unix_s.abs_diff(stamped_s) > PROOF_WINDOW_S { Err(Silence::Stale) } else { Ok(()) }
}

/// The unique id of a proof, and the time it claims to be from.
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
    /// The stored form, so that a proof stays spent after a restart.
    pub fn to_record(self) -> [u8; RECORD_LEN] {
        let mut record = [0; RECORD_LEN];
        record[..16].copy_from_slice(&self.id);
        record[16..].copy_from_slice(&self.stamped_s.to_le_bytes());
        record
    }

    /// Reads the stored form.
    pub fn from_record(record: &[u8; RECORD_LEN]) -> ProofId {
        let (id, stamp) = record.split_at(16);
        let (mut proof, mut seconds) = ([0; 16], [0; 8]);
        proof.copy_from_slice(id);
        seconds.copy_from_slice(stamp);
        ProofId { id: proof, stamped_s: u64::from_le_bytes(seconds) }
    }
}

/// The source of a first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its address; for IPv6 the network that one customer has.
    pub network: IpAddr,
    /// Whether a handshake has proven the address. The source address of a single packet may be spoofed.
    pub is_proven: bool,
}

impl Source {
    /// A source whose address is proven.
    pub const fn proven(network: IpAddr) -> Source {
        Source { network, is_proven: true }
    }

    /// A source whose address may be spoofed.
    pub const fn unproven(network: IpAddr) -> Source {
        Source { network, is_proven: false }
    }
}

/// The spent proofs that could still be replayed.
#[derive(Clone, Debug, Default)]
pub struct UsedProofs {
    ids: BTreeSet<[u8; 16]>,
    /// When each can be forgotten, and its source, which is not known after a restart.
    by_end: BTreeMap<(u64, [u8; 16]), Option<IpAddr>>,
    /// The number of proofs of each source.
    of_source: BTreeMap<IpAddr, usize>,
    /// The number of proofs from before a restart.
    restored: usize,
}

/// Twice the window, so that setting back a clock does not make a proof valid again.
const REMEMBERED_S: u64 = 2 * PROOF_WINDOW_S;

impl UsedProofs {
    /// Spends a proof, which succeeds once. The result has to survive a restart.
    pub fn note(&mut self, unix_s: u64, source: Source, proof: ProofId) -> Result<ProofId, Silence> {
        self.forget(unix_s);
        self.check(proof)?;
        if !self.has_place_for(source) {
            return Err(Silence::Full);
        }
        let noted = ProofId { stamped_s: unix_s.max(proof.stamped_s), ..proof };
        self.insert(noted, Some(source.network));
        *self.of_source.entry(source.network).or_default() += 1;
        Ok(noted)
    }

    /// Restores a proof that was spent before a restart, unless it is stale.
    pub fn restore(&mut self, unix_s: u64, noted: ProofId) {
        let is_over = noted.stamped_s.saturating_add(REMEMBERED_S) < unix_s;
        if !is_over && self.restored < MAX_RESTORED && self.check(noted).is_ok() {
            self.insert(noted, None);
            self.restored += 1;
        }
    }

    /// Checks that a proof has not been spent.
    pub fn check(&self, proof: ProofId) -> Result<(), Silence> {
        if self.ids.contains(&proof.id) { Err(Silence::Replayed) } else { Ok(()) }
    }

    /// The number of proofs that are remembered.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn has_place_for(&self, source: Source) -> bool {
        let of_source = self.of_source.get(&source.network).copied().unwrap_or(0);
        let most = match source.is_proven {
            false => MAX_UNPROVEN,
            true if of_source < FEW => MAX_REMEMBERED,
            true => MAX_REMEMBERED - RESERVED,
        };
        of_source < MAX_PER_SOURCE && self.len() - self.restored < most
    }

    fn insert(&mut self, noted: ProofId, of: Option<IpAddr>) {
        self.ids.insert(noted.id);
        self.by_end.insert((noted.stamped_s.saturating_add(REMEMBERED_S), noted.id), of);
    }

    fn forget(&mut self, unix_s: u64) {
        while let Some(first) = self.by_end.first_entry().filter(|first| first.key().0 < unix_s) {
            let ((_, id), of) = first.remove_entry();
            self.ids.remove(&id);
            let Some(of) = of else {
                self.restored -= 1;
                continue;
            };
            if let Some(count) = self.of_source.get_mut(&of) {
                *count -= 1;
                if *count == 0 {
                    self.of_source.remove(&of);
                }
            }
        }
    }

    /// The proofs that have to survive a restart, as records for [`ProofId::from_record`].
    pub fn records(&self) -> Vec<[u8; RECORD_LEN]> {
        let record = |(end_s, id): &(u64, [u8; 16])| {
            ProofId { id: *id, stamped_s: end_s.saturating_sub(REMEMBERED_S) }.to_record()
        };
        self.by_end.keys().map(record).collect()
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
                prop_assert_eq!(used.note(NOW, source(1), proof).is_ok(), seen.insert(id));
            }
            let mut restarted = UsedProofs::default();
            for record in used.records() {
                restarted.restore(NOW, ProofId::from_record(&record));
            }
            for id in ids {
                let proof = ProofId { id, stamped_s: NOW };
                prop_assert_eq!(restarted.note(NOW + 60, source(2), proof), Err(Silence::Replayed));
            }
        }
    }

    /// A source whose address is proven.
    fn source(n: u32) -> Source {
        Source::proven(core::net::Ipv4Addr::from_bits(n).into())
    }

    fn proof(n: u64, stamped_s: u64) -> ProofId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&n.to_le_bytes());
        ProofId { id, stamped_s }
    }

    #[test]
    fn used_proofs_are_forgotten_when_they_are_stale() {
        let mut used = UsedProofs::default();
        for second in 0..10_000u64 {
            used.note(NOW + second, source(second as u32 / 100), proof(second, NOW + second)).unwrap();
        }
        assert!(used.ids.len() <= 2 * PROOF_WINDOW_S as usize + 1);
        assert_eq!(used.ids.len(), used.by_end.len());
        assert_eq!(used.of_source.values().sum::<usize>(), used.ids.len());
    }

    #[test]
    fn proofs_from_before_a_restart_take_no_room_from_others() {
        let mut used = UsedProofs::default();
        for n in 0..MAX_REMEMBERED as u64 {
            used.restore(NOW, proof(n, NOW - REMEMBERED_S - 1));
        }
        assert!(used.is_empty());
        for n in 0..2 * MAX_REMEMBERED as u64 + 5 {
            used.restore(NOW, proof(n, NOW - 60));
        }
        assert_eq!(used.len(), MAX_RESTORED);
        assert_eq!(used.note(NOW, source(1), proof(7, NOW)), Err(Silence::Replayed));
        assert!(used.note(NOW, source(1), proof(u64::MAX, NOW)).is_ok());
        // They expire by their own time, not by that of the restart.
        used.note(NOW + REMEMBERED_S - 59, source(1), proof(u64::MAX - 1, NOW)).unwrap();
        assert_eq!(used.len(), 2);
    }

    #[test]
    fn one_source_has_a_limited_share() {
        let mut used = UsedProofs::default();
        let taken =
            (0..MAX_REMEMBERED as u64).take_while(|n| used.note(NOW, source(1), proof(*n, NOW)).is_ok());
        assert_eq!(taken.count(), MAX_PER_SOURCE);
        assert!(used.note(NOW, source(2), proof(u64::MAX, NOW)).is_ok());
        let later = NOW + REMEMBERED_S + 1;
        assert!(used.note(later, source(1), proof(u64::MAX - 1, later)).is_ok());
    }

    #[test]
    fn unproven_and_busy_sources_are_refused_first() {
        let mut used = UsedProofs::default();
        let mut n = 0;
        let mut note = |source: Source| {
            n += 1;
            used.note(NOW, source, proof(n, NOW)).is_ok()
        };
        let made_up = |n| Source { is_proven: false, ..source(1_000_000 + n) };
        assert_eq!((0..).take_while(|n| note(made_up(*n))).count(), MAX_UNPROVEN);
        let of_few = (0..).take_while(|n| note(source(n % 8))).count();
        assert_eq!(of_few, MAX_REMEMBERED - RESERVED - MAX_UNPROVEN);
        assert!(!note(source(0)) && !note(made_up(u32::MAX - 1_000_000)));
        // A source with few proofs is still admitted, until there is no room at all.
        assert_eq!((0..).take_while(|n| note(source(100 + n / FEW as u32))).count(), RESERVED);
        assert!(!note(source(99)));
    }
}
