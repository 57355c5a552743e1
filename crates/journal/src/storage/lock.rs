//! The locks that keep a second process out of a data directory, and let one take it over. Knows nothing of what the
//! files hold.
//!
//! All are `flock`s, which the operating system releases when the process ends:
//!
//! | lock on | held by |
//! | --- | --- |
//! | the directory | the writer, until it ends; shared by readers. No deleted file circumvents it |
//! | `LOCK` | the writer; one that takes the directory over replaces the file, and so the lock of the writer before |
//! | `LOCK.takeover` | a process that opens the directory for writing or takes it over, until it is done |
//!
//! A process that takes the directory over waits for the lock on the directory while the process before it still runs.
//! So `LOCK` alone says who the writer is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::OFlags;
use thiserror::Error;

/// Its lock belongs to the writer, and its contents name the writer's process.
const HOLDER_FILE: &str = "LOCK";
/// The file that will replace [`HOLDER_FILE`].
const NEXT_HOLDER_FILE: &str = "LOCK.new";
const TAKEOVER_FILE: &str = "LOCK.takeover";
/// The files that a process locks, if they are there.
pub(crate) const LOCK_FILES: [&str; 2] = [HOLDER_FILE, TAKEOVER_FILE];

/// The right to use a data directory, held while a process uses it. Dropping it releases all locks.
pub struct DirectoryLock {
    directory: Arc<File>,
    /// The lock on the directory is held.
    has_directory: bool,
    /// The lock on `LOCK`; a reader has none.
    _holder: Option<File>,
    /// The lock on `LOCK.takeover`, until [`DirectoryLock::settle`].
    opening: Mutex<Option<File>>,
}

#[derive(Debug, Error)]
pub enum LockError {
    #[error("the data directory {} is in use by process {holder}", path.display())]
    InUse { path: PathBuf, holder: String },
    #[error("the data directory {} is being read by another process (check or export)", path.display())]
    BeingRead { path: PathBuf },
    #[error("the data directory {} is being opened or taken over by process {holder}", path.display())]
    BeingTakenOver { path: PathBuf, holder: String },
    #[error(
        "the data directory {} is followed by another server: stop it first, or promote it. It may have what the journal has lost",
        path.display()
    )]
    Followed { path: PathBuf },
    #[error("the data directory {} cannot be locked", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl DirectoryLock {
    /// Locks out every other process, and writes this process's id to the file `LOCK`. Until
    /// [`DirectoryLock::settle`], no process can take the directory over.
    pub fn acquire(path: &Path) -> Result<DirectoryLock, LockError> {
        let directory = open_to_lock(path)?;
        if !lock_directory(path, &directory)? {
            return Err(in_use(path));
        }
        let opening = lock_opening(path)?;
        let Some(holder) = lock_holder(path).map_err(io_error(path))? else { return Err(in_use(path)) };
        Ok(DirectoryLock::new(directory, true, holder, opening))
    }

    /// As [`DirectoryLock::acquire`], but takes the lock from a process that has it: the file `LOCK` is replaced. An
    /// ordinary start is then refused even after that process has ended. Of several processes that try, one succeeds.
    ///
    /// IMPORTANT: this does not stop the other process. Raise the fence before anything is written
    /// ([`crate::DirectoryFollower::raise_fence`]), and call [`DirectoryLock::settle`] when the log is open.
    pub fn acquire_for_takeover(path: &Path) -> Result<DirectoryLock, LockError> {
        let directory = open_to_lock(path)?;
        // IMPORTANT: first. A process that has it may be replacing `LOCK`, or removing and renaming files.
        let opening = lock_opening(path)?;
        let has_directory = lock_directory(path, &directory)?;
        let holder = match lock_holder(path).map_err(io_error(path))? {
            Some(holder) => holder,
            None => replace_holder(path).map_err(io_error(path))?,
        };
        Ok(DirectoryLock::new(directory, has_directory, holder, opening))
    }

    /// Locks out processes that write, but not those that read. Writes nothing.
    pub fn acquire_shared(path: &Path) -> Result<DirectoryLock, LockError> {
        let directory = open_to_lock(path)?;
        match directory.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path)),
            Err(TryLockError::Error(source)) => return Err(io_error(path)(source)),
        }
        // A process that has taken the directory over may still wait for the lock on the directory.
        if let Ok(holder) = File::open(path.join(HOLDER_FILE))
            && matches!(holder.try_lock_shared(), Err(TryLockError::WouldBlock))
        {
            return Err(in_use(path));
        }
        Ok(DirectoryLock {
            directory: Arc::new(directory),
            has_directory: true,
            _holder: None,
            opening: Mutex::new(None),
        })
    }

    /// True when no process that had the directory before still runs.
    pub(crate) fn is_alone(&self) -> bool {
        self.has_directory
    }

    /// Ends the opening of the directory: from now on another process can take it over. IMPORTANT: call it only once
    /// the log is open, because a process that is stopped while it opens the log could remove files of the next writer
    /// when it wakes up.
    ///
    /// After a take-over, a thread waits for the process before this one to release the directory. It keeps neither
    /// this process alive nor a lock that was dropped.
    pub fn settle(&self) {
        let opening = self.opening.lock().take();
        if opening.is_none() || self.has_directory {
            return;
        }
        let directory = self.directory.clone();
        // Without a thread, only the lock on `LOCK` keeps others out, which is enough for all but old versions.
        let _ = std::thread::Builder::new()
            .name("directory-lock".to_owned())
            .spawn(move || while directory.lock().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {});
    }

    fn new(directory: File, has_directory: bool, holder: File, opening: File) -> DirectoryLock {
        DirectoryLock {
            directory: Arc::new(directory),
            has_directory,
            _holder: Some(holder),
            opening: Mutex::new(Some(opening)),
        }
    }
}

/// Locks the directory. False if another process writes it.
fn lock_directory(path: &Path, directory: &File) -> Result<bool, LockError> {
    match directory.try_lock() {
        Ok(()) => Ok(true),
        // Readers share the lock and write no id: the file names the last server, not them.
        Err(TryLockError::WouldBlock) => match directory.try_lock_shared() {
            Ok(()) => Err(LockError::BeingRead { path: path.to_owned() }),
            Err(_) => Ok(false),
        },
        Err(TryLockError::Error(source)) => Err(io_error(path)(source)),
    }
}

/// Takes the lock of processes that open the directory for writing.
fn lock_opening(path: &Path) -> Result<File, LockError> {
    let file = open_or_create(&path.join(TAKEOVER_FILE)).map_err(io_error(path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(LockError::BeingTakenOver { path: path.to_owned(), holder: holder_of(path) })
        }
        Err(TryLockError::Error(source)) => Err(io_error(path)(source)),
    }
}

/// Locks `LOCK`, and writes this process's id to it. `None` if another process has it.
fn lock_holder(path: &Path) -> io::Result<Option<File>> {
    let path = path.join(HOLDER_FILE);
    loop {
        let mut file = open_or_create(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // It may have been replaced between opening and locking.
        if is_at(&file, &path)? {
            // If it fails, as on a full disk, a second process just cannot name the holder.
            let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            return Ok(Some(file));
        }
    }
}

/// Puts a new `LOCK`, locked by this process, in place of the one that another process has. If this process dies
/// meanwhile, the old file is there, or the new one without a lock.
fn replace_holder(path: &Path) -> io::Result<File> {
    let next = path.join(NEXT_HOLDER_FILE);
    // One that died has left it: only a process with the lock on `LOCK.takeover` comes here.
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&next)?;
    file.lock()?;
    let _ = writeln!(file, "{}", std::process::id());
    fs::rename(&next, path.join(HOLDER_FILE))?;
    Ok(file)
}

/// True when the path leads to this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A link would lead to a file that is then overwritten.
    options.read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    match options.clone().write(true).create(true).truncate(false).open(path) {
        // A file of another user can be locked, too.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.open(path),
        opened => opened,
    }
}

fn open_to_lock(path: &Path) -> Result<File, LockError> {
    File::open(path).map_err(io_error(path))
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> LockError {
    move |source| LockError::Io { path: path.to_owned(), source }
}

fn in_use(path: &Path) -> LockError {
    LockError::InUse { path: path.to_owned(), holder: holder_of(path) }
}

fn holder_of(path: &Path) -> String {
    let holder = fs::read_to_string(path.join(HOLDER_FILE)).unwrap_or_default();
    if holder.trim().is_empty() { "(unknown)".to_owned() } else { holder.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_in_use_names_the_process() {
        let scratch = tempfile::tempdir().unwrap();
        let held = DirectoryLock::acquire(scratch.path()).unwrap();
        let refused = DirectoryLock::acquire(scratch.path()).err().unwrap().to_string();
        let expected =
            format!("the data directory {} is in use by process {}", scratch.path().display(), std::process::id());
        assert_eq!(refused, expected);
        drop(held);
        DirectoryLock::acquire(scratch.path()).unwrap();
    }

    #[test]
    fn the_lock_does_not_depend_on_its_file() {
        let scratch = tempfile::tempdir().unwrap();
        let _held = DirectoryLock::acquire(scratch.path()).unwrap();
        fs::remove_file(scratch.path().join(HOLDER_FILE)).unwrap();
        let count = || fs::read_dir(scratch.path()).unwrap().count();
        let before = count();
        for refused in [DirectoryLock::acquire(scratch.path()), DirectoryLock::acquire_shared(scratch.path())] {
            let refused = refused.err().unwrap().to_string();
            assert!(refused.ends_with("is in use by process (unknown)"), "{refused}");
        }
        assert_eq!(count(), before, "one that is refused writes nothing");
    }

    #[test]
    fn readers_share_and_keep_writers_out() {
        let scratch = tempfile::tempdir().unwrap();
        drop(DirectoryLock::acquire(scratch.path()).unwrap());
        let before = fs::metadata(scratch.path().join(HOLDER_FILE)).unwrap().modified().unwrap();
        let reader = DirectoryLock::acquire_shared(scratch.path()).unwrap();
        let _another = DirectoryLock::acquire_shared(scratch.path()).unwrap();
        assert_eq!(fs::metadata(scratch.path().join(HOLDER_FILE)).unwrap().modified().unwrap(), before);
        let refused = DirectoryLock::acquire(scratch.path()).err().unwrap();
        assert!(matches!(refused, LockError::BeingRead { .. }), "{refused}");
        drop((reader, _another));
        DirectoryLock::acquire(scratch.path()).unwrap();
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        for _ in 0..30_000 {
            if is_so() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("it never happens");
    }

    /// Two locks of one process conflict as those of two processes do.
    #[test]
    fn a_lock_is_taken_over_and_outlives_the_one_before() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path();
        let old = DirectoryLock::acquire(path).unwrap();
        let refused = DirectoryLock::acquire_for_takeover(path).err().unwrap();
        assert!(matches!(refused, LockError::BeingTakenOver { .. }), "it is not open yet: {refused}");
        old.settle();
        let new = DirectoryLock::acquire_for_takeover(path).unwrap();
        assert!(!new.has_directory);
        let refused = DirectoryLock::acquire_for_takeover(path).err().unwrap();
        assert!(matches!(refused, LockError::BeingTakenOver { .. }), "one at a time: {refused}");
        drop(old);
        for refused in [DirectoryLock::acquire(path), DirectoryLock::acquire_shared(path)] {
            let refused = refused.err().unwrap();
            assert!(matches!(refused, LockError::InUse { .. } | LockError::BeingTakenOver { .. }), "{refused}");
        }
        new.settle();
        // The thread has the lock on the directory soon.
        wait_until(|| matches!(open_to_lock(path).unwrap().try_lock_shared(), Err(TryLockError::WouldBlock)));
        let refused = DirectoryLock::acquire(path).err().unwrap();
        assert!(
            matches!(&refused, LockError::InUse { holder, .. } if *holder == std::process::id().to_string()),
            "{refused}"
        );
        drop(new);
        wait_until(|| DirectoryLock::acquire(path).is_ok());
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort_unstable();
        assert_eq!(names, [HOLDER_FILE, TAKEOVER_FILE]);
    }

    #[test]
    fn a_free_directory_is_taken_over_like_any_other() {
        let scratch = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let lock = DirectoryLock::acquire_for_takeover(scratch.path()).unwrap();
            assert!(lock.has_directory);
            lock.settle();
            let refused = DirectoryLock::acquire(scratch.path()).err().unwrap();
            assert!(matches!(refused, LockError::InUse { .. }), "{refused}");
        }
    }

    /// The lock is dropped while its thread still waits for the process before.
    #[test]
    fn a_take_over_that_ends_first_leaves_no_lock() {
        let scratch = tempfile::tempdir().unwrap();
        let old = DirectoryLock::acquire(scratch.path()).unwrap();
        old.settle();
        let new = DirectoryLock::acquire_for_takeover(scratch.path()).unwrap();
        new.settle();
        drop(new);
        // The next one takes over from both, and then a third from it.
        let next = DirectoryLock::acquire_for_takeover(scratch.path()).unwrap();
        next.settle();
        let third = DirectoryLock::acquire_for_takeover(scratch.path()).unwrap();
        drop((old, next, third));
        wait_until(|| DirectoryLock::acquire(scratch.path()).is_ok());
    }

    /// A process was killed before it had renamed its file.
    #[test]
    fn what_a_killed_take_over_has_left_is_in_the_way_of_none() {
        let scratch = tempfile::tempdir().unwrap();
        let old = DirectoryLock::acquire(scratch.path()).unwrap();
        old.settle();
        fs::write(scratch.path().join(NEXT_HOLDER_FILE), "7\n").unwrap();
        let new = DirectoryLock::acquire_for_takeover(scratch.path()).unwrap();
        assert_eq!(holder_of(scratch.path()), std::process::id().to_string());
        drop((old, new));
        DirectoryLock::acquire(scratch.path()).unwrap();
    }

    #[test]
    fn of_many_take_overs_one_wins() {
        let scratch = tempfile::tempdir().unwrap();
        let old = DirectoryLock::acquire(scratch.path()).unwrap();
        old.settle();
        let barrier = std::sync::Barrier::new(8);
        let won: Vec<DirectoryLock> = std::thread::scope(|scope| {
            let take = || {
                barrier.wait();
                DirectoryLock::acquire_for_takeover(scratch.path()).ok()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(won.len(), 1);
    }
}
