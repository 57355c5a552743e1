//! What only a log in local files can do, and only such a log needs. Knows nothing of how it is done.

use std::time::Duration;

use crate::failure::Failure;
use crate::log::Log;
use crate::sequence::Sequence;

/// The upkeep of a log in local files.
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
/// - *Sound*: all is well.
/// - *Failed*: batches are numbered and dropped; nothing is written or synced, because a sync that is tried again can
///   report success for what was lost. The marks do not move.
/// - *Restarted*: batches are written to a new segment, and the marks still do not move, because what was dropped
///   exists in the caller's memory only. Once a snapshot holds it, [`LogFiles::accept`] makes the log sound.
///
/// A log that is *fenced* has failed and cannot be restarted.
pub trait LogFiles: Log {
    /// Sync this often while there is something to sync; `None`: only on request.
    fn set_sync_every(&self, every: Option<Duration>);

    /// Write zeros ahead of the data, so that a sync has no change of the file's length to write.
    fn set_zero_ahead(&self, on: bool);

    /// Drops what is appended but not written and begins a new segment behind a gap. For a log that failed, or when
    /// journalling begins while there is state in memory. The caller then takes a snapshot, all of whose parts it reads
    /// after this call, and hands its lowest stamp to [`LogFiles::accept`].
    fn restart(&self) -> Result<(), Failure>;

    /// Makes a restarted log sound, now that a snapshot is durable whose lowest stamp is `snapshot_min`.
    fn accept(&self, snapshot_min: Sequence) -> Result<(), Failure>;

    /// Begins a new segment, unless the current one is empty, so that all before it can be forgotten one day. If it
    /// cannot be made, the current one goes on, and less can be forgotten.
    fn rotate(&self) -> Result<(), Failure>;

    /// Drops batches up to `upto`, as far as whole segments go. For when a durable snapshot holds them. A failure
    /// here harms nothing: the files stay, to be removed the next time.
    fn forget(&self, upto: Sequence) -> Result<(), Failure>;

    /// The size of all that is kept.
    fn bytes(&self) -> u64;

    /// The size of what was written since the last [`LogFiles::forget`]; after a start, of what was replayed.
    fn bytes_since_forget(&self) -> u64;
}
