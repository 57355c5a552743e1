//! Snapshots in memory. Knows nothing of the contents of parts.

use std::sync::Arc;

use super::state::{KeptSnapshot, Part, Shared, away};
use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::log::Log;
use crate::snapshot::{
    ReadSnapshot, SnapshotError, SnapshotInfo, SnapshotReadError, SnapshotStore, Stamp, StoredPart, WriteSnapshot,
};

/// The snapshots of a place in memory, for the writer of an epoch.
pub(super) struct MemorySnapshots {
    pub(super) shared: Arc<Shared>,
    pub(super) epoch: Epoch,
}

fn read_failure(name: &str, kind: std::io::ErrorKind) -> SnapshotReadError {
    SnapshotReadError::Io { operation: Operation::Open, target: name.to_owned(), offset: 0, source: kind.into() }
}

impl SnapshotStore for MemorySnapshots {
    fn list(&self) -> Result<Vec<SnapshotInfo>, SnapshotReadError> {
        let state = self.shared.state.lock();
        if state.is_away {
            return Err(read_failure("memory:", std::io::ErrorKind::TimedOut));
        }
        Ok(state.snapshots.iter().rev().map(|kept| kept.info.clone()).collect())
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadSnapshot>, SnapshotReadError> {
        let state = self.shared.state.lock();
        if state.is_away {
            return Err(read_failure(name, std::io::ErrorKind::TimedOut));
        }
        match state.snapshots.iter().find(|kept| kept.info.name == name) {
            Some(kept) => Ok(Box::new(MemorySnapshotReader::new(kept.clone()))),
            None => Err(read_failure(name, std::io::ErrorKind::NotFound)),
        }
    }

    fn create(&self, meta: &[u8], created_ms: u64) -> Result<Box<dyn WriteSnapshot>, SnapshotError> {
        self.shared.state.lock().check(self.epoch)?;
        let (shared, epoch) = (self.shared.clone(), self.epoch);
        Ok(Box::new(MemorySnapshotWriter { shared, epoch, meta: meta.to_vec(), created_ms, parts: Vec::new() }))
    }

    fn remove_older(&self, newest: &SnapshotInfo) -> Result<(), SnapshotError> {
        let mut state = self.shared.state.lock();
        state.check(self.epoch)?;
        let number = state.snapshots.iter().find(|kept| kept.info.name == newest.name).map_or(0, |kept| kept.number);
        state.snapshots.retain(|kept| kept.number >= number);
        Ok(())
    }
}

struct MemorySnapshotWriter {
    shared: Arc<Shared>,
    epoch: Epoch,
    meta: Vec<u8>,
    created_ms: u64,
    parts: Vec<Part>,
}

impl WriteSnapshot for MemorySnapshotWriter {
    fn part(&mut self, stamp: Stamp, payload: &[u8], entries: u32) -> Result<(), SnapshotError> {
        self.parts.push(Part { stamp, entries, payload: payload.to_vec() });
        Ok(())
    }

    fn finish(self: Box<Self>, log: &dyn Log) -> Result<SnapshotInfo, SnapshotError> {
        let MemorySnapshotWriter { shared, epoch, meta, created_ms, parts } = *self;
        let stamps = || parts.iter().map(|part| part.stamp.sequence);
        let (Some(min), Some(max)) = (stamps().min(), stamps().max()) else { return Err(SnapshotError::Empty) };
        log.wait_durable_for_snapshot(min, max)?;
        let mut state = shared.state.lock();
        state.check(epoch)?;
        if state.chance.refuses_snapshot() {
            return Err(SnapshotError::Journal(away()));
        }
        state.last_snapshot += 1;
        let number = state.last_snapshot;
        let info = SnapshotInfo {
            name: format!("snapshot {number}"),
            created_ms,
            parts: parts.len() as u64,
            entries: parts.iter().map(|part| u64::from(part.entries)).sum(),
            min,
            max,
            epoch,
            bytes: parts.iter().map(|part| part.payload.len() as u64).sum(),
        };
        state.snapshots.push(Arc::new(KeptSnapshot { info: info.clone(), number, meta, parts }));
        Ok(info)
    }
}

pub(super) struct MemorySnapshotReader {
    kept: Arc<KeptSnapshot>,
    next: usize,
    bytes_read: u64,
}

impl MemorySnapshotReader {
    pub(super) fn new(kept: Arc<KeptSnapshot>) -> MemorySnapshotReader {
        MemorySnapshotReader { kept, next: 0, bytes_read: 0 }
    }
}

impl ReadSnapshot for MemorySnapshotReader {
    fn info(&self) -> &SnapshotInfo {
        &self.kept.info
    }

    fn meta(&self) -> &[u8] {
        &self.kept.meta
    }

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, SnapshotReadError> {
        let Some(part) = self.kept.parts.get(self.next) else { return Ok(None) };
        self.next += 1;
        self.bytes_read += part.payload.len() as u64;
        Ok(Some(StoredPart { stamp: part.stamp, entries: part.entries, payload: &part.payload }))
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}
