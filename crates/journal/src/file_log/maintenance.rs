//! Operations that only a log in local files has. Knows nothing of how they are done.

use std::time::Duration;

use crate::failure::Failure;
use crate::log::Log;
use crate::sequence::Sequence;

/// Maintenance of a log in local files.
///
/// ```text
///             write or sync fails               restart
///    Sound  ----------------------->  Failed  ----------->  Restarted
///      ^  \                              ^                   |    |
///      |   `-------- restart ------------|-------------------'    |
///      |                                 `---- it fails again ----|
///      `------------------- accept(a snapshot) -------------------'
/// ```
///
/// - *Sound*: batches are written and synced.
/// - *Failed*: batches are numbered and dropped; nothing is written or synced, because a retried sync can report
///   success for lost data. The marks do not move.
/// - *Restarted*: batches are written to a new segment, but the marks still do not move, because the dropped batches
///   exist in the caller's memory only. When a snapshot contains them, [`LogFiles::accept`] makes the log sound.
///
/// A *fenced* log has failed and cannot be restarted.
pub trait LogFiles: Log {
    /// Syncs this often while there is something to sync; `None`: only on request.
    fn set_sync_every(&self, every: Option<Duration>);

    /// Writes zeros ahead of the data, so that a sync does not have to write a new file length.
    fn set_zero_ahead(&self, on: bool);

    /// Drops appended but unwritten batches and begins a new segment after a gap. For a failed log, or when journalling
    /// begins while there is state in memory. The caller then takes a snapshot, all of whose parts it reads after this
    /// call, and passes its lowest stamp to [`LogFiles::accept`].
    fn restart(&self) -> Result<(), Failure>;

    /// Makes a restarted log sound, after a snapshot with the lowest stamp `snapshot_min` became durable.
    fn accept(&self, snapshot_min: Sequence) -> Result<(), Failure>;

    /// Begins a new segment, unless the current one is empty, so that all segments before it can be forgotten. If it
    /// cannot be created, the current one continues, and less can be forgotten.
    fn rotate(&self) -> Result<(), Failure>;

    /// Removes segments that contain only batches up to `upto`, which a durable snapshot contains. A failure is
    /// harmless: the files are removed the next time.
    fn forget(&self, upto: Sequence) -> Result<(), Failure>;

    /// The size of all segments.
    fn bytes(&self) -> u64;

    /// The bytes written since the last [`LogFiles::forget`]; after a start, the bytes replayed.
    fn bytes_since_forget(&self) -> u64;
}
