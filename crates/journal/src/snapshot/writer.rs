//! Writes a snapshot under a temporary name and makes it count in one step. Knows nothing of what the parts hold.

use std::sync::Arc;

use super::format::{self, Header, PartHeader, SnapshotName, Stamp, Totals};
use super::info::{SnapshotError, SnapshotInfo};
use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::files::DirectoryId;
use crate::log::Log;
use crate::storage::{Storage, StorageFile, write_all_at};

/// Parts are gathered up to this and written at once.
const BUFFER_BYTES: usize = 1024 * 1024;

/// Synced this often on the way, so that the last sync does not flood the disk while the journal waits for its own.
const SYNC_EVERY_BYTES: u64 = 32 * 1024 * 1024;

/// A snapshot on its way. Unless it is finished, its file is removed when this is dropped.
pub struct SnapshotWriter {
    storage: Arc<dyn Storage>,
    generation: u64,
    temporary: String,
    /// `None` once there is nothing to remove any more.
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
        directory: DirectoryId,
        epoch: Epoch,
        meta: &[u8],
        created_ms: u64,
    ) -> Result<SnapshotWriter, SnapshotError> {
        if u32::try_from(meta.len()).is_err() {
            return Err(SnapshotError::TooLarge { bytes: meta.len() });
        }
        let names = storage.list().map_err(|source| SnapshotError::Io {
            operation: Operation::List,
            file: "the data directory".to_owned(),
            source,
        })?;
        let generations = names.iter().filter_map(|name| {
            SnapshotName::parse(name).map(|name| name.generation).or(format::temporary_generation(name))
        });
        let generation = generations.max().unwrap_or(0) + 1;
        let temporary = format::temporary_name(generation);
        let file = storage.create(&temporary).map_err(|source| SnapshotError::Io {
            operation: Operation::Create,
            file: temporary.clone(),
            source,
        })?;
        Ok(SnapshotWriter {
            storage,
            generation,
            temporary,
            file: Some(file),
            created_ms,
            buffer: Header::encode(directory, created_ms, meta),
            written_bytes: 0,
            synced_bytes: 0,
            totals: Totals { epoch, ..Totals::EMPTY },
            has_failed: false,
        })
    }

    /// Adds a part with its number of entries. May write, so the caller holds no lock that others wait for.
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

    /// Makes the snapshot count: syncs the journal up to the highest stamp, syncs the file, gives it its name, syncs
    /// the directory. When this returns, the snapshot is durable.
    ///
    /// On an error after the renaming the snapshot may or may not be there after a power failure. Either is
    /// consistent with the journal, as long as nothing is forgotten on the strength of it.
    pub fn finish(mut self, log: &dyn Log) -> Result<SnapshotInfo, SnapshotError> {
        if self.totals.parts == 0 {
            return Err(SnapshotError::Empty);
        }
        self.buffer.extend_from_slice(&self.totals.encode());
        self.flush()?;
        self.sync()?;
        // IMPORTANT: before the name. A part stamped later than the journal reaches would hold half of a batch whose
        // other half, for another part, is gone.
        log.wait_durable_for_snapshot(self.totals.min, self.totals.max)?;
        let file = SnapshotName { generation: self.generation, max: self.totals.max }.file_name();
        let renamed = self.storage.rename(&self.temporary, &file);
        renamed.map_err(|source| self.failed(Operation::Rename, source))?;
        self.file = None;
        if let Err(source) = self.storage.sync_directory() {
            // Else each attempt would leave a whole snapshot behind. If this fails too, it stays until one succeeds.
            let _ = self.storage.remove(&file);
            return Err(self.failed(Operation::SyncDirectory, source));
        }
        Ok(SnapshotInfo {
            file,
            created_ms: self.created_ms,
            parts: self.totals.parts,
            entries: self.totals.entries,
            min: self.totals.min,
            max: self.totals.max,
            epoch: self.totals.epoch,
            bytes: self.written_bytes,
        })
    }

    /// Gives the snapshot up. So does dropping it.
    pub fn abort(self) {}

    fn flush(&mut self) -> Result<(), SnapshotError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        // A hole from a write that failed must not be hidden by those that follow it.
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
        SnapshotError::Io { operation, file: self.temporary.clone(), source }
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
