//! The snapshots of one data directory: lists them, begins new ones, removes old ones. Knows nothing of their contents.

use std::sync::Arc;

use super::format::{SnapshotName, Stamp};
use super::info::{SnapshotError, SnapshotInfo};
use super::reader::{SnapshotReadError, SnapshotReader, StoredPart};
use super::store::{ReadSnapshot, SnapshotStore, WriteSnapshot};
use super::writer::SnapshotWriter;
use crate::failure::Operation;
use crate::fence::WriteRight;
use crate::files::WriterIdentity;
use crate::log::Log;
use crate::storage::Storage;

/// The snapshots of a log in files. [`crate::FileLog::snapshots`] returns it.
#[derive(Clone)]
pub struct DirectorySnapshots {
    storage: Arc<dyn Storage>,
    identity: WriterIdentity,
    right: WriteRight,
}

impl DirectorySnapshots {
    pub(crate) fn new(storage: Arc<dyn Storage>, identity: WriterIdentity, right: WriteRight) -> DirectorySnapshots {
        DirectorySnapshots { storage, identity, right }
    }

    /// Begins a snapshot. A reader gets `meta` before the parts.
    pub fn create(&self, meta: &[u8], created_ms: u64) -> Result<SnapshotWriter, SnapshotError> {
        SnapshotWriter::create(self.storage.clone(), &self.identity, self.right.clone(), meta, created_ms)
    }

    /// Removes the snapshots that `newest`, which is durable, replaces. Call [`crate::Maintenance::forget`] up to its
    /// [`SnapshotInfo::min`] afterwards, so that every snapshot on disk has its segments.
    pub fn remove_older(&self, newest: &SnapshotInfo) -> Result<(), SnapshotError> {
        let failed = |operation, file: &str| {
            let file = file.to_owned();
            move |source| SnapshotError::Io { operation, target: file, source }
        };
        let Some(newest_name) = SnapshotName::parse(&newest.name) else { return Ok(()) };
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
            self.storage.sync_directory().map_err(failed(Operation::SyncDirectory, &newest.name))?;
        }
        Ok(())
    }
}

impl SnapshotStore for DirectorySnapshots {
    fn list(&self) -> Result<Vec<SnapshotInfo>, SnapshotReadError> {
        let failed = |source| SnapshotReadError::Io {
            operation: Operation::List,
            target: "the data directory".to_owned(),
            offset: 0,
            source,
        };
        let names = self.storage.list().map_err(failed)?;
        let mut found: Vec<SnapshotName> = names.iter().filter_map(|name| SnapshotName::parse(name)).collect();
        found.sort_unstable_by_key(|name| std::cmp::Reverse(name.generation));
        let readable = found.iter().filter_map(|name| SnapshotReader::open(&*self.storage, &name.file_name()).ok());
        Ok(readable.map(|reader| reader.info().clone()).collect())
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadSnapshot>, SnapshotReadError> {
        Ok(Box::new(SnapshotReader::open(&*self.storage, name)?))
    }

    fn create(&self, meta: &[u8], created_ms: u64) -> Result<Box<dyn WriteSnapshot>, SnapshotError> {
        Ok(Box::new(DirectorySnapshots::create(self, meta, created_ms)?))
    }

    fn remove_older(&self, newest: &SnapshotInfo) -> Result<(), SnapshotError> {
        DirectorySnapshots::remove_older(self, newest)
    }
}

impl WriteSnapshot for SnapshotWriter {
    fn part(&mut self, stamp: Stamp, payload: &[u8], entries: u32) -> Result<(), SnapshotError> {
        SnapshotWriter::part(self, stamp, payload, entries)
    }

    fn finish(self: Box<Self>, log: &dyn Log) -> Result<SnapshotInfo, SnapshotError> {
        SnapshotWriter::finish(*self, log)
    }
}

impl ReadSnapshot for SnapshotReader {
    fn info(&self) -> &SnapshotInfo {
        SnapshotReader::info(self)
    }

    fn meta(&self) -> &[u8] {
        SnapshotReader::meta(self)
    }

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, SnapshotReadError> {
        SnapshotReader::next_part(self)
    }

    fn bytes_read(&self) -> u64 {
        self.offset()
    }
}
