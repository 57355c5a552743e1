//! What a place in memory holds, shared by the processes that use it. Knows what counts; refuses to know the marks of a
//! writer.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex};

use super::faults::Chance;
use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::log::Batch;
use crate::sequence::Sequence;
use crate::snapshot::{SnapshotInfo, Stamp};

#[derive(Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Wakes readers.
    pub(super) stored: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// Ascending, without a gap but for restarts.
    pub(super) batches: VecDeque<Batch>,
    /// Batches up to here are not kept any more.
    pub(super) forgotten: Sequence,
    /// The first batch after each restart of a writer.
    pub(super) restarts: Vec<Sequence>,
    /// The last batch that is stored, and its time.
    pub(super) reached: Sequence,
    pub(super) time_ms: u64,
    /// The newest epoch: no writer of another one stores anything.
    pub(super) epoch: Epoch,
    pub(super) snapshots: Vec<Arc<KeptSnapshot>>,
    pub(super) last_snapshot: u64,
    pub(super) chance: Chance,
    /// Nothing can be reached.
    pub(super) is_away: bool,
    pub(super) ticks: u64,
    /// The process that has the right to write.
    pub(super) holder: Option<u64>,
    pub(super) last_member: u64,
    pub(super) writers: Vec<Weak<dyn Ticking>>,
}

impl State {
    pub(super) fn release(&mut self, member: u64) {
        if self.holder == Some(member) {
            self.holder = None;
        }
    }

    /// An error unless the place can be reached and the writer of this epoch may write.
    pub(super) fn check(&self, own: Epoch) -> Result<(), Failure> {
        if self.is_away {
            return Err(away());
        }
        match self.epoch > own {
            true => Err(Failure::Fenced { own, by: self.epoch }),
            false => Ok(()),
        }
    }

    /// The first batch after a restart that no snapshot contains what was lost before: nothing from there on counts.
    pub(super) fn unaccepted_restart(&self) -> Option<Sequence> {
        let covered = self.snapshots.iter().map(|kept| kept.info.min).max().unwrap_or(Sequence::NONE);
        self.restarts.iter().copied().find(|first| covered < first.previous())
    }

    /// Drops what does not count, before another epoch goes on.
    pub(super) fn drop_unaccepted(&mut self) {
        let Some(first) = self.unaccepted_restart() else { return };
        self.batches.retain(|batch| batch.sequence < first);
        self.restarts.retain(|known| *known < first);
        self.reached = self.batches.back().map_or(self.forgotten, |batch| batch.sequence);
        self.snapshots.retain(|kept| kept.info.max < first);
        let newest = self.snapshots.iter().map(|kept| kept.info.max).max();
        self.reached = self.reached.max(newest.unwrap_or(Sequence::NONE));
    }
}

/// The error of a place that cannot be reached.
pub(super) fn away() -> Failure {
    Failure::io(Operation::Open, "the place in memory", &unreachable())
}

pub(super) fn unreachable() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer")
}

/// For whom time passes.
pub(super) trait Ticking: Send + Sync {
    fn tick(&self);
}

/// A finished snapshot.
pub(super) struct KeptSnapshot {
    pub(super) info: SnapshotInfo,
    pub(super) number: u64,
    pub(super) meta: Vec<u8>,
    pub(super) parts: Vec<Part>,
}

pub(super) struct Part {
    pub(super) stamp: Stamp,
    pub(super) entries: u32,
    pub(super) payload: Vec<u8>,
}
