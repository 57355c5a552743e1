//! The state that the callers of a log in files, its sync thread and its readers share, and the steps that they take
//! under its locks. Refuses to know what a batch means or how recovery found where to begin.
//!
//! IMPORTANT: the locks are taken in this order: writer, tail, progress, segments, marks; `awaits_snapshot` last.
//! `append` takes the tail's only, for as long as it takes to copy a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use locks::{Condvar, Mutex, rank};

use super::progress::{Phase, Progress};
use super::tail::{self, Tail};
use super::writer::{Beginning, SegmentWriter};
use crate::epoch::Epoch;
use crate::failure::Failure;
use crate::files::DirectoryId;
use crate::files::marks::MarksFile;
use crate::files::segment;
use crate::sequence::Sequence;
use crate::snapshot::SnapshotName;
use crate::storage::Storage;

/// A segment that is on disk and what it holds.
pub(crate) struct StoredSegment {
    pub(crate) first: Sequence,
    pub(crate) bytes: u64,
}

/// What the callers, the sync thread and the readers share.
pub(super) struct Core {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) writer: Mutex<SegmentWriter, { rank::JOURNAL_WRITER }>,
    pub(super) tail: Mutex<Tail, { rank::JOURNAL_TAIL }>,
    pub(super) progress: Mutex<Progress, { rank::JOURNAL_PROGRESS }>,
    /// Wakes the sync thread.
    pub(super) wake: Condvar,
    /// Wakes those that wait for a sequence, and readers that wait for more.
    pub(super) advanced: Condvar,
    pub(super) id: DirectoryId,
    pub(super) epoch: Epoch,
    pub(super) marks: Mutex<MarksFile, { rank::JOURNAL_MARKS }>,
    /// Ascending; the last one is being written.
    pub(super) segments: Mutex<Vec<StoredSegment>, { rank::JOURNAL_SEGMENTS }>,
    /// The segment of a restart that was not accepted yet.
    pub(super) awaits_snapshot: Mutex<Option<Sequence>, { rank::JOURNAL_RESTART }>,
    pub(super) watchers: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>, { rank::JOURNAL_WATCHERS }>,
    /// Readers that wait for batches to be written.
    pub(super) written_waiters: AtomicUsize,
    // The marks, for callers that only look.
    pub(super) tail_mark: AtomicU64,
    pub(super) written_mark: AtomicU64,
    pub(super) durable_mark: AtomicU64,
    pub(super) has_failed: AtomicBool,
    pub(super) has_room: AtomicBool,
    pub(super) bytes_since_forget: AtomicU64,
}

impl Core {
    pub(super) fn tail(&self) -> Sequence {
        Sequence(self.tail_mark.load(Ordering::Acquire))
    }

    pub(super) fn written(&self) -> Sequence {
        Sequence(self.written_mark.load(Ordering::Acquire))
    }

    pub(super) fn durable(&self) -> Sequence {
        Sequence(self.durable_mark.load(Ordering::Acquire))
    }

    /// Hands the tail to the operating system. Succeeds in a log that is restarted, too, though its marks do not move.
    pub(super) fn write_tail(&self, writer: &mut SegmentWriter) -> Result<(), Failure> {
        // IMPORTANT: look at the phase only now that we hold the writer: before, another thread could fail between.
        let durable = {
            let progress = self.progress.lock();
            if let Phase::Failed(failure) = &progress.phase {
                return Err(failure.clone());
            }
            self.durable()
        };
        let last = self.tail.lock().take(&mut writer.frames);
        if writer.frames.is_empty() {
            return Ok(());
        }
        if writer.is_full() {
            self.begin_next(writer, durable);
        }
        let bytes = writer.frames.len() as u64;
        writer.write_frames(last).map_err(|failure| self.fail(None, failure))?;
        tail::give_back(&mut writer.frames);
        if let Some(segment) = self.segments.lock().last_mut() {
            segment.bytes += bytes;
        }
        self.bytes_since_forget.fetch_add(bytes, Ordering::Relaxed);
        self.keep_reserve(writer);
        let mut progress = self.progress.lock();
        // The sync thread sleeps without a timer while all is synced.
        if !progress.has_unsynced() && progress.sync_every.is_some() {
            self.wake.notify_one();
        }
        progress.current.data_end = writer.offset();
        progress.handed = last;
        match &progress.phase {
            Phase::Sound => {
                self.written_mark.store(last.0, Ordering::Release);
                if self.written_waiters.load(Ordering::Relaxed) > 0 {
                    self.advanced.notify_all();
                }
            }
            Phase::Restarted => {}
            // The sync thread failed meanwhile: what we wrote is in the file, but no reply may depend on it.
            Phase::Failed(failure) => return Err(failure.clone()),
        }
        Ok(())
    }

    /// Begins the segment after the current one, which is left to the sync thread. Without descriptors or space for
    /// it the current one goes on beyond its limit: nothing is lost by that, and a disk that is broken is found out
    /// by writing.
    pub(super) fn begin_next(&self, writer: &mut SegmentWriter, durable: Sequence) {
        let first = writer.handed.next();
        let Ok(current) = writer.begin_segment(first, durable, Beginning::Next) else { return writer.go_on() };
        self.note_segment(first);
        self.set_room(writer.has_reserve());
        if self.progress.lock().rotate(current) {
            self.wake.notify_one();
        }
    }

    /// Keeps space behind the data, after some of it was used.
    pub(super) fn keep_reserve(&self, writer: &mut SegmentWriter) {
        // While there is none to be had, the sync thread tries now and then, and writers do not.
        if writer.has_reserve() || self.has_room() {
            self.set_room(writer.has_reserve() || writer.extend_reserve());
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.has_room.load(Ordering::Acquire)
    }

    pub(super) fn set_room(&self, has_room: bool) {
        if self.has_room() != has_room {
            self.has_room.store(has_room, Ordering::Release);
            self.progress.lock().notifies = true;
            self.wake.notify_one();
        }
    }

    /// Removes what the last restart has begun, if its snapshot never came: nothing in it counts, and each attempt leaves
    /// another. If that fails, it stays until a snapshot succeeds.
    pub(super) fn remove_abandoned(&self) {
        let Some(first) = self.awaits_snapshot.lock().take() else { return };
        // IMPORTANT: a snapshot that failed in its very last step may be there all the same, or come back with a power failure
        // if its removal was not synced, and needs its journal.
        let needs_it = |name: &String| SnapshotName::parse(name).is_some_and(|name| name.max >= first.previous());
        let is_needed = self.storage.list().map_or(true, |names| names.iter().any(needs_it));
        if !is_needed && self.storage.sync_directory().is_ok() {
            let mut segments = self.segments.lock();
            // The newest first, so that what remains is always without a gap.
            while let Some(last) = segments.last().filter(|last| last.first >= first)
                && self.storage.remove(&segment::file_name(last.first)).is_ok()
            {
                segments.pop();
            }
        }
    }

    pub(super) fn note_segment(&self, first: Sequence) {
        let mut segments = self.segments.lock();
        // Otherwise it has just taken the place of another, whose name it has.
        assert!(segments.last().is_none_or(|last| last.first < first), "segment {first} is not the newest");
        segments.push(StoredSegment { first, bytes: segment::HEADER_LEN });
    }

    /// Fails the log, unless it has failed before: the first failure is the one that is reported. A failure of the
    /// sync thread counts only if the log was not restarted since: `restarts` says when the thread looked. A fence
    /// counts always, and replaces any other failure.
    pub(super) fn fail(&self, restarts: Option<u64>, failure: Failure) -> Failure {
        let mut tail = self.tail.lock();
        let mut progress = self.progress.lock();
        let is_fence = matches!(failure, Failure::Fenced { .. });
        if !is_fence && restarts.is_some_and(|restarts| restarts != progress.restarts) {
            return failure;
        }
        match &progress.phase {
            Phase::Failed(earlier @ (Failure::Fenced { .. } | Failure::Closed)) => return earlier.clone(),
            Phase::Failed(earlier) if !is_fence => return earlier.clone(),
            Phase::Failed(_) | Phase::Sound | Phase::Restarted => {}
        }
        tail.drop_batches();
        progress.phase = Phase::Failed(failure.clone());
        progress.retired.clear();
        progress.notifies = true;
        self.has_failed.store(true, Ordering::Release);
        self.advanced.notify_all();
        self.wake.notify_one();
        failure
    }

    /// Waits for a sync that reaches `upto`. `refuse` says why that would be no use.
    pub(super) fn wait_synced(
        &self,
        upto: Sequence,
        refuse: impl Fn(&Progress) -> Option<Failure>,
    ) -> Result<(), Failure> {
        let mut progress = self.progress.lock();
        loop {
            if let Some(failure) = refuse(&progress) {
                return Err(failure);
            }
            if progress.synced >= upto {
                return Ok(());
            }
            if let Phase::Failed(failure) = &progress.phase {
                return Err(failure.clone());
            }
            progress.is_requested = true;
            self.wake.notify_one();
            self.advanced.wait(&mut progress);
        }
    }
}
