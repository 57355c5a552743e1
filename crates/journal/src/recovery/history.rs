//! The source of a recovery, wherever it is stored. Knows nothing of files.

use super::finding::{RecoveryError, Warning};
use crate::log::Batch;
use crate::sequence::Sequence;
use crate::snapshot::{SnapshotInfo, StoredPart};

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

/// How many bytes were read, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadProgress {
    pub bytes_read: u64,
    pub bytes_total: u64,
}
