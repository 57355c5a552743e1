//! A data directory as a place of a log: its locks, its files, its followers. Knows how a directory is opened, read and
//! taken over; refuses to know what a batch means.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::directory_follower::DirectoryFollower;
use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::fence::Fence;
use crate::file_log::{FileLog, FileLogOptions};
use crate::log::{Batch, Follow, Followed, ReadError, Stopper};
use crate::place::{Claim, Follower, LogPlace, OpenedLog, Reading};
use crate::recovery::{DirectoryError, History, ReadProgress, Recovery, RecoveryError, Repair, Survey, Warning};
use crate::sequence::Sequence;
use crate::snapshot::{SnapshotInfo, StoredPart};
use crate::storage::{Directory, DirectoryLock, FENCE_FILE, LOCK_FILES, LockError, Storage, read_word, replace};

/// A data directory, as one process uses it.
pub struct DirectoryPlace {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    /// Held while this process writes, or reads what nobody may write meanwhile.
    lock: Arc<Mutex<Option<DirectoryLock>>>,
    /// The fence, with a shared lock, from when this process begins to follow: nobody repairs the directory meanwhile.
    followed: Mutex<Option<File>>,
    options: FileLogOptions,
}

/// Keeps followers out of a directory that is repaired.
pub struct WithoutFollowers {
    _fence: Option<File>,
}

impl DirectoryPlace {
    /// For this process alone. Makes the directory if there is none.
    pub fn create(path: &Path) -> io::Result<DirectoryPlace> {
        Ok(DirectoryPlace::new(path, Directory::create(path)?))
    }

    /// Opens the directory beside the process that writes it, or reads it. Takes no lock yet, and creates no file.
    pub fn open(path: &Path) -> io::Result<DirectoryPlace> {
        Ok(DirectoryPlace::new(path, Directory::open(path)?))
    }

    fn new(path: &Path, storage: impl Storage + 'static) -> DirectoryPlace {
        DirectoryPlace {
            path: path.to_owned(),
            storage: Arc::new(storage),
            lock: Arc::default(),
            followed: Mutex::default(),
            options: FileLogOptions::default(),
        }
    }

    /// Locks out processes that write, but not those that read. Writes nothing: the directory may be read-only.
    pub fn share(&self) -> Result<(), LockError> {
        *self.lock.lock() = Some(DirectoryLock::acquire_shared(&self.path)?);
        Ok(())
    }

    /// Looks at the files by which processes share the directory, without changing them. An error names the first that
    /// cannot be used. A file that is missing is made when it is needed.
    pub fn check_shared_files(&self) -> Result<(), DirectoryError> {
        self.check_regular()?;
        match self.fence_problem()? {
            Some((offset, detail)) => Err(DirectoryError::Damaged { file: FENCE_FILE.to_owned(), offset, detail }),
            None => Ok(()),
        }
    }

    /// Fails if one of these files is no file. Call it before the place is acquired, which opens them.
    pub fn check_regular(&self) -> Result<(), DirectoryError> {
        for file in LOCK_FILES.into_iter().chain([FENCE_FILE]) {
            match self.storage.is_regular(file) {
                Ok(true) => {}
                Ok(false) => return Err(DirectoryError::NotRegular { file: file.to_owned() }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(Operation::Open, file)(error)),
            }
        }
        Ok(())
    }

    /// Returns why no writer can begin with the fence that is there, with the offset of the fault.
    pub fn fence_problem(&self) -> Result<Option<(u64, String)>, DirectoryError> {
        match read_word(&self.path.join(FENCE_FILE)) {
            Ok(word) => Ok(Fence::problem_of(word).map(|detail| (8, detail.to_owned()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some((0, error.to_string()))),
            Err(error) => Err(failed(Operation::Read, FENCE_FILE)(error)),
        }
    }

    /// Makes a new fence, at the highest epoch of the directory. The place is acquired, and nobody follows it.
    pub fn renew_fence(&self, _alone: &WithoutFollowers) -> Result<(), RecoveryError> {
        assert!(self.lock.lock().as_ref().is_some_and(DirectoryLock::is_alone), "another process may use the fence");
        let newest = Survey::of(&*self.storage)?.newest_epoch();
        replace(&self.path.join(FENCE_FILE), Fence::word_of(newest)).map_err(failed(Operation::Write, FENCE_FILE))?;
        self.storage.sync_directory().map_err(failed(Operation::SyncDirectory, FENCE_FILE))?;
        Ok(())
    }

    /// Keeps followers out. An error if there is one: it would go on with batches that a repair has cut.
    pub fn lock_out_followers(&self) -> Result<WithoutFollowers, LockError> {
        let Ok(fence) = File::open(self.path.join(FENCE_FILE)) else { return Ok(WithoutFollowers { _fence: None }) };
        match fence.try_lock() {
            Err(TryLockError::WouldBlock) => Err(LockError::Followed { path: self.path.clone() }),
            // Where locks do not work, the writer is not locked out either.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(WithoutFollowers { _fence: Some(fence) }),
        }
    }

    /// Tells others that this process follows. An error while the directory is repaired.
    fn follow(&self) -> Result<(), DirectoryError> {
        let Ok(fence) = File::open(self.path.join(FENCE_FILE)) else { return Ok(()) };
        match fence.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let reason = io::Error::new(io::ErrorKind::ResourceBusy, "the directory is being repaired");
                return Err(failed(Operation::Open, FENCE_FILE)(reason));
            }
            Ok(()) => *self.followed.lock() = Some(fence),
            Err(TryLockError::Error(_)) => {}
        }
        Ok(())
    }

    /// Reads and checks everything, and returns what must be cut off the journal so that it can be read, or `None` if it
    /// is whole. The place is acquired.
    pub fn examine(&self) -> Result<Option<Repair>, RecoveryError> {
        Repair::examine(self.storage.clone())
    }

    /// Cuts, and returns the names of the copies of what was cut.
    pub fn repair(&self, repair: Repair) -> Result<Vec<String>, RecoveryError> {
        repair.cut(self.options.clone())
    }
}

fn failed(operation: Operation, file: &str) -> impl FnOnce(io::Error) -> DirectoryError {
    let file = file.to_owned();
    move |source| DirectoryError::Io { operation, file, offset: 0, source }
}

fn opened(log: FileLog, lock: &Arc<Mutex<Option<DirectoryLock>>>, options: &FileLogOptions) -> OpenedLog {
    // IMPORTANT: once the log is open. From here on another process can take it over.
    if let Some(lock) = &*lock.lock() {
        lock.settle();
    }
    let log = Arc::new(log);
    let (to_follow, lock, options) = (log.clone(), lock.clone(), options.clone());
    let follow_on = move || {
        let follower = DirectoryFollower::behind_closed(&to_follow)?;
        Some(Box::new(LockedFollower { follower, lock: lock.clone(), options: options.clone() }) as Box<dyn Follower>)
    };
    OpenedLog { snapshots: Arc::new(log.snapshots()), maintenance: log.clone(), log, follow_on: Box::new(follow_on) }
}

impl LogPlace for DirectoryPlace {
    fn name(&self) -> String {
        format!("file:{}", self.path.display())
    }

    fn acquire(&self, claim: Claim) -> Result<(), LockError> {
        let lock = match claim {
            Claim::IfFree => DirectoryLock::acquire(&self.path)?,
            Claim::ByForce => DirectoryLock::acquire_for_takeover(&self.path)?,
        };
        *self.lock.lock() = Some(lock);
        Ok(())
    }

    fn release(&self) {
        // It follows the next writer. Nothing can be repaired before the lock is released.
        let _ = self.follow();
        *self.lock.lock() = None;
    }

    fn read(&self) -> Result<Box<dyn Reading>, RecoveryError> {
        let recovery = Recovery::open(self.storage.clone())?;
        Ok(Box::new(DirectoryReading { recovery, lock: self.lock.clone(), options: self.options.clone() }))
    }

    fn read_live(&self) -> Result<Box<dyn Reading>, RecoveryError> {
        self.follow()?;
        let recovery = Recovery::open_live(self.storage.clone())?;
        Ok(Box::new(DirectoryReading { recovery, lock: self.lock.clone(), options: self.options.clone() }))
    }

    fn meeting_directory(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

struct DirectoryReading {
    recovery: Recovery,
    lock: Arc<Mutex<Option<DirectoryLock>>>,
    options: FileLogOptions,
}

impl History for DirectoryReading {
    fn snapshot(&self) -> Option<&SnapshotInfo> {
        self.recovery.snapshot()
    }

    fn meta(&self) -> Option<&[u8]> {
        self.recovery.meta()
    }

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, RecoveryError> {
        self.recovery.next_part()
    }

    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError> {
        self.recovery.next_batch()
    }

    fn reached(&self) -> Sequence {
        self.recovery.reached()
    }

    fn progress(&self) -> ReadProgress {
        self.recovery.progress()
    }

    fn warnings(&self) -> &[Warning] {
        self.recovery.warnings()
    }
}

impl Reading for DirectoryReading {
    fn into_log(self: Box<Self>) -> Result<OpenedLog, RecoveryError> {
        let DirectoryReading { recovery, lock, options } = *self;
        Ok(opened(recovery.into_log(options.clone())?, &lock, &options))
    }

    fn into_follower(self: Box<Self>) -> Result<Box<dyn Follower>, RecoveryError> {
        let DirectoryReading { recovery, lock, options } = *self;
        Ok(Box::new(LockedFollower { follower: recovery.into_follower()?, lock, options }))
    }
}

/// A follower that settles the lock when it has become the writer.
struct LockedFollower {
    follower: DirectoryFollower,
    lock: Arc<Mutex<Option<DirectoryLock>>>,
    options: FileLogOptions,
}

impl Follow for LockedFollower {
    fn next(&mut self) -> Result<Followed, ReadError> {
        self.follower.next()
    }

    fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        self.follower.try_next()
    }

    fn stopper(&self) -> Stopper {
        self.follower.stopper()
    }
}

impl Follower for LockedFollower {
    fn reached(&self) -> Sequence {
        self.follower.reached()
    }

    fn time_ms(&self) -> u64 {
        self.follower.time_ms()
    }

    fn begin_epoch(&mut self) -> Result<Epoch, RecoveryError> {
        let has_ended = self.lock.lock().as_ref().is_some_and(DirectoryLock::is_alone);
        self.follower.raise_fence_over(has_ended)
    }

    fn into_log(self: Box<Self>) -> Result<OpenedLog, RecoveryError> {
        let LockedFollower { follower, lock, options } = *self;
        Ok(opened(follower.into_log(options.clone())?, &lock, &options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::StorageFile;

    /// A directory whose files cannot be mapped.
    struct Unmapped(Directory);

    impl Storage for Unmapped {
        fn list(&self) -> io::Result<Vec<String>> {
            self.0.list()
        }

        fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
            self.0.create(name)
        }

        fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
            self.0.open(name)
        }

        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            self.0.rename(from, to)
        }

        fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
            self.0.rename_new(from, to)
        }

        fn remove(&self, name: &str) -> io::Result<()> {
            self.0.remove(name)
        }

        fn sync_directory(&self) -> io::Result<()> {
            self.0.sync_directory()
        }

        fn fence(&self) -> io::Result<Fence> {
            Ok(Fence::unshared())
        }
    }

    #[test]
    fn without_a_shared_fence_only_a_writer_that_has_ended_is_taken_over_from() {
        let scratch = tempfile::tempdir().unwrap();
        let place = || DirectoryPlace::new(scratch.path(), Unmapped(Directory::create(scratch.path()).unwrap()));
        let writer = place();
        writer.acquire(Claim::IfFree).unwrap();
        let opened = writer.read().unwrap().into_log().unwrap();
        opened.log.append(b"kept", 1);
        opened.log.wait_durable(opened.log.tail()).unwrap();
        let standby = place();
        let follow = || standby.read_live().unwrap().into_follower().unwrap();
        standby.acquire(Claim::ByForce).unwrap();
        let refused = follow().begin_epoch().unwrap_err();
        assert!(refused.to_string().contains("FENCE"), "{refused}");
        standby.release();
        opened.log.append(b"kept too", 2);
        opened.log.wait_durable(opened.log.tail()).unwrap();
        drop((opened, writer));
        standby.acquire(Claim::IfFree).unwrap();
        let mut follower = follow();
        follower.begin_epoch().unwrap();
        while follower.try_next().unwrap().is_some() {}
        assert_eq!(follower.reached(), Sequence(2));
        follower.into_log().unwrap();
    }
    fn written(path: &Path) {
        let writer = DirectoryPlace::create(path).unwrap();
        writer.acquire(Claim::IfFree).unwrap();
        let opened = writer.read().unwrap().into_log().unwrap();
        opened.log.append(b"kept", 1);
        opened.log.close().unwrap();
    }

    #[test]
    fn a_directory_that_is_followed_is_not_repaired() {
        let scratch = tempfile::tempdir().unwrap();
        written(scratch.path());
        let place = DirectoryPlace::open(scratch.path()).unwrap();
        let follower = DirectoryPlace::open(scratch.path()).unwrap();
        drop(follower.read_live().unwrap());
        place.acquire(Claim::IfFree).unwrap();
        assert!(matches!(place.lock_out_followers(), Err(LockError::Followed { .. })), "also while it loads again");
        drop(follower);
        let alone = place.lock_out_followers().unwrap();
        let late = DirectoryPlace::open(scratch.path()).unwrap();
        assert!(late.read_live().err().is_some_and(|error| error.to_string().contains("FENCE")), "it is repaired");
        drop(alone);
        late.read_live().unwrap();
        assert!(place.lock_out_followers().is_err());
        // A writer that has handed over follows, too.
        drop(late);
        place.release();
        assert!(DirectoryPlace::open(scratch.path()).unwrap().lock_out_followers().is_err());
    }

    #[test]
    fn a_fence_that_cannot_be_used_is_named_and_made_anew() {
        let with_word = |word: u64| [b"HFFENCE1", &word.to_ne_bytes()[..], &[0; 4080]].concat();
        let damaged = [b"garbage, not a fence".to_vec(), with_word(7), with_word(Fence::word_of(Epoch::LAST))];
        for bytes in damaged {
            let scratch = tempfile::tempdir().unwrap();
            (0..3).for_each(|_| written(scratch.path()));
            std::fs::write(scratch.path().join(FENCE_FILE), bytes).unwrap();
            let place = DirectoryPlace::open(scratch.path()).unwrap();
            let problem = place.check_shared_files().unwrap_err().to_string();
            assert!(problem.starts_with("FENCE is damaged at offset "), "{problem}");
            place.acquire(Claim::IfFree).unwrap();
            let start = place.read().unwrap().into_log().err().unwrap().to_string();
            assert!(start.contains("FENCE"), "{start}");
            place.renew_fence(&place.lock_out_followers().unwrap()).unwrap();
            place.check_shared_files().unwrap();
            let opened = place.read().unwrap().into_log().unwrap();
            assert_eq!(opened.log.epoch(), Epoch(4), "above all epochs of the directory");
        }
    }

    #[test]
    fn what_is_no_file_is_named_and_left_alone() {
        for file in LOCK_FILES.into_iter().chain([FENCE_FILE]) {
            let scratch = tempfile::tempdir().unwrap();
            written(scratch.path());
            let (path, outside) = (scratch.path().join(file), scratch.path().join("outside"));
            std::fs::write(&outside, "precious").unwrap();
            std::fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(&outside, &path).unwrap();
            let place = DirectoryPlace::open(scratch.path()).unwrap();
            for refused in [place.check_regular(), place.check_shared_files()] {
                assert!(matches!(refused, Err(DirectoryError::NotRegular { file: named }) if named == file));
            }
            assert!(file == FENCE_FILE || place.acquire(Claim::IfFree).is_err(), "a start would write to it");
            assert_eq!(std::fs::read(&outside).unwrap(), b"precious");
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(&path).unwrap();
            assert!(place.check_shared_files().is_err());
        }
    }

    #[test]
    fn a_repair_does_not_touch_what_a_link_leads_to() {
        for is_named in [|name: &str| name == "MARKS", |name: &str| name.ends_with(".seg")] {
            let scratch = tempfile::tempdir().unwrap();
            written(scratch.path());
            let place = DirectoryPlace::open(scratch.path()).unwrap();
            place.acquire(Claim::IfFree).unwrap();
            let name = place.storage.list().unwrap().into_iter().find(|name| is_named(name)).unwrap();
            let (path, outside) = (scratch.path().join(&name), scratch.path().join("outside"));
            std::fs::rename(&path, &outside).unwrap();
            std::os::unix::fs::symlink(&outside, &path).unwrap();
            let refused = place.examine().err().unwrap().to_string();
            assert!(refused.starts_with(&format!("{name} is a symbolic link")), "{refused}");
        }
    }
}
