//! The word of the file `FENCE`, mapped into memory. Knows nothing of what it means.
//!
//! ```text
//!  0          8      16                  4096
//!  | HFFENCE1 | word | zeros ...         |
//! ```

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

const MAGIC: &[u8; 8] = b"HFFENCE1";
const WORD_OFFSET: usize = 8;
const FILE_LEN: usize = 4096;

/// Opens the file, creates it if needed, and maps it. The mapping stays until the process ends: it is one page for each
/// directory that the process writes, and no reference to it can dangle.
pub(super) fn map(path: &Path) -> io::Result<&'static AtomicU64> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    prepare(&file)?;
    // SAFETY: the kernel chooses the address, so the mapping replaces nothing that exists.
    let address = unsafe {
        mmap(std::ptr::null_mut(), FILE_LEN, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)
    }?;
    // SAFETY: a mapping begins at a page, so the word is aligned and inside it. It is never unmapped, and all access to
    // it, here and in other processes, is atomic.
    Ok(unsafe { AtomicU64::from_ptr(address.cast::<u8>().add(WORD_OFFSET).cast::<u64>()) })
}

/// True when the file system cannot map files that processes share.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [Errno::NODEV, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL];
    error.raw_os_error().is_some_and(|code| unsupported.iter().any(|known| known.raw_os_error() == code))
}

/// Reads the word without mapping the file. Zero if it has no word yet.
pub(crate) fn read_word(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let mut bytes = [0; WORD_OFFSET + size_of::<u64>()];
    let mut read = 0;
    while let count @ 1.. = file.read_at(&mut bytes[read..], read as u64)? {
        read += count;
    }
    let (magic, word) = bytes.split_at(WORD_OFFSET);
    if read >= MAGIC.len() && magic != [0; MAGIC.len()] && magic != MAGIC {
        return Err(no_fence());
    }
    Ok(u64::from_ne_bytes(word.try_into().expect("a word has this length")))
}

/// Puts a new file with this word in place of another, which no process may use.
pub(crate) fn replace(path: &Path, word: u64) -> io::Result<()> {
    let next = path.with_extension("new");
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut bytes = [0; FILE_LEN];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[WORD_OFFSET..WORD_OFFSET + size_of::<u64>()].copy_from_slice(&word.to_ne_bytes());
    let written = OpenOptions::new().write(true).create_new(true).open(&next).and_then(|file| {
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
        fs::rename(&next, path)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&next);
    })
}

fn no_fence() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is no fence of this version")
}

/// Gives a new file its contents. Never writes to the word: another process may have raised it.
fn prepare(file: &File) -> io::Result<()> {
    let mut magic = [0; MAGIC.len()];
    let len = file.metadata()?.len();
    if len >= MAGIC.len() as u64 {
        file.read_exact_at(&mut magic, 0)?;
    }
    if magic == [0; MAGIC.len()] {
        // Written, not only made longer: a store to a page without space on the disk would end the process.
        file.write_all_at(MAGIC, 0)?;
    } else if &magic != MAGIC {
        return Err(no_fence());
    }
    if len < FILE_LEN as u64 { file.set_len(FILE_LEN as u64) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_mappings_of_a_file_share_the_word() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("FENCE");
        let one = map(&path).unwrap();
        assert_eq!(one.load(Ordering::SeqCst), 0);
        one.store(0x0102_0304_0506_0708, Ordering::SeqCst);
        let other = map(&path).unwrap();
        assert_eq!(other.load(Ordering::SeqCst), 0x0102_0304_0506_0708);
        other.store(9, Ordering::SeqCst);
        assert_eq!(one.load(Ordering::SeqCst), 9);
        let bytes = fs::read(&path).unwrap();
        assert_eq!((&bytes[..16], bytes.len()), (&b"HFFENCE1\x09\0\0\0\0\0\0\0"[..], FILE_LEN));
    }

    #[test]
    fn what_is_no_fence_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("FENCE");
        fs::write(&path, "something else").unwrap();
        assert_eq!(map(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        fs::write(&path, "").unwrap();
        map(&path).unwrap();
        assert!(map(scratch.path()).is_err(), "a directory cannot be mapped");
    }
}
