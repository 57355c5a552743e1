//! What went wrong with a log, in words for its operator. Decides nothing.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::epoch::Epoch;
use crate::sequence::Sequence;

/// Why a log takes no more batches. Cheap to clone: every waiter gets a copy.
#[derive(Clone, Debug, Error)]
pub enum Failure {
    #[error("{operation} {file} failed: {message}")]
    Io { operation: Operation, file: Arc<str>, kind: io::ErrorKind, message: Arc<str> },
    #[error("the journal was restarted and counts again only once a snapshot is complete")]
    AwaitingSnapshot,
    #[error(
        "the snapshot has a part from sequence {stamped}, but the journal was restarted after that: \
         every part must be from sequence {needed} or later"
    )]
    SnapshotTooOld { stamped: Sequence, needed: Sequence },
    #[error("a batch of {bytes} bytes is longer than the journal can keep in one piece")]
    TooLong { bytes: usize },
    #[error("the journal is closed")]
    Closed,
    #[error("a writer of epoch {by} has taken the journal over from this one, of epoch {own}")]
    Fenced { own: Epoch, by: Epoch },
}

/// What was being done to a file when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    List,
    Create,
    Open,
    Read,
    Write,
    Sync,
    Truncate,
    Reserve,
    Rename,
    Remove,
    SyncDirectory,
}

impl Failure {
    pub(crate) fn io(operation: Operation, file: &str, error: &io::Error) -> Failure {
        Failure::Io { operation, file: file.into(), kind: error.kind(), message: error.to_string().into() }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Operation::List => "listing",
            Operation::Create => "creating",
            Operation::Open => "opening",
            Operation::Read => "reading",
            Operation::Write => "writing",
            Operation::Sync => "syncing",
            Operation::Truncate => "truncating",
            Operation::Reserve => "reserving space for",
            Operation::Rename => "renaming",
            Operation::Remove => "removing",
            Operation::SyncDirectory => "syncing the directory of",
        })
    }
}
