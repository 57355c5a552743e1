//! Says what can be done about a data directory that cannot be read.

use anyhow::Error;
use journal::{DirectoryError, RecoveryError};
use std::path::Path;

const NO_CUT_MENDS_IT: &str = "no cut mends this: leave the directory as it is, and take the data from a follower, from a backup, or from a \
     copy of the file that is named (docs/operations.md, \"When data is damaged\")";

/// Says of an error of a repair that a cut is of no use.
pub(super) fn no_cut_mends(error: RecoveryError) -> Error {
    match error {
        RecoveryError::Directory(error @ DirectoryError::NotRegular { .. }) => error.into(),
        error => Error::from(error).context(NO_CUT_MENDS_IT),
    }
}

/// Adds to the error of a check what can be done about it.
pub(super) fn with_next_step(error: Error, dir: &Path) -> Error {
    let dir = dir.display();
    match directory_error(&error) {
        Some(DirectoryError::Damaged { file, .. }) if file == "FENCE" => error.context(format!(
            "no server can write {dir}; holdfast check --repair {dir} makes a new FENCE, which loses no data, if no server uses or follows it"
        )),
        Some(DirectoryError::Damaged { .. }) => error.context(format!(
            "{dir} cannot be read; holdfast check --repair {dir} shows what would have to be cut off, and asks before it cuts"
        )),
        Some(DirectoryError::SnapshotLost { .. } | DirectoryError::Missing { .. }) => {
            error.context(format!("{dir} cannot be read; {NO_CUT_MENDS_IT}"))
        }
        _ => error,
    }
}

fn directory_error(error: &Error) -> Option<&DirectoryError> {
    error.chain().find_map(|cause| match cause.downcast_ref::<RecoveryError>() {
        Some(RecoveryError::Directory(error)) => Some(error),
        _ => cause.downcast_ref(),
    })
}
