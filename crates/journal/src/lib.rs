//! Stores batches of bytes and reads them back; snapshots of opaque parts. Refuses to know what a batch or a part
//! means, and has no runtime: plain threads and plain files.
//!
//! The main types:
//!
//! - A [`Log`] numbers batches, writes them, makes them durable, reports its marks, and lets readers [`Follow`] it.
//!   [`FileLog`] keeps it in segment files; [`MemoryLog`] is an implementation for tests.
//! - [`Maintenance`] has what only files need: rotation, forgetting, restarts, periodic syncs.
//! - A [`History`] is what a start reads: the parts of a snapshot, then every later batch. [`Recovery`] reads it from a
//!   directory; it changes nothing until [`Recovery::into_log`] truncates the torn tail and opens a [`FileLog`].
//! - A [`DirectoryFollower`] reads on where a [`Recovery`] has ended, while another process writes the directory.
//! - A [`DirectorySnapshots`] writes snapshots, publishes each atomically, and removes older ones.
//! - A [`Storage`] is one directory: [`Directory`] on a disk, [`FaultyStorage`] in memory with injected faults.
//!
//! `docs/journal-format.md` has the byte layout.

#![deny(unsafe_code)]

mod directory_follower;
mod directory_place;
mod epoch;
mod failure;
mod fence;
mod file_log;
mod files;
mod log;
mod maintenance;
mod memory;
mod place;
mod recovery;
mod sequence;
pub mod snapshot;
mod storage;
mod sync;
mod sync_times;

pub use directory_follower::DirectoryFollower;
pub use directory_place::{DirectoryPlace, WithoutFollowers};
pub use epoch::Epoch;
pub use failure::{Failure, Operation};
pub use fence::Fence;
pub use file_log::{FileLog, FileLogOptions};
pub use files::{DirectoryId, EpochId};
pub use log::{Batch, Follow, FollowUpTo, Followed, Log, LogReader, ReadError, Stopper};
pub use maintenance::{Buffers, Maintenance};
pub use memory::{Faults, MemoryLog, MemoryPlace};
pub use place::{Claim, Follower, LogPlace, OpenedLog, Reading};
pub use recovery::{DirectoryError, History, Piece, ReadProgress, Recovery, RecoveryError, Repair, Warning};
pub use sequence::Sequence;
pub use snapshot::{DirectorySnapshots, ReadSnapshot, SnapshotStore, WriteSnapshot};
pub use snapshot::{SnapshotError, SnapshotInfo, SnapshotReadError, SnapshotReader, SnapshotWriter, Stamp, StoredPart};
pub use storage::{Directory, DirectoryLock, Fault, FaultyStorage, LockError, Site, Storage, StorageFile};
pub use sync_times::{SYNC_BOUNDS_NS, SyncHistogram, SyncTimes};
