//! Takes snapshots: on order, when the journal has grown long, when changes are old. Knows when and in which order
//! things become durable; refuses to know what a key is.

use crate::keeper::{Keeper, LocalFiles};
use crate::process::be_modest;
use crate::server::unix_s;
use engine::journal_state::JournalState;
use engine::persistence::{Finished, Report, SnapshotBusy, SnapshotReason, Snapshotting};
use engine::{Engine, Persistence};
use journal::{SnapshotInfo, Stamp};
use locks::{Condvar, Mutex, rank};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often the rules for automatic snapshots are looked at.
const RULES_EVERY: Duration = Duration::from_secs(1);
/// After a snapshot has failed, the rules ask for another no sooner than this.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How often a snapshot is begun before it is given up.
const ATTEMPTS: usize = 10;
/// How often one who waits for a snapshot looks.
const POLL_EVERY: Duration = Duration::from_millis(2);
/// Outcomes remembered for those who asked.
const OUTCOMES_KEPT: usize = 64;
/// How often the log tells how far a snapshot has come.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Which snapshot is being taken, and what became of those before.
pub(crate) struct Snapshots {
    state: Mutex<State, { rank::SNAPSHOTS }>,
    ordered: Condvar,
    /// Progress of the one being taken: keys written, and thousandths of the whole.
    keys: AtomicU64,
    thousandths: AtomicU64,
    /// Somebody waits for the snapshot, and nobody else for a core: the last one before the end.
    in_haste: AtomicBool,
    /// The server stops: no snapshot is begun any more, and one that is being taken is given up.
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    last_number: u64,
    running: Option<Running>,
    scheduled: Option<SnapshotReason>,
    outcomes: VecDeque<(u64, Result<(), String>)>,
    saves: Finished,
    compactions: Finished,
    /// Unix seconds, for LASTSAVE. How long ago it was is another matter: the wall clock may jump.
    last_save_s: u64,
    last_save: Option<Instant>,
    last_failure: Option<Instant>,
    changes_at_last_save: u64,
    snapshot_bytes: u64,
    keys_loaded: u64,
}

#[derive(Clone, Copy)]
struct Running {
    number: u64,
    why: SnapshotReason,
    since: Instant,
    keys_total: u64,
    /// The thread has begun with it.
    begun: bool,
}

impl Snapshots {
    pub(crate) fn new(now_s: u64) -> Snapshots {
        Snapshots {
            state: Mutex::new(State { last_save_s: now_s, last_save: Some(Instant::now()), ..State::default() }),
            ordered: Condvar::new(),
            keys: AtomicU64::new(0),
            thousandths: AtomicU64::new(0),
            in_haste: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    /// Notes what a start has found.
    pub(crate) fn found(&self, snapshot_bytes: u64, keys: u64) {
        let mut state = self.state.lock();
        state.snapshot_bytes = snapshot_bytes;
        state.keys_loaded = keys;
    }

    /// Orders a snapshot, unless one is being taken.
    pub(crate) fn begin(&self, why: SnapshotReason) -> Result<u64, SnapshotBusy> {
        self.begin_under(&mut self.state.lock(), why)
    }

    fn begin_under(&self, state: &mut State, why: SnapshotReason) -> Result<u64, SnapshotBusy> {
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
        self.ordered.notify_one();
        Ok(number)
    }

    /// Orders a snapshot, after the one that is being taken if need be.
    pub(crate) fn order(&self, why: SnapshotReason) {
        // Under one lock: the snapshot that is in the way must not end in between.
        let mut state = self.state.lock();
        if self.begin_under(&mut state, why).is_err() {
            state.scheduled = Some(why);
        }
    }

    /// Takes a snapshot as fast as can be and waits for it.
    pub(crate) fn take_now(&self) -> Result<(), String> {
        self.in_haste.store(true, Relaxed);
        let outcome = self.take_and_wait();
        self.in_haste.store(false, Relaxed);
        outcome
    }

    fn take_and_wait(&self) -> Result<(), String> {
        loop {
            let Ok(number) = self.begin(SnapshotReason::Save) else {
                std::thread::sleep(POLL_EVERY);
                continue;
            };
            loop {
                match self.outcome(number) {
                    Some(outcome) => return outcome,
                    None => std::thread::sleep(POLL_EVERY),
                }
            }
        }
    }

    /// Takes no more snapshots, and waits until none is being taken: from here on nobody but the caller touches the
    /// journal.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, SeqCst);
        while self.is_running() {
            std::thread::sleep(POLL_EVERY);
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().running.is_some()
    }

    /// What became of a snapshot; `None` while it is being taken.
    pub(crate) fn outcome(&self, number: u64) -> Option<Result<(), String>> {
        let state = self.state.lock();
        let found = state.outcomes.iter().find(|(known, _)| *known == number).map(|(_, outcome)| outcome.clone());
        let gone = || Err("its outcome has been forgotten".to_owned());
        match state.running {
            Some(running) if running.number == number => None,
            _ => Some(found.unwrap_or_else(gone)),
        }
    }

    /// What INFO tells of snapshots.
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

    /// Waits for an order, but no longer than until the rules are to be looked at.
    fn wait_for_order(&self) -> Option<Running> {
        let mut state = self.state.lock();
        if state.running.is_none() {
            self.ordered.wait_for(&mut state, RULES_EVERY);
        }
        state.running.as_mut().filter(|running| !running.begun).map(|running| {
            running.begun = true;
            *running
        })
    }

    /// Notes the outcome; whatever was scheduled meanwhile is next.
    fn finish(&self, running: Running, outcome: &Result<SnapshotInfo, String>, changes: u64) {
        let mut state = self.state.lock();
        state.running = None;
        if state.outcomes.len() == OUTCOMES_KEPT {
            state.outcomes.pop_front();
        }
        state.outcomes.push_back((running.number, outcome.as_ref().map(|_| ()).map_err(Clone::clone)));
        let finished = match running.why {
            SnapshotReason::Save => &mut state.saves,
            SnapshotReason::Compaction => &mut state.compactions,
        };
        finished.count += 1;
        finished.last_failed = outcome.is_err();
        finished.failures_in_a_row = if outcome.is_err() { finished.failures_in_a_row + 1 } else { 0 };
        finished.last_took_s = Some(running.since.elapsed().as_secs());
        match outcome {
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

/// Starts the thread that takes snapshots.
pub(crate) fn start(keeper: Arc<Keeper>, engine: Arc<Engine>) {
    let thread = std::thread::Builder::new().name("snapshots".into());
    let spawned = thread.spawn(move || {
        be_modest();
        loop {
            match keeper.snapshots.wait_for_order() {
                Some(running) => run(&keeper, &engine, running),
                None => follow_rules(&keeper, &engine),
            }
        }
    });
    if let Err(error) = spawned {
        tracing::error!(%error, "no thread for snapshots could be started: the journal will only grow");
    }
}

fn run(keeper: &Keeper, engine: &Engine, running: Running) {
    let began = Instant::now();
    let changes = engine.totals().changes;
    let outcome = take(keeper, engine);
    match &outcome {
        Ok(info) => tracing::info!(
            keys = info.entries,
            bytes = info.bytes,
            seconds = began.elapsed().as_secs_f32(),
            "snapshot written"
        ),
        Err(_) if keeper.snapshots.stopped.load(Relaxed) => tracing::info!("the snapshot is given up"),
        Err(reason) => tracing::error!("the snapshot failed: {reason}"),
    }
    keeper.snapshots.finish(running, &outcome, changes);
    keeper.tell_workers();
    let scheduled = keeper.snapshots.state.lock().scheduled.take();
    if let Some(why) = scheduled {
        keeper.snapshots.order(why);
    }
}

/// Writes a snapshot and drops what it replaces.
fn take(keeper: &Keeper, engine: &Engine) -> Result<SnapshotInfo, String> {
    let files = keeper.files().ok_or("the data has not been read yet")?;
    // A journal that has failed, or that was not asked to keep anything, begins anew here: the snapshot has what it
    // lacks. What changes while the snapshot is written goes to the journal in any case.
    let anew = keeper.snapshot_begins();
    let outcome = take_with(keeper, engine, files, anew);
    keeper.snapshot_ended(anew, outcome.as_ref().err().map(String::as_str));
    if let Ok(info) = &outcome {
        drop_replaced(files, info);
    }
    outcome
}

fn take_with(keeper: &Keeper, engine: &Engine, files: &LocalFiles, anew: bool) -> Result<SnapshotInfo, String> {
    let said = |failure: journal::Failure| failure.to_string();
    match anew {
        true => {
            files.log.restart().map_err(said)?;
            keeper.record_anew();
        }
        // The new segment is all that is left of the journal once the snapshot is there.
        false => files.log.rotate().map_err(said)?,
    }
    let info = write_unspoiled(keeper, engine, files)?;
    if anew {
        files.log.accept(info.min).map_err(said)?;
    }
    Ok(info)
}

/// Writes a snapshot, from the beginning again if a huge value was renamed meanwhile.
fn write_unspoiled(keeper: &Keeper, engine: &Engine, files: &LocalFiles) -> Result<SnapshotInfo, String> {
    for _ in 0..ATTEMPTS {
        if let Some(info) = write(keeper, engine, files)? {
            return Ok(info);
        }
        tracing::info!("a huge value was renamed or copied: the snapshot begins again");
    }
    Err(format!("huge values were renamed or copied during each of {ATTEMPTS} attempts"))
}

/// Writes a snapshot; `None` when it is of no use.
fn write(keeper: &Keeper, engine: &Engine, files: &LocalFiles) -> Result<Option<SnapshotInfo>, String> {
    let said = |error: journal::SnapshotError| error.to_string();
    let progress = &keeper.snapshots;
    let mut walk = engine.walk();
    // IMPORTANT: counted before the state is locked. A transaction asks for the state while it holds shards.
    let keys_total = engine.keyspace.keys();
    if let Some(running) = &mut progress.state.lock().running {
        running.keys_total = keys_total;
    }
    progress.keys.store(0, Relaxed);
    let now_ms = engine.clock.unix_us() / 1000;
    let mut writer = files.snapshots.create(&walk.placement().encode(), now_ms).map_err(said)?;
    let mut image = Vec::new();
    let mut pace = Pace { since: Instant::now() };
    let mut log_at = Instant::now() + LOG_EVERY;
    while let Some(part) = walk.next(&mut image) {
        let stamp = Stamp { shard: part.shard, end: part.end, sequence: journal::Sequence(part.sequence) };
        writer.part(stamp, &image, part.keys).map_err(said)?;
        if progress.stopped.load(Relaxed) {
            return Err("the server stops".into());
        }
        pace.rest(progress.in_haste.load(Relaxed));
        image.clear();
        image.shrink_to(IMAGE_BYTES_KEPT);
        progress.keys.fetch_add(u64::from(part.keys), Relaxed);
        progress.thousandths.store((walk.progress() * 1000.0) as u64, Relaxed);
        if Instant::now() > log_at {
            log_at = Instant::now() + LOG_EVERY;
            let percent = (walk.progress() * 100.0) as u64;
            tracing::info!(percent, keys = progress.keys.load(Relaxed), "writing a snapshot");
        }
    }
    let spoiled = walk.is_spoiled();
    drop(walk);
    if spoiled {
        return Ok(None);
    }
    writer.finish(&*files.log).map_err(said).map(Some)
}

/// Work in short bursts. On a machine whose cores are all busy the scheduler would otherwise take a core away from a
/// worker for milliseconds at a time; measured with 1 M records on two cores, p99.9 of reads was 4.5 ms.
struct Pace {
    since: Instant,
}

const BURST: Duration = Duration::from_micros(150);
const REST: Duration = Duration::from_micros(350);

impl Pace {
    /// Rests when a burst is over, unless somebody waits.
    fn rest(&mut self, in_haste: bool) {
        if !in_haste && self.since.elapsed() > BURST {
            std::thread::sleep(REST);
            self.since = Instant::now();
        }
    }
}

/// The largest buffer for a part that is kept for the next.
const IMAGE_BYTES_KEPT: usize = 1024 * 1024;

/// Removes older snapshots and the part of the journal that the new one makes superfluous. Should that fail, they stay
/// until the next time.
fn drop_replaced(files: &LocalFiles, info: &SnapshotInfo) {
    if let Err(error) = files.snapshots.remove_older(info) {
        tracing::warn!("an old snapshot could not be removed: {error}");
    }
    if let Err(failure) = files.log.forget(info.min) {
        tracing::warn!("an old part of the journal could not be removed: {failure}");
    }
}

/// Orders a snapshot when the journal has grown long or changes are old.
fn follow_rules(keeper: &Keeper, engine: &Engine) {
    let settings = &keeper.settings;
    let Some(files) = keeper.files() else { return };
    let (snapshot_bytes, last_save, last_failure, changes_at_last_save) = {
        let state = keeper.snapshots.state.lock();
        (state.snapshot_bytes, state.last_save, state.last_failure, state.changes_at_last_save)
    };
    if last_failure.is_some_and(|at| at.elapsed() < RETRY_AFTER) {
        return;
    }
    if keeper.state() == JournalState::StartFailed {
        // The journal was asked for, and the snapshot that it begins with has failed.
        return keeper.snapshots.order(SnapshotReason::Compaction);
    }
    let percentage = settings.auto_aof_rewrite_percentage();
    if keeper.state() == JournalState::Sound && percentage > 0 {
        let grown = files.log.bytes_since_forget();
        let limit = settings.auto_aof_rewrite_min_size().max(snapshot_bytes.saturating_mul(percentage) / 100);
        if grown > limit {
            tracing::info!(journal_bytes = grown, snapshot_bytes, "the journal has grown long: writing a snapshot");
            return keeper.snapshots.order(SnapshotReason::Compaction);
        }
    }
    let changes = engine.totals().changes.saturating_sub(changes_at_last_save);
    let age_s = last_save.map_or(u64::MAX, |at| at.elapsed().as_secs());
    if let Some((seconds, _)) =
        settings.save_points().iter().find(|(seconds, count)| age_s >= *seconds && changes >= *count)
    {
        tracing::info!(changes, seconds, "writing a snapshot");
        keeper.snapshots.order(SnapshotReason::Save);
    }
}
