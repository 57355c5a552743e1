//! The data directory: locks it, reads it, and opens its log for writing. The one place that knows that the log is
//! stored in local files; everything else uses `journal::Log` and `journal::History`.

use super::keeper::{LocalFiles, OpenedLog};
use anyhow::{Context, Result};
use journal::{Directory, DirectoryLock, FileLogOptions, Recovery, RecoveryError, Storage};
use std::path::Path;
use std::sync::Arc;

/// A data directory that is in use by this process.
pub(crate) struct DataDirectory {
    storage: Arc<dyn Storage>,
    /// Held until the process ends.
    _lock: DirectoryLock,
}

impl DataDirectory {
    /// For this process alone. Makes the directory if there is none.
    pub(crate) fn create(path: &Path) -> Result<DataDirectory> {
        let storage =
            Directory::create(path).with_context(|| format!("cannot create the directory {}", path.display()))?;
        Ok(DataDirectory { storage: Arc::new(storage), _lock: DirectoryLock::acquire(path)? })
    }

    /// Opens the directory beside other readers, and creates no file: the directory may be read-only.
    pub(crate) fn open_shared(path: &Path) -> Result<DataDirectory> {
        let storage = Directory::open(path).with_context(|| format!("cannot open the directory {}", path.display()))?;
        Ok(DataDirectory { storage: Arc::new(storage), _lock: DirectoryLock::acquire_shared(path)? })
    }

    /// What the directory holds. Changes nothing.
    pub(crate) fn read(&self) -> Result<Recovery, RecoveryError> {
        Recovery::open(self.storage.clone())
    }
}

/// Opens a log for what comes next, once all of it has been read.
pub(crate) fn open_log(read: Recovery) -> Result<OpenedLog, RecoveryError> {
    let log = Arc::new(read.into_log(FileLogOptions::default())?);
    let files = LocalFiles { log: log.clone(), snapshots: log.snapshots() };
    Ok(OpenedLog { log, files: Some(files) })
}
