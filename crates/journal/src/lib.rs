//! Batches of bytes to storage and back, and snapshots of opaque parts. Refuses to know what a batch or a part means,
//! and has no runtime: plain threads and plain files.
//!
//! The way through:
//!
//! - A [`Log`] numbers batches, writes them, makes them durable, says how far each is, and lets readers
//!   [`Follow`] it. [`FileLog`] keeps it in segment files; [`MemoryLog`] is its twin for tests.
//! - [`LogFiles`] is what only files need: rotation, forgetting, restarts, syncs by time.
//! - A [`History`] is what a start reads: the parts of a snapshot, then every batch since. [`Recovery`] reads it from a
//!   directory; it changes nothing until [`Recovery::into_log`] cuts the torn tail and opens a [`FileLog`].
//! - A [`SnapshotStore`] writes snapshots and makes them count all at once, then drops older ones.
//! - A [`Storage`] is one directory: [`Directory`] on a disk, [`FaultyStorage`] in memory, where everything that can
//!   go wrong does when a test asks for it.
//!
//! `docs/journal-format.md` has the byte layout.

#![forbid(unsafe_code)]

mod epoch;
mod failure;
mod file_log;
mod files;
mod log;
mod memory_log;
mod recovery;
mod sequence;
pub mod snapshot;
mod storage;

pub use epoch::Epoch;
pub use failure::{Failure, Operation};
pub use file_log::{FileLog, FileLogOptions, LogFiles};
pub use files::DirectoryId;
pub use log::{Batch, Follow, FollowUpTo, Followed, Log, ReadError, Stopper};
pub use memory_log::MemoryLog;
pub use recovery::{History, Progress, Recovery, RecoveryError, Warning};
pub use sequence::Sequence;
pub use snapshot::{Part, SnapshotError, SnapshotInfo, SnapshotReader, SnapshotStore, SnapshotWriter, Stamp};
pub use storage::{Directory, DirectoryLock, Fault, FaultyStorage, LockError, Site, Storage, StorageFile};
