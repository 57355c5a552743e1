//! Batches of bytes to checksummed segment files and back, and snapshots of opaque parts. Refuses to know what a
//! batch or a part means, and has no runtime: plain threads and plain files.
//!
//! The way through:
//!
//! - A [`Storage`] is one directory: [`Directory`] on a disk, [`FaultyStorage`] in memory, where everything that can
//!   go wrong does when a test asks for it.
//! - [`Recovery`] reads what a directory holds: the newest good snapshot, then every batch since. It changes nothing
//!   until [`Recovery::into_journal`] cuts the torn tail and opens a [`FileJournal`] for what comes next.
//! - A [`Journal`] numbers batches, hands them to the operating system, syncs them, and says how far each has come.
//! - A [`SnapshotWriter`] writes the parts of a snapshot and makes them count all at once. Then
//!   [`snapshot::remove_older`] and [`Journal::forget`] drop what it replaces.
//!
//! `docs/journal-format.md` has the byte layout.

#![forbid(unsafe_code)]

mod directory;
mod directory_id;
mod failure;
mod faulty;
mod file_journal;
mod frame;
mod journal;
mod marks;
mod recovery;
mod segment;
mod sequence;
pub mod snapshot;
mod storage;
mod stored_batches;

pub use directory::{Directory, DirectoryLock, LockError};
pub use directory_id::DirectoryId;
pub use failure::{Failure, Operation};
pub use faulty::{Fault, FaultyStorage, Site};
pub use file_journal::{FileJournal, JournalOptions};
pub use journal::{Batches, Journal, ReadError};
pub use recovery::{Progress, Recovery, RecoveryError, Warning};
pub use sequence::Sequence;
pub use snapshot::{Part, SnapshotError, SnapshotInfo, SnapshotReader, SnapshotWriter, Stamp};
pub use storage::{Storage, StorageFile};
