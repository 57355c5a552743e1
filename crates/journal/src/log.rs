//! The interfaces of a log of batches: one writes it, others read it. Knows nothing of files: a replicated log can
//! implement them. What a writer does beside writing is in [`crate::Maintenance`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::sequence::Sequence;

/// Accepts batches, numbers them, and reports three marks: appended, written, durable.
///
/// The marks only move forward: `durable <= written <= tail`. A *written* batch survives the death of the process; a
/// *durable* one survives a power failure. A log for which these are the same moves both at once.
///
/// A *failed* log numbers batches and drops them, and its marks do not move. A *fenced* log has failed for good:
/// another writer has begun a later epoch. Then the state in memory may contain batches that never happened, so the
/// caller must not answer reads from it either.
pub trait Log: Send + Sync {
    /// The epoch that this writer has begun; every batch that is appended here carries it.
    fn epoch(&self) -> Epoch;

    /// Appends a batch to the tail, in memory, and numbers it. Never waits for storage and never fails. An empty batch
    /// is a mark: it has a number, but is not shown to readers. `time_ms` is when it was made, in unix milliseconds;
    /// the time of a batch is never before that of an earlier one, even if the clock goes back.
    fn append(&self, batch: &[u8], time_ms: u64) -> Sequence;

    /// The last number assigned.
    fn tail(&self) -> Sequence;

    /// All batches up to here are written.
    fn written(&self) -> Sequence;

    /// All batches up to here are durable.
    fn durable(&self) -> Sequence;

    /// Writes the tail, unless everything up to `upto` is written. One caller writes for all. A log whose storage
    /// answers later has sent it when this returns; the mark moves with the answer.
    fn write(&self, upto: Sequence) -> Result<(), Failure>;

    /// Requests that written batches are made durable soon. One sync serves all requests made before it began.
    fn request_sync(&self);

    /// Writes and syncs; returns when `upto`, which must have been appended, is durable.
    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure>;

    /// Returns when a snapshot whose parts are stamped from `min` to `max` may count: every batch in between is stored.
    /// Unlike [`Log::wait_durable`] it also works on a log that waits for this snapshot.
    fn wait_durable_for_snapshot(&self, min: Sequence, max: Sequence) -> Result<(), Failure> {
        let _ = min;
        self.wait_durable(max)
    }

    /// Registers a callback. It is called after every advance of `durable`, whenever the log fails, is fenced or
    /// recovers, and whenever [`Log::has_room`] changes. It runs on a thread of the log, which it must not block; it
    /// may read marks but must not wait for the log.
    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>);

    /// True when the log has failed. A single load.
    fn has_failed(&self) -> bool;

    /// Why batches do not become durable, if so.
    fn failure(&self) -> Option<Failure>;

    /// The later epoch that has taken this log over.
    fn fenced_by(&self) -> Option<Epoch> {
        match self.failure() {
            Some(Failure::Fenced { by, .. }) => Some(by),
            _ => None,
        }
    }

    /// False while replies have to wait, even those that depend on no batch: the lease of this writer has ended, and
    /// another may write by now. To be asked after a request was executed and before its reply is sent. When it becomes
    /// true again, or the log is fenced, the callback of [`Log::watch`] is called.
    ///
    /// A log in files has no lease, because a fence is seen by all processes of a machine at once.
    fn may_answer(&self) -> bool {
        true
    }

    /// How long this writer may still answer if nothing more is stored; `None` for a log without a lease.
    fn lease_left(&self) -> Option<Duration> {
        None
    }

    /// True when another writer may have the right to write by now, even if this log has not noticed it yet: it fails
    /// then. To be asked before a reply is sent that depends on no batch of this log. A single load while it is false.
    fn is_fenced_now(&self) -> bool {
        self.fenced_by().is_some()
    }

    /// True when batches that are appended now will have space. When it becomes false there is still some space for
    /// work in progress; the caller accepts no more until it becomes true again, which needs no action of the caller. A
    /// single load.
    fn has_room(&self) -> bool;

    /// Writes, syncs, and records a clean end, so that a loss of the last batches is not mistaken for a torn tail.
    /// Batches appended later are dropped, and have the number [`Sequence::LOST`].
    fn close(&self) -> Result<(), Failure>;
}

/// A log that can be read while it is written, through the same handle.
pub trait LogReader: Send + Sync {
    /// Reads the batches from `from` on, as far as they are written or durable, and then waits for more.
    fn follow(&self, from: Sequence, upto: FollowUpTo) -> Box<dyn Follow>;
}

/// One batch, as read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch<P = Vec<u8>> {
    pub epoch: Epoch,
    pub sequence: Sequence,
    /// Unix milliseconds. Never decreases; 0 for a batch of format 2, which had no time.
    pub time_ms: u64,
    pub payload: P,
}

/// How far a reader follows a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FollowUpTo {
    /// A written batch may be lost in a power failure, and its sequence then be assigned to another batch of a later
    /// epoch.
    Written,
    /// A durable batch is never lost.
    Durable,
}

/// Reads a log in order, each batch once, while others append to it. An error is final: follow again, from the end of a
/// snapshot.
pub trait Follow: Send {
    /// Returns the next batch. Blocks until there is one, the reader is stopped, or there will never be one.
    fn next(&mut self) -> Result<Followed, ReadError>;

    /// Returns the next batch, if there is one already.
    fn try_next(&mut self) -> Result<Option<Batch>, ReadError>;

    /// Returns a handle that ends a wait in [`Follow::next`], now and later.
    fn stopper(&self) -> Stopper;
}

/// The result of a wait for the next batch.
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
    /// Calls `stop`, each time it is used.
    pub fn new(stop: impl Fn() + Send + Sync + 'static) -> Stopper {
        Stopper(Arc::new(stop))
    }

    pub fn stop(&self) {
        (self.0)();
    }
}

/// Why a log cannot be read further.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("batches before sequence {oldest} are no longer in the journal")]
    Forgotten { oldest: Sequence },
    #[error("the journal was restarted before sequence {first}: what follows needs a snapshot")]
    Restarted { first: Sequence },
    #[error("another writer goes on from before batch {first}: what was read since never happened")]
    Rewritten { first: Sequence },
    #[error("a writer of epoch {by} has taken the journal over")]
    Fenced { by: Epoch },
    #[error("{target} is damaged at offset {offset}: {detail}")]
    Damaged { target: String, offset: u64, detail: String },
    #[error("{operation} {target} failed at offset {offset}")]
    Io { operation: Operation, target: String, offset: u64, source: io::Error },
}
