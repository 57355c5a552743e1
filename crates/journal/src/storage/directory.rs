//! A directory on a disk. Knows nothing of what the files hold.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, fstatvfs, renameat_with, statvfs};
use rustix::io::Errno;

use super::file_system::{Storage, StorageFile};
use super::mapping;
use crate::fence::Fence;

/// A [`Storage`] on a disk.
pub struct Directory {
    path: PathBuf,
    /// Stays open, so that a sync works even without free descriptors.
    directory: File,
}

impl Directory {
    /// Opens a directory that exists.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Directory> {
        let path = path.into();
        let directory = File::open(&path)?;
        match directory.metadata()?.is_dir() {
            true => Ok(Directory { path, directory }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens a directory; creates it and its parents if needed.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Directory> {
        let path = path.into();
        if !path.is_dir() {
            fs::create_dir_all(&path)?;
            // Without this a power failure could remove the directory with the synced files in it.
            if let Some(parent) = path.canonicalize()?.parent() {
                File::open(parent)?.sync_all()?;
            }
        }
        Directory::open(path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Storage for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // Our names are UTF-8; ignore others.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name))?;
        Ok(Box::new(DiskFile { file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let path = self.path.join(name);
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            // Reading a journal without permission to write is fine; a later write reports the error.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) =>
            {
                File::open(&path)?
            }
            opened => opened?,
        };
        Ok(Box::new(DiskFile { file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path.join(from), self.path.join(to));
        match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_and_unlink(&from, &to),
            renamed => Ok(renamed?),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn is_regular(&self, name: &str) -> io::Result<bool> {
        Ok(fs::symlink_metadata(self.path.join(name))?.is_file())
    }

    fn disk_bytes(&self) -> Option<u64> {
        let space = statvfs(&self.path).ok()?;
        Some(space.f_blocks.saturating_mul(space.f_frsize)).filter(|bytes| *bytes > 0)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn fence(&self) -> io::Result<Fence> {
        match mapping::map(&self.path.join(FENCE_FILE)) {
            // Some network file systems cannot. Then only a directory whose writer has ended can be taken over.
            Err(error) if mapping::is_unsupported(&error) => Ok(Fence::unshared()),
            mapped => Fence::mapped(mapped?),
        }
    }
}

/// Holds the highest epoch that has the right to write. Must not be removed or cut while a server uses the directory.
pub(crate) const FENCE_FILE: &str = "FENCE";

/// Renames a file to a name that does not exist, where the file system cannot do it in one step.
fn link_and_unlink(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // It has no links either. A writer that is stopped between these two can replace a file; none other can.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

struct DiskFile {
    file: File,
}

impl StorageFile for DiskFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        // Checked first, because some file systems take all free space before they report that it is not enough.
        let space = fstatvfs(&self.file)?;
        // A file system that does not report its size reports zero.
        if space.f_blocks > 0 && space.f_bavail.saturating_mul(space.f_frsize) < len {
            return Err(Errno::NOSPC.into());
        }
        loop {
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, len) {
                Err(Errno::INTR) => {}
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{read_full_at, write_all_at};

    #[test]
    fn files_are_made_named_and_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = Directory::create(scratch.path().join("a/b")).unwrap();
        let file = directory.create("one").unwrap();
        write_all_at(&*file, b"hello", 3).unwrap();
        file.sync().unwrap();
        assert_eq!(directory.create("one").err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        directory.rename("one", "two").unwrap();
        directory.sync_directory().unwrap();
        assert_eq!(directory.list().unwrap(), ["two"]);
        let file = directory.open("two").unwrap();
        let mut bytes = [9; 10];
        assert_eq!(read_full_at(&*file, &mut bytes, 0).unwrap(), 8);
        assert_eq!(&bytes[..8], b"\0\0\0hello");
        file.set_len(4).unwrap();
        assert_eq!(file.len().unwrap(), 4);
        directory.remove("two").unwrap();
        assert_eq!(directory.open("two").err().unwrap().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_reserve_takes_space_without_a_length_and_is_given_back() {
        use std::os::unix::fs::MetadataExt;
        let scratch = tempfile::tempdir().unwrap();
        let directory = Directory::create(scratch.path()).unwrap();
        let file = directory.create("f").unwrap();
        write_all_at(&*file, &[1; 5000], 0).unwrap();
        let used = || fs::metadata(scratch.path().join("f")).unwrap().blocks() * 512;
        file.reserve(5000, 1 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 5000);
        if used() < 1 << 20 {
            return wire::skip("this file system cannot reserve space");
        }
        file.set_len(5000).unwrap();
        assert!(used() <= 8192, "{} bytes", used());
        let error = file.reserve(5000, 1 << 62).unwrap_err();
        assert_eq!((error.kind(), used() <= 8192), (io::ErrorKind::StorageFull, true), "nothing is taken in vain");
    }

    /// The sync uses the open directory, so it needs no new descriptor.
    #[test]
    fn a_sync_opens_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = Directory::create(scratch.path().join("a")).unwrap();
        fs::rename(scratch.path().join("a"), scratch.path().join("b")).unwrap();
        directory.sync_directory().unwrap();
    }
}
