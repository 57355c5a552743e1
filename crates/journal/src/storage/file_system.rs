//! The interface of a disk: one flat directory of files. Knows nothing of segments or snapshots.
//!
//! It promises what POSIX does and no more: written data survives the process at once, and a power failure only after
//! `sync`; creations, renames and removals survive a power failure only after `sync_directory`.

use std::io;

use crate::fence::Fence;

/// One directory.
pub trait Storage: Send + Sync {
    /// The names of all files, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a file; fails if the name exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Opens a file that exists.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Renames a file. An existing file of that name is replaced atomically.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Renames a file. Fails with [`io::ErrorKind::AlreadyExists`] if there is a file of that name.
    fn rename_new(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals survive a power failure.
    fn sync_directory(&self) -> io::Result<()>;

    /// The fence of this directory, which all its users share. Creates it if needed. Fails where a file cannot be mapped
    /// into memory.
    fn fence(&self) -> io::Result<Fence>;

    /// Returns false for a name that leads elsewhere, as a symbolic link does, or that is no file.
    fn is_regular(&self, name: &str) -> io::Result<bool> {
        let _ = name;
        Ok(true)
    }

    /// The size of the whole disk, if it is known.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }
}

/// One open file.
pub trait StorageFile: Send + Sync {
    /// Writes at `offset`, extending the file if needed. Returns how many bytes were written, possibly fewer than
    /// given.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Reads at `offset`. Returns how many bytes were read, possibly fewer than asked for; zero at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Makes the contents and the length survive a power failure (`fdatasync`).
    fn sync(&self) -> io::Result<()>;

    fn len(&self) -> io::Result<u64>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Truncates the file, or extends it with zeros. Frees space reserved after `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves the space for `len` bytes from `offset` on, without changing the file's length. After success, writes
    /// in this range do not fail for lack of space. Does nothing where a file system does not support it.
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()>;
}

/// True for lack of space or quota: an operator can change that while the server runs.
pub(crate) fn is_want_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Writes all of `bytes`, however many calls that takes.
pub(crate) fn write_all_at(file: &dyn StorageFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills `bytes` as far as the file goes and returns how many bytes were read.
pub(crate) fn read_full_at(file: &dyn StorageFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
