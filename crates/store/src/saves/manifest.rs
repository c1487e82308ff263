//! The manifest of a cold log without append: its segments, in the order in which they were written.
//!
//! ```text
//! manifest: "sametick-cold" version:u16 segments crc:u32     (all little-endian)
//! ```

use sametick_sim::{Tick, from_canonical, to_canonical};
use serde::{Deserialize, Serialize};

/// What every manifest begins with.
const MAGIC: &[u8; 13] = b"sametick-cold";

/// The version of the format.
pub const MANIFEST_VERSION: u16 = 1;

/// The most segments: one every two minutes for three months.
pub const MAX_SEGMENTS: usize = 65_536;

/// The largest segment: an hour of the most that a hundred players do.
pub const MAX_SEGMENT_BYTES: usize = 16 << 20;

/// Magic and version.
const FRONT_LEN: usize = MAGIC.len() + 2;

const CRC_LEN: usize = 4;

/// A part of a log in an object of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The first tick closed in it. It may be before the end of the previous segment: a relay that has crashed goes
    /// back.
    pub first: Tick,
    /// How many ticks were closed in it.
    pub ticks: u32,
    /// How many bytes it has.
    pub bytes: u32,
    /// The CRC-32C of its bytes.
    pub crc: u32,
    /// Its number among the objects named after its first tick: 0, unless that was taken.
    pub number: u16,
    /// Whether a log with a header of its own begins here. Otherwise its bytes continue the previous segment.
    pub begins: bool,
}

impl Segment {
    fn may_follow(&self, before: Option<&Segment>) -> bool {
        let has_bytes = (1..=MAX_SEGMENT_BYTES as u32).contains(&self.bytes);
        has_bytes && (self.begins || before.is_some())
    }
}

/// The segments of a log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    segments: Vec<Segment>,
}

/// Why bytes are not a valid manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadManifest {
    /// They are another format.
    #[error("not the manifest of a log: it does not begin with \"sametick-cold\"")]
    NotAManifest,
    /// They have another version of the format.
    #[error("a manifest of format version {found}; this build reads version {MANIFEST_VERSION}")]
    Version {
        /// The version they state.
        found: u16,
    },
    /// The end is missing.
    #[error("the manifest is cut off after {found} bytes")]
    Cut {
        /// The number of bytes.
        found: usize,
    },
    /// They are not the bytes that were written.
    #[error("the manifest is damaged: its checksum is wrong")]
    Damaged,
    /// The checksum is right, but no writer writes such a manifest.
    #[error("the manifest makes no sense")]
    Nonsense,
}

/// The segment cannot be the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this segment cannot come next: the first begins a log, each has 1 to {MAX_SEGMENT_BYTES} bytes, and there are at most {MAX_SEGMENTS}"
)]
pub struct Unfit;

impl Manifest {
    /// The segments, in the order in which they were written.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Adds a segment at the end.
    pub fn push(&mut self, segment: Segment) -> Result<(), Unfit> {
        let fits = self.segments.len() < MAX_SEGMENTS && segment.may_follow(self.segments.last());
        if fits {
            self.segments.push(segment);
        }
        fits.then_some(()).ok_or(Unfit)
    }

    /// The segments of each log, in order: more than one if a session has gone on without its earlier files.
    pub fn logs(&self) -> impl Iterator<Item = &[Segment]> {
        self.segments.chunk_by(|_, next| !next.begins)
    }

    /// The length of the last log in bytes.
    pub fn bytes_of_last(&self) -> u64 {
        self.logs().last().unwrap_or_default().iter().map(|segment| u64::from(segment.bytes)).sum()
    }

    /// The total length in bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.bytes)).sum()
    }

    /// Encodes the manifest.
    pub fn to_bytes(&self) -> Vec<u8> {
        let segments = to_canonical(&self.segments).expect("numbers have canonical bytes");
        let mut out = Vec::with_capacity(FRONT_LEN + segments.len() + CRC_LEN);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&MANIFEST_VERSION.to_le_bytes());
        out.extend_from_slice(&segments);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a manifest, and nothing after it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Manifest, BadManifest> {
        let magic = bytes.get(..MAGIC.len().min(bytes.len())).unwrap_or_default();
        if !MAGIC.starts_with(magic) {
            return Err(BadManifest::NotAManifest);
        }
        let cut = BadManifest::Cut { found: bytes.len() };
        let version =
            bytes.get(MAGIC.len()..FRONT_LEN).and_then(|version| version.first_chunk()).ok_or(cut)?;
        let found = u16::from_le_bytes(*version);
        if found != MANIFEST_VERSION {
            return Err(BadManifest::Version { found });
        }
        let (covered, crc) = bytes.split_last_chunk::<CRC_LEN>().ok_or(cut)?;
        let stored = covered.get(FRONT_LEN..).ok_or(cut)?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*crc) {
            return Err(BadManifest::Damaged);
        }
        let segments: Vec<Segment> = from_canonical(stored).map_err(|_| BadManifest::Nonsense)?;
        let mut before = None;
        let all_fit = segments.iter().all(|segment| segment.may_follow(before.replace(segment)));
        if !all_fit || segments.len() > MAX_SEGMENTS {
            return Err(BadManifest::Nonsense);
        }
        let manifest = Manifest { segments };
        // Bytes that this writer would encode differently are refused.
        if manifest.to_bytes() == bytes { Ok(manifest) } else { Err(BadManifest::Nonsense) }
    }
}
