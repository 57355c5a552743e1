//! A data directory as a place of a log: its locks, its files, its followers. Knows how a directory is opened, read and
//! taken over; refuses to know what a batch means.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::directory_follower::DirectoryFollower;
use crate::epoch::Epoch;
use crate::file_log::{FileLog, FileLogOptions};
use crate::log::{Batch, Follow, Followed, ReadError, Stopper};
use crate::place::{Claim, Follower, LogPlace, OpenedLog, Reading};
use crate::recovery::{History, ReadProgress, Recovery, RecoveryError, Warning};
use crate::sequence::Sequence;
use crate::snapshot::{SnapshotInfo, StoredPart};
use crate::storage::{Directory, DirectoryLock, LockError, Storage};

/// A data directory, as one process uses it.
pub struct DirectoryPlace {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    /// Held while this process writes, or reads what nobody may write meanwhile.
    lock: Arc<Mutex<Option<DirectoryLock>>>,
    options: FileLogOptions,
}

impl DirectoryPlace {
    /// For this process alone. Makes the directory if there is none.
    pub fn create(path: &Path) -> io::Result<DirectoryPlace> {
        Ok(DirectoryPlace::new(path, Directory::create(path)?))
    }

    /// Opens the directory beside the process that writes it, or reads it. Takes no lock, and creates no file.
    pub fn open(path: &Path) -> io::Result<DirectoryPlace> {
        Ok(DirectoryPlace::new(path, Directory::open(path)?))
    }

    fn new(path: &Path, storage: Directory) -> DirectoryPlace {
        DirectoryPlace {
            path: path.to_owned(),
            storage: Arc::new(storage),
            lock: Arc::default(),
            options: FileLogOptions::default(),
        }
    }

    /// Locks out processes that write, but not those that read. Writes nothing: the directory may be read-only.
    pub fn share(&self) -> Result<(), LockError> {
        *self.lock.lock() = Some(DirectoryLock::acquire_shared(&self.path)?);
        Ok(())
    }
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
        *self.lock.lock() = None;
    }

    fn read(&self) -> Result<Box<dyn Reading>, RecoveryError> {
        let recovery = Recovery::open(self.storage.clone())?;
        Ok(Box::new(DirectoryReading { recovery, lock: self.lock.clone(), options: self.options.clone() }))
    }

    fn read_live(&self) -> Result<Box<dyn Reading>, RecoveryError> {
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
        self.follower.raise_fence()
    }

    fn into_log(self: Box<Self>) -> Result<OpenedLog, RecoveryError> {
        let LockedFollower { follower, lock, options } = *self;
        Ok(opened(follower.into_log(options.clone())?, &lock, &options))
    }
}
