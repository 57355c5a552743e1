//! The contents of a finished snapshot, and why one was not finished. Decides nothing.

use std::io;

use thiserror::Error;

use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::sequence::Sequence;

/// The contents of a finished snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotInfo {
    /// What it is called where it is kept.
    pub name: String,
    pub created_ms: u64,
    pub parts: u64,
    pub entries: u64,
    /// The lowest stamp of a part: the journal is needed from the next sequence on.
    pub min: Sequence,
    /// The highest stamp of a part: the journal is needed at least up to here.
    pub max: Sequence,
    /// The epoch of the writer that made it.
    pub epoch: Epoch,
    pub bytes: u64,
}

/// Why a snapshot was not written.
#[derive(Debug, Error)]
pub enum SnapshotError {
    #[error("{operation} {target} failed")]
    Io { operation: Operation, target: String, source: io::Error },
    #[error("a snapshot needs at least one part")]
    Empty,
    #[error("a part of {bytes} bytes is larger than a snapshot can hold in one part")]
    TooLarge { bytes: usize },
    #[error("the snapshot was abandoned after an earlier error")]
    GivenUp,
    #[error("the snapshot is useless without the journal")]
    Journal(#[from] Failure),
}
