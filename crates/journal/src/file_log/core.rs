//! The state that the callers of a log in files, its sync thread and its readers share, and the operations under its
//! locks. Refuses to know what a batch means, and how recovery found the starting point.
//!
//! IMPORTANT: the locks are taken in this order: writer, tail, sync, segments, marks; `awaits_snapshot` last. `append`
//! takes only the tail's, while it copies a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use locks::{Condvar, Mutex, rank};

use super::sync_state::{Phase, SyncState};
use super::tail::{self, Tail};
use super::watermarks::Watermarks;
use super::writer::{Beginning, SegmentWriter};
use crate::failure::Failure;
use crate::fence::WriteRight;
use crate::files::WriterIdentity;
use crate::files::marks::MarksFile;
use crate::files::segment;
use crate::sequence::Sequence;
use crate::snapshot::SnapshotName;
use crate::storage::Storage;
use crate::sync_times::SyncHistogram;

/// A segment on disk and its contents.
pub(crate) struct StoredSegment {
    pub(crate) first: Sequence,
    pub(crate) bytes: u64,
}

/// The state that callers, sync thread and readers share.
pub(super) struct Core {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) writer: Mutex<SegmentWriter, { rank::JOURNAL_WRITER }>,
    pub(super) tail: Mutex<Tail, { rank::JOURNAL_TAIL }>,
    pub(super) sync: Mutex<SyncState, { rank::JOURNAL_SYNC }>,
    /// Wakes the sync thread.
    pub(super) wake: Condvar,
    /// Wakes threads that wait for a sequence, and readers that wait for more.
    pub(super) advanced: Condvar,
    pub(super) identity: WriterIdentity,
    pub(super) right: WriteRight,
    pub(super) marks: Mutex<MarksFile, { rank::JOURNAL_MARKS }>,
    /// Ascending; the last one is being written.
    pub(super) segments: Mutex<Vec<StoredSegment>, { rank::JOURNAL_SEGMENTS }>,
    /// The segment of a restart that is not accepted yet.
    pub(super) awaits_snapshot: Mutex<Option<Sequence>, { rank::JOURNAL_RESTART }>,
    pub(super) watchers: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>, { rank::JOURNAL_WATCHERS }>,
    /// Readers that wait for batches to be written.
    pub(super) written_waiters: AtomicUsize,
    pub(super) watermarks: Watermarks,
    pub(super) has_room: AtomicBool,
    pub(super) bytes_since_forget: AtomicU64,
    /// The memory of the buffer that the writer has, while the tail has the other.
    pub(super) written_buffer_bytes: AtomicUsize,
    /// The last batch of a log that was closed without failure, or [`NOT_CLOSED`].
    pub(super) closed_at: AtomicU64,
    pub(super) sync_times: SyncHistogram,
}

pub(super) const NOT_CLOSED: u64 = u64::MAX;

impl Core {
    /// The last batch, once the log was closed without failure.
    pub(super) fn closed_at(&self) -> Option<Sequence> {
        Some(self.closed_at.load(Ordering::Acquire)).filter(|end| *end != NOT_CLOSED).map(Sequence)
    }

    pub(super) fn tail(&self) -> Sequence {
        self.watermarks.tail()
    }

    pub(super) fn written(&self) -> Sequence {
        self.watermarks.written()
    }

    pub(super) fn durable(&self) -> Sequence {
        self.watermarks.durable()
    }

    /// Fails the log if another writer has taken the directory over. IMPORTANT: takes the locks of `fail` then.
    #[inline]
    pub(super) fn check_fence(&self) -> Result<(), Failure> {
        match self.right.is_lost() {
            true => self.right.check().map_err(|fenced| self.fail(None, fenced)),
            false => Ok(()),
        }
    }

    /// As [`Core::check_fence`], after a write: if it succeeds, the next writer finds what was written.
    pub(super) fn check_written(&self) -> Result<(), Failure> {
        self.right.check_written().map_err(|fenced| self.fail(None, fenced))
    }

    /// Writes the tail to the operating system. Succeeds in a restarted log too, although its marks do not move.
    pub(super) fn write_tail(&self, writer: &mut SegmentWriter) -> Result<(), Failure> {
        self.check_fence()?;
        // IMPORTANT: read the phase only after taking the writer; before that, another thread could fail in between.
        let durable = {
            let sync = self.sync.lock();
            if let Phase::Failed(failure) = &sync.phase {
                return Err(failure.clone());
            }
            self.durable()
        };
        let (last, time_ms) = self.tail.lock().take(&mut writer.frames);
        self.written_buffer_bytes.store(writer.frames.capacity(), Ordering::Relaxed);
        if writer.frames.is_empty() {
            return Ok(());
        }
        if writer.is_full() {
            self.begin_next(writer, durable);
        }
        let bytes = writer.frames.len() as u64;
        writer.time_ms = time_ms;
        writer.write_frames(last).map_err(|failure| self.fail(None, failure))?;
        // IMPORTANT: after the write, and before the marks move.
        self.check_written()?;
        tail::give_back(&mut writer.frames);
        self.written_buffer_bytes.store(writer.frames.capacity(), Ordering::Relaxed);
        if let Some(segment) = self.segments.lock().last_mut() {
            segment.bytes += bytes;
        }
        self.bytes_since_forget.fetch_add(bytes, Ordering::Relaxed);
        self.keep_reserve(writer);
        let mut sync = self.sync.lock();
        // The sync thread sleeps without a timer while everything is synced.
        if !sync.has_unsynced() && sync.sync_every.is_some() {
            self.wake.notify_one();
        }
        sync.current.data_end = writer.offset();
        sync.handed = last;
        match &sync.phase {
            Phase::Sound => {
                self.watermarks.set_written(last);
                if self.written_waiters.load(Ordering::Relaxed) > 0 {
                    self.advanced.notify_all();
                }
            }
            Phase::Restarted => {}
            // The sync thread failed in between: what was written is in the file, but no reply may depend on it.
            Phase::Failed(failure) => return Err(failure.clone()),
        }
        Ok(())
    }

    /// Begins the segment after the current one, which the sync thread still syncs. Without descriptors or space for it
    /// the current segment continues beyond its limit: nothing is lost, and the next write finds out if the disk is
    /// broken.
    pub(super) fn begin_next(&self, writer: &mut SegmentWriter, durable: Sequence) {
        let first = writer.handed.next();
        let Ok(current) = writer.begin_segment(first, durable, Beginning::Next) else { return writer.go_on() };
        self.note_segment(first);
        self.set_room(writer.has_reserve());
        self.sync.lock().rotate(current);
        self.wake.notify_one();
    }

    /// Reserves space after the data, when some of it was used.
    pub(super) fn keep_reserve(&self, writer: &mut SegmentWriter) {
        // While there is no space, the sync thread retries now and then; writers do not.
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
            self.sync.lock().notifies = true;
            self.wake.notify_one();
        }
    }

    /// Removes what the last restart has begun, if its snapshot was never completed: nothing in it counts, and each
    /// attempt leaves more. If that fails, it stays until a snapshot succeeds.
    pub(super) fn remove_abandoned(&self) {
        let Some(first) = self.awaits_snapshot.lock().take() else { return };
        // IMPORTANT: a snapshot that failed in its last step may exist, or reappear after a power failure if its
        // removal was not synced, and it needs its journal.
        let needs_it = |name: &String| SnapshotName::parse(name).is_some_and(|name| name.max >= first.previous());
        let is_needed = self.storage.list().map_or(true, |names| names.iter().any(needs_it));
        if !is_needed && self.check_fence().is_ok() && self.storage.sync_directory().is_ok() {
            let mut segments = self.segments.lock();
            // The newest first, so that the rest never has a gap.
            while let Some(last) = segments.last().filter(|last| last.first >= first)
                && !self.right.is_lost()
                && self.storage.remove(&segment::file_name(last.first)).is_ok()
            {
                segments.pop();
            }
        }
    }

    pub(super) fn note_segment(&self, first: Sequence) {
        let mut segments = self.segments.lock();
        // Otherwise it has just replaced another segment of the same name.
        assert!(segments.last().is_none_or(|last| last.first < first), "segment {first} is not the newest");
        segments.push(StoredSegment { first, bytes: segment::HEADER_LEN });
    }

    /// Fails the log, unless it has failed before: the first failure is the one that is reported. A failure of the sync
    /// thread counts only if the log was not restarted since: `restarts` is the count that the thread saw. A fence
    /// always counts, and replaces any other failure.
    pub(super) fn fail(&self, restarts: Option<u64>, failure: Failure) -> Failure {
        let mut tail = self.tail.lock();
        let mut sync = self.sync.lock();
        let is_fence = matches!(failure, Failure::Fenced { .. });
        if !is_fence && restarts.is_some_and(|restarts| restarts != sync.restarts) {
            return failure;
        }
        match &sync.phase {
            Phase::Failed(earlier @ (Failure::Fenced { .. } | Failure::Closed)) => return earlier.clone(),
            Phase::Failed(earlier) if !is_fence => return earlier.clone(),
            Phase::Failed(_) | Phase::Sound | Phase::Restarted => {}
        }
        tail.drop_batches();
        sync.phase = Phase::Failed(failure.clone());
        sync.retired.clear();
        sync.notifies = true;
        self.watermarks.fail();
        self.advanced.notify_all();
        self.wake.notify_one();
        failure
    }

    /// Waits for a sync that reaches `upto`. `refuse` returns a failure if waiting is useless.
    pub(super) fn wait_synced(
        &self,
        upto: Sequence,
        refuse: impl Fn(&SyncState) -> Option<Failure>,
    ) -> Result<(), Failure> {
        let mut sync = self.sync.lock();
        loop {
            if let Some(failure) = refuse(&sync) {
                return Err(failure);
            }
            if sync.synced >= upto {
                return Ok(());
            }
            if let Phase::Failed(failure) = &sync.phase {
                return Err(failure.clone());
            }
            sync.is_requested = true;
            self.wake.notify_one();
            self.advanced.wait(&mut sync);
        }
    }
}
