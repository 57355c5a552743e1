//! The source of a recovery, wherever it is stored. Knows nothing of files.

use thiserror::Error;

use super::finding::{DirectoryError, Warning};
use crate::failure::Failure;
use crate::log::{Batch, ReadError};
use crate::sequence::Sequence;
use crate::snapshot::{SnapshotInfo, SnapshotReadError, StoredPart};

/// A snapshot, if there is one, and the batches since. All parts are read first, then all batches.
pub trait History {
    /// The snapshot that is read, if there is one.
    fn snapshot(&self) -> Option<&SnapshotInfo>;

    /// What was given to [`crate::SnapshotStore::create`]; `None` if there is no snapshot.
    fn meta(&self) -> Option<&[u8]>;

    /// The next part of the snapshot; `None` when all of it was read and checked.
    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, RecoveryError>;

    /// The next batch that some part of the snapshot may lack. A part contains the batches up to its own stamp: the
    /// caller skips these for it. Epochs never decrease from one batch to the next.
    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError>;

    /// The last batch; final once all batches are read.
    fn reached(&self) -> Sequence;

    fn progress(&self) -> ReadProgress;

    /// Warnings for the operator; complete once all batches are read.
    fn warnings(&self) -> &[Warning];
}

/// Why what is stored cannot be read, or not be written any further.
#[derive(Debug, Error)]
pub enum RecoveryError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotReadError),
    #[error(transparent)]
    Batches(#[from] ReadError),
    #[error(transparent)]
    Log(#[from] Failure),
    #[error("the journal was not read to its end")]
    Unfinished,
}

/// How many bytes were read, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadProgress {
    pub bytes_read: u64,
    pub bytes_total: u64,
}
