//! Which batches are written and synced, and what is to be synced. Pure bookkeeping: touches no file.

use std::time::{Duration, Instant};

use super::writer::OpenSegment;
use crate::failure::Failure;
use crate::sequence::Sequence;

/// The most segments that wait for their last sync, with their files open. Beyond it a sync is due whatever the policy.
const RETIRED_MAX: usize = 4;

pub(super) enum Phase {
    Sound,
    Failed(Failure),
    /// Waits for a snapshot; see [`crate::Maintenance::restart`].
    Restarted,
}

pub(super) struct SyncState {
    pub(super) phase: Phase,
    /// Counts restarts, so that a sync that began before a restart does not count for batches after it.
    pub(super) restarts: u64,
    /// The last batch in the current file, even if the marks do not show it yet.
    pub(super) handed: Sequence,
    /// The last synced batch, even if the marks do not show it yet.
    pub(super) synced: Sequence,
    /// Where the last restart began; snapshot parts from before it are useless.
    pub(super) break_first: Sequence,
    pub(super) current: OpenSegment,
    /// Segments before the current one that are not yet synced to their end.
    pub(super) retired: Vec<OpenSegment>,
    /// Segments that have ended and may still have reserved space.
    pub(super) untrimmed: Vec<OpenSegment>,
    /// The directory entry of the current or a retired segment may not be synced yet.
    pub(super) is_directory_dirty: bool,
    pub(super) is_requested: bool,
    /// The watchers must be called.
    pub(super) notifies: bool,
    pub(super) sync_every: Option<Duration>,
    pub(super) synced_at: Instant,
    pub(super) stop: bool,
}

/// The work of one sync.
pub(super) struct Round {
    pub(super) restarts: u64,
    /// Durable once the round has succeeded.
    pub(super) upto: Sequence,
    /// The log was sound when the round began. In a restarted log, a sync does not count yet.
    pub(super) is_sound: bool,
    pub(super) retired: Vec<OpenSegment>,
    pub(super) is_directory_dirty: bool,
    pub(super) current: OpenSegment,
}

impl SyncState {
    /// Creates the state of a log whose batches are all synced.
    pub(super) fn new(reached: Sequence, current: OpenSegment, sync_every: Option<Duration>) -> SyncState {
        SyncState {
            phase: Phase::Sound,
            restarts: 0,
            handed: reached,
            synced: reached,
            break_first: Sequence::NONE,
            current,
            retired: Vec::new(),
            untrimmed: Vec::new(),
            is_directory_dirty: false,
            is_requested: false,
            notifies: false,
            sync_every,
            synced_at: Instant::now(),
            stop: false,
        }
    }

    /// Replaces the full current segment by `next`. The sync thread must be woken at once, to free its reserved space.
    pub(super) fn rotate(&mut self, next: OpenSegment) {
        let ended = std::mem::replace(&mut self.current, next);
        self.untrimmed.push(ended.clone());
        self.retired.push(ended);
        self.is_directory_dirty = true;
        self.is_requested |= self.retired.len() >= RETIRED_MAX;
    }

    /// Forgets pending syncs: they do not count any more.
    pub(super) fn restart(&mut self, first: Sequence) {
        self.phase = Phase::Restarted;
        self.restarts += 1;
        self.handed = first.previous();
        self.synced = first.previous();
        self.break_first = first;
        self.retired.clear();
        self.notifies = true;
    }

    /// Sets the first segment after a restart.
    pub(super) fn begin(&mut self, current: OpenSegment) {
        self.current = current;
        self.is_directory_dirty = true;
    }

    /// Refuses a snapshot that has a part stamped `stamped`, if it is too old for this log.
    pub(super) fn refuses(&self, stamped: Sequence) -> Option<Failure> {
        let needed = self.break_first.previous();
        (stamped < needed).then_some(Failure::SnapshotTooOld { stamped, needed })
    }

    /// When the next sync is due; `None` if there is nothing to sync or no sync is requested.
    pub(super) fn due_at(&self, now: Instant) -> Option<Instant> {
        if matches!(self.phase, Phase::Failed(_)) || !self.has_unsynced() {
            return None;
        }
        if self.is_requested { Some(now) } else { self.sync_every.map(|every| self.synced_at + every) }
    }

    pub(super) fn has_unsynced(&self) -> bool {
        self.handed > self.synced || !self.retired.is_empty()
    }

    /// Takes the pending work.
    pub(super) fn begin_round(&mut self) -> Round {
        self.is_requested = false;
        Round {
            restarts: self.restarts,
            upto: self.handed,
            is_sound: matches!(self.phase, Phase::Sound),
            retired: std::mem::take(&mut self.retired),
            is_directory_dirty: std::mem::take(&mut self.is_directory_dirty),
            current: self.current.clone(),
        }
    }

    /// Records that the round has succeeded.
    pub(super) fn end_round(&mut self, round: &Round) {
        self.synced = round.upto;
        self.synced_at = Instant::now();
        // A request made during the round was for batches that the round has synced.
        self.is_requested &= self.has_unsynced();
    }
}
