//! The data directory: locks it, reads it, opens its log for writing, and takes it over from another process. The one
//! place that knows that the log is stored in local files; everything else uses `journal::Log` and `journal::History`.

use super::keeper::{LocalFiles, OpenedLog};
use anyhow::{Context, Result};
use journal::{Directory, DirectoryFollower, DirectoryLock, FileLog, FileLogOptions, Recovery, RecoveryError, Storage};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a directory is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Only if no process has it.
    IfFree,
    /// From a process that has asked for it, and only if it hands it over.
    IfHandedOver,
    /// From a process that was asked for it, even if it did not answer.
    AskThenForce,
}

/// A data directory that is in use by this process.
pub(crate) struct DataDirectory {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    /// Held while this process writes, or reads what nobody may write meanwhile.
    lock: Mutex<Option<DirectoryLock>>,
}

impl DataDirectory {
    /// For this process alone. Makes the directory if there is none.
    pub(crate) fn create(path: &Path) -> Result<DataDirectory> {
        let storage =
            Directory::create(path).with_context(|| format!("cannot create the directory {}", path.display()))?;
        Ok(DataDirectory::new(path, storage, Some(DirectoryLock::acquire(path)?)))
    }

    /// Opens the directory beside other readers, and creates no file: the directory may be read-only.
    pub(crate) fn open_shared(path: &Path) -> Result<DataDirectory> {
        Ok(DataDirectory::new(path, open(path)?, Some(DirectoryLock::acquire_shared(path)?)))
    }

    /// Opens the directory beside the process that writes it. Takes no lock, and creates no file.
    pub(crate) fn open_to_follow(path: &Path) -> Result<DataDirectory> {
        Ok(DataDirectory::new(path, open(path)?, None))
    }

    fn new(path: &Path, storage: Directory, lock: Option<DirectoryLock>) -> DataDirectory {
        DataDirectory { path: path.to_owned(), storage: Arc::new(storage), lock: Mutex::new(lock) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the directory holds. Changes nothing.
    pub(crate) fn read(&self) -> Result<Recovery, RecoveryError> {
        Recovery::open(self.storage.clone())
    }

    /// What the directory holds now, while another process may write it.
    pub(super) fn read_live(&self) -> Result<Recovery, RecoveryError> {
        Recovery::open_live(self.storage.clone())
    }

    /// Locks the directory, which no process has, for one that reads it from the beginning and then writes it.
    pub(super) fn lock(&self) -> Result<()> {
        *self.lock.lock() = Some(DirectoryLock::acquire(&self.path)?);
        Ok(())
    }

    /// Lets other processes write the directory.
    pub(super) fn unlock(&self) {
        *self.lock.lock() = None;
    }

    /// Becomes the writer of what a follower has read. `apply` gets the batches that were still to be read. From the
    /// first step on, the process that has written so far confirms nothing more, even if it does not answer.
    pub(super) fn take_over(
        &self,
        mut follower: DirectoryFollower,
        manner: Manner,
        mut apply: impl FnMut(journal::Batch) -> Result<()>,
    ) -> Result<OpenedLog> {
        use journal::Follow;
        let lock = match manner {
            Manner::IfFree | Manner::IfHandedOver => DirectoryLock::acquire(&self.path)?,
            Manner::AskThenForce => DirectoryLock::acquire_for_takeover(&self.path)?,
        };
        follower.raise_fence().context("the other writer cannot be fenced")?;
        while let Some(batch) = follower.try_next().context("the journal cannot be read")? {
            apply(batch)?;
        }
        let log = follower.into_log(FileLogOptions::default()).context("the journal cannot be opened for writing")?;
        lock.settle();
        *self.lock.lock() = Some(lock);
        Ok(opened(log))
    }

    /// Opens the log for what comes next, once all of it has been read. From then on another process can take it over.
    pub(super) fn open_log(&self, read: Recovery) -> Result<OpenedLog, RecoveryError> {
        let log = read.into_log(FileLogOptions::default())?;
        if let Some(lock) = &*self.lock.lock() {
            lock.settle();
        }
        Ok(opened(log))
    }
}

fn open(path: &Path) -> Result<Directory> {
    Directory::open(path).with_context(|| format!("cannot open the directory {}", path.display()))
}

fn opened(log: FileLog) -> OpenedLog {
    let log = Arc::new(log);
    let to_follow = log.clone();
    let follow_on = Box::new(move || DirectoryFollower::behind_closed(&to_follow));
    let files = LocalFiles { log: log.clone(), snapshots: log.snapshots(), follow_on };
    OpenedLog { log, files: Some(files) }
}
