//! What a log of batches promises, whatever it is made of. Knows nothing of files: a replicated log can stand in.
//! What only a log in local files can do is in [`crate::LogFiles`].

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::sequence::Sequence;

/// Takes batches, numbers them, and says how far each is: appended, then written, then durable.
///
/// Three marks only ever move forward: `durable <= written <= tail`. A batch that is *written* survives the death of
/// the process; one that is *durable* survives a power failure. A log for which these are the same moves both at once.
///
/// A log that has *failed* numbers batches and drops them, and its marks do not move. A log that is *fenced* has failed
/// for good: another writer has begun a later epoch. Then the state in memory may hold batches that never happened, so
/// the caller stops reading from it, too.
pub trait Log: Send + Sync {
    /// The epoch that this writer has begun; every batch that is appended here carries it.
    fn epoch(&self) -> Epoch;

    /// Puts a batch at the tail, in memory, and numbers it. Never waits for storage and never fails. An empty batch is
    /// a mark that has a number but that no reader is shown.
    fn append(&self, batch: &[u8]) -> Sequence;

    /// The last batch that was numbered.
    fn tail(&self) -> Sequence;

    /// All batches up to here are written.
    fn written(&self) -> Sequence;

    /// All batches up to here are durable.
    fn durable(&self) -> Sequence;

    /// Writes the tail, unless that was done up to `upto`. One caller writes for all.
    fn write(&self, upto: Sequence) -> Result<(), Failure>;

    /// Asks for what is written to be made durable soon. One sync serves all that asked before it began.
    fn request_sync(&self);

    /// Writes and syncs, and returns when `upto`, which must have been appended, is durable.
    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure>;

    /// Returns when a snapshot whose parts are stamped from `min` to `max` may count: every batch in between is stored.
    /// Unlike [`Log::wait_durable`] it also works on a log that waits for that very snapshot.
    fn wait_durable_for_snapshot(&self, min: Sequence, max: Sequence) -> Result<(), Failure> {
        let _ = min;
        self.wait_durable(max)
    }

    /// `notify` is called after every advance of `durable`, whenever the log fails, is fenced or recovers, and whenever
    /// [`Log::has_room`] changes. It runs on a thread of the log, which it must not hold up; it may read marks but must
    /// not wait for the log.
    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>);

    /// Reads the batches from `from` on, as far as they are written or durable, and then waits for more.
    fn follow(&self, from: Sequence, upto: FollowUpTo) -> Box<dyn Follow>;

    /// A single load.
    fn has_failed(&self) -> bool;

    /// Why batches are not becoming durable, if they are not.
    fn failure(&self) -> Option<Failure>;

    /// The later epoch that has taken this log over.
    fn fenced_by(&self) -> Option<Epoch> {
        match self.failure() {
            Some(Failure::Fenced { by, .. }) => Some(by),
            _ => None,
        }
    }

    /// Whether batches that are appended now will find space. When this turns false there is still some left, for what
    /// is under way; the caller takes no more until it turns true again, which the log sees to by itself. A single load.
    fn has_room(&self) -> bool;

    /// Writes, syncs, and marks the end, so that the loss of the last batches will not pass for a torn tail. Batches
    /// appended from then on are numbered and dropped.
    fn close(&self) -> Result<(), Failure>;
}

/// One batch as it is read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch<P = Vec<u8>> {
    pub epoch: Epoch,
    pub sequence: Sequence,
    pub payload: P,
}

/// How far a reader follows a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FollowUpTo {
    /// A batch that is only written may be lost in a power failure, and its sequence then given to another batch of a
    /// later epoch.
    Written,
    /// What a reader has seen stays.
    Durable,
}

/// Reads a log in order, each batch once, while others append to it. After an error there is nothing more to read:
/// follow again, from where a snapshot ends.
pub trait Follow: Send {
    /// The next batch. Waits until there is one, the reader is stopped, or there will never be one.
    fn next(&mut self) -> Result<Followed, ReadError>;

    /// The next batch, if there is one already.
    fn try_next(&mut self) -> Result<Option<Batch>, ReadError>;

    /// Ends a wait in [`Follow::next`], now and from now on.
    fn stopper(&self) -> Stopper;
}

/// What a wait for the next batch ends in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Followed {
    Batch(Batch),
    /// [`Stopper::stop`] was called.
    Stopped,
    /// The log was closed, and all of it was read.
    Closed,
}

/// Stops a reader, from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<dyn Fn() + Send + Sync>);

impl Stopper {
    pub(crate) fn new(stop: impl Fn() + Send + Sync + 'static) -> Stopper {
        Stopper(Arc::new(stop))
    }

    pub fn stop(&self) {
        (self.0)();
    }
}

/// Why a log cannot be read on.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("batches before sequence {oldest} are no longer in the journal")]
    Forgotten { oldest: Sequence },
    #[error("the journal was restarted before sequence {first}: what follows needs a snapshot")]
    Restarted { first: Sequence },
    #[error("a writer of epoch {by} has taken the journal over")]
    Fenced { by: Epoch },
    #[error("{file} is damaged at offset {offset}: {detail}")]
    Damaged { file: String, offset: u64, detail: String },
    #[error("{operation} {file} failed at offset {offset}: {source}")]
    Io { operation: Operation, file: String, offset: u64, source: io::Error },
}
