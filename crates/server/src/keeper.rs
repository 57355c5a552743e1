//! Keeps what the engine changes: the journal, as workers and commands need it. Knows what a reply has to wait for
//! and who has to be told; refuses to know what an effect means. Snapshots are taken in `snapshots`.

use crate::snapshots::Snapshots;
use engine::journal_state::JournalState;
use engine::persistence::{Loading, Report, SnapshotBusy, SnapshotReason};
use engine::settings::AppendFsync;
use engine::{Engine, Persistence, Settings};
use journal::{Log, LogFiles, Sequence, SnapshotStore};
use locks::{Mutex, rank};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

/// The journal and its snapshots, of one data directory.
pub(crate) struct Keeper {
    pub(crate) settings: Arc<Settings>,
    /// There once the data has been read.
    opened: OnceLock<OpenedLog>,
    engine: OnceLock<Weak<Engine>>,
    /// A [`JournalState`]; changed in [`Keeper::change_state`] alone.
    state: AtomicU8,
    /// Why the journal could not be started, or why the last snapshot failed.
    snapshot_failure: Mutex<Option<String>, { rank::SNAPSHOT_FAILURE }>,
    /// Held while the state changes, or what is recorded, and the gates are made to fit it.
    changing: Mutex<Changing, { rank::JOURNAL_STATE }>,
    /// The journal had room when the gates were last made to fit it.
    had_room: AtomicBool,
    /// Effects go to the journal.
    recording: AtomicBool,
    loading: Mutex<Option<Loading>, { rank::LOADING }>,
    pub(crate) snapshots: Snapshots,
    /// By worker.
    listeners: Vec<Listener>,
}

/// The log of a server, and what keeps it short.
pub(crate) struct OpenedLog {
    pub(crate) log: Arc<dyn Log>,
    /// The same log as files, with the snapshots beside it; a log that is no local files has none.
    pub(crate) files: Option<LocalFiles>,
}

/// What only a log in local files has.
pub(crate) struct LocalFiles {
    pub(crate) log: Arc<dyn LogFiles>,
    pub(crate) snapshots: SnapshotStore,
}

/// What the state and what is recorded depend on, beside the settings.
#[derive(Default)]
struct Changing {
    /// A snapshot is being taken that is of no use without what changes meanwhile: that is recorded in every state.
    snapshot_needs_changes: bool,
}

/// A worker that wants to know when the journal or a snapshot has got further.
struct Listener {
    flusher: Mutex<Waker, { rank::WAKER }>,
    wants: AtomicBool,
    news: AtomicBool,
}

/// How far the journal has come, at one instant.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    written: u64,
    durable: u64,
    state: JournalState,
    /// The journal has failed, or keeps nothing more.
    failed: bool,
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
    /// The standing of replies that tell of changes up to batch `depends_on`; `strict` when those have to be durable.
    #[inline]
    pub(crate) fn standing(self, depends_on: u64, strict: bool) -> Standing {
        match self.state {
            // Nothing is promised, to a connection that waits for syncs neither. IMPORTANT: with `appendfsync always` that is
            // every connection: if it waited here, all clients would stand still until the snapshot is written.
            JournalState::Off | JournalState::Starting | JournalState::StartFailed => return Standing::Good,
            JournalState::Sound | JournalState::Failed | JournalState::Restarting | JournalState::Closing => {}
        }
        let limit = if strict { self.durable } else { self.written };
        match depends_on <= limit {
            true => Standing::Good,
            false if self.failed => Standing::Lost,
            false => Standing::Waits,
        }
    }
}

impl Keeper {
    pub(crate) fn new(settings: Arc<Settings>, workers: usize, now_s: u64) -> Keeper {
        let listener = || Listener {
            flusher: Mutex::new(Waker::noop().clone()),
            wants: AtomicBool::new(false),
            news: AtomicBool::new(false),
        };
        Keeper {
            settings,
            opened: OnceLock::new(),
            engine: OnceLock::new(),
            state: AtomicU8::new(JournalState::Off as u8),
            snapshot_failure: Mutex::new(None),
            changing: Mutex::default(),
            had_room: AtomicBool::new(true),
            recording: AtomicBool::new(false),
            loading: Mutex::new(None),
            snapshots: Snapshots::new(now_s),
            listeners: (0..workers).map(|_| listener()).collect(),
        }
    }

    /// Takes over the journal, once all that it holds has been read.
    pub(crate) fn open(self: &Arc<Keeper>, engine: &Arc<Engine>, opened: OpenedLog) {
        let keeper = Arc::downgrade(self);
        opened.log.watch(Box::new(move || {
            if let Some(keeper) = keeper.upgrade() {
                keeper.journal_moved();
            }
        }));
        let _ = self.engine.set(Arc::downgrade(engine));
        let _ = self.opened.set(opened);
        self.follow_policy();
        let on = self.settings.appendonly();
        self.recording.store(on, SeqCst);
        self.change_state(|_, _| if on { JournalState::Sound } else { JournalState::Off });
        *self.loading.lock() = None;
        crate::snapshots::start(self.clone(), engine.clone());
    }

    #[inline]
    pub(crate) fn journal(&self) -> Option<&dyn Log> {
        self.opened.get().map(|opened| &*opened.log)
    }

    pub(crate) fn files(&self) -> Option<&LocalFiles> {
        self.opened.get().and_then(|opened| opened.files.as_ref())
    }

    pub(crate) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get().and_then(Weak::upgrade)
    }

    pub(crate) fn set_loading(&self, loading: Loading) {
        *self.loading.lock() = Some(loading);
    }

    /// Goes from the state there is to the one that `next` makes of it, lets writes in or refuses them as that asks for, and
    /// has those look who wait for it.
    ///
    /// IMPORTANT: what `next` decides by, it looks at itself, under this lock. An order to go on or off that came in between
    /// would be forgotten, and its client told that it was done.
    fn change_state(&self, next: impl FnOnce(JournalState, &mut Changing) -> JournalState) {
        let mut changing = self.changing.lock();
        let before = self.state();
        let state = next(before, &mut changing);
        self.had_room.store(self.journal().is_none_or(|journal| journal.has_room()), SeqCst);
        let refusal = self.refusal(state);
        let engine = self.engine();
        // IMPORTANT: writes are refused before the state says so, and let in after it: whoever meets a state in which they are
        // refused finds the reason, too.
        match (&engine, refusal) {
            (Some(engine), Some(reason)) => {
                if before != state || !engine.refuses_writes() {
                    tracing::error!("{reason}");
                }
                engine.refuse_writes(Some(reason));
                self.state.store(state as u8, SeqCst);
            }
            (engine, _) => {
                self.state.store(state as u8, SeqCst);
                if let Some(engine) = engine {
                    engine.refuse_writes(None);
                }
                if before != state {
                    tracing::debug!(before = before.name(), now = state.name(), "journal");
                }
            }
        }
        drop(changing);
        self.tell_workers();
    }

    /// The one place that decides whether writes are let in: why not, in a state.
    fn refusal(&self, state: JournalState) -> Option<String> {
        let snapshot_failure = self.snapshot_failure.lock().clone();
        match state {
            JournalState::Off => snapshot_failure.filter(|_| self.stops_on_snapshot_failure()).map(|reason| {
                format!(
                    "Holdfast is configured to save snapshots, but it's currently unable to persist to disk: {reason}. \
                     Commands that may modify the data set are disabled, because this instance is configured to report \
                     errors during writes if snapshotting fails (stop-writes-on-bgsave-error option)."
                )
            }),
            JournalState::Starting | JournalState::Closing => None,
            JournalState::StartFailed => {
                let reason = snapshot_failure.unwrap_or_else(|| "the snapshot that it begins with failed".to_owned());
                Some(format!(
                    "Errors writing to the AOF file: the journal could not be started: {reason}. Writes are refused, reads \
                     go on; it is tried again every few seconds. Make room or mend the disk, or CONFIG SET appendonly no."
                ))
            }
            JournalState::Sound if !self.had_room.load(SeqCst) => Some(
                "Errors writing to the AOF file: No space left on device. Writes are refused before they are made, reads go \
                 on. Make room, and writes are taken again by themselves."
                    .to_owned(),
            ),
            JournalState::Sound => None,
            JournalState::Failed | JournalState::Restarting => Some(self.failure()),
        }
    }

    /// Without a journal, a snapshot that fails is all that would have kept the data.
    fn stops_on_snapshot_failure(&self) -> bool {
        self.settings.stop_writes_on_bgsave_error() && !self.settings.save_points().is_empty()
    }

    /// Hands all batches up to `newest` to the operating system, in one write for everybody's.
    #[inline]
    pub(crate) fn keep(&self, newest: u64) -> Kept {
        let state = JournalState::of(self.state.load(Relaxed));
        let Some(journal) = self.journal() else { return Kept { written: 0, durable: 0, state, failed: false } };
        if !state.is_promising() {
            return self.keep_without_promise(journal, state);
        }
        // A journal whose sync has failed may have written everything all the same.
        let failed = journal.write(Sequence(newest)).is_err() || journal.has_failed();
        if state == JournalState::Sound && (failed || journal.has_room() != self.had_room.load(Relaxed)) {
            // IMPORTANT: here, and not only when the journal's thread says so: until then more could be written than there
            // is room for.
            self.journal_moved();
        }
        Kept { written: journal.written().0, durable: journal.durable().0, state, failed }
    }

    /// While there is no journal, or not yet: what changes while a snapshot is written is written all the same.
    #[cold]
    fn keep_without_promise(&self, journal: &dyn Log, state: JournalState) -> Kept {
        if self.recording.load(Relaxed) {
            let _ = journal.write(journal.tail());
        }
        Kept { written: journal.written().0, durable: journal.durable().0, state, failed: false }
    }

    /// The same for whatever was appended.
    pub(crate) fn keep_all(&self) -> Kept {
        self.keep(self.tail())
    }

    /// True when more is durable than `kept` knows of, or the state of the journal is another.
    pub(crate) fn has_moved_since(&self, kept: Kept) -> bool {
        self.state() != kept.state
            || self
                .journal()
                .is_some_and(|journal| journal.durable().0 > kept.durable || journal.has_failed() != kept.failed)
    }

    /// The words for a client whose writes are not kept.
    pub(crate) fn failure(&self) -> String {
        let reason = self.journal().and_then(|journal| journal.failure());
        let reason = reason.map_or_else(|| "the journal is closed".to_owned(), |failure| failure.to_string());
        format!(
            "Errors writing to the AOF file: {reason}. Writes are refused, and so is reading what was not kept; other reads \
             go on. Make room or mend the disk, then CONFIG SET appendonly yes, or restart."
        )
    }

    /// The words for a client whose last replies cannot be given, because what they tell of was not kept.
    pub(crate) fn loss(&self) -> String {
        let reason = self.journal().and_then(|journal| journal.failure());
        let reason = reason.map_or_else(|| "the journal is closed".to_owned(), |failure| failure.to_string());
        format!(
            "Errors writing to the AOF file: {reason}. What this connection has last asked for may or may not have been kept: \
             look before you try again. The connection ends."
        )
    }

    /// Follows `appendfsync`.
    pub(crate) fn follow_policy(&self) {
        let Some(files) = self.files() else { return };
        let policy = self.settings.appendfsync();
        files.log.set_sync_every((policy == AppendFsync::Everysec).then_some(Duration::from_secs(1)));
        files.log.set_zero_ahead(policy == AppendFsync::Always);
    }

    /// Follows `appendonly`. Said again to a journal that has failed, it is the order to begin anew.
    pub(crate) fn follow_appendonly(&self) {
        if self.journal().is_none() {
            return;
        }
        self.change_state(|state, changing| match (self.settings.appendonly(), state) {
            (_, JournalState::Closing) => state,
            (false, _) => {
                self.recording.store(changing.snapshot_needs_changes, SeqCst);
                *self.snapshot_failure.lock() = None;
                JournalState::Off
            }
            (true, JournalState::Off | JournalState::StartFailed) => JournalState::Starting,
            (true, JournalState::Failed) => JournalState::Restarting,
            (true, state) => state,
        });
        if matches!(self.state(), JournalState::Starting | JournalState::Restarting) {
            // What is in memory has to be on disk before what comes next can be added to it.
            self.snapshots.order(SnapshotReason::Compaction);
        }
    }

    /// A snapshot begins. True when the journal begins anew with it: it has failed, or was not asked to keep anything.
    pub(crate) fn snapshot_begins(&self) -> bool {
        let mut anew = true;
        self.change_state(|state, changing| {
            let state = match state {
                JournalState::Failed => JournalState::Restarting,
                // It has, though nobody has noticed yet.
                JournalState::Sound if self.journal().is_some_and(|journal| journal.has_failed()) => {
                    JournalState::Restarting
                }
                state => state,
            };
            anew = !matches!(state, JournalState::Sound | JournalState::Closing);
            changing.snapshot_needs_changes = !anew;
            state
        });
        anew
    }

    /// The journal has begun anew in a fresh segment: effects go there, though nothing is promised of them yet.
    pub(crate) fn record_anew(&self) {
        self.change_state(|state, changing| {
            changing.snapshot_needs_changes = true;
            self.recording.store(true, SeqCst);
            state
        });
    }

    /// A snapshot has ended, with which the journal was to begin anew or not.
    pub(crate) fn snapshot_ended(&self, anew: bool, failure: Option<&str>) {
        *self.snapshot_failure.lock() = failure.map(str::to_owned);
        self.change_state(|state, changing| {
            changing.snapshot_needs_changes = false;
            match state {
                JournalState::Closing => state,
                JournalState::Off => {
                    // It was for the snapshot alone, or was turned off meanwhile.
                    self.recording.store(false, SeqCst);
                    state
                }
                state if !anew => state,
                _ if failure.is_none() => JournalState::Sound,
                JournalState::Restarting => JournalState::Failed,
                JournalState::Starting => JournalState::StartFailed,
                state => state,
            }
        });
    }

    /// The journal's thread says that more is durable, that it has failed, or that there is room or none.
    fn journal_moved(&self) {
        let Some(journal) = self.journal() else { return };
        match self.state() {
            JournalState::Sound if journal.has_failed() => self.note_failure(),
            JournalState::Sound if journal.has_room() != self.had_room.load(SeqCst) => {
                self.change_state(|state, _| state);
            }
            _ => self.tell_workers(),
        }
    }

    /// A write or a sync has failed.
    #[cold]
    fn note_failure(&self) {
        self.change_state(|state, _| match state {
            JournalState::Sound => JournalState::Failed,
            state => state,
        });
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

    /// Writes and syncs everything, at the end. From then on nothing is answered that is not kept.
    pub(crate) fn close(&self) -> Result<(), String> {
        let Some(journal) = self.journal() else { return Ok(()) };
        // IMPORTANT: before the state changes: a snapshot that began then would begin the journal anew.
        self.snapshots.stop();
        match self.state() {
            JournalState::Off => {
                // There is nothing to keep: it only gives its space back.
                let _ = journal.close();
                Ok(())
            }
            JournalState::Starting => {
                tracing::warn!("the journal had not begun yet: what has changed since the last snapshot is not kept");
                Ok(())
            }
            JournalState::StartFailed => Err(self.refusal(JournalState::StartFailed).unwrap_or_default()),
            JournalState::Sound | JournalState::Failed | JournalState::Restarting | JournalState::Closing => {
                self.change_state(|_, _| JournalState::Closing);
                journal.close().map_err(|failure| failure.to_string())
            }
        }
    }
}

impl Persistence for Keeper {
    fn state(&self) -> JournalState {
        JournalState::of(self.state.load(SeqCst))
    }

    fn readable(&self, strict: bool) -> Option<u64> {
        let journal = self.journal().filter(|_| self.state().hides_what_is_not_kept())?;
        Some(if strict { journal.durable().0 } else { journal.written().0 })
    }

    #[inline]
    fn is_recording(&self) -> bool {
        self.recording.load(Relaxed)
    }

    #[inline]
    fn append(&self, batch: &[u8]) -> u64 {
        self.journal().map_or(0, |journal| journal.append(batch).0)
    }

    fn tail(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.tail().0)
    }

    fn durable(&self) -> Option<u64> {
        self.journal().filter(|_| self.state().is_promising()).map(|journal| journal.durable().0)
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
        report.state = Some(self.state());
        report.has_room = true;
        if let Some(journal) = self.journal() {
            report.has_room = journal.has_room();
            report.journal_bytes = self.files().map_or(0, |files| files.log.bytes());
            report.sequence = journal.tail().0;
            report.durable = journal.durable().0;
        }
        if self.settings.appendonly() {
            report.failure = self.refusal(self.state());
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(state: JournalState) -> Kept {
        Kept {
            written: 10,
            durable: 5,
            state,
            failed: matches!(state, JournalState::Failed | JournalState::Restarting),
        }
    }

    #[test]
    fn replies_wait_for_what_they_tell_of() {
        let sound = kept(JournalState::Sound);
        assert_eq!(sound.standing(10, false), Standing::Good);
        assert_eq!(sound.standing(10, true), Standing::Waits);
        assert_eq!(sound.standing(5, true), Standing::Good);
        assert_eq!(sound.standing(11, false), Standing::Waits);
    }

    #[test]
    fn nothing_is_promised_before_the_journal_has_begun() {
        for state in [JournalState::Off, JournalState::Starting, JournalState::StartFailed] {
            for strict in [false, true] {
                assert_eq!(kept(state).standing(99, strict), Standing::Good, "{state:?}");
            }
        }
    }

    #[test]
    fn after_a_failure_nothing_is_told_that_was_not_kept() {
        for state in [JournalState::Failed, JournalState::Restarting] {
            assert_eq!(kept(state).standing(12, false), Standing::Lost);
            assert_eq!(kept(state).standing(10, false), Standing::Good);
            assert_eq!(kept(state).standing(6, true), Standing::Lost);
            assert_eq!(kept(state).standing(5, true), Standing::Good);
        }
    }
}
