//! Which snapshot is requested, which is being taken, and the results of those before. Refuses to know how one is
//! taken.

use crate::platform::clock::unix_s;
use engine::persistence::{Finished, Report, SnapshotBusy, SnapshotReason, Snapshotting};
use journal::SnapshotInfo;
use locks::{Condvar, Mutex, rank};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often a thread that waits for a snapshot looks.
const POLL_EVERY: Duration = Duration::from_millis(2);
/// Results kept for clients that wait for them.
const RESULTS_MAX: usize = 64;

/// The requested and running snapshots, and the results of those before.
pub(crate) struct Snapshots {
    pub(super) state: Mutex<SnapshotState, { rank::SNAPSHOTS }>,
    requested: Condvar,
    /// Progress of the one being taken: keys written, and thousandths of the whole.
    pub(super) keys: AtomicU64,
    pub(super) thousandths: AtomicU64,
    /// The last snapshot before a stop: it takes no rests, since no client is served meanwhile.
    pub(super) is_urgent: AtomicBool,
    /// The server stops: no snapshot is begun any more, and one that is being taken is abandoned.
    pub(super) stopped: AtomicBool,
    /// The thread that takes snapshots was started.
    pub(super) has_thread: AtomicBool,
}

#[derive(Default)]
pub(super) struct SnapshotState {
    last_number: u64,
    pub(super) running: Option<Running>,
    pub(super) scheduled: Option<SnapshotReason>,
    results: VecDeque<(u64, Result<(), String>)>,
    saves: Finished,
    compactions: Finished,
    /// Unix seconds, for LASTSAVE. `last_save` measures how long ago: the wall clock may jump.
    last_save_s: u64,
    pub(super) last_save: Option<Instant>,
    pub(super) last_failure: Option<Instant>,
    pub(super) changes_at_last_save: u64,
    pub(super) snapshot_bytes: u64,
    keys_loaded: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Running {
    number: u64,
    why: SnapshotReason,
    since: Instant,
    pub(super) keys_total: u64,
    /// The thread has begun with it.
    begun: bool,
}

impl Snapshots {
    pub(crate) fn new(now_s: u64) -> Snapshots {
        Snapshots {
            state: Mutex::new(SnapshotState {
                last_save_s: now_s,
                last_save: Some(Instant::now()),
                ..SnapshotState::default()
            }),
            requested: Condvar::new(),
            keys: AtomicU64::new(0),
            thousandths: AtomicU64::new(0),
            is_urgent: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            has_thread: AtomicBool::new(false),
        }
    }

    /// Records what a start has found.
    pub(super) fn set_found(&self, snapshot_bytes: u64, keys: u64) {
        let mut state = self.state.lock();
        state.snapshot_bytes = snapshot_bytes;
        state.keys_loaded = keys;
    }

    /// Requests a snapshot, unless one is being taken.
    pub(crate) fn begin(&self, why: SnapshotReason) -> Result<u64, SnapshotBusy> {
        self.begin_under(&mut self.state.lock(), why)
    }

    fn begin_under(&self, state: &mut SnapshotState, why: SnapshotReason) -> Result<u64, SnapshotBusy> {
        if let Some(running) = state.running {
            return Err(SnapshotBusy(running.why));
        }
        if self.stopped.load(SeqCst) {
            return Err(SnapshotBusy(why));
        }
        state.last_number += 1;
        let number = state.last_number;
        state.running = Some(Running { number, why, since: Instant::now(), keys_total: 0, begun: false });
        self.keys.store(0, Relaxed);
        self.thousandths.store(0, Relaxed);
        self.requested.notify_one();
        Ok(number)
    }

    /// Requests a snapshot, after the one that is being taken if there is one.
    pub(crate) fn request(&self, why: SnapshotReason) {
        // Under one lock: the running snapshot must not end in between.
        let mut state = self.state.lock();
        if self.begin_under(&mut state, why).is_err() {
            state.scheduled = Some(why);
        }
    }

    /// Takes a snapshot as fast as can be and waits for it.
    pub(crate) fn take_now(&self) -> Result<(), String> {
        self.is_urgent.store(true, Relaxed);
        let result = self.take_and_wait();
        self.is_urgent.store(false, Relaxed);
        result
    }

    fn take_and_wait(&self) -> Result<(), String> {
        loop {
            let Ok(number) = self.begin(SnapshotReason::Save) else {
                std::thread::sleep(POLL_EVERY);
                continue;
            };
            loop {
                match self.result(number) {
                    Some(result) => return result,
                    None => std::thread::sleep(POLL_EVERY),
                }
            }
        }
    }

    /// Takes no more snapshots, and waits until none is being taken: from here on no other thread writes to the
    /// journal's directory.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, SeqCst);
        while self.is_running() {
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// Takes snapshots again, after [`Snapshots::stop`].
    pub(crate) fn resume(&self) {
        self.stopped.store(false, SeqCst);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().running.is_some()
    }

    /// The result of a snapshot; `None` while it is being taken.
    pub(crate) fn result(&self, number: u64) -> Option<Result<(), String>> {
        let state = self.state.lock();
        let found = state.results.iter().find(|(known, _)| *known == number).map(|(_, result)| result.clone());
        let gone = || Err("the result of this snapshot is no longer known".to_owned());
        match state.running {
            Some(running) if running.number == number => None,
            _ => Some(found.unwrap_or_else(gone)),
        }
    }

    /// What INFO says of snapshots.
    pub(crate) fn report(&self) -> Report {
        let state = self.state.lock();
        Report {
            snapshot: state.running.map(|running| Snapshotting {
                why: running.why,
                running_s: running.since.elapsed().as_secs(),
                keys: self.keys.load(Relaxed),
                keys_total: running.keys_total,
                progress: self.thousandths.load(Relaxed) as f64 / 1000.0,
            }),
            scheduled: state.scheduled,
            saves: state.saves,
            compactions: state.compactions,
            last_save_s: state.last_save_s,
            changes_at_last_save: state.changes_at_last_save,
            keys_loaded: state.keys_loaded,
            snapshot_bytes: state.snapshot_bytes,
            ..Report::default()
        }
    }

    /// Waits for a request, but no longer than `wait_max`.
    pub(super) fn wait_for_request(&self, wait_max: Duration) -> Option<Running> {
        let mut state = self.state.lock();
        if state.running.is_none() && !wait_max.is_zero() {
            self.requested.wait_for(&mut state, wait_max);
        }
        state.running.as_mut().filter(|running| !running.begun).map(|running| {
            running.begun = true;
            *running
        })
    }

    /// Records the result of the running snapshot.
    pub(super) fn finish(&self, running: Running, result: &Result<SnapshotInfo, String>, changes: u64) {
        let mut state = self.state.lock();
        state.running = None;
        if state.results.len() == RESULTS_MAX {
            state.results.pop_front();
        }
        state.results.push_back((running.number, result.as_ref().map(|_| ()).map_err(Clone::clone)));
        let finished = match running.why {
            SnapshotReason::Save => &mut state.saves,
            SnapshotReason::Compaction => &mut state.compactions,
        };
        finished.count += 1;
        finished.last_failed = result.is_err();
        finished.failures_in_a_row = if result.is_err() { finished.failures_in_a_row + 1 } else { 0 };
        finished.last_took_s = Some(running.since.elapsed().as_secs());
        match result {
            Ok(info) => {
                state.last_save_s = unix_s();
                state.last_save = Some(Instant::now());
                state.changes_at_last_save = changes;
                state.snapshot_bytes = info.bytes;
            }
            Err(_) => state.last_failure = Some(Instant::now()),
        }
    }
}
