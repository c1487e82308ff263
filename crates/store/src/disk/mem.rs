//! A disk in memory that can run full, fail, and lose unsynced bytes.

use std::io;

use super::{Disk, Source};

/// A disk in memory, for tests and the simulator.
#[derive(Clone, Debug, Default)]
pub struct MemDisk {
    bytes: Vec<u8>,
    synced: usize,
    capacity: Option<usize>,
    failing_syncs: u32,
}

impl MemDisk {
    /// An empty disk.
    pub fn new() -> MemDisk {
        MemDisk::default()
    }

    /// Everything appended, synced or not.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes that certainly survive a crash.
    pub fn synced(&self) -> &[u8] {
        &self.bytes[..self.synced]
    }

    /// Simulates a power failure: of the unsynced bytes, only the first `kept` survive.
    pub fn crash(&mut self, kept: usize) {
        self.bytes.truncate(self.synced.saturating_add(kept));
        self.synced = self.bytes.len();
    }

    /// Limits the disk to `bytes`; an append beyond that writes what fits and fails. `None` removes the limit.
    pub fn set_capacity(&mut self, bytes: Option<usize>) {
        self.capacity = bytes;
    }

    /// Makes the next `count` syncs fail; each loses everything since the last good one.
    pub fn fail_syncs(&mut self, count: u32) {
        self.failing_syncs = count;
    }
}

impl Disk for MemDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = self.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(self.bytes.len()));
        let fits = bytes.len().min(room);
        self.bytes.extend_from_slice(&bytes[..fits]);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.failing_syncs > 0 {
            self.failing_syncs -= 1;
            // As Linux does: the pages count as clean from now on, and their content is gone.
            self.bytes[self.synced..].fill(0);
            return Err(io::Error::other("the disk did not take it"));
        }
        self.synced = self.bytes.len();
        Ok(())
    }

    fn recover(&mut self, len: u64, crc: u32) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let kept = self.bytes.get(..len).ok_or(io::ErrorKind::UnexpectedEof)?;
        if crc32c::crc32c(kept) != crc {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.bytes.truncate(len);
        self.synced = len;
        Ok(())
    }
}

impl Source for MemDisk {
    fn byte_len(&mut self) -> io::Result<u64> {
        self.bytes().byte_len()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.bytes().read_at(offset, out)
    }
}
