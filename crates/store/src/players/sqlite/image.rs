//! The pages of a database as they are on disk: its file, overlaid with the valid frames of its write-ahead log.
//!
//! Each frame of the log has a checksum that continues from the one before. SQLite stops at the first frame that does
//! not fit; the frames after it are found here as well, because each frame states which checksum its successor
//! continues from.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::pages::{Pages, u16_at, u32_at};

/// All files made here have pages of this size; it is used where neither file states one.
const PAGE_BYTES: usize = 4096;

const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The log's checksums are over little-endian words; one more means big-endian.
const LOG_MAGIC: u32 = 0x377f_0682;

/// A frame after the first damaged one: newer than the image, but of an incomplete batch.
pub struct Stray {
    pub number: u32,
    pub bytes: Vec<u8>,
}

/// The pages of a database.
pub struct Image {
    file: Option<File>,
    page_bytes: usize,
    file_pages: u32,
    /// The newest committed pages, up to the first damage.
    newer: BTreeMap<u32, Vec<u8>>,
    /// Pages written after that, in order.
    pub strays: Vec<Stray>,
}

impl Image {
    /// Reads a file and its log; either may be missing.
    pub fn read(path: &Path, log: &Path) -> Image {
        let mut file = File::open(path).ok();
        let head = file.as_mut().and_then(|file| take_at(file, 0, 100)).unwrap_or_default();
        let log = std::fs::read(log).unwrap_or_default();
        let said = u16_at(&head, 16).map(|size| if size == 1 { 65_536 } else { usize::from(size) });
        let said = said.or_else(|| u32_at(&log, 8).map(|size| size as usize));
        let is_size = |size: &usize| size.is_power_of_two() && (512..=65_536).contains(size);
        let page_bytes = said.filter(is_size).unwrap_or(PAGE_BYTES);
        let bytes = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |data| data.len());
        let file_pages = u32::try_from(bytes / page_bytes as u64).unwrap_or(u32::MAX);
        let mut image = Image { file, page_bytes, file_pages, newer: BTreeMap::new(), strays: Vec::new() };
        image.read_log(&log);
        image
    }

    fn read_log(&mut self, log: &[u8]) {
        let Some((header, frames)) = log.split_at_checked(LOG_HEADER_BYTES) else { return };
        let word = |bytes: &[u8], at| u32_at(bytes, at).unwrap_or(0);
        let is_big = word(header, 0) == LOG_MAGIC + 1;
        let is_sound = sum(is_big, (0, 0), &header[..24]) == (word(header, 24), word(header, 28));
        // Without a header, the first frame tells which others belong to it.
        let first = if is_sound { &header[16..24] } else { frames.get(8..16).unwrap_or_default() };
        let salts = (word(first, 0), word(first, 4));
        let mut before = is_sound.then(|| (word(header, 24), word(header, 28)));
        let mut is_damaged = !is_sound;
        let mut batch: Vec<Stray> = Vec::new();
        for frame in frames.chunks_exact(FRAME_HEADER_BYTES + self.page_bytes) {
            let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
            let stored = (word(head, 16), word(head, 20));
            let is_of_this = (word(head, 8), word(head, 12)) == salts;
            let is_good = is_of_this
                && before.is_some_and(|before| sum(is_big, sum(is_big, before, &head[..8]), page) == stored);
            // A frame of an earlier use of the log ends it.
            if !is_of_this && !is_damaged {
                break;
            }
            before = Some(stored);
            if !is_good {
                is_damaged = true;
                continue;
            }
            batch.push(Stray { number: word(head, 0), bytes: page.to_vec() });
            // Only whole batches count: their last frame states a size of the file.
            if word(head, 4) != 0 {
                match is_damaged {
                    false => self.newer.extend(batch.drain(..).map(|page| (page.number, page.bytes))),
                    true => self.strays.append(&mut batch),
                }
            }
        }
        // The last batch of a log that was cut: useful to callers that read stray frames.
        self.strays.append(&mut batch);
    }
}

impl Pages for Image {
    fn page(&mut self, number: u32) -> Option<Vec<u8>> {
        if let Some(bytes) = self.newer.get(&number) {
            return Some(bytes.clone());
        }
        let at = u64::from(number.checked_sub(1)?) * self.page_bytes as u64;
        take_at(self.file.as_mut()?, at, self.page_bytes)
    }

    fn count(&self) -> u32 {
        self.file_pages.max(self.newer.last_key_value().map_or(0, |(number, _)| *number))
    }
}

fn take_at(file: &mut File, at: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut buf = vec![0; bytes];
    file.seek(SeekFrom::Start(at)).ok()?;
    file.read_exact(&mut buf).ok()?;
    Some(buf)
}

/// The log's running checksum over an even number of words.
fn sum(is_big: bool, (mut first, mut second): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = bytes.try_into().unwrap_or_default();
        if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    for pair in bytes.chunks_exact(8) {
        let (left, right) = pair.split_at(4);
        first = first.wrapping_add(word(left)).wrapping_add(second);
        second = second.wrapping_add(word(right)).wrapping_add(first);
    }
    (first, second)
}
