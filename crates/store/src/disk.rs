//! What a log needs of a disk, to write and to read, so that a test can bring a disk that fails, fills up or forgets.

mod fs;
mod mem;

use std::io;

#[cfg(feature = "saves")]
pub(crate) use fs::sync_folder;
pub use fs::{FsDisk, FsSource};
pub use mem::MemDisk;

/// A place that bytes are appended to.
///
/// What was appended may be lost until the next [`sync`](Disk::sync) has returned. After an error nothing is known about
/// what was appended since the last good sync: only [`recover`](Disk::recover) leads on from there.
pub trait Disk {
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns once everything appended would survive a loss of power.
    fn sync(&mut self) -> io::Result<()>;

    /// After an error: starts anew from what is really stored, checks that its first `len` bytes have the CRC-32C `crc`,
    /// and drops everything after them.
    ///
    /// A failed sync is never tried again: a system may have dropped the data and report success the second time.
    fn recover(&mut self, len: u64, crc: u32) -> io::Result<()>;
}

/// Bytes that can be read at any place.
pub trait Source {
    /// How many bytes there are.
    fn byte_len(&mut self) -> io::Result<u64>;

    /// Reads from `offset` on as much as fits, less only at the end; returns how much that is.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
}

impl Source for &[u8] {
    fn byte_len(&mut self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..)).unwrap_or(&[]);
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn byte_len(&mut self) -> io::Result<u64> {
        (**self).byte_len()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, out)
    }
}
