//! What a journal promises, whatever it is made of. Knows nothing of files: a replicated one can stand in.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::directory_id::DirectoryId;
use crate::failure::{Failure, Operation};
use crate::sequence::Sequence;
use crate::snapshot::SnapshotInfo;

/// Takes batches, numbers them, and says how far each has come: appended, then written, then durable.
///
/// Three marks only ever move forward: `durable <= written <= tail`. A batch that is *written* survives the death of
/// the process; one that is *durable* survives a power failure.
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
///   report success for what was lost. The marks stand still.
/// - *Restarted*: batches are written to a fresh segment, and the marks still stand still, because what was dropped
///   exists in the caller's memory only. Once a snapshot holds it, [`Journal::accept`] makes the journal sound.
pub trait Journal: Send + Sync {
    /// The id of the data directory, which its snapshots carry.
    fn directory_id(&self) -> DirectoryId;

    /// Puts a batch at the tail, in memory, and numbers it. Never touches a disk and never fails. An empty batch is a
    /// mark that has a number but that no reader is shown.
    fn append(&self, batch: &[u8]) -> Sequence;

    /// The last batch that was numbered.
    fn tail(&self) -> Sequence;

    /// All batches up to here were handed to the operating system.
    fn written(&self) -> Sequence;

    /// All batches up to here were synced.
    fn durable(&self) -> Sequence;

    /// Hands the tail to the operating system, unless that was done up to `upto`. One caller writes for all.
    fn write(&self, upto: Sequence) -> Result<(), Failure>;

    /// Asks for a sync of what is written, as soon as may be. One sync serves all who asked before it began.
    fn request_sync(&self);

    /// Writes and syncs, and returns when `upto`, which must have been appended, is durable.
    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure>;

    /// Makes sure, before a snapshot counts, that every batch in `(from, upto]` is on disk. Unlike
    /// [`Journal::wait_durable`] it also works on a journal that was restarted and not yet accepted.
    fn settle(&self, from: Sequence, upto: Sequence) -> Result<(), Failure>;

    /// `notify` is called after every advance of `durable`, whenever the journal fails or is accepted, and whenever
    /// [`Journal::has_room`] changes. It runs on a thread of the journal, which it must not hold up; it may read marks
    /// but must not wait for the journal.
    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>);

    /// Sync this often while there is something to sync; `None`: only on request.
    fn set_sync_every(&self, every: Option<Duration>);

    /// Write zeros ahead of the data, so that a sync has no change of the file's length to write.
    fn set_zero_ahead(&self, on: bool);

    fn has_failed(&self) -> bool;

    /// Whether batches that are appended now will find space on the disk. When this turns false there is still some
    /// left, for what is under way; the caller takes no more until it turns true again, which the journal sees to by
    /// itself. A single load.
    fn has_room(&self) -> bool;

    /// Why batches are not becoming durable, if they are not.
    fn failure(&self) -> Option<Failure>;

    /// Gives up what is appended but not written and begins anew. For a journal that failed, or when journalling
    /// begins while there is state in memory. The caller then takes a snapshot, all of whose parts it reads after
    /// this call, and hands it to [`Journal::accept`].
    fn restart(&self) -> Result<(), Failure>;

    /// Makes a restarted journal sound, now that `snapshot` is durable.
    fn accept(&self, snapshot: &SnapshotInfo) -> Result<(), Failure>;

    /// The written batches from `from` on, as far as there are any at the time of the call.
    fn read(&self, from: Sequence) -> Batches;

    /// Begins a new segment, unless the current one is empty, so that all before it can be forgotten one day. If it
    /// cannot be made, the current one goes on, and less can be forgotten.
    fn rotate(&self) -> Result<(), Failure>;

    /// Drops batches up to `upto`, as far as whole segments go. For when a durable snapshot holds them. A failure
    /// here harms nothing: the files stay, to be removed the next time.
    fn forget(&self, upto: Sequence) -> Result<(), Failure>;

    /// The size of all that is kept.
    fn bytes(&self) -> u64;

    /// The size of what was written since the last [`Journal::forget`]; after a start, of what was replayed.
    fn bytes_since_forget(&self) -> u64;

    /// Writes, syncs, and marks the end, so that the loss of the last batches will not pass for a torn tail. Batches
    /// appended from then on are numbered and dropped.
    fn close(&self) -> Result<(), Failure>;
}

/// Batches read back from a journal, in order.
pub type Batches = Box<dyn Iterator<Item = Result<(Sequence, Vec<u8>), ReadError>> + Send>;

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("batches before sequence {oldest} are no longer in the journal")]
    Forgotten { oldest: Sequence },
    #[error("the journal was restarted before sequence {first}: what follows needs a snapshot")]
    Restarted { first: Sequence },
    #[error("{file} is damaged at offset {offset}: {detail}")]
    Damaged { file: String, offset: u64, detail: String },
    #[error("{operation} {file} failed at offset {offset}: {source}")]
    Io { operation: Operation, file: String, offset: u64, source: io::Error },
}
