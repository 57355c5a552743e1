//! What recovery found, worded for the operator. Decides nothing.

use std::io;

use thiserror::Error;

use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::files::{DirectoryId, EpochId};
use crate::snapshot::SnapshotReadError;

/// A condition that an operator should know about, although recovery continues.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Warning {
    #[error(
        "{file} ends in {bytes} bytes, from offset {offset} on, of batches that were not yet durable when the server \
         stopped: they are dropped"
    )]
    TornTail { file: String, offset: u64, bytes: u64 },
    #[error("{file} ({bytes} bytes) has no durable batch and does not continue the journal: it is removed")]
    SegmentDropped { file: String, bytes: u64 },
    #[error("{file} was left behind by a writer from which another had taken the directory over: it is removed")]
    LeftBehind { file: String },
    #[error("{file} is damaged at offset {offset} ({detail}): an older state and the journal since are used instead")]
    SnapshotDamaged { file: String, offset: u64, detail: String },
    #[error("MARKS is missing: a loss of batches at the end of the journal cannot be detected this time")]
    MarksMissing,
    #[error("MARKS cannot be read: a loss of batches at the end of the journal cannot be detected this time")]
    MarksUnreadable,
}

/// Why a directory cannot be recovered. A text does not repeat that of its source: the reporter prints the whole chain.
#[derive(Debug, Error)]
pub enum DirectoryError {
    #[error("{file} is damaged at offset {offset}: {detail}")]
    Damaged { file: String, offset: u64, detail: String },
    #[error("{file} is damaged at offset {offset}: {detail}; and the journal cannot replace it")]
    SnapshotLost {
        file: String,
        offset: u64,
        detail: String,
        #[source]
        journal: Box<DirectoryError>,
    },
    #[error("{file} is missing: {detail}")]
    Missing { file: String, detail: String },
    #[error("{file} belongs to another data directory: it has the id {id}, but {other_file} has {other_id}")]
    Foreign { file: String, id: DirectoryId, other_file: String, other_id: DirectoryId },
    #[error(
        "{file} and {other_file} are of two copies of this directory that were both written: epoch {epoch} has the id {id} in one \
         and {other_id} in the other"
    )]
    Diverged { file: String, epoch: Epoch, id: EpochId, other_file: String, other_id: EpochId },
    #[error("{file} is of epoch {epoch}, but {other_file}, which comes before it, is of epoch {other_epoch}")]
    EpochWentBack { file: String, epoch: Epoch, other_file: String, other_epoch: Epoch },
    #[error("{file} was written by a newer version of Holdfast (format {version})")]
    NewerFormat { file: String, version: u32 },
    #[error("{file} has the epoch {epoch}, and no epoch comes after it: nobody can begin to write here")]
    NoNextEpoch { file: String, epoch: Epoch },
    #[error(
        "{file} is a symbolic link, or no regular file: what it leads to is not touched; put a regular file in its place, or remove it"
    )]
    NotRegular { file: String },
    #[error("{operation} {file} failed at offset {offset}")]
    Io { operation: Operation, file: String, offset: u64, source: io::Error },
}

impl From<SnapshotReadError> for DirectoryError {
    fn from(error: SnapshotReadError) -> Self {
        match error {
            SnapshotReadError::Damaged { target: file, offset, detail } => {
                DirectoryError::Damaged { file, offset, detail: detail.to_owned() }
            }
            SnapshotReadError::NewerFormat { target: file, version } => DirectoryError::NewerFormat { file, version },
            SnapshotReadError::Io { operation, target: file, offset, source } => {
                DirectoryError::Io { operation, file, offset, source }
            }
        }
    }
}
