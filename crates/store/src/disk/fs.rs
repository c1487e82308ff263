//! [`Disk`] and [`Source`] on files of the operating system.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Disk, Source};

/// An append-only file, locked while it is open so that no other process writes it.
#[derive(Debug)]
pub struct FsDisk {
    path: PathBuf,
    file: File,
}

impl FsDisk {
    /// Creates a new file. An existing one is never overwritten.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<FsDisk> {
        let path = path.into();
        let file = locked(OpenOptions::new().append(true).create_new(true).open(&path)?)?;
        // Without syncing the folder, a power failure may remove the whole file: its name is data of the folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        sync_folder(folder.unwrap_or(Path::new(".")))?;
        Ok(FsDisk { path, file })
    }

    /// Opens an existing file at its end.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<FsDisk> {
        let path = path.into();
        let file = locked(OpenOptions::new().append(true).open(&path)?)?;
        Ok(FsDisk { path, file })
    }

    /// Whether this or another process has the file open for writing.
    pub fn is_written(path: impl AsRef<Path>) -> io::Result<bool> {
        match File::open(path)?.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn locked(file: File) -> io::Result<File> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "another writer has it open"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Disk for FsDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn recover(&mut self, len: u64, crc: u32) -> io::Result<()> {
        if crc_of(&self.path, len)? != crc {
            let what = format!("the first {len} bytes are no longer those that were written");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.file.unlock()?;
        let file = locked(OpenOptions::new().append(true).open(&self.path)?)?;
        file.set_len(len)?;
        file.sync_all()?;
        self.file = file;
        Ok(())
    }
}

#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    // Other systems cannot open a folder, and store names by other means.
    Ok(())
}

/// The CRC-32C of the first `len` bytes of a file.
fn crc_of(path: &Path, len: u64) -> io::Result<u32> {
    let mut rest = File::open(path)?.take(len);
    let mut crc = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = rest.read(&mut buffer)?;
        if count == 0 {
            return if rest.limit() == 0 { Ok(crc) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        crc = crc32c::crc32c_append(crc, &buffer[..count]);
    }
}

/// A file that is open for reading.
#[derive(Debug)]
pub struct FsSource(File);

impl FsSource {
    /// Opens a file for reading.
    pub fn open(path: impl AsRef<Path>) -> io::Result<FsSource> {
        File::open(path).map(FsSource)
    }
}

impl Source for FsSource {
    fn byte_len(&mut self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0.seek(SeekFrom::Start(offset))?;
        let mut count = 0;
        while count < out.len() {
            match self.0.read(&mut out[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}
