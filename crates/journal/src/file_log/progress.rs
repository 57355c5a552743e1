//! How far the log is and what there is to sync. Pure bookkeeping: touches no file.

use std::time::{Duration, Instant};

use super::writer::OpenSegment;
use crate::failure::Failure;
use crate::sequence::Sequence;

/// Segments that wait for their last sync, with their files open. More than this and a sync is due whatever the
/// policy says.
const RETIRED_MAX: usize = 4;

pub(super) enum Phase {
    Sound,
    Failed(Failure),
    /// Waits for a snapshot; see [`crate::LogFiles::restart`].
    Restarted,
}

pub(super) struct Progress {
    pub(super) phase: Phase,
    /// Counts restarts, so that a sync which began before one is not taken for one of what came after.
    pub(super) restarts: u64,
    /// The last batch that is in the current file, whether or not the marks say so.
    pub(super) handed: Sequence,
    /// The last batch that is synced, whether or not the marks say so.
    pub(super) synced: Sequence,
    /// Where the last restart began; parts of a snapshot from before it join nothing.
    pub(super) break_first: Sequence,
    pub(super) current: OpenSegment,
    /// Segments before the current one that are not yet synced to their end.
    pub(super) retired: Vec<OpenSegment>,
    /// The current segment, or one of the retired, is not yet sure to be in the directory.
    pub(super) is_directory_dirty: bool,
    pub(super) is_requested: bool,
    /// The watchers are to be called.
    pub(super) notifies: bool,
    pub(super) sync_every: Option<Duration>,
    pub(super) synced_at: Instant,
    pub(super) stop: bool,
}

/// One sync's worth of work.
pub(super) struct Round {
    pub(super) restarts: u64,
    /// Durable once the round has succeeded.
    pub(super) upto: Sequence,
    /// The log was sound when the round began. In one that was restarted, what is synced does not count yet.
    pub(super) is_sound: bool,
    pub(super) retired: Vec<OpenSegment>,
    pub(super) is_directory_dirty: bool,
    pub(super) current: OpenSegment,
}

impl Progress {
    /// For a log all of which is synced.
    pub(super) fn new(reached: Sequence, current: OpenSegment, sync_every: Option<Duration>) -> Progress {
        Progress {
            phase: Phase::Sound,
            restarts: 0,
            handed: reached,
            synced: reached,
            break_first: Sequence::NONE,
            current,
            retired: Vec::new(),
            is_directory_dirty: false,
            is_requested: false,
            notifies: false,
            sync_every,
            synced_at: Instant::now(),
            stop: false,
        }
    }

    /// The current segment is full and `next` follows it. Says whether the sync thread should know at once.
    pub(super) fn rotate(&mut self, next: OpenSegment) -> bool {
        self.retired.push(std::mem::replace(&mut self.current, next));
        self.is_directory_dirty = true;
        let is_expired = self.retired.len() >= RETIRED_MAX;
        self.is_requested |= is_expired;
        is_expired
    }

    /// Forgets what was to be synced: it counts no longer.
    pub(super) fn restart(&mut self, first: Sequence) {
        self.phase = Phase::Restarted;
        self.restarts += 1;
        self.handed = first.previous();
        self.synced = first.previous();
        self.break_first = first;
        self.retired.clear();
        self.notifies = true;
    }

    /// The segment a restart begins with.
    pub(super) fn begin(&mut self, current: OpenSegment) {
        self.current = current;
        self.is_directory_dirty = true;
    }

    /// Whether a snapshot with a part from `stamped` is of no use to this log.
    pub(super) fn refuses(&self, stamped: Sequence) -> Option<Failure> {
        let needed = self.break_first.previous();
        (stamped < needed).then_some(Failure::SnapshotTooOld { stamped, needed })
    }

    /// When the next sync is due; `None` if there is nothing to sync or no sync is wanted.
    pub(super) fn due_at(&self, now: Instant) -> Option<Instant> {
        if matches!(self.phase, Phase::Failed(_)) || !self.has_unsynced() {
            return None;
        }
        if self.is_requested { Some(now) } else { self.sync_every.map(|every| self.synced_at + every) }
    }

    pub(super) fn has_unsynced(&self) -> bool {
        self.handed > self.synced || !self.retired.is_empty()
    }

    /// Takes the work that there is.
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

    /// The round has succeeded.
    pub(super) fn end_round(&mut self, round: &Round) {
        self.synced = round.upto;
        self.synced_at = Instant::now();
        // A request that came while the round went on was for what it has synced.
        self.is_requested &= self.has_unsynced();
    }
}
