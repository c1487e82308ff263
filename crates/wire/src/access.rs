//! Who may talk at all: keys from a shared passphrase, proofs of knowing it, and the memory of proofs already used
//! (L14). Nothing here reads a clock or makes randomness: both are passed in.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;

use subtle::ConstantTimeEq;

/// How a client names silence: a server does not answer whoever cannot prove that they know its passphrase.
pub const NO_ANSWER: &str = "no answer: nobody listens there, or the passphrase is another one";

/// How far a proof's time may be off, in seconds: clocks of players are rarely better.
pub const PROOF_WINDOW_S: u64 = 120;

/// How many used proofs are remembered besides those of before a restart: 270 a second for as long as one is remembered. What
/// follows says who is refused while there is still room for others.
pub const MAX_REMEMBERED: usize = 65_536;

/// So many may be of sources that have not shown that they receive at their address: a client that knows the passphrase can
/// make up any number of addresses, and must not keep out clients that have shown theirs.
pub const MAX_UNPROVEN: usize = MAX_REMEMBERED / 2;

/// So many may be of one source.
pub const MAX_PER_SOURCE: usize = MAX_REMEMBERED / 8;

/// The last places are for sources that have fewer than [`FEW`]: a few busy sources together keep out nobody else.
const RESERVED: usize = MAX_REMEMBERED / 8;
const FEW: usize = 16;

/// So many of before a restart are taken up at most; they take nobody's place, so that a restart locks nobody out.
const MAX_RESTORED: usize = 2 * MAX_REMEMBERED;

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

    /// Checks a first connection id. What comes back must still be noted ([`UsedProofs::note`]).
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
    /// Too many proofs are remembered to remember one more of this source.
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

/// Where a first message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its address; of IPv6 the network that one customer has.
    pub network: IpAddr,
    /// Whether it has shown that it receives there, by a handshake. The address of a single packet may be made up.
    pub is_proven: bool,
}

impl Source {
    /// One that has shown that it receives at its address.
    pub const fn proven(network: IpAddr) -> Source {
        Source { network, is_proven: true }
    }

    /// One that may have made its address up.
    pub const fn unproven(network: IpAddr) -> Source {
        Source { network, is_proven: false }
    }
}

/// The proofs that have been used and could still be replayed.
#[derive(Clone, Debug, Default)]
pub struct UsedProofs {
    ids: BTreeSet<[u8; 16]>,
    /// By when they can be forgotten, and of whom they are, which is not known after a restart.
    by_end: BTreeMap<(u64, [u8; 16]), Option<IpAddr>>,
    /// How many each source has.
    of_source: BTreeMap<IpAddr, usize>,
    /// Those of before a restart.
    restored: usize,
}

/// Twice the window, so that a clock that is set back does not bring a proof to life again.
const REMEMBERED_S: u64 = 2 * PROOF_WINDOW_S;

impl UsedProofs {
    /// Uses a proof: only the first time goes through. What comes back is what has to survive a restart.
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

    /// Remembers a proof that was noted before a restart, unless it is too old to be good for anything.
    pub fn restore(&mut self, unix_s: u64, noted: ProofId) {
        let is_over = noted.stamped_s.saturating_add(REMEMBERED_S) < unix_s;
        if !is_over && self.restored < MAX_RESTORED && self.check(noted).is_ok() {
            self.insert(noted, None);
            self.restored += 1;
        }
    }

    /// Whether a proof has not been used.
    pub fn check(&self, proof: ProofId) -> Result<(), Silence> {
        if self.ids.contains(&proof.id) { Err(Silence::Replayed) } else { Ok(()) }
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether none is.
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

    /// What must survive a restart, as records for [`ProofId::from_record`].
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

    /// A source that has shown its address.
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
    fn after_a_restart_old_proofs_are_dropped_and_young_ones_take_nobodys_place() {
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
        // They are forgotten by their own time, not by that of the restart.
        used.note(NOW + REMEMBERED_S - 59, source(1), proof(u64::MAX - 1, NOW)).unwrap();
        assert_eq!(used.len(), 2);
    }

    #[test]
    fn one_source_has_its_share_and_no_more() {
        let mut used = UsedProofs::default();
        let taken =
            (0..MAX_REMEMBERED as u64).take_while(|n| used.note(NOW, source(1), proof(*n, NOW)).is_ok());
        assert_eq!(taken.count(), MAX_PER_SOURCE);
        assert!(used.note(NOW, source(2), proof(u64::MAX, NOW)).is_ok());
        let later = NOW + REMEMBERED_S + 1;
        assert!(used.note(later, source(1), proof(u64::MAX - 1, later)).is_ok());
    }

    #[test]
    fn sources_that_may_be_made_up_are_refused_first_and_then_those_with_many() {
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
        // A source with few still gets in, until there is no place at all.
        assert_eq!((0..).take_while(|n| note(source(100 + n / FEW as u32))).count(), RESERVED);
        assert!(!note(source(99)));
    }
}
