//! The disk interface of a log, so that tests can use a disk that fails, fills up or loses data.

mod fs;
mod mem;

use std::io;

#[cfg(feature = "saves")]
pub(crate) use fs::sync_folder;
pub use fs::{FsDisk, FsSource};
pub use mem::MemDisk;

/// Append-only storage.
///
/// Appended bytes may be lost until the next [`sync`](Disk::sync) has returned. After an error the state of everything
/// appended since the last good sync is unknown: only [`recover`](Disk::recover) leads on from there.
pub trait Disk {
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns once everything appended is safe from a power failure.
    fn sync(&mut self) -> io::Result<()>;

    /// After an error: reads what is really stored, checks that its first `len` bytes have the CRC-32C `crc`, and drops
    /// everything after them.
    ///
    /// A failed sync is never tried again: the system may have dropped the data and report success the second time.
    fn recover(&mut self, len: u64, crc: u32) -> io::Result<()>;
}

/// Storage that can be read at any offset.
pub trait Source {
    /// The length in bytes.
    fn byte_len(&mut self) -> io::Result<u64>;

    /// Fills `out` from `offset` on; returns how many bytes were read, fewer only at the end.
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
