//! The snapshots of one data directory: begins new ones, removes old ones. Knows nothing of what they hold.

use std::sync::Arc;

use super::format::SnapshotName;
use super::info::{SnapshotError, SnapshotInfo};
use super::writer::SnapshotWriter;
use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::files::DirectoryId;
use crate::storage::Storage;

/// Where the snapshots of a log are. Comes out of [`crate::FileLog::snapshots`].
#[derive(Clone)]
pub struct SnapshotStore {
    storage: Arc<dyn Storage>,
    directory: DirectoryId,
    epoch: Epoch,
}

impl SnapshotStore {
    pub(crate) fn new(storage: Arc<dyn Storage>, directory: DirectoryId, epoch: Epoch) -> SnapshotStore {
        SnapshotStore { storage, directory, epoch }
    }

    /// Begins a snapshot. `meta` comes back before the parts when the snapshot is read.
    pub fn create(&self, meta: &[u8], created_ms: u64) -> Result<SnapshotWriter, SnapshotError> {
        SnapshotWriter::create(self.storage.clone(), self.directory, self.epoch, meta, created_ms)
    }

    /// Removes the snapshots that `newest`, which is durable, replaces. [`crate::LogFiles::forget`] up to its
    /// [`SnapshotInfo::min`] comes after, so that no snapshot stands there without the segments that belong to it.
    pub fn remove_older(&self, newest: &SnapshotInfo) -> Result<(), SnapshotError> {
        let failed = |operation, file: &str| {
            let file = file.to_owned();
            move |source| SnapshotError::Io { operation, file, source }
        };
        let Some(newest_name) = SnapshotName::parse(&newest.file) else { return Ok(()) };
        let mut older: Vec<SnapshotName> = self
            .storage
            .list()
            .map_err(failed(Operation::List, "the data directory"))?
            .iter()
            .filter_map(|name| SnapshotName::parse(name))
            .filter(|name| name.generation < newest_name.generation)
            .collect();
        older.sort_unstable_by_key(|name| name.generation);
        for name in &older {
            let file = name.file_name();
            self.storage.remove(&file).map_err(failed(Operation::Remove, &file))?;
        }
        if !older.is_empty() {
            self.storage.sync_directory().map_err(failed(Operation::SyncDirectory, &newest.file))?;
        }
        Ok(())
    }
}
