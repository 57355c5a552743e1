//! Readers of a place in memory: what a start reads, and what a follower reads on. Knows which batches count; refuses to
//! know what they mean.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::log::MemoryLog;
use super::snapshots::{MemorySnapshotReader, MemorySnapshots};
use super::state::{Shared, State, away};
use crate::epoch::Epoch;
use crate::log::{Batch, Follow, Followed, ReadError, Stopper};
use crate::place::{Follower, OpenedLog, Reading};
use crate::recovery::{History, ReadProgress, RecoveryError, Warning};
use crate::sequence::Sequence;
use crate::snapshot::{ReadSnapshot, SnapshotInfo, StoredPart};

/// Follows what is stored, for a process other than the writer.
pub(super) struct PlaceFollower {
    shared: Arc<Shared>,
    next: Sequence,
    time_ms: u64,
    /// The epoch that it has begun, and whether everything was read since.
    begun: Option<Epoch>,
    is_drained: bool,
    is_over: bool,
    is_stopped: Arc<AtomicBool>,
}

impl PlaceFollower {
    pub(super) fn new(shared: Arc<Shared>, next: Sequence) -> PlaceFollower {
        let is_stopped = Arc::default();
        PlaceFollower { shared, next, time_ms: 0, begun: None, is_drained: false, is_over: false, is_stopped }
    }

    fn advance(&mut self, waits: bool) -> Result<Followed, ReadError> {
        if self.is_over {
            return Ok(Followed::Closed);
        }
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        loop {
            if waits && self.is_stopped.load(Ordering::Acquire) {
                return Ok(Followed::Stopped);
            }
            match self.look(&state) {
                Ok(Some(batch)) => return Ok(Followed::Batch(batch)),
                Ok(None) if !waits => return Ok(Followed::Stopped),
                Ok(None) => shared.stored.wait(&mut state),
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
    }

    /// The next batch, if it is there and counts.
    fn look(&mut self, state: &State) -> Result<Option<Batch>, ReadError> {
        self.is_drained = false;
        if state.is_away {
            return Ok(None);
        }
        let abandoned = state.unaccepted_restart();
        loop {
            if self.next <= state.forgotten {
                return Err(ReadError::Forgotten { oldest: state.forgotten.next() });
            }
            if let Some(first) = state.restarts.iter().find(|first| **first > self.next.previous())
                && Some(*first) != abandoned
                && self.next < *first
                && !state.batches.iter().any(|batch| batch.sequence == self.next)
            {
                return Err(ReadError::Restarted { first: *first });
            }
            let at = state.batches.partition_point(|batch| batch.sequence < self.next);
            let found = state.batches.get(at).filter(|batch| batch.sequence == self.next);
            let Some(batch) = found.filter(|batch| abandoned.is_none_or(|first| batch.sequence < first)) else {
                self.is_drained = true;
                return Ok(None);
            };
            self.next = batch.sequence.next();
            self.time_ms = self.time_ms.max(batch.time_ms);
            if !batch.payload.is_empty() {
                return Ok(Some(batch.clone()));
            }
        }
    }
}

impl Follow for PlaceFollower {
    fn next(&mut self) -> Result<Followed, ReadError> {
        self.advance(true)
    }

    fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        self.advance(false).map(|followed| match followed {
            Followed::Batch(batch) => Some(batch),
            Followed::Stopped | Followed::Closed => None,
        })
    }

    fn stopper(&self) -> Stopper {
        let (shared, is_stopped) = (self.shared.clone(), self.is_stopped.clone());
        Stopper::new(move || {
            is_stopped.store(true, Ordering::Release);
            let _state = shared.state.lock();
            shared.stored.notify_all();
        })
    }
}

impl Follower for PlaceFollower {
    fn reached(&self) -> Sequence {
        self.next.previous()
    }

    fn time_ms(&self) -> u64 {
        self.time_ms
    }

    fn begin_epoch(&mut self) -> Result<Epoch, RecoveryError> {
        let mut state = self.shared.state.lock();
        if state.is_away {
            return Err(away().into());
        }
        state.epoch = state.epoch.next();
        self.begun = Some(state.epoch);
        self.is_drained = false;
        Ok(state.epoch)
    }

    fn into_log(self: Box<Self>) -> Result<OpenedLog, RecoveryError> {
        let Some(epoch) = self.begun.filter(|_| self.is_drained && !self.is_over) else {
            return Err(RecoveryError::Unfinished);
        };
        Ok(MemoryLog::begin(&self.shared, epoch)?.opened())
    }
}

/// What is stored, being read from the newest snapshot on.
pub(super) struct MemoryReading {
    shared: Arc<Shared>,
    snapshot: Option<MemorySnapshotReader>,
    follower: PlaceFollower,
    batch: Option<Batch>,
    bytes_read: u64,
    bytes_total: u64,
}

impl MemoryReading {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<MemoryReading, RecoveryError> {
        let state = shared.state.lock();
        let abandoned = state.unaccepted_restart();
        let counts = |info: &SnapshotInfo| abandoned.is_none_or(|first| info.max < first);
        let snapshot = state.snapshots.iter().rev().find(|kept| counts(&kept.info)).cloned();
        let from = snapshot.as_ref().map_or(Sequence::NONE, |kept| kept.info.min).next();
        let follower = PlaceFollower::new(shared.clone(), from);
        let snapshot_bytes = snapshot.as_ref().map_or(0, |kept| kept.info.bytes);
        let batches_bytes: usize = state.batches.iter().map(|batch| batch.payload.len()).sum();
        drop(state);
        Ok(MemoryReading {
            shared: shared.clone(),
            snapshot: snapshot.map(MemorySnapshotReader::new),
            follower,
            batch: None,
            bytes_read: 0,
            bytes_total: snapshot_bytes + batches_bytes as u64,
        })
    }
}

impl History for MemoryReading {
    fn snapshot(&self) -> Option<&SnapshotInfo> {
        self.snapshot.as_ref().map(ReadSnapshot::info)
    }

    fn meta(&self) -> Option<&[u8]> {
        self.snapshot.as_ref().map(ReadSnapshot::meta)
    }

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, RecoveryError> {
        match &mut self.snapshot {
            Some(snapshot) => Ok(snapshot.next_part()?),
            None => Ok(None),
        }
    }

    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError> {
        self.batch = self.follower.try_next()?;
        Ok(self.batch.as_ref().map(|Batch { epoch, sequence, time_ms, payload }| {
            self.bytes_read += payload.len() as u64;
            Batch { epoch: *epoch, sequence: *sequence, time_ms: *time_ms, payload: payload.as_slice() }
        }))
    }

    fn reached(&self) -> Sequence {
        self.follower.reached()
    }

    fn progress(&self) -> ReadProgress {
        let snapshot = self.snapshot.as_ref().map_or(0, ReadSnapshot::bytes_read);
        ReadProgress { bytes_read: snapshot + self.bytes_read, bytes_total: self.bytes_total }
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

impl Reading for MemoryReading {
    fn into_log(mut self: Box<Self>) -> Result<OpenedLog, RecoveryError> {
        while self.next_batch()?.is_some() {}
        let epoch = self.follower.begin_epoch()?;
        // What was stored by the writer before, after the last batch was read here.
        match self.follower.try_next()? {
            Some(_) => Err(RecoveryError::Unfinished),
            None => Ok(MemoryLog::begin(&self.shared, epoch)?.opened()),
        }
    }

    fn into_follower(self: Box<Self>) -> Result<Box<dyn Follower>, RecoveryError> {
        Ok(Box::new(self.follower))
    }
}

impl MemoryLog {
    /// The log with its snapshots.
    pub fn opened(&self) -> OpenedLog {
        let writer = self.writer.clone();
        let follow_on = move || {
            let next = writer.behind_end()?;
            Some(Box::new(PlaceFollower::new(writer.shared.clone(), next)) as Box<dyn Follower>)
        };
        OpenedLog {
            log: Arc::new(self.clone()),
            maintenance: Arc::new(self.clone()),
            snapshots: Arc::new(MemorySnapshots { shared: self.writer.shared.clone(), epoch: self.writer.epoch }),
            follow_on: Box::new(follow_on),
        }
    }
}
