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
use crate::recovery::{History, ReadProgress, Recovery, RecoveryError, Repair, Warning};
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

    fn new(path: &Path, storage: impl Storage + 'static) -> DirectoryPlace {
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
    use crate::fence::Fence;
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
}
