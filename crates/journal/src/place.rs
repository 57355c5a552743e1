//! The interface of a place where a log and its snapshots are kept, and which several processes use: one writes, others
//! follow. Knows nothing of files; [`crate::DirectoryPlace`] is a data directory, [`crate::MemoryPlace`] is for tests.

use std::path::Path;
use std::sync::Arc;

use crate::epoch::Epoch;
use crate::log::{Follow, Log};
use crate::maintenance::Maintenance;
use crate::recovery::{History, RecoveryError};
use crate::sequence::Sequence;
use crate::snapshot::SnapshotStore;
use crate::storage::LockError;

/// Where a log and its snapshots are kept, as one process sees it.
///
/// A process that writes: [`LogPlace::acquire`], [`LogPlace::read`], read all of it, [`Reading::into_log`]. One that
/// follows: [`LogPlace::read_live`], read all of it, [`Reading::into_follower`]. A follower that takes the log over,
/// while its writer may still run or wake up at any time:
///
/// 1. [`LogPlace::acquire`], so that only one process does this.
/// 2. [`Follower::begin_epoch`]. From here on the writer before confirms nothing that is not stored.
/// 3. [`Follow::try_next`] until it returns `None`: now the caller has all that was ever confirmed. On an error, read
///    everything again and begin with step 2.
/// 4. [`Follower::into_log`].
pub trait LogPlace: Send + Sync {
    /// What it is called, for messages.
    fn name(&self) -> String;

    /// Takes the right to write for this process. It has it until [`LogPlace::release`], or until the process ends.
    fn acquire(&self, claim: Claim) -> Result<(), LockError>;

    /// Lets other processes write.
    fn release(&self);

    /// What is stored, for the process that has the right to write. Changes nothing.
    fn read(&self) -> Result<Box<dyn Reading>, RecoveryError>;

    /// What is stored now, while another process may write.
    fn read_live(&self) -> Result<Box<dyn Reading>, RecoveryError>;

    /// True when nobody decides who writes but the log: every process begins as a follower, and takes the log over when
    /// [`Follower::is_due`] says so.
    fn elects(&self) -> bool {
        false
    }

    /// Names the member that should take the log when it is closed next.
    fn name_successor(&self, member: &str) {
        let _ = member;
    }

    /// The last writer that the log names, if it names any: the name of its process, and where clients reach it.
    fn writer(&self) -> Option<String> {
        None
    }

    /// A directory of this machine in which the processes that use this place can meet, if there is one.
    fn meeting_directory(&self) -> Option<&Path> {
        None
    }
}

/// How the right to write is claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Only if no process has it.
    IfFree,
    /// Even from a process that has it, and perhaps does not answer.
    ByForce,
}

/// What is stored, being read; and what comes after it.
pub trait Reading: History {
    /// Begins a new epoch, behind the last batch. Batches that were not read yet are read and checked first.
    fn into_log(self: Box<Self>) -> Result<OpenedLog, RecoveryError>;

    /// Goes on reading behind the last batch, while another process may write.
    fn into_follower(self: Box<Self>) -> Result<Box<dyn Follower>, RecoveryError>;
}

/// Follows the written batches of a log, whatever becomes of its writer. It never ends by itself: after a writer another
/// may come.
pub trait Follower: Follow {
    /// The last batch that was returned or passed over.
    fn reached(&self) -> Sequence;

    /// The time of the last batch, in unix milliseconds.
    fn time_ms(&self) -> u64;

    /// All batches that were returned so far are applied.
    fn note_applied(&mut self) {}

    /// True when the writer has given the log up, or has been silent for so long that it may not answer any more: now this
    /// process may take over.
    fn is_due(&self) -> bool {
        false
    }

    /// Begins an epoch: takes the right to write from the writer, which confirms no batch any more that is not stored. On
    /// an error it can be followed on, if it could be before.
    fn begin_epoch(&mut self) -> Result<Epoch, RecoveryError>;

    /// Writes in the epoch that was begun, behind the last batch, after all batches were read since.
    fn into_log(self: Box<Self>) -> Result<OpenedLog, RecoveryError>;
}

/// A log that is open for writing, with its snapshots.
pub struct OpenedLog {
    pub log: Arc<dyn Log>,
    /// The same log.
    pub maintenance: Arc<dyn Maintenance>,
    pub snapshots: Arc<dyn SnapshotStore>,
    /// Reads on behind the end of the log, once it is closed: the batches of the writer that comes next. `None` if it was
    /// not closed without failure, or if batches were appended since: then its caller has a state that is stored nowhere.
    pub follow_on: Box<dyn Fn() -> Option<Box<dyn Follower>> + Send + Sync>,
}
