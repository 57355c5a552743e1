//! What the writer of a log does beside writing: begins it anew after a failure, forgets what a snapshot replaces. Knows
//! nothing of how it is done.

use std::time::Duration;

use crate::failure::Failure;
use crate::log::Log;
use crate::sequence::Sequence;
use crate::sync_times::SyncTimes;

/// Maintenance of a log.
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
///   exist in the caller's memory only. When a snapshot contains them, [`Maintenance::accept`] makes the log sound.
///
/// A *fenced* log has failed and cannot be restarted.
pub trait Maintenance: Log {
    /// Syncs this often while there is something to sync; `None`: only on request. A log that is durable as soon as it
    /// is written has nothing to do.
    fn set_sync_every(&self, every: Option<Duration>) {
        let _ = every;
    }

    /// Prepares for frequent syncs. In files: writes zeros ahead of the data, so that a sync does not have to write a new
    /// file length.
    fn set_zero_ahead(&self, on: bool) {
        let _ = on;
    }

    /// Drops appended but unwritten batches and begins a new segment after a gap. For a failed log, or when journalling
    /// begins while there is state in memory. The caller then takes a snapshot, all of whose parts it reads after this
    /// call, and passes its lowest stamp to [`Maintenance::accept`].
    fn restart(&self) -> Result<(), Failure>;

    /// Makes a restarted log sound, after a snapshot with the lowest stamp `snapshot_min` became durable.
    fn accept(&self, snapshot_min: Sequence) -> Result<(), Failure>;

    /// In files: begins a new segment, unless the current one is empty, so that all segments before it can be forgotten. If it
    /// cannot be created, the current one continues, and less can be forgotten.
    fn rotate(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Removes batches up to `upto`, which a durable snapshot contains; in files, segments that contain no others. A
    /// failure is harmless: they are removed the next time.
    fn forget(&self, upto: Sequence) -> Result<(), Failure>;

    /// The size of what is stored.
    fn bytes(&self) -> u64;

    /// The bytes written since the last [`Maintenance::forget`]; after a start, the bytes replayed.
    fn bytes_since_forget(&self) -> u64;

    /// The memory of batches that are not stored yet.
    fn buffers(&self) -> Buffers;

    /// How long its syncs took, or until a frame was stored by others; `None` for a log that does neither.
    fn sync_times(&self) -> Option<SyncTimes> {
        None
    }
}

/// The buffers of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Appended and not written yet.
    pub unwritten_bytes: u64,
    /// The memory for it, with what is kept for the next batches.
    pub memory_bytes: u64,
}
