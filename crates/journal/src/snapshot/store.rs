//! The snapshots of one data directory: begins new ones, removes old ones. Knows nothing of their contents.

use std::sync::Arc;

use super::format::SnapshotName;
use super::info::{SnapshotError, SnapshotInfo};
use super::writer::SnapshotWriter;
use crate::failure::Operation;
use crate::fence::WriteRight;
use crate::files::WriterIdentity;
use crate::storage::Storage;

/// The snapshots of a log. [`crate::FileLog::snapshots`] returns it.
#[derive(Clone)]
pub struct SnapshotStore {
    storage: Arc<dyn Storage>,
    identity: WriterIdentity,
    right: WriteRight,
}

impl SnapshotStore {
    pub(crate) fn new(storage: Arc<dyn Storage>, identity: WriterIdentity, right: WriteRight) -> SnapshotStore {
        SnapshotStore { storage, identity, right }
    }

    /// Begins a snapshot. A reader gets `meta` before the parts.
    pub fn create(&self, meta: &[u8], created_ms: u64) -> Result<SnapshotWriter, SnapshotError> {
        SnapshotWriter::create(self.storage.clone(), &self.identity, self.right.clone(), meta, created_ms)
    }

    /// Removes the snapshots that `newest`, which is durable, replaces. Call [`crate::LogFiles::forget`] up to its
    /// [`SnapshotInfo::min`] afterwards, so that every snapshot on disk has its segments.
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
            // IMPORTANT: before each one. If the fence is raised right after this, the removal is harmless: `newest`
            // was there before, so the next writer has it.
            self.right.check()?;
            self.storage.remove(&file).map_err(failed(Operation::Remove, &file))?;
        }
        if !older.is_empty() {
            self.storage.sync_directory().map_err(failed(Operation::SyncDirectory, &newest.file))?;
        }
        Ok(())
    }
}
