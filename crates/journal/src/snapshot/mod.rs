//! Snapshots: files of opaque parts that count all at once or not at all. Knows what part is stamped with what
//! sequence; refuses to know what is in it.
//!
//! A snapshot is taken part by part while the journal goes on, so each part says up to which sequence it is complete.
//! What a snapshot and the journal say together is only consistent once the journal is on disk up to the *last* of
//! those stamps; [`SnapshotWriter::finish`] sees to that before it gives the file its name.

mod format;
mod reader;
mod writer;

use std::io;

use thiserror::Error;

use crate::failure::{Failure, Operation};
use crate::sequence::Sequence;
use crate::storage::Storage;

pub use format::Stamp;
pub(crate) use format::{SnapshotName, is_temporary};
pub use reader::{Part, SnapshotReadError, SnapshotReader};
pub use writer::SnapshotWriter;

/// What a finished snapshot holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotInfo {
    pub file: String,
    pub created_ms: u64,
    pub parts: u64,
    pub entries: u64,
    /// The lowest sequence a part is stamped with: the journal is needed from the next one on.
    pub min: Sequence,
    /// The highest sequence a part is stamped with: the journal is needed at least up to here.
    pub max: Sequence,
    pub bytes: u64,
}

/// Why a snapshot was not written.
#[derive(Debug, Error)]
pub enum SnapshotError {
    #[error("{operation} {file} failed: {source}")]
    Io { operation: Operation, file: String, source: io::Error },
    #[error("a snapshot needs at least one part")]
    Empty,
    #[error("a part of {bytes} bytes is larger than a snapshot can hold in one part")]
    TooLarge { bytes: usize },
    #[error("the snapshot was given up after an earlier error")]
    GivenUp,
    #[error("the snapshot is of no use without the journal: {0}")]
    Journal(#[from] Failure),
}

/// Removes the snapshots that `newest`, which is durable, replaces. [`crate::Journal::forget`] up to its
/// [`SnapshotInfo::min`] comes after, so that no snapshot stands there without the segments that belong to it.
pub fn remove_older(storage: &dyn Storage, newest: &SnapshotInfo) -> Result<(), SnapshotError> {
    let failed = |operation, file: &str| {
        let file = file.to_owned();
        move |source| SnapshotError::Io { operation, file, source }
    };
    let Some(newest_name) = SnapshotName::parse(&newest.file) else { return Ok(()) };
    let mut older: Vec<SnapshotName> = storage
        .list()
        .map_err(failed(Operation::List, "the data directory"))?
        .iter()
        .filter_map(|name| SnapshotName::parse(name))
        .filter(|name| name.generation < newest_name.generation)
        .collect();
    older.sort_unstable_by_key(|name| name.generation);
    for name in &older {
        let file = name.file_name();
        storage.remove(&file).map_err(failed(Operation::Remove, &file))?;
    }
    if !older.is_empty() {
        storage.sync_directory().map_err(failed(Operation::SyncDirectory, &newest.file))?;
    }
    Ok(())
}
