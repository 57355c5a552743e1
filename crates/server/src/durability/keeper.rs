//! The journal as workers and commands need it: its state, what is recorded, and which workers are notified when it
//! moves. Refuses to know what an effect means, and how a log is stored. Snapshots are taken in `snapshot_thread`.

use super::members::Address;
use super::progress::JournalProgress;
use super::roles::Roles;
use super::snapshots::Snapshots;
use crate::platform::clock::unix_ms;
use arc_swap::{ArcSwapOption, Guard};
use engine::persistence::journal_state::JournalState;
use engine::persistence::{
    ClusterReport, Loading, Replication, Report, RoleChange, SnapshotBusy, SnapshotReason, SyncTimes,
};
use engine::settings::AppendFsync;
use engine::{Engine, Persistence, Settings};
use journal::{Failure, Log, OpenedLog, SYNC_BOUNDS_NS, Sequence};
use locks::{Mutex, rank};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

/// The journal and its snapshots.
pub(crate) struct Keeper {
    pub(crate) settings: Arc<Settings>,
    /// There while this server writes: not before the data has been read, and not while it follows another.
    opened: ArcSwapOption<OpenedLog>,
    engine: OnceLock<Weak<Engine>>,
    /// Whether this server writes or follows.
    pub(crate) roles: Roles,
    /// A [`JournalState`]; changed in [`Keeper::change_state`] alone.
    state: AtomicU8,
    /// Why the last snapshot failed; it may be the one with which the journal begins.
    snapshot_failure: Mutex<Option<String>, { rank::SNAPSHOT_FAILURE }>,
    /// Held while the state, or what is recorded, changes, and writes are refused or let in to match.
    transition: Mutex<Transition, { rank::JOURNAL_STATE }>,
    /// Whether the journal had room when that was last done.
    had_room: AtomicBool,
    /// Effects go to the journal.
    recording: AtomicBool,
    /// See [`Keeper::has_diverged`].
    has_diverged: AtomicBool,
    loading: Mutex<Option<Loading>, { rank::LOADING }>,
    pub(crate) snapshots: Snapshots,
    /// One for each worker.
    signals: Vec<WorkerSignal>,
}

const LOST: u64 = Sequence::LOST.0;

/// The log that is written now.
pub(crate) struct CurrentLog(Guard<Option<Arc<OpenedLog>>>);

impl Deref for CurrentLog {
    type Target = dyn Log;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &*self.0.as_ref().expect("it was there when this was made").log
    }
}

/// What the state, and what is recorded, depend on beside the settings.
#[derive(Default)]
struct Transition {
    /// A snapshot is being taken that is of no use without the changes made meanwhile: they are recorded in every
    /// state.
    snapshot_needs_changes: bool,
}

/// Wakes a worker when the journal or a snapshot has moved.
struct WorkerSignal {
    flusher: Mutex<Waker, { rank::WAKER }>,
    /// The worker waits for the next move.
    armed: AtomicBool,
    /// Something has moved since.
    raised: AtomicBool,
}

impl Keeper {
    pub(crate) fn new(settings: Arc<Settings>, workers: usize, now_s: u64) -> Keeper {
        let signal = || WorkerSignal {
            flusher: Mutex::new(Waker::noop().clone()),
            armed: AtomicBool::new(false),
            raised: AtomicBool::new(false),
        };
        Keeper {
            settings,
            opened: ArcSwapOption::empty(),
            engine: OnceLock::new(),
            roles: Roles::new(),
            state: AtomicU8::new(JournalState::Off as u8),
            snapshot_failure: Mutex::new(None),
            transition: Mutex::default(),
            had_room: AtomicBool::new(true),
            recording: AtomicBool::new(false),
            has_diverged: AtomicBool::new(false),
            loading: Mutex::new(None),
            snapshots: Snapshots::new(now_s),
            signals: (0..workers).map(|_| signal()).collect(),
        }
    }

    /// Takes the log over, once all that it holds has been read.
    pub(crate) fn open(self: &Arc<Keeper>, engine: Weak<Engine>, opened: OpenedLog) {
        let keeper = Arc::downgrade(self);
        opened.log.watch(Box::new(move || {
            if let Some(keeper) = keeper.upgrade() {
                keeper.on_journal_moved();
            }
        }));
        let _ = self.engine.set(engine);
        self.opened.store(Some(Arc::new(opened)));
        self.follow_policy();
        let on = self.settings.appendonly();
        self.recording.store(on, SeqCst);
        self.change_state(|_, _| if on { JournalState::Sound } else { JournalState::Off });
        *self.loading.lock() = None;
    }

    /// Follows another writer from now on, and has no log of its own. A change that is made nevertheless, by a request
    /// that had passed the gates before, is not answered: see [`Persistence::append`].
    pub(crate) fn begin_following(&self, engine: Weak<Engine>) {
        let _ = self.engine.set(engine);
        self.has_diverged.store(false, SeqCst);
        self.recording.store(true, SeqCst);
        self.set_state(|_, transition| {
            self.opened.store(None);
            transition.snapshot_needs_changes = false;
            JournalState::Following
        });
    }

    /// Gives the log up: from now on no reply is sent that depends on it, as if another writer had it.
    pub(super) fn abandon(&self) {
        self.change_state(|_, _| JournalState::Fenced);
    }

    /// The data has been read.
    pub(crate) fn end_loading(&self) {
        *self.loading.lock() = None;
    }

    /// True when a change was made here while another process writes: the state in memory is not the writer's.
    pub(crate) fn has_diverged(&self) -> bool {
        self.has_diverged.load(SeqCst)
    }

    #[inline]
    pub(crate) fn journal(&self) -> Option<CurrentLog> {
        let opened = self.opened.load();
        opened.is_some().then_some(CurrentLog(opened))
    }

    /// The log that is written now, with its snapshots.
    pub(crate) fn opened(&self) -> Option<Arc<OpenedLog>> {
        self.opened.load_full()
    }

    pub(crate) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get().and_then(Weak::upgrade)
    }

    pub(crate) fn set_loading(&self, loading: Loading) {
        *self.loading.lock() = Some(loading);
    }

    /// Goes from the current state to the one that `next` returns, refuses writes or lets them in to match, and wakes
    /// the workers that wait for it. A fenced journal stays fenced.
    ///
    /// IMPORTANT: `next` reads what it decides by itself, under this lock. A CONFIG SET appendonly that came in between
    /// would be lost, and its client told that it was done.
    fn change_state(&self, next: impl FnOnce(JournalState, &mut Transition) -> JournalState) {
        self.set_state(|before, transition| match before {
            JournalState::Fenced => before,
            _ => next(before, transition),
        });
    }

    /// As `change_state`, from a fenced journal too.
    fn set_state(&self, next: impl FnOnce(JournalState, &mut Transition) -> JournalState) {
        let mut transition = self.transition.lock();
        let before = self.state();
        let state = next(before, &mut transition);
        self.had_room.store(self.journal().is_none_or(|journal| journal.has_room()), SeqCst);
        let refusal = self.refusal(state);
        let engine = self.engine();
        // IMPORTANT: writes are refused before the state changes, and let in after it: a thread that sees a state in
        // which they are refused finds the reason, too.
        match (&engine, refusal) {
            (Some(engine), Some(reason)) => {
                if before != state || !engine.restrictions.refuses_writes() {
                    tracing::error!("{reason}");
                }
                engine.restrictions.refuse_writes(Some(reason));
                self.state.store(state as u8, SeqCst);
            }
            (engine, _) => {
                self.state.store(state as u8, SeqCst);
                if let Some(engine) = engine {
                    engine.restrictions.refuse_writes(None);
                }
                if before != state {
                    tracing::debug!(before = before.name(), now = state.name(), "journal");
                }
            }
        }
        if let Some(engine) = engine.filter(|_| state != JournalState::Sound) {
            engine::set_standing(&engine, false);
        }
        drop(transition);
        self.notify_workers();
    }

    /// Why writes are refused in a state; `None` where they are let in. The one place that decides it.
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
            JournalState::Starting | JournalState::Closing | JournalState::Following => None,
            JournalState::StartFailed => {
                let reason = snapshot_failure.unwrap_or_else(|| "the snapshot that it begins with failed".to_owned());
                Some(format!(
                    "Errors writing to the AOF file: the journal could not be started: {reason}. Writes are refused, reads \
                     go on; it is tried again every few seconds. Free space or repair the disk, or CONFIG SET appendonly no."
                ))
            }
            JournalState::Sound if !self.had_room.load(SeqCst) && self.roles.cluster().is_some() => Some(
                "Errors writing to the log: too many changes wait to be stored by NATS. Writes are refused before they are made. \
                 When NATS has stored some, writes are accepted again."
                    .to_owned(),
            ),
            JournalState::Sound if !self.had_room.load(SeqCst) => Some(
                "Errors writing to the AOF file: No space left on device. Writes are refused before they are made, reads go \
                 on. When there is space again, writes are accepted again."
                    .to_owned(),
            ),
            JournalState::Sound => None,
            JournalState::Failed | JournalState::Restarting if self.roles.cluster().is_some() => Some(format!(
                "Errors writing to the log: {}. Writes are refused, and so are reads of changes that were not stored; other reads \
                 go on. `holdfast cluster status` says what is wrong.",
                self.failure_reason()
            )),
            JournalState::Failed | JournalState::Restarting => Some(format!(
                "Errors writing to the AOF file: {}. Writes are refused, and so are reads of changes that were not stored; other \
                 reads go on. Free space or repair the disk, then CONFIG SET appendonly yes, or restart.",
                self.failure_reason()
            )),
            JournalState::Fenced => Some(format!("{}. Nothing is answered any more.", self.failure_reason())),
        }
    }

    /// Without a journal, the data is stored by snapshots alone.
    fn stops_on_snapshot_failure(&self) -> bool {
        self.settings.stop_writes_on_bgsave_error() && !self.settings.save_points().is_empty()
    }

    /// Writes all batches up to `newest`, in one write for all clients, and says how far the journal is.
    #[inline]
    pub(crate) fn write_up_to(&self, newest: u64) -> JournalProgress {
        let mut state = JournalState::of(self.state.load(Relaxed));
        let Some(journal) = self.journal() else {
            return JournalProgress { written: 0, durable: 0, state, failed: false, waits: false };
        };
        if !state.promises_durability() {
            return self.write_without_promise(&*journal, state);
        }
        // A journal whose sync has failed may have written everything all the same.
        let failed = journal.write(Sequence(newest)).is_err() || journal.has_failed();
        if state == JournalState::Sound && (failed || journal.has_room() != self.had_room.load(Relaxed))
            || failed && journal.fenced_by().is_some()
        {
            // IMPORTANT: here, and not only when the journal's thread calls: until then more could be written than
            // there is room for.
            self.on_journal_moved();
            state = self.state();
        }
        // IMPORTANT: asked after the requests were executed.
        // A log that was given up properly has stored everything.
        let is_closed = failed && matches!(journal.failure(), Some(Failure::Closed));
        let waits = !is_closed && !journal.may_answer();
        JournalProgress { written: journal.written().0, durable: journal.durable().0, state, failed, waits }
    }

    /// While the journal is off, or has not begun: changes made while a snapshot is written are written all the same.
    #[cold]
    fn write_without_promise(&self, journal: &dyn Log, state: JournalState) -> JournalProgress {
        if self.recording.load(Relaxed) {
            let _ = journal.write(journal.tail());
        }
        let mut state = state;
        if journal.is_fenced_now() {
            // Nothing was promised, but another server has the directory: this one answers nobody any more.
            self.on_journal_moved();
            state = self.state();
        }
        JournalProgress {
            written: journal.written().0,
            durable: journal.durable().0,
            state,
            failed: false,
            waits: false,
        }
    }

    /// With `reads confirmed`: appends a mark. When it is stored, this server was still the writer after the mark was
    /// made, and so after all requests before it were executed.
    #[inline]
    pub(crate) fn confirmation(&self) -> Option<u64> {
        if !self.settings.confirms_reads() || self.state() != JournalState::Sound {
            return None;
        }
        self.journal().map(|journal| journal.append(b"", 0).0)
    }

    /// Writes whatever was appended.
    pub(crate) fn write_all(&self) -> JournalProgress {
        self.write_up_to(self.tail())
    }

    /// True when more is durable than in `before`, or the state of the journal is another.
    pub(crate) fn has_advanced_since(&self, before: JournalProgress) -> bool {
        self.state() != before.state
            || self.journal().is_some_and(|journal| {
                journal.durable().0 > before.durable
                    || journal.has_failed() != before.failed
                    || before.waits && journal.may_answer()
            })
    }

    fn failure_reason(&self) -> String {
        let failure = self.journal().and_then(|journal| journal.failure());
        failure.map_or_else(|| "the data is loaded anew".to_owned(), |failure| failure.to_string())
    }

    /// The error for a client whose last replies are dropped, because the changes that they depend on were not stored.
    pub(crate) fn dropped_replies_error(&self) -> String {
        let reason = self.failure_reason();
        match self.state() {
            JournalState::Fenced => format!(
                "FENCED {reason}. This server answers nothing any more. What this connection has last asked for may or may \
                 not have been stored: connect to the new writer and check before you try again."
            ),
            _ => format!(
                "MISCONF Errors writing to the {}: {reason}. What this connection has last asked for may or may not have \
                 been stored: check before you try again. The connection is closed.",
                if self.roles.cluster().is_some() { "log" } else { "AOF file" }
            ),
        }
    }

    /// Follows `appendfsync`.
    pub(crate) fn follow_policy(&self) {
        let Some(opened) = self.opened() else { return };
        let policy = self.settings.appendfsync();
        opened.maintenance.set_sync_every((policy == AppendFsync::Everysec).then_some(Duration::from_secs(1)));
        opened.maintenance.set_zero_ahead(policy == AppendFsync::Always);
    }

    /// Follows `appendonly`. Set again on a journal that has failed, it restarts the journal.
    pub(crate) fn follow_appendonly(&self) {
        if self.journal().is_none() {
            return;
        }
        self.change_state(|state, transition| match (self.settings.appendonly(), state) {
            (_, JournalState::Closing | JournalState::Following) => state,
            (false, _) => {
                self.recording.store(transition.snapshot_needs_changes, SeqCst);
                *self.snapshot_failure.lock() = None;
                JournalState::Off
            }
            (true, JournalState::Off | JournalState::StartFailed) => JournalState::Starting,
            (true, JournalState::Failed) => JournalState::Restarting,
            (true, state) => state,
        });
        if matches!(self.state(), JournalState::Starting | JournalState::Restarting) {
            // What is in memory has to be on disk before what comes next can be added to it.
            self.snapshots.request(SnapshotReason::Compaction);
        }
    }

    /// A snapshot begins. True when the journal restarts with it: it has failed, or was off.
    pub(super) fn snapshot_begins(&self) -> bool {
        let mut restarts = true;
        self.change_state(|state, transition| {
            let state = match state {
                JournalState::Failed => JournalState::Restarting,
                // It has, though it was not noticed yet.
                JournalState::Sound if self.journal().is_some_and(|journal| journal.has_failed()) => {
                    JournalState::Restarting
                }
                state => state,
            };
            restarts = !matches!(state, JournalState::Sound | JournalState::Closing);
            transition.snapshot_needs_changes = !restarts;
            state
        });
        restarts
    }

    /// The journal was restarted in a new segment: effects go there, though nothing is promised of them yet.
    pub(super) fn record_after_restart(&self) {
        self.change_state(|state, transition| {
            transition.snapshot_needs_changes = true;
            self.recording.store(true, SeqCst);
            state
        });
    }

    /// A snapshot has ended; `restarts` is what [`Keeper::snapshot_begins`] returned.
    pub(super) fn snapshot_ended(&self, restarts: bool, failure: Option<&str>) {
        *self.snapshot_failure.lock() = failure.map(str::to_owned);
        self.change_state(|state, transition| {
            transition.snapshot_needs_changes = false;
            match state {
                JournalState::Closing => state,
                JournalState::Following => state,
                JournalState::Off => {
                    // Changes were recorded for the snapshot alone, or the journal was turned off meanwhile.
                    self.recording.store(false, SeqCst);
                    state
                }
                state if !restarts => state,
                _ if failure.is_none() => JournalState::Sound,
                JournalState::Restarting => JournalState::Failed,
                JournalState::Starting => JournalState::StartFailed,
                state => state,
            }
        });
    }

    /// A change was made here that is in no journal. On a server that follows or is about to, it gets a number that no
    /// batch has: no reply that depends on it is sent, and the server loads its state anew.
    #[cold]
    fn note_divergence(&self) -> u64 {
        match self.state() {
            JournalState::Following | JournalState::Closing => {
                self.has_diverged.store(true, SeqCst);
                self.roles.wake();
                LOST
            }
            // The data is being loaded, or imported.
            _ => 0,
        }
    }

    /// More is durable, the journal has failed or is fenced, or it has room or none.
    fn on_journal_moved(&self) {
        if let Some(journal) = self.journal() {
            self.follow_log(&*journal);
        }
    }

    /// Follows the state of a log, which may have been given up by now.
    fn follow_log(&self, journal: &dyn Log) {
        let state = self.state();
        if journal.has_failed() && state != JournalState::Fenced {
            // IMPORTANT: the log is looked up again under the lock. The one that was fenced or has failed may have been
            // given up meanwhile, and the server follows, or writes another.
            if journal.fenced_by().is_some() {
                self.change_state(|state, _| {
                    match self.journal().is_some_and(|current| current.fenced_by().is_some()) {
                        true => JournalState::Fenced,
                        false => state,
                    }
                });
                return self.roles.wake();
            }
            if state == JournalState::Sound {
                return self.change_state(|state, _| match state {
                    JournalState::Sound if self.journal().is_some_and(|current| current.has_failed()) => {
                        JournalState::Failed
                    }
                    state => state,
                });
            }
        }
        self.note_standing();
        match state == JournalState::Sound && journal.has_room() != self.had_room.load(SeqCst) {
            true => self.change_state(|state, _| state),
            false => self.notify_workers(),
        }
    }

    /// Notes whether the time of the log stands still.
    fn note_standing(&self) {
        let stands =
            || self.state() == JournalState::Sound && self.journal().is_some_and(|journal| !journal.may_answer());
        if let Some(engine) = self.engine().filter(|engine| engine.restrictions.is_standing() != stands()) {
            // IMPORTANT: under the lock. The state may have changed meanwhile, and nobody would take it back.
            let _transition = self.transition.lock();
            engine::set_standing(&engine, stands());
        }
    }

    /// Wakes the workers that wait for the journal or a snapshot.
    pub(crate) fn notify_workers(&self) {
        for signal in &self.signals {
            if signal.armed.swap(false, SeqCst) {
                signal.raised.store(true, SeqCst);
                signal.flusher.lock().wake_by_ref();
            }
        }
    }

    /// How a worker is woken.
    pub(crate) fn register(&self, worker: usize, flusher: Waker) {
        *self.signals[worker].flusher.lock() = flusher;
    }

    /// Wakes the worker at the next move. What it waits for may have happened before this call: it checks once more.
    pub(crate) fn wake_on_move(&self, worker: usize) {
        self.signals[worker].armed.store(true, SeqCst);
    }

    /// True when something has moved since the last call.
    #[inline]
    pub(crate) fn take_moved(&self, worker: usize) -> bool {
        let raised = &self.signals[worker].raised;
        raised.load(Relaxed) && raised.swap(false, SeqCst)
    }

    /// Writes and syncs everything, at the end. From then on no reply is sent that depends on a change that was not
    /// stored.
    pub(crate) fn close(&self) -> Result<(), String> {
        let Some(journal) = self.journal() else { return Ok(()) };
        // IMPORTANT: before the state changes: a snapshot that began then would restart the journal.
        self.snapshots.stop();
        match self.state() {
            JournalState::Off => {
                // There is nothing to store: it only gives its space back.
                let _ = journal.close();
                Ok(())
            }
            JournalState::Following => Ok(()),
            JournalState::Starting => {
                tracing::warn!("the journal had not begun yet: changes since the last snapshot are lost");
                Ok(())
            }
            state @ (JournalState::StartFailed | JournalState::Fenced) => Err(self.refusal(state).unwrap_or_default()),
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
        let state = self.state();
        let journal = self.journal().filter(|_| state.hides_unpersisted())?;
        Some(match state {
            JournalState::Fenced => 0,
            _ if strict => journal.durable().0,
            _ => journal.written().0,
        })
    }

    #[inline]
    fn is_recording(&self) -> bool {
        self.recording.load(Relaxed)
    }

    #[inline]
    fn append(&self, batch: &[u8], time_ms: u64) -> u64 {
        match self.journal() {
            Some(journal) => match journal.append(batch, time_ms).0 {
                LOST => self.note_divergence(),
                sequence => sequence,
            },
            None => self.note_divergence(),
        }
    }

    fn tail(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.tail().0)
    }

    fn write(&self) {
        self.write_all();
    }

    fn durable(&self) -> Option<u64> {
        self.journal().filter(|_| self.state().promises_durability()).map(|journal| journal.durable().0)
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
        self.snapshots.request(why);
    }

    fn snapshot_result(&self, number: u64) -> Option<Result<(), String>> {
        self.snapshots.result(number)
    }

    fn buffer_bytes(&self) -> u64 {
        self.opened.load().as_ref().map_or(0, |opened| opened.maintenance.buffers().memory_bytes)
    }

    fn report(&self) -> Report {
        let mut report = self.snapshots.report();
        report.loading = *self.loading.lock();
        report.state = Some(self.state());
        report.has_room = true;
        if let Some(journal) = self.journal() {
            report.has_room = journal.has_room();
            if let Some(opened) = self.opened() {
                report.journal_bytes = opened.maintenance.bytes();
                report.unwritten_bytes = opened.maintenance.buffers().unwritten_bytes;
                report.syncs = opened.maintenance.sync_times().map(|times| SyncTimes {
                    at_most: SYNC_BOUNDS_NS.into_iter().zip(times.at_most).collect(),
                    count: times.count,
                    sum_ns: times.sum_ns,
                });
            }
            report.sequence = journal.tail().0;
            report.written = journal.written().0;
            report.durable = journal.durable().0;
        }
        if self.settings.appendonly() {
            report.failure = self.refusal(self.state());
        }
        report
    }

    fn replication(&self) -> Replication {
        let accepts_writes = match self.state() {
            JournalState::Off | JournalState::Starting | JournalState::Sound => self.loading.lock().is_none(),
            // It has failed, and clients that ask for the writer have nowhere else to go.
            JournalState::StartFailed | JournalState::Failed | JournalState::Restarting => true,
            JournalState::Closing | JournalState::Fenced | JournalState::Following => false,
        };
        // One whose lease has ended may not be the writer any more.
        let accepts_writes = accepts_writes && self.journal().is_none_or(|journal| journal.may_answer());
        let own = match self.roles.cluster() {
            Some(cluster) => cluster.own_address(&self.settings),
            None => Address::announced(&self.settings),
        };
        self.roles.report(unix_ms(), own, accepts_writes, self.tail())
    }

    fn cluster(&self) -> Option<ClusterReport> {
        let lease_left = self.journal().and_then(|journal| journal.lease_left());
        self.roles.cluster().map(|cluster| cluster.report(lease_left))
    }

    fn replicas_at(&self, sequence: u64) -> usize {
        // Without a journal, followers have nothing of what was changed since the last snapshot.
        if self.state().promises_durability() { self.roles.followers_at(sequence) } else { 0 }
    }

    fn change_role(&self, change: RoleChange) -> Result<u64, String> {
        self.roles.request(change)
    }

    fn role_result(&self, number: u64) -> Option<Result<(), String>> {
        self.roles.result(number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::progress::ReplyGate;
    use super::*;
    use journal::{Epoch, Failure, MemoryLog};

    /// A keeper over a log in memory, and that log.
    fn keeper() -> (Arc<Keeper>, MemoryLog) {
        let log = MemoryLog::new(Epoch(4));
        let keeper = Arc::new(Keeper::new(Arc::new(Settings::new()), 1, 0));
        keeper.open(Weak::new(), log.opened());
        assert_eq!(keeper.state(), JournalState::Sound);
        (keeper, log)
    }

    #[test]
    fn replies_are_held_until_what_they_depend_on_is_durable() {
        let (keeper, log) = keeper();
        log.set_syncs(false);
        let batch = keeper.append(b"change", 0);
        let progress = keeper.write_up_to(batch);
        assert_eq!((progress.gate(batch, false), progress.gate(batch, true)), (ReplyGate::Send, ReplyGate::Hold));
        keeper.wake_on_move(0);
        assert!(!keeper.take_moved(0) && !keeper.has_advanced_since(progress));
        log.set_syncs(true);
        assert!(keeper.take_moved(0) && keeper.has_advanced_since(progress));
        assert_eq!(keeper.write_up_to(batch).gate(batch, true), ReplyGate::Send);
    }

    #[test]
    fn a_failed_journal_drops_the_replies_that_depend_on_it_and_no_others() {
        let (keeper, log) = keeper();
        let stored = keeper.append(b"stored", 0);
        keeper.write_up_to(stored);
        log.fail(Failure::TooLong { bytes: 1 });
        let lost = keeper.append(b"lost", 0);
        let progress = keeper.write_up_to(lost);
        assert_eq!(keeper.state(), JournalState::Failed);
        assert_eq!((progress.gate(stored, false), progress.gate(lost, false)), (ReplyGate::Send, ReplyGate::Drop));
        assert_eq!(keeper.readable(false), Some(stored));
        assert!(keeper.dropped_replies_error().starts_with("MISCONF Errors writing to the AOF file: "));
    }

    #[test]
    fn a_fenced_journal_drops_every_reply_whatever_happens_next() {
        let (keeper, log) = keeper();
        let stored = keeper.append(b"stored", 0);
        assert_eq!(keeper.write_up_to(stored).gate(stored, true), ReplyGate::Hold);
        log.request_sync();
        assert_eq!(keeper.write_up_to(stored).gate(stored, true), ReplyGate::Send);
        keeper.wake_on_move(0);
        log.fence(Epoch(5));
        assert!(keeper.take_moved(0), "workers that hold replies are woken");
        assert_eq!((keeper.state(), keeper.readable(false)), (JournalState::Fenced, Some(0)));
        // Not only replies that depend on a lost change: reads of what was durable, and replies that depend on nothing.
        let progress = keeper.write_up_to(stored);
        assert_eq!((progress.gate(stored, true), progress.gate(0, false)), (ReplyGate::Drop, ReplyGate::Drop));
        let error = keeper.dropped_replies_error();
        assert!(
            error.starts_with("FENCED a writer of epoch 5 has taken the journal over from this one, of epoch 4"),
            "{error}"
        );
        // There is no way back, not even for CONFIG SET appendonly no.
        keeper.settings.load(b"appendonly", b"no").unwrap();
        keeper.follow_appendonly();
        assert_eq!(keeper.write_all().gate(0, false), ReplyGate::Drop);
        assert!(keeper.close().is_err());
        assert_eq!(keeper.write_all().gate(0, false), ReplyGate::Drop);
    }

    /// Regression: a worker that had seen the fence of the old log fenced a server that followed by then, for ever.
    #[test]
    fn a_fence_that_is_noticed_too_late_does_not_count() {
        let (keeper, log) = keeper();
        keeper.begin_following(Weak::new());
        log.fence(Epoch(9));
        keeper.follow_log(&log);
        assert_eq!(keeper.state(), JournalState::Following);
        // The next log is another one.
        keeper.open(Weak::new(), MemoryLog::new(Epoch(10)).opened());
        keeper.follow_log(&log);
        assert_eq!(keeper.state(), JournalState::Sound);
    }

    #[test]
    fn a_fence_that_is_noticed_while_writing_counts_at_once() {
        let (keeper, log) = keeper();
        let batch = keeper.append(b"change", 0);
        log.fence(Epoch(9));
        assert_eq!(keeper.write_up_to(batch).gate(0, false), ReplyGate::Drop);
    }
}
