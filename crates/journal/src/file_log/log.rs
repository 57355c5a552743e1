//! A [`Log`] in one directory of a [`Storage`]. Knows how tail, writer and sync thread work together; refuses to know
//! what a batch means.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use locks::{Condvar, Mutex, rank};

use super::core::{Core, NOT_CLOSED, StoredSegment};
use super::follower::FileFollower;
use super::options::FileLogOptions;
use super::sync_state::{Phase, SyncState};
use super::sync_thread;
use super::tail::Tail;
use super::watermarks::Watermarks;
use super::writer::{Beginning, SegmentWriter};
use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::fence::{Fence, WriteRight};
use crate::files::marks::{self, MarksFile};
use crate::files::{DirectoryId, EpochId, WriterIdentity};
use crate::files::{frame, segment};
use crate::log::{Follow, FollowUpTo, Log, LogReader};
use crate::maintenance::{Buffers, Maintenance};
use crate::sequence::Sequence;
use crate::snapshot::DirectorySnapshots;
use crate::storage::Storage;
use crate::sync_times::{SyncHistogram, SyncTimes};

/// Where a recovered log continues.
pub(crate) struct Resumed {
    /// Raised to the epoch to begin.
    pub(crate) fence: Fence,
    /// The epoch to begin.
    pub(crate) identity: WriterIdentity,
    /// The last batch.
    pub(crate) reached: Sequence,
    /// The time of the last batch.
    pub(crate) time_ms: u64,
    /// That batch is in the snapshot and in no segment.
    pub(crate) follows_gap: bool,
    pub(crate) segments: Vec<StoredSegment>,
    /// The writer before may still run: no file that it has open is written.
    pub(crate) takes_over: bool,
}

/// The end of a log, behind which a reader goes on.
pub(crate) struct LogEnd {
    pub(crate) storage: Arc<dyn Storage>,
    /// The last batch, its epoch and its time.
    pub(crate) reached: Sequence,
    pub(crate) epoch: Option<(Epoch, EpochId)>,
    pub(crate) time_ms: u64,
    /// The highest sequence that something on disk calls durable.
    pub(crate) proven: Sequence,
}

/// A [`Log`] in segment files. Comes out of [`crate::Recovery::into_log`].
pub struct FileLog {
    core: Arc<Core>,
    sync_thread: Mutex<Option<JoinHandle<()>>, { rank::JOURNAL_THREAD }>,
}

impl FileLog {
    /// The id that all files of this log carry.
    pub fn directory_id(&self) -> DirectoryId {
        self.core.identity.directory
    }

    /// The snapshots that belong to this log: those of the same directory.
    pub fn snapshots(&self) -> DirectorySnapshots {
        DirectorySnapshots::new(self.core.storage.clone(), self.core.identity, self.core.right.clone())
    }

    /// The end of this log, after it was closed. `None` if it was not closed without failure, or if batches were
    /// appended since: then its caller has a state that is in no file.
    pub(crate) fn closed_end(&self) -> Option<LogEnd> {
        let core = &*self.core;
        let time_ms = core.writer.lock().time_ms;
        if core.tail.lock().has_lost() {
            return None;
        }
        let sync = core.sync.lock();
        let is_closed = matches!(sync.phase, Phase::Failed(Failure::Closed)) && core.closed_at() == Some(core.tail());
        let epoch = Some((core.identity.epoch, core.identity.epoch_id));
        let (storage, reached) = (core.storage.clone(), core.tail());
        is_closed.then(|| LogEnd { storage, reached, epoch, time_ms, proven: reached })
    }

    /// Begins an epoch, and with it a segment, after `reached`, which is durable.
    pub(crate) fn begin(
        storage: Arc<dyn Storage>,
        options: FileLogOptions,
        found: &marks::Found,
        resumed: Resumed,
    ) -> Result<FileLog, Failure> {
        let Resumed { fence, identity, reached, time_ms, follows_gap, mut segments, takes_over } = resumed;
        let right = WriteRight::new(fence, identity.epoch);
        let mut writer = SegmentWriter::new(storage.clone(), &options, identity, right.clone(), time_ms);
        let beginning = if follows_gap { Beginning::Restart } else { Beginning::Start };
        let current = match writer.begin_segment(reached.next(), reached, beginning) {
            // The writer before has begun it since the files were listed, too late to count.
            Err(Failure::Io { operation: Operation::Rename, kind: std::io::ErrorKind::AlreadyExists, .. })
                if takes_over =>
            {
                let name = segment::file_name(reached.next());
                storage.remove(&name).map_err(|error| Failure::io(Operation::Remove, &name, &error))?;
                writer.begin_segment(reached.next(), reached, beginning)?
            }
            begun => begun?,
        };
        let has_room = writer.has_reserve();
        // Leaving this to the first sync would lose nothing, but a disk that cannot sync is better detected now.
        current.file.sync().map_err(|error| Failure::io(Operation::Sync, &current.name, &error))?;
        let marks = match takes_over {
            true => MarksFile::replace(&*storage, found, &identity, reached, current.first)?,
            false => MarksFile::begin(&*storage, found, &identity, reached, current.first)?,
        };
        storage.sync_directory().map_err(|error| Failure::io(Operation::SyncDirectory, &current.name, &error))?;
        let replayed_bytes = segments.iter().map(|segment| segment.bytes).sum();
        segments.push(StoredSegment { first: reached.next(), bytes: segment::HEADER_LEN });
        let core = Arc::new(Core {
            storage,
            writer: Mutex::new(writer),
            tail: Mutex::new(Tail::new(identity.epoch, reached, time_ms)),
            sync: Mutex::new(SyncState::new(reached, current, options.sync_every)),
            wake: Condvar::new(),
            advanced: Condvar::new(),
            identity,
            right,
            marks: Mutex::new(marks),
            segments: Mutex::new(segments),
            awaits_snapshot: Mutex::new(None),
            watchers: Mutex::new(Vec::new()),
            written_waiters: AtomicUsize::new(0),
            watermarks: Watermarks::new(reached),
            has_room: AtomicBool::new(has_room),
            bytes_since_forget: AtomicU64::new(replayed_bytes),
            written_buffer_bytes: AtomicUsize::new(0),
            closed_at: AtomicU64::new(NOT_CLOSED),
            sync_times: SyncHistogram::default(),
        });
        let for_thread = core.clone();
        let sync_thread = std::thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || sync_thread::run(&for_thread))
            .map_err(|error| Failure::io(Operation::Sync, "thread", &error))?;
        Ok(FileLog { core, sync_thread: Mutex::new(Some(sync_thread)) })
    }

    /// Stops the sync thread after its current sync.
    fn stop(&self) {
        let Some(thread) = self.sync_thread.lock().take() else { return };
        self.core.sync.lock().stop = true;
        self.core.wake.notify_all();
        // Readers have nothing more to wait for.
        self.core.advanced.notify_all();
        // A watcher may own the last handle to the log; then this is the sync thread itself.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Log for FileLog {
    fn epoch(&self) -> Epoch {
        self.core.identity.epoch
    }

    fn append(&self, batch: &[u8], time_ms: u64) -> Sequence {
        let core = &*self.core;
        if batch.len() > frame::BATCH_BYTES_MAX {
            // It cannot be stored, and later batches may depend on it.
            core.fail(None, Failure::TooLong { bytes: batch.len() });
        }
        let payload_crc = crc32c::crc32c(batch);
        let durable = core.durable();
        let mut tail = core.tail.lock();
        let sequence = tail.push(batch, payload_crc, durable, time_ms);
        if sequence != Sequence::LOST {
            core.watermarks.set_tail(sequence);
        }
        sequence
    }

    fn tail(&self) -> Sequence {
        self.core.tail()
    }

    fn written(&self) -> Sequence {
        self.core.written()
    }

    fn durable(&self) -> Sequence {
        self.core.durable()
    }

    fn write(&self, upto: Sequence) -> Result<(), Failure> {
        let core = &*self.core;
        if core.written() >= upto {
            return core.check_fence();
        }
        let mut writer = core.writer.lock();
        // While this thread waited for the lock, another may have written its batches.
        if core.written() >= upto {
            return core.check_fence();
        }
        core.write_tail(&mut writer)?;
        self.failure().map_or(Ok(()), Err)?;
        core.check_fence()
    }

    fn request_sync(&self) {
        let mut sync = self.core.sync.lock();
        if sync.has_unsynced() {
            sync.is_requested = true;
            self.core.wake.notify_one();
        }
    }

    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure> {
        if upto == Sequence::LOST {
            return Err(self.failure().unwrap_or(Failure::Closed));
        }
        assert!(upto <= self.tail(), "nothing will ever make {upto} durable: the tail is {}", self.tail());
        if self.durable() >= upto {
            return self.core.check_fence();
        }
        self.write(upto)?;
        self.core.wait_synced(upto, |sync| match sync.phase {
            Phase::Restarted => Some(Failure::AwaitingSnapshot),
            Phase::Sound | Phase::Failed(_) => None,
        })
    }

    fn wait_durable_for_snapshot(&self, min: Sequence, max: Sequence) -> Result<(), Failure> {
        assert!(max <= self.tail(), "nothing will ever make {max} durable: the tail is {}", self.tail());
        {
            let mut writer = self.core.writer.lock();
            if writer.handed < max && self.core.sync.lock().synced < max {
                self.core.write_tail(&mut writer)?;
            }
        }
        // Checked again after every wait: a restart in between invalidates the parts read before it.
        self.core.wait_synced(max, |sync| sync.refuses(min))
    }

    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.core.watchers.lock().push(notify.into());
    }

    fn has_failed(&self) -> bool {
        self.core.watermarks.has_failed()
    }

    fn has_room(&self) -> bool {
        self.core.has_room()
    }

    fn failure(&self) -> Option<Failure> {
        if !self.has_failed() {
            return None;
        }
        match &self.core.sync.lock().phase {
            Phase::Sound => None,
            Phase::Failed(failure) => Some(failure.clone()),
            Phase::Restarted => Some(Failure::AwaitingSnapshot),
        }
    }

    fn is_fenced_now(&self) -> bool {
        self.core.check_fence().is_err()
    }

    fn close(&self) -> Result<(), Failure> {
        let closed = self.core.check_fence().and_then(|()| self.write_closing_mark());
        self.core.fail(None, Failure::Closed);
        self.stop();
        closed
    }
}

impl LogReader for FileLog {
    fn follow(&self, from: Sequence, upto: FollowUpTo) -> Box<dyn Follow> {
        Box::new(FileFollower::new(self.core.clone(), from.max(Sequence::NONE.next()), upto))
    }
}

impl Maintenance for FileLog {
    fn set_sync_every(&self, every: Option<Duration>) {
        self.core.sync.lock().sync_every = every;
        self.core.wake.notify_one();
    }

    fn set_zero_ahead(&self, on: bool) {
        self.core.writer.lock().zero_ahead = on;
    }

    fn restart(&self) -> Result<(), Failure> {
        let core = &*self.core;
        core.check_fence()?;
        let fenced_by = core.marks.lock().fenced_by();
        if let Some(by) = fenced_by {
            return Err(core.fail(None, Failure::Fenced { own: core.identity.epoch, by }));
        }
        let mut writer = core.writer.lock();
        let (first, durable) = {
            let mut tail = core.tail.lock();
            let mut sync = core.sync.lock();
            if sync.stop {
                return Err(Failure::Closed);
            }
            if let Phase::Failed(failure @ Failure::Fenced { .. }) = &sync.phase {
                return Err(failure.clone());
            }
            let first = tail.restart();
            core.watermarks.restart(first.previous());
            sync.restart(first);
            core.advanced.notify_all();
            (first, core.durable())
        };
        writer.handed = first.previous();
        core.remove_abandoned();
        let current =
            writer.begin_segment(first, durable, Beginning::Restart).map_err(|failure| core.fail(None, failure))?;
        core.note_segment(first);
        *core.awaits_snapshot.lock() = Some(first);
        core.sync.lock().begin(current);
        core.set_room(writer.has_reserve());
        Ok(())
    }

    fn accept(&self, snapshot_min: Sequence) -> Result<(), Failure> {
        let core = &*self.core;
        // The snapshot is there, and so are the batches that count from now on: if the fence is raised later than this,
        // the next writer has them.
        core.check_written()?;
        let mut sync = core.sync.lock();
        if let Some(failure) = sync.refuses(snapshot_min) {
            return Err(failure);
        }
        match &sync.phase {
            Phase::Sound => return Ok(()),
            Phase::Failed(failure) => return Err(failure.clone()),
            Phase::Restarted => {}
        }
        // The snapshot is durable, so this mark is true now; before, a mark for batches after the restart was not. If
        // it fails, the next sync writes a newer one, and detects a fence.
        let _ = core.marks.lock().record(sync.synced, sync.current.first);
        sync.phase = Phase::Sound;
        sync.notifies = true;
        *core.awaits_snapshot.lock() = None;
        core.watermarks.accept(sync.handed, sync.synced);
        core.advanced.notify_all();
        core.wake.notify_one();
        Ok(())
    }

    fn rotate(&self) -> Result<(), Failure> {
        let core = &*self.core;
        let mut writer = core.writer.lock();
        core.write_tail(&mut writer)?;
        if !writer.is_empty() {
            core.begin_next(&mut writer, core.durable());
        }
        core.check_fence()
    }

    fn forget(&self, upto: Sequence) -> Result<(), Failure> {
        let core = &*self.core;
        core.check_fence()?;
        let firsts: Vec<Sequence> = core.segments.lock().iter().map(|segment| segment.first).collect();
        // A segment's last batch is the one before the next segment's first; the current segment has no next.
        let gone: Vec<Sequence> =
            firsts.windows(2).take_while(|pair| pair[1].previous() <= upto).map(|pair| pair[0]).collect();
        // Oldest first, so that the rest never has a gap.
        for first in &gone {
            let name = segment::file_name(*first);
            // IMPORTANT: before each one. If the fence is raised right after this, the removal is harmless: the next
            // writer has the snapshot that replaces the segment.
            core.check_fence()?;
            match core.storage.remove(&name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::io(Operation::Remove, &name, &error));
                }
                _ => core.segments.lock().retain(|segment| segment.first != *first),
            }
        }
        if let Some(last) = gone.last() {
            let name = segment::file_name(*last);
            core.storage.sync_directory().map_err(|error| Failure::io(Operation::SyncDirectory, &name, &error))?;
        }
        core.bytes_since_forget.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.core.segments.lock().iter().map(|segment| segment.bytes).sum()
    }

    fn bytes_since_forget(&self) -> u64 {
        self.core.bytes_since_forget.load(Ordering::Relaxed)
    }

    fn buffers(&self) -> Buffers {
        let (unwritten, memory) = self.core.tail.lock().buffer();
        let written = self.core.written_buffer_bytes.load(Ordering::Relaxed);
        Buffers { unwritten_bytes: unwritten as u64, memory_bytes: (memory + written) as u64 }
    }

    fn sync_times(&self) -> Option<SyncTimes> {
        Some(self.core.sync_times.read())
    }
}

impl FileLog {
    fn write_closing_mark(&self) -> Result<(), Failure> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let core = &*self.core;
        self.wait_durable(self.tail())?;
        let mut writer = core.writer.lock();
        core.write_tail(&mut writer)?;
        let end = {
            let mut tail = core.tail.lock();
            if !writer.is_empty() {
                // This frame records that the last sync is durable, which no earlier frame can.
                let mark = tail.push(&[], crc32c::crc32c(&[]), core.durable(), 0);
                core.watermarks.set_tail(mark);
            }
            // IMPORTANT: later batches are not written, so no reply may depend on them.
            tail.end()
        };
        core.write_tail(&mut writer)?;
        drop(writer);
        core.wait_synced(end, |_| None)?;
        core.check_fence()?;
        core.writer.lock().trim()?;
        let segment = core.sync.lock().current.first;
        core.check_fence()?;
        let closed = core.marks.lock().close(end, segment);
        if closed.is_ok() {
            core.closed_at.store(end.0, Ordering::Release);
        }
        closed.map_err(|failure| match failure {
            Failure::Fenced { .. } => core.fail(None, failure),
            failure => failure,
        })
    }
}
