//! Keeps what the engine changes: the journal, as workers and commands need it. Knows what a reply has to wait for
//! and who has to be told; refuses to know what an effect means. Snapshots are taken in `snapshots`.

use crate::snapshots::Snapshots;
use engine::persistence::{Loading, Report, SnapshotBusy, SnapshotReason};
use engine::settings::AppendFsync;
use engine::{Engine, Persistence, Settings};
use journal::{FileJournal, Journal, Sequence, Storage};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

/// The journal and its snapshots, of one data directory.
pub(crate) struct Keeper {
    pub(crate) settings: Arc<Settings>,
    pub(crate) storage: Arc<dyn Storage>,
    /// There once the data has been read.
    journal: OnceLock<FileJournal>,
    engine: OnceLock<Weak<Engine>>,
    /// Effects go to the journal.
    recording: AtomicBool,
    /// A reply says that what it tells of is kept.
    promising: AtomicBool,
    loading: Mutex<Option<Loading>>,
    pub(crate) snapshots: Snapshots,
    /// By worker.
    listeners: Vec<Listener>,
}

/// A worker that wants to know when the journal or a snapshot has got further.
struct Listener {
    flusher: Mutex<Waker>,
    wants: AtomicBool,
    news: AtomicBool,
}

/// How far the journal has come, at one instant.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    written: u64,
    durable: u64,
    failed: bool,
    /// Nothing is durable yet, whatever its number: the journal begins with a snapshot that is still being written.
    begins: bool,
}

/// Whether replies may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Good,
    /// Not yet.
    Waits,
    /// Never: what they tell of was not kept.
    Lost,
}

impl Kept {
    /// Nothing is promised, so nothing has to be waited for.
    const EVERYTHING: Kept = Kept { written: u64::MAX, durable: u64::MAX, failed: false, begins: false };

    /// The standing of replies that tell of changes up to batch `depends_on`, to a client whose own last batch is
    /// `last_batch`; `strict` when changes have to be durable.
    #[inline]
    pub(crate) fn standing(self, depends_on: u64, last_batch: u64, strict: bool) -> Standing {
        let limit = if strict { self.durable } else { self.written };
        if strict && self.begins {
            return Standing::Waits;
        }
        if depends_on <= limit {
            return Standing::Good;
        }
        match self.failed {
            false => Standing::Waits,
            // Reads go on, although they may show what others changed in vain.
            true if last_batch <= limit => Standing::Good,
            true => Standing::Lost,
        }
    }
}

impl Keeper {
    pub(crate) fn new(settings: Arc<Settings>, storage: Arc<dyn Storage>, workers: usize, now_s: u64) -> Keeper {
        let listener = || Listener {
            flusher: Mutex::new(Waker::noop().clone()),
            wants: AtomicBool::new(false),
            news: AtomicBool::new(false),
        };
        Keeper {
            settings,
            storage,
            journal: OnceLock::new(),
            engine: OnceLock::new(),
            recording: AtomicBool::new(false),
            promising: AtomicBool::new(false),
            loading: Mutex::new(None),
            snapshots: Snapshots::new(now_s),
            listeners: (0..workers).map(|_| listener()).collect(),
        }
    }

    /// Takes over the journal, once all that it holds has been read.
    pub(crate) fn open(self: &Arc<Keeper>, engine: &Arc<Engine>, journal: FileJournal) {
        let keeper = Arc::downgrade(self);
        journal.watch(Box::new(move || {
            if let Some(keeper) = keeper.upgrade() {
                keeper.journal_moved();
            }
        }));
        let _ = self.engine.set(Arc::downgrade(engine));
        let _ = self.journal.set(journal);
        self.follow_policy();
        let on = self.settings.appendonly();
        self.promising.store(on, SeqCst);
        self.recording.store(on, SeqCst);
        *self.loading.lock() = None;
        crate::snapshots::start(self.clone(), engine.clone());
    }

    pub(crate) fn journal(&self) -> Option<&FileJournal> {
        self.journal.get()
    }

    pub(crate) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get().and_then(Weak::upgrade)
    }

    pub(crate) fn set_loading(&self, loading: Loading) {
        *self.loading.lock() = Some(loading);
    }

    /// True when a reply promises that what it tells of is kept.
    pub(crate) fn is_promising(&self) -> bool {
        self.promising.load(SeqCst)
    }

    /// Hands effects to the journal or not, and promises to keep them or not.
    pub(crate) fn set_recording(&self, recording: bool, promising: bool) {
        self.recording.store(recording, SeqCst);
        self.promising.store(promising, SeqCst);
    }

    /// Hands all batches up to `newest` to the operating system, in one write for everybody's.
    #[inline]
    pub(crate) fn keep(&self, newest: u64) -> Kept {
        let Some(journal) = self.journal() else { return Kept::EVERYTHING };
        if !self.promising.load(Relaxed) {
            return self.keep_without_promise(journal);
        }
        // A journal whose sync has failed may have written everything all the same.
        let failed = journal.write(Sequence(newest)).is_err() || journal.has_failed();
        if failed {
            self.refuse_writes();
        }
        Kept { written: journal.written().0, durable: journal.durable().0, failed, begins: false }
    }

    /// While there is no journal, or not yet: what it has been asked for begins with a snapshot.
    #[cold]
    fn keep_without_promise(&self, journal: &FileJournal) -> Kept {
        if self.recording.load(Relaxed) {
            let _ = journal.write(journal.tail());
        }
        match self.settings.appendonly() {
            // Who wants to be certain waits for that.
            true => Kept { begins: true, ..Kept::EVERYTHING },
            false => Kept::EVERYTHING,
        }
    }

    /// The same for whatever was appended.
    pub(crate) fn keep_all(&self) -> Kept {
        self.keep(self.tail())
    }

    /// True when more is durable than `kept` knows of, or the journal has failed since.
    pub(crate) fn has_moved_since(&self, kept: Kept) -> bool {
        match kept.begins {
            true => self.is_promising(),
            false => self
                .journal()
                .is_some_and(|journal| journal.durable().0 > kept.durable || journal.has_failed() != kept.failed),
        }
    }

    /// The words for a client whose writes are not kept.
    pub(crate) fn failure(&self) -> String {
        let reason = self.journal().and_then(|journal| journal.failure());
        let reason = reason.map_or_else(|| "the journal is closed".to_owned(), |failure| failure.to_string());
        format!(
            "Errors writing to the AOF file: {reason}. Writes are refused, reads go on. Make room or mend the disk, then \
             CONFIG SET appendonly yes, or restart."
        )
    }

    /// Follows `appendfsync`.
    pub(crate) fn follow_policy(&self) {
        let Some(journal) = self.journal() else { return };
        let policy = self.settings.appendfsync();
        journal.set_sync_every((policy == AppendFsync::Everysec).then_some(Duration::from_secs(1)));
        journal.set_zero_ahead(policy == AppendFsync::Always);
    }

    /// Follows `appendonly`. Said again to a journal that has failed, it is the order to begin anew.
    pub(crate) fn follow_appendonly(&self) {
        let Some(journal) = self.journal() else { return };
        let is_sound = self.is_promising() && journal.failure().is_none();
        match self.settings.appendonly() {
            true if is_sound => {}
            // What is in memory has to be on disk before what comes next can be added to it.
            true => self.snapshots.order(SnapshotReason::Compaction),
            false => {
                self.set_recording(self.snapshots.is_running(), false);
                if let Some(engine) = self.engine() {
                    engine.refuse_writes(None);
                }
            }
        }
    }

    /// The journal's thread says that more is durable, or that it has failed.
    fn journal_moved(&self) {
        if self.is_promising() && self.journal().is_some_and(|journal| journal.has_failed()) {
            self.refuse_writes();
        }
        self.tell_workers();
    }

    /// The journal has failed: no more writes, from now on.
    #[cold]
    fn refuse_writes(&self) {
        let Some(engine) = self.engine() else { return };
        let reason = self.failure();
        if !engine.refuses_writes() {
            tracing::error!("{reason}");
        }
        engine.refuse_writes(Some(reason));
    }

    /// Makes the workers that want to know look around.
    pub(crate) fn tell_workers(&self) {
        for listener in &self.listeners {
            if listener.wants.swap(false, SeqCst) {
                listener.news.store(true, SeqCst);
                listener.flusher.lock().wake_by_ref();
            }
        }
    }

    /// How a worker is woken.
    pub(crate) fn register(&self, worker: usize, flusher: Waker) {
        *self.listeners[worker].flusher.lock() = flusher;
    }

    /// A worker wants to know when anything has moved. What it waits for may have happened before it said so: it has
    /// to look once more.
    pub(crate) fn await_news(&self, worker: usize) {
        self.listeners[worker].wants.store(true, SeqCst);
    }

    /// True when something has moved since the worker last asked.
    #[inline]
    pub(crate) fn take_news(&self, worker: usize) -> bool {
        let news = &self.listeners[worker].news;
        news.load(Relaxed) && news.swap(false, SeqCst)
    }

    /// Writes and syncs everything, at the end.
    pub(crate) fn close(&self) -> Result<(), String> {
        let Some(journal) = self.journal().filter(|_| self.is_promising()) else { return Ok(()) };
        // IMPORTANT: before the promise ends: a snapshot that began then would begin the journal anew.
        self.snapshots.stop();
        // Nothing is asked of it any more: that it is closed is no failure.
        self.set_recording(false, false);
        journal.close().map_err(|failure| failure.to_string())
    }
}

impl Persistence for Keeper {
    #[inline]
    fn is_recording(&self) -> bool {
        self.recording.load(Relaxed)
    }

    #[inline]
    fn append(&self, batch: &[u8]) -> u64 {
        self.journal.get().map_or(0, |journal| journal.append(batch).0)
    }

    fn tail(&self) -> u64 {
        self.journal.get().map_or(0, |journal| journal.tail().0)
    }

    fn durable(&self) -> Option<u64> {
        self.journal.get().filter(|_| self.is_promising()).map(|journal| journal.durable().0)
    }

    fn request_sync(&self) {
        if let Some(journal) = self.journal() {
            let _ = journal.write(journal.tail());
            journal.request_sync();
        }
    }

    fn begin_snapshot(&self, why: SnapshotReason) -> Result<u64, SnapshotBusy> {
        self.snapshots.begin(why)
    }

    fn schedule_snapshot(&self, why: SnapshotReason) {
        self.snapshots.order(why);
    }

    fn snapshot_outcome(&self, number: u64) -> Option<Result<(), String>> {
        self.snapshots.outcome(number)
    }

    fn report(&self) -> Report {
        let mut report = self.snapshots.report();
        report.loading = *self.loading.lock();
        report.journaling = self.settings.appendonly();
        if let Some(journal) = self.journal() {
            report.journal_bytes = journal.bytes();
            report.sequence = journal.tail().0;
            report.durable = journal.durable().0;
            let failed = self.is_promising() && journal.failure().is_some();
            report.failure = failed.then(|| self.failure());
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_wait_for_what_they_tell_of() {
        let kept = Kept { written: 10, durable: 5, failed: false, begins: false };
        assert_eq!(kept.standing(10, 10, false), Standing::Good);
        assert_eq!(kept.standing(10, 10, true), Standing::Waits);
        assert_eq!(kept.standing(5, 5, true), Standing::Good);
        assert_eq!(kept.standing(11, 0, false), Standing::Waits);
        assert_eq!(Kept::EVERYTHING.standing(99, 99, true), Standing::Good);
    }

    #[test]
    fn after_a_failure_reads_go_on_and_writes_are_lost() {
        let kept = Kept { written: 10, durable: 5, failed: true, begins: false };
        assert_eq!(kept.standing(12, 12, false), Standing::Lost);
        assert_eq!(kept.standing(12, 9, false), Standing::Good, "it only reads");
        assert_eq!(kept.standing(12, 5, true), Standing::Good, "it only reads");
        assert_eq!(kept.standing(12, 6, true), Standing::Lost);
        assert_eq!(kept.standing(10, 10, false), Standing::Good);
    }
}
