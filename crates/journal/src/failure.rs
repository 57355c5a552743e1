//! Errors of a log, worded for its operator. Decides nothing.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::epoch::Epoch;
use crate::sequence::Sequence;

/// Why a log accepts no more batches. Cheap to clone: every waiter gets a copy.
#[derive(Clone, Debug, Error)]
pub enum Failure {
    /// `target` is what was worked on: a file, say.
    #[error("{operation} {target} failed: {message}")]
    Io { operation: Operation, target: Arc<str>, kind: io::ErrorKind, message: Arc<str> },
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
    #[error("the log is damaged: {detail}")]
    Damaged { detail: Arc<str> },
    #[error("a writer of epoch {by} has taken the journal over from this one, of epoch {own}")]
    Fenced { own: Epoch, by: Epoch },
}

/// The operation that failed.
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
    Map,
}

impl Failure {
    pub fn io(operation: Operation, target: &str, error: &io::Error) -> Failure {
        Failure::Io { operation, target: target.into(), kind: error.kind(), message: error.to_string().into() }
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
            Operation::Map => "mapping",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::ReadError;
    use crate::recovery::{DirectoryError, RecoveryError};
    use crate::snapshot::{SnapshotError, SnapshotReadError};
    use crate::storage::LockError;
    use std::error::Error;

    /// Every error of this crate that has a source.
    fn with_sources() -> Vec<Box<dyn Error>> {
        let source = || io::Error::other("the disk is gone");
        let (operation, file) = (Operation::Rename, || "MARKS".to_owned());
        let failure = || Failure::io(operation, "MARKS", &source());
        let io = || DirectoryError::Io { operation, file: file(), offset: 0, source: source() };
        vec![
            Box::new(SnapshotError::Io { operation, target: file(), source: source() }),
            Box::new(SnapshotError::Journal(failure())),
            Box::new(SnapshotReadError::Io { operation, target: file(), offset: 7, source: source() }),
            Box::new(ReadError::Io { operation, target: file(), offset: 7, source: source() }),
            Box::new(LockError::Io { path: "data".into(), source: source() }),
            Box::new(io()),
            Box::new(RecoveryError::Log(failure())),
            Box::new(DirectoryError::SnapshotLost {
                file: file(),
                offset: 7,
                detail: "cut".into(),
                journal: Box::new(io()),
            }),
        ]
    }

    #[test]
    fn no_error_repeats_its_source() {
        for error in with_sources() {
            let (mut chain, mut next) = (Vec::new(), Some(&*error));
            while let Some(error) = next {
                chain.push(error.to_string());
                next = error.source();
            }
            let all = chain.join(": ");
            assert_eq!(all.matches("the disk is gone").count(), 1, "{all}");
            assert!(chain.windows(2).all(|pair| !pair[0].contains(&pair[1])), "{all}");
        }
    }

    /// An attribute that names a source would make its text appear twice.
    #[test]
    fn no_text_of_an_error_names_its_source() {
        let sources = [
            include_str!("failure.rs"),
            include_str!("log.rs"),
            include_str!("recovery/finding.rs"),
            include_str!("snapshot/info.rs"),
            include_str!("snapshot/reader.rs"),
            include_str!("storage/lock.rs"),
        ];
        let lines = sources.iter().flat_map(|source| source.lines()).map(str::trim);
        for (line, next) in lines.clone().zip(lines.skip(1)).filter(|(line, _)| line.starts_with("#[error(\"")) {
            assert!(!line.contains("{source"), "{line}");
            assert!(
                !(line.contains("{0}") && (next.contains("#[from]") || next.contains("#[source]"))),
                "{line} {next}"
            );
        }
    }
}
