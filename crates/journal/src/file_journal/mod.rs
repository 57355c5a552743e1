//! The journal in segment files. Knows how the tail, the writer and the sync thread work together; refuses to know
//! what a batch means or how recovery found where to begin.
//!
//! IMPORTANT: the locks are taken in this order: writer, tail, progress, segments, marks; `awaits_snapshot` last. `append` takes the tail's
//! only, for as long as it takes to copy a batch.

mod progress;
mod sync_thread;
mod tail;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use locks::{Condvar, Mutex, rank};

use crate::directory_id::DirectoryId;
use crate::failure::{Failure, Operation};
use crate::frame;
use crate::journal::{Batches, Journal};
use crate::marks::{self, MarksFile};
use crate::segment;
use crate::sequence::Sequence;
use crate::snapshot::{SnapshotInfo, SnapshotName};
use crate::storage::Storage;
use crate::stored_batches::StoredBatches;
use progress::{Phase, Progress};
use tail::Tail;
use writer::{Beginning, SegmentWriter};

/// How a [`FileJournal`] behaves.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// A segment that would grow beyond this ends, and the next begins. What is written at once is never split, so a
    /// larger batch makes a larger segment; so does a next segment that cannot be made.
    pub segment_bytes_max: u64,
    /// See [`Journal::set_sync_every`].
    pub sync_every: Option<Duration>,
    /// See [`Journal::set_zero_ahead`].
    pub zero_ahead: bool,
    /// How far zeros are written ahead of the data. On ext4 a sync that has no new length to record took 56 µs
    /// instead of 97 µs.
    pub zero_ahead_bytes: usize,
    /// The space that is kept behind the data of the segment being written, at least; see [`Journal::has_room`]. It is
    /// taken in steps of twice this. 0: none is kept, and that the disk is full is known when a write fails.
    pub reserve_bytes: u64,
}

impl Default for JournalOptions {
    fn default() -> Self {
        JournalOptions {
            segment_bytes_max: 64 * 1024 * 1024,
            sync_every: Some(Duration::from_secs(1)),
            zero_ahead: false,
            zero_ahead_bytes: 1024 * 1024,
            reserve_bytes: 8 * 1024 * 1024,
        }
    }
}

/// A [`Journal`] in one directory of a [`Storage`]. Comes out of [`crate::Recovery::into_journal`].
pub struct FileJournal {
    core: Arc<Core>,
    sync_thread: Mutex<Option<JoinHandle<()>>, { rank::JOURNAL_THREAD }>,
}

/// A segment that is on disk and what it holds.
pub(crate) struct StoredSegment {
    pub(crate) first: Sequence,
    pub(crate) bytes: u64,
}

/// What the callers and the sync thread share.
struct Core {
    storage: Arc<dyn Storage>,
    writer: Mutex<SegmentWriter, { rank::JOURNAL_WRITER }>,
    tail: Mutex<Tail, { rank::JOURNAL_TAIL }>,
    progress: Mutex<Progress, { rank::JOURNAL_PROGRESS }>,
    /// Wakes the sync thread.
    wake: Condvar,
    /// Wakes those who wait for a sequence.
    advanced: Condvar,
    id: DirectoryId,
    marks: Mutex<MarksFile, { rank::JOURNAL_MARKS }>,
    /// Ascending; the last one is being written.
    segments: Mutex<Vec<StoredSegment>, { rank::JOURNAL_SEGMENTS }>,
    /// The segment of a restart that was not accepted yet.
    awaits_snapshot: Mutex<Option<Sequence>, { rank::JOURNAL_RESTART }>,
    watchers: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>, { rank::JOURNAL_WATCHERS }>,
    // The marks, for those who only want to look.
    tail_mark: AtomicU64,
    written_mark: AtomicU64,
    durable_mark: AtomicU64,
    has_failed: AtomicBool,
    has_room: AtomicBool,
    bytes_since_forget: AtomicU64,
}

impl FileJournal {
    /// Begins a segment after `reached`, which is durable, beside the segments that are there.
    pub(crate) fn begin(
        storage: Arc<dyn Storage>,
        options: JournalOptions,
        id: DirectoryId,
        found: &marks::Found,
        reached: Sequence,
        mut segments: Vec<StoredSegment>,
    ) -> Result<FileJournal, Failure> {
        let mut writer = SegmentWriter::new(storage.clone(), &options, id);
        let current = writer.begin_segment(reached.next(), reached, Beginning::Start)?;
        let has_room = writer.has_reserve();
        // Nothing would be lost if this were left to the first sync, but a disk that cannot sync is better found now.
        current.file.sync().map_err(|error| Failure::io(Operation::Sync, &current.name, &error))?;
        let marks = MarksFile::begin(&*storage, found, id, reached, current.first)?;
        storage.sync_directory().map_err(|error| Failure::io(Operation::SyncDirectory, &current.name, &error))?;
        let replayed_bytes = segments.iter().map(|segment| segment.bytes).sum();
        segments.push(StoredSegment { first: reached.next(), bytes: segment::HEADER_LEN });
        let core = Arc::new(Core {
            storage,
            writer: Mutex::new(writer),
            tail: Mutex::new(Tail::new(reached)),
            progress: Mutex::new(Progress::new(reached, current, options.sync_every)),
            wake: Condvar::new(),
            advanced: Condvar::new(),
            id,
            marks: Mutex::new(marks),
            segments: Mutex::new(segments),
            awaits_snapshot: Mutex::new(None),
            watchers: Mutex::new(Vec::new()),
            tail_mark: AtomicU64::new(reached.0),
            written_mark: AtomicU64::new(reached.0),
            durable_mark: AtomicU64::new(reached.0),
            has_failed: AtomicBool::new(false),
            has_room: AtomicBool::new(has_room),
            bytes_since_forget: AtomicU64::new(replayed_bytes),
        });
        let for_thread = core.clone();
        let sync_thread = std::thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || sync_thread::run(&for_thread))
            .map_err(|error| Failure::io(Operation::Sync, "thread", &error))?;
        Ok(FileJournal { core, sync_thread: Mutex::new(Some(sync_thread)) })
    }

    /// Ends the sync thread after the sync it is at, if any.
    fn stop(&self) {
        let Some(thread) = self.sync_thread.lock().take() else { return };
        self.core.progress.lock().stop = true;
        self.core.wake.notify_all();
        // A watcher may own the last handle to the journal, and then this is the very thread.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Core {
    fn tail(&self) -> Sequence {
        Sequence(self.tail_mark.load(Ordering::Acquire))
    }

    fn written(&self) -> Sequence {
        Sequence(self.written_mark.load(Ordering::Acquire))
    }

    fn durable(&self) -> Sequence {
        Sequence(self.durable_mark.load(Ordering::Acquire))
    }

    /// Hands the tail to the operating system. Succeeds in a journal that is restarted, too, though its marks stand.
    fn write_tail(&self, writer: &mut SegmentWriter) -> Result<(), Failure> {
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
            Phase::Sound => self.written_mark.store(last.0, Ordering::Release),
            Phase::Restarted => {}
            // The sync thread failed meanwhile: what we wrote is in the file, but nobody may count on it.
            Phase::Failed(failure) => return Err(failure.clone()),
        }
        Ok(())
    }

    /// Begins the segment after the current one, which is left to the sync thread. Without descriptors or space for
    /// it the current one goes on beyond its limit: nothing is lost by that, and a disk that is broken is found out
    /// by writing.
    fn begin_next(&self, writer: &mut SegmentWriter, durable: Sequence) {
        let first = writer.handed.next();
        let Ok(current) = writer.begin_segment(first, durable, Beginning::Next) else { return writer.go_on() };
        self.note_segment(first);
        self.set_room(writer.has_reserve());
        if self.progress.lock().rotate(current) {
            self.wake.notify_one();
        }
    }

    /// Sees to it that there is space behind the data, after some of it was used.
    fn keep_reserve(&self, writer: &mut SegmentWriter) {
        // While there is none to be had, the sync thread tries now and then, and writers do not.
        if writer.has_reserve() || self.has_room() {
            self.set_room(writer.has_reserve() || writer.extend_reserve());
        }
    }

    fn has_room(&self) -> bool {
        self.has_room.load(Ordering::Acquire)
    }

    fn set_room(&self, has_room: bool) {
        if self.has_room() != has_room {
            self.has_room.store(has_room, Ordering::Release);
            self.progress.lock().is_news = true;
            self.wake.notify_one();
        }
    }

    /// Removes what the last restart has begun, if its snapshot never came: nothing in it counts, and each attempt leaves
    /// another. Should that fail, it stays until a snapshot succeeds.
    fn remove_abandoned(&self) {
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

    fn note_segment(&self, first: Sequence) {
        let mut segments = self.segments.lock();
        // Otherwise it has just taken the place of another, whose name it has.
        assert!(segments.last().is_none_or(|last| last.first < first), "segment {first} is not the newest");
        segments.push(StoredSegment { first, bytes: segment::HEADER_LEN });
    }

    /// Poisons the journal, unless it is already; the first failure is the one that is told. A failure of the sync
    /// thread counts only if the journal was not restarted since: `epoch` says when the thread looked.
    fn fail(&self, epoch: Option<u64>, failure: Failure) -> Failure {
        let mut tail = self.tail.lock();
        let mut progress = self.progress.lock();
        if epoch.is_some_and(|epoch| epoch != progress.epoch) {
            return failure;
        }
        if let Phase::Failed(earlier) = &progress.phase {
            return earlier.clone();
        }
        tail.drop_batches();
        progress.phase = Phase::Failed(failure.clone());
        progress.retired.clear();
        progress.is_news = true;
        self.has_failed.store(true, Ordering::Release);
        self.advanced.notify_all();
        self.wake.notify_one();
        failure
    }

    /// Waits for a sync that reaches `upto`. `refuse` says why that would be no use.
    fn wait_synced(&self, upto: Sequence, refuse: impl Fn(&Progress) -> Option<Failure>) -> Result<(), Failure> {
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

impl Journal for FileJournal {
    fn directory_id(&self) -> DirectoryId {
        self.core.id
    }

    fn append(&self, batch: &[u8]) -> Sequence {
        let core = &*self.core;
        if batch.len() > frame::BATCH_BYTES_MAX {
            // It cannot be kept, and what follows may depend on it.
            core.fail(None, Failure::TooLong { bytes: batch.len() });
        }
        let payload_crc = crc32c::crc32c(batch);
        let durable = core.durable();
        let mut tail = core.tail.lock();
        let sequence = tail.push(batch, payload_crc, durable);
        core.tail_mark.store(sequence.0, Ordering::Release);
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
            return Ok(());
        }
        let mut writer = core.writer.lock();
        // While we waited for it, another thread may have written ours together with its own.
        if core.written() >= upto {
            return Ok(());
        }
        core.write_tail(&mut writer)?;
        self.failure().map_or(Ok(()), Err)
    }

    fn request_sync(&self) {
        let mut progress = self.core.progress.lock();
        if progress.has_unsynced() {
            progress.is_requested = true;
            self.core.wake.notify_one();
        }
    }

    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure> {
        assert!(upto <= self.tail(), "nothing will ever make {upto} durable: the tail is {}", self.tail());
        if self.durable() >= upto {
            return Ok(());
        }
        self.write(upto)?;
        self.core.wait_synced(upto, |progress| match progress.phase {
            Phase::Restarted => Some(Failure::AwaitingSnapshot),
            Phase::Sound | Phase::Failed(_) => None,
        })
    }

    fn settle(&self, from: Sequence, upto: Sequence) -> Result<(), Failure> {
        assert!(upto <= self.tail(), "nothing will ever settle {upto}: the tail is {}", self.tail());
        {
            let mut writer = self.core.writer.lock();
            if writer.handed < upto && self.core.progress.lock().synced < upto {
                self.core.write_tail(&mut writer)?;
            }
        }
        // Looked at anew after every wait: a restart in the middle makes the parts read before it worthless.
        self.core.wait_synced(upto, |progress| progress.refuses(from))
    }

    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.core.watchers.lock().push(notify.into());
    }

    fn set_sync_every(&self, every: Option<Duration>) {
        self.core.progress.lock().sync_every = every;
        self.core.wake.notify_one();
    }

    fn set_zero_ahead(&self, on: bool) {
        self.core.writer.lock().zero_ahead = on;
    }

    fn has_failed(&self) -> bool {
        self.core.has_failed.load(Ordering::Acquire)
    }

    fn has_room(&self) -> bool {
        self.core.has_room()
    }

    fn failure(&self) -> Option<Failure> {
        if !self.has_failed() {
            return None;
        }
        match &self.core.progress.lock().phase {
            Phase::Sound => None,
            Phase::Failed(failure) => Some(failure.clone()),
            Phase::Restarted => Some(Failure::AwaitingSnapshot),
        }
    }

    fn restart(&self) -> Result<(), Failure> {
        let core = &*self.core;
        let mut writer = core.writer.lock();
        let (first, durable) = {
            let mut tail = core.tail.lock();
            let mut progress = core.progress.lock();
            if progress.stop {
                return Err(Failure::Closed);
            }
            let first = tail.restart();
            core.tail_mark.store(first.previous().0, Ordering::Release);
            core.has_failed.store(true, Ordering::Release);
            progress.restart(first);
            core.advanced.notify_all();
            (first, core.durable())
        };
        writer.handed = first.previous();
        core.remove_abandoned();
        let current =
            writer.begin_segment(first, durable, Beginning::Restart).map_err(|failure| core.fail(None, failure))?;
        core.note_segment(first);
        *core.awaits_snapshot.lock() = Some(first);
        core.progress.lock().begin(current);
        core.set_room(writer.has_reserve());
        Ok(())
    }

    fn accept(&self, snapshot: &SnapshotInfo) -> Result<(), Failure> {
        let core = &*self.core;
        let mut progress = core.progress.lock();
        if let Some(failure) = progress.refuses(snapshot.min) {
            return Err(failure);
        }
        match &progress.phase {
            Phase::Sound => return Ok(()),
            Phase::Failed(failure) => return Err(failure.clone()),
            Phase::Restarted => {}
        }
        // The snapshot is durable, so this is true. Until now a mark for what came after the restart was not. Should
        // it fail, the next sync makes a newer one.
        let _ = core.marks.lock().record(progress.synced, progress.current.first);
        progress.phase = Phase::Sound;
        progress.is_news = true;
        *core.awaits_snapshot.lock() = None;
        core.written_mark.store(progress.handed.0, Ordering::Release);
        core.durable_mark.store(progress.synced.0, Ordering::Release);
        core.has_failed.store(false, Ordering::Release);
        core.advanced.notify_all();
        core.wake.notify_one();
        Ok(())
    }

    fn read(&self, from: Sequence) -> Batches {
        let segments = self.core.segments.lock().iter().map(|segment| segment.first).collect();
        let from = from.max(Sequence::NONE.next());
        Box::new(StoredBatches::new(self.core.storage.clone(), segments, from, self.written()))
    }

    fn rotate(&self) -> Result<(), Failure> {
        let core = &*self.core;
        let mut writer = core.writer.lock();
        core.write_tail(&mut writer)?;
        if !writer.is_empty() {
            core.begin_next(&mut writer, core.durable());
        }
        Ok(())
    }

    fn forget(&self, upto: Sequence) -> Result<(), Failure> {
        let core = &*self.core;
        let firsts: Vec<Sequence> = core.segments.lock().iter().map(|segment| segment.first).collect();
        // A segment's last batch is the one before the next segment's first; the current segment has no next.
        let gone: Vec<Sequence> =
            firsts.windows(2).take_while(|pair| pair[1].previous() <= upto).map(|pair| pair[0]).collect();
        // Oldest first, so that what remains is always without a gap.
        for first in &gone {
            let name = segment::file_name(*first);
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

    fn close(&self) -> Result<(), Failure> {
        let closed = self.write_closing_mark();
        self.core.fail(None, Failure::Closed);
        self.stop();
        closed
    }
}

impl FileJournal {
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
                // This frame says that what was just synced is durable, which no frame before it can.
                let mark = tail.push(&[], crc32c::crc32c(&[]), core.durable());
                core.tail_mark.store(mark.0, Ordering::Release);
            }
            // IMPORTANT: nothing that comes later is written, so nobody takes it for kept.
            tail.end()
        };
        core.write_tail(&mut writer)?;
        drop(writer);
        core.wait_synced(end, |_| None)?;
        core.writer.lock().trim()?;
        let segment = core.progress.lock().current.first;
        core.marks.lock().close(end, segment)
    }
}
