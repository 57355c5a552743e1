//! What the journal asks of a disk: one flat directory of files. Knows nothing of segments or snapshots.
//!
//! The promises are those of POSIX and no more: what was written survives the process at once, but a power failure
//! only after `sync`; that a file exists, has a new name or is gone survives a power failure only after
//! `sync_directory`.

use std::io;

/// One directory.
pub trait Storage: Send + Sync {
    /// The names of all files, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a new file; it is an error if the name is taken.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Opens a file that exists.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Gives a file another name. A file that had that name is replaced, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals survive a power failure.
    fn sync_directory(&self) -> io::Result<()>;

    /// The size of the whole disk, if it tells.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }
}

/// One open file.
pub trait StorageFile: Send + Sync {
    /// Writes at `offset`, extending the file if need be. May write less than asked, and says how much.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Reads at `offset`. May read less than asked; zero at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Makes the contents and the length survive a power failure (`fdatasync`).
    fn sync(&self) -> io::Result<()>;

    fn len(&self) -> io::Result<u64>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file off, or extends it with zeros. Gives back what was reserved behind `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Takes the space for `len` bytes from `offset` on, without changing the file's length. Once this has succeeded,
    /// writes in this range do not fail for want of space. Where a file system cannot do that, it counts as done.
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()>;
}

/// There is no more space, or no more for this user: what an operator can change while the server runs.
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

/// Fills `bytes` as far as the file goes and says how far that was.
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
