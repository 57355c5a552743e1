//! What brings a state back, wherever it is read from. Knows nothing of files.

use super::finding::RecoveryError;
use crate::log::Batch;
use crate::sequence::Sequence;
use crate::snapshot::{Part, SnapshotInfo};

/// A snapshot, if there is one, and the batches since. First all parts are read, then all batches.
pub trait History {
    /// The snapshot that is read, if there is one.
    fn snapshot(&self) -> Option<&SnapshotInfo>;

    /// What was given to [`crate::SnapshotStore::create`]; `None` if there is no snapshot.
    fn meta(&self) -> Option<&[u8]>;

    /// The next part of the snapshot; `None` once all of it was read and is right.
    fn next_part(&mut self) -> Result<Option<Part<'_>>, RecoveryError>;

    /// The next batch that some part of the snapshot may not have. A part has those up to its own stamp: the caller
    /// skips these for it. Epochs never go back from one batch to the next.
    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError>;

    /// The last batch; final once all batches are read.
    fn reached(&self) -> Sequence;

    fn progress(&self) -> Progress;

    /// What an operator should know, in sentences; complete once all batches are read.
    fn notes(&self) -> Vec<String>;
}

/// How far reading is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub bytes_read: u64,
    pub bytes_total: u64,
}
