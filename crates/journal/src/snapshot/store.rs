//! The interface of a place where snapshots are kept. Knows nothing of files, and nothing of their contents.

use super::format::Stamp;
use super::info::{SnapshotError, SnapshotInfo};
use super::reader::{SnapshotReadError, StoredPart};
use crate::log::Log;

/// Keeps snapshots. Each is written in parts, appears whole or not at all, and never changes.
pub trait SnapshotStore: Send + Sync {
    /// Those that can be read, newest first.
    fn list(&self) -> Result<Vec<SnapshotInfo>, SnapshotReadError>;

    /// Opens one by its [`SnapshotInfo::name`].
    fn open(&self, name: &str) -> Result<Box<dyn ReadSnapshot>, SnapshotReadError>;

    /// Begins a snapshot. A reader gets `meta` before the parts.
    fn create(&self, meta: &[u8], created_ms: u64) -> Result<Box<dyn WriteSnapshot>, SnapshotError>;

    /// Removes the snapshots that `newest`, which is durable, replaces. Call [`crate::Maintenance::forget`] up to its
    /// [`SnapshotInfo::min`] afterwards, so that every snapshot that is kept has its batches.
    fn remove_older(&self, newest: &SnapshotInfo) -> Result<(), SnapshotError>;
}

/// A snapshot being written. If it is dropped unfinished, nothing of it stays.
pub trait WriteSnapshot {
    /// Adds a part with its number of entries. May write, so the caller must not hold a lock that others need.
    fn part(&mut self, stamp: Stamp, payload: &[u8], entries: u32) -> Result<(), SnapshotError>;

    /// Publishes the snapshot, once the log is durable up to the highest stamp. When this returns, it is durable.
    fn finish(self: Box<Self>, log: &dyn Log) -> Result<SnapshotInfo, SnapshotError>;
}

/// A snapshot being read.
pub trait ReadSnapshot: Send {
    fn info(&self) -> &SnapshotInfo;

    /// What was given to [`SnapshotStore::create`].
    fn meta(&self) -> &[u8];

    /// The next part; `None` when all parts were read and checked.
    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, SnapshotReadError>;

    /// How many bytes have been read.
    fn bytes_read(&self) -> u64;
}
