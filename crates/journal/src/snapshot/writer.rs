//! Writes a snapshot under a temporary name and publishes it atomically. Knows nothing of the contents of parts.

use std::sync::Arc;

use super::format::{self, Header, PartHeader, SnapshotName, Stamp, Totals};
use super::info::{SnapshotError, SnapshotInfo};
use crate::failure::Operation;
use crate::fence::WriteRight;
use crate::files::WriterIdentity;
use crate::log::Log;
use crate::storage::{Storage, StorageFile, write_all_at};

/// Parts are buffered up to this size and written together.
const BUFFER_BYTES: usize = 1024 * 1024;

/// How often the file is synced while it is written, so that the last sync does not flood the disk while the journal
/// needs it.
const SYNC_EVERY_BYTES: u64 = 32 * 1024 * 1024;

/// A snapshot being written. If it is dropped unfinished, its file is removed.
pub struct SnapshotWriter {
    storage: Arc<dyn Storage>,
    right: WriteRight,
    generation: u64,
    temporary: String,
    /// `None` when there is nothing left to remove.
    file: Option<Box<dyn StorageFile>>,
    created_ms: u64,
    buffer: Vec<u8>,
    written_bytes: u64,
    synced_bytes: u64,
    totals: Totals,
    has_failed: bool,
}

impl SnapshotWriter {
    /// See [`super::SnapshotStore::create`].
    pub(super) fn create(
        storage: Arc<dyn Storage>,
        identity: &WriterIdentity,
        right: WriteRight,
        meta: &[u8],
        created_ms: u64,
    ) -> Result<SnapshotWriter, SnapshotError> {
        right.check()?;
        if u32::try_from(meta.len()).is_err() {
            return Err(SnapshotError::TooLarge { bytes: meta.len() });
        }
        let names = storage.list().map_err(|source| SnapshotError::Io {
            operation: Operation::List,
            target: "the data directory".to_owned(),
            source,
        })?;
        let generations = names.iter().filter_map(|name| {
            SnapshotName::parse(name).map(|name| name.generation).or(format::temporary_generation(name))
        });
        let generation = generations.max().unwrap_or(0) + 1;
        let temporary = format::temporary_name(generation, identity.epoch);
        let file = storage.create(&temporary).map_err(|source| SnapshotError::Io {
            operation: Operation::Create,
            target: temporary.clone(),
            source,
        })?;
        Ok(SnapshotWriter {
            storage,
            right,
            generation,
            temporary,
            file: Some(file),
            created_ms,
            buffer: Header::encode(identity, created_ms, meta),
            written_bytes: 0,
            synced_bytes: 0,
            totals: Totals { epoch: identity.epoch, ..Totals::EMPTY },
            has_failed: false,
        })
    }

    /// Adds a part with its number of entries. May write, so the caller must not hold a lock that others need.
    pub fn part(&mut self, stamp: Stamp, payload: &[u8], entries: u32) -> Result<(), SnapshotError> {
        let Ok(length) = u32::try_from(payload.len()) else {
            return Err(SnapshotError::TooLarge { bytes: payload.len() });
        };
        let header = PartHeader { stamp, length, entries };
        let encoded = header.encode(payload);
        self.totals.add(&header, &encoded);
        self.buffer.extend_from_slice(&encoded);
        if payload.len() >= BUFFER_BYTES {
            self.flush()?;
            return self.write(payload);
        }
        self.buffer.extend_from_slice(payload);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Publishes the snapshot: syncs the journal up to the highest stamp, syncs the file, renames it, syncs the
    /// directory. When this returns, the snapshot is durable.
    ///
    /// After an error behind the rename the snapshot may or may not exist after a power failure. Either is consistent
    /// with the journal, as long as nothing is forgotten because of it.
    pub fn finish(mut self, log: &dyn Log) -> Result<SnapshotInfo, SnapshotError> {
        if self.totals.parts == 0 {
            return Err(SnapshotError::Empty);
        }
        self.buffer.extend_from_slice(&self.totals.encode());
        self.flush()?;
        self.sync()?;
        // IMPORTANT: before the rename. A part stamped later than the journal reaches would contain half of a batch
        // whose other half is lost.
        log.wait_durable_for_snapshot(self.totals.min, self.totals.max)?;
        let file = SnapshotName { generation: self.generation, max: self.totals.max }.file_name();
        self.right.check()?;
        // IMPORTANT: it replaces no file. If the fence is raised between the check and this, the snapshot holds batches
        // that the next writer has, or it is of a restart that never counted, and recovery removes it.
        let renamed = self.storage.rename_new(&self.temporary, &file);
        renamed.map_err(|source| self.failed(Operation::Rename, source))?;
        self.file = None;
        // IMPORTANT: before anything is removed or accepted because of it.
        self.right.check()?;
        if let Err(source) = self.storage.sync_directory() {
            // Otherwise each attempt would leave a whole snapshot. If this fails too, it stays until a snapshot
            // succeeds.
            let _ = self.storage.remove(&file);
            return Err(self.failed(Operation::SyncDirectory, source));
        }
        Ok(SnapshotInfo {
            name: file,
            created_ms: self.created_ms,
            parts: self.totals.parts,
            entries: self.totals.entries,
            min: self.totals.min,
            max: self.totals.max,
            epoch: self.totals.epoch,
            bytes: self.written_bytes,
        })
    }

    /// Abandons the snapshot, as dropping it does.
    pub fn abort(self) {}

    fn flush(&mut self) -> Result<(), SnapshotError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        // A hole from a failed write must not be hidden by later writes.
        let Some(file) = self.file.as_ref().filter(|_| !self.has_failed) else { return Err(SnapshotError::GivenUp) };
        write_all_at(&**file, bytes, self.written_bytes).map_err(|source| self.failed(Operation::Write, source))?;
        self.written_bytes += bytes.len() as u64;
        if self.written_bytes - self.synced_bytes >= SYNC_EVERY_BYTES { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), SnapshotError> {
        let Some(file) = self.file.as_ref().filter(|_| !self.has_failed) else { return Err(SnapshotError::GivenUp) };
        file.sync().map_err(|source| self.failed(Operation::Sync, source))?;
        self.synced_bytes = self.written_bytes;
        Ok(())
    }

    fn failed(&mut self, operation: Operation, source: std::io::Error) -> SnapshotError {
        self.has_failed = true;
        SnapshotError::Io { operation, target: self.temporary.clone(), source }
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // If this fails the file stays, and the next start removes it.
            let _ = self.storage.remove(&self.temporary);
        }
    }
}
