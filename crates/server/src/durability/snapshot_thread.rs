//! The thread that takes snapshots: on request, when the journal has grown long, when changes are old. Knows when, and
//! in which order things become durable; refuses to know what a key is.

use super::keeper::Keeper;
use super::snapshots::Running;
use crate::platform::threads::lower_priority;
use engine::persistence::SnapshotReason;
use engine::persistence::journal_state::JournalState;
use engine::{Engine, Persistence};
use journal::{OpenedLog, SnapshotInfo, Stamp};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How often the rules for automatic snapshots are checked.
const RULES_EVERY: Duration = Duration::from_secs(1);
/// After a snapshot has failed, the rules request another no sooner than this.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How often a snapshot is begun before it fails.
const ATTEMPTS: usize = 10;
/// How often the log says how far a snapshot is.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// How often it looks whether a long script has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Starts the thread that takes snapshots, unless it runs.
pub(super) fn start_once(keeper: &Arc<Keeper>, engine: &Arc<Engine>) {
    if keeper.snapshots.has_thread.swap(true, Relaxed) {
        return;
    }
    let (keeper, engine) = (keeper.clone(), engine.clone());
    let thread = std::thread::Builder::new().name("snapshots".into());
    let spawned = thread.spawn(move || {
        lower_priority();
        loop {
            serve_request(&keeper, &engine, RULES_EVERY);
        }
    });
    if let Err(error) = spawned {
        tracing::error!(%error, "no thread for snapshots could be started: the journal will only grow");
    }
}

/// Takes the next requested snapshot, or checks the rules if none is requested within that time.
fn serve_request(keeper: &Keeper, engine: &Engine, within: Duration) {
    match keeper.snapshots.wait_for_request(within) {
        Some(running) => run(keeper, engine, running),
        None => follow_rules(keeper, engine),
    }
}

/// As the thread does, without a wait: for simulations.
#[cfg(test)]
pub(super) fn step(keeper: &Keeper, engine: &Engine) {
    serve_request(keeper, engine, Duration::ZERO);
}

fn run(keeper: &Keeper, engine: &Engine, running: Running) {
    let began = Instant::now();
    let changes = engine.statistics.totals().changes;
    let result = take(keeper, engine);
    match &result {
        Ok(info) => tracing::info!(
            keys = info.entries,
            bytes = info.bytes,
            seconds = began.elapsed().as_secs_f32(),
            "snapshot written"
        ),
        Err(_) if keeper.snapshots.stopped.load(Relaxed) => {
            tracing::info!("the snapshot is abandoned: the server stops")
        }
        Err(error) => tracing::error!(%error, "the snapshot failed"),
    }
    keeper.snapshots.finish(running, &result, changes);
    keeper.notify_workers();
    let scheduled = keeper.snapshots.state.lock().scheduled.take();
    if let Some(why) = scheduled {
        keeper.snapshots.request(why);
    }
}

/// Writes a snapshot and drops what it replaces.
fn take(keeper: &Keeper, engine: &Engine) -> Result<SnapshotInfo, String> {
    let opened = keeper.opened().ok_or_else(|| match keeper.state() {
        JournalState::Following => "a follower writes no snapshots: BGSAVE on the writer does",
        _ => "the data has not been read yet",
    })?;
    // A journal that has failed, or was off, restarts here: the snapshot has what it lacks. Changes made while the
    // snapshot is written go to the journal in any case.
    let restarts = keeper.snapshot_begins();
    let result = take_with(keeper, engine, &opened, restarts);
    keeper.snapshot_ended(restarts, result.as_ref().err().map(String::as_str));
    if let Ok(info) = &result {
        drop_replaced(&opened, info);
    }
    result
}

fn take_with(keeper: &Keeper, engine: &Engine, opened: &OpenedLog, restarts: bool) -> Result<SnapshotInfo, String> {
    let text = |failure: journal::Failure| failure.to_string();
    match restarts {
        true => {
            opened.maintenance.restart().map_err(text)?;
            keeper.record_after_restart();
        }
        // What follows is all that is left of the journal once the snapshot is there.
        false => opened.maintenance.rotate().map_err(text)?,
    }
    let info = write_unspoiled(keeper, engine, opened)?;
    if restarts {
        opened.maintenance.accept(info.min).map_err(text)?;
    }
    Ok(info)
}

/// Writes a snapshot, from the beginning again if a huge value was renamed meanwhile.
fn write_unspoiled(keeper: &Keeper, engine: &Engine, opened: &OpenedLog) -> Result<SnapshotInfo, String> {
    for _ in 0..ATTEMPTS {
        if let Some(info) = write(keeper, engine, opened)? {
            return Ok(info);
        }
        tracing::info!("a huge value was renamed or copied: the snapshot begins again");
    }
    Err(format!("huge values were renamed or copied during each of {ATTEMPTS} attempts"))
}

/// Writes a snapshot; `None` when it is of no use.
fn write(keeper: &Keeper, engine: &Engine, opened: &OpenedLog) -> Result<Option<SnapshotInfo>, String> {
    let text = |error: journal::SnapshotError| format!("{:#}", anyhow::Error::new(error));
    let progress = &keeper.snapshots;
    let mut walk = engine::walk(engine);
    // IMPORTANT: counted before the state is locked. A transaction asks for the state while it holds shards.
    let keys_total = loop {
        match engine.keyspace.keys_unless_busy() {
            Some(keys) => break keys,
            None if progress.stopped.load(Relaxed) => return Err("the server stops".into()),
            // A long script holds locks.
            None => std::thread::sleep(LOOK_AGAIN),
        }
    };
    if let Some(running) = &mut progress.state.lock().running {
        running.keys_total = keys_total;
    }
    progress.keys.store(0, Relaxed);
    let now_ms = engine.clock.unix_us() / 1000;
    let mut writer = opened.snapshots.create(&walk.placement().encode(), now_ms).map_err(text)?;
    let mut image = Vec::new();
    let mut pace = Pace { since: Instant::now() };
    let mut log_at = Instant::now() + LOG_EVERY;
    while let Some(part) = walk.next_unless(&mut image, || progress.stopped.load(Relaxed)) {
        let stamp = Stamp { shard: part.shard, end: part.end, sequence: journal::Sequence(part.sequence) };
        writer.part(stamp, &image, part.keys).map_err(text)?;
        if progress.stopped.load(Relaxed) {
            return Err("the server stops".into());
        }
        pace.rest(progress.is_urgent.load(Relaxed));
        image.clear();
        image.shrink_to(IMAGE_BYTES_MAX);
        progress.keys.fetch_add(u64::from(part.keys), Relaxed);
        progress.thousandths.store((walk.progress() * 1000.0) as u64, Relaxed);
        if Instant::now() > log_at {
            log_at = Instant::now() + LOG_EVERY;
            let percent = (walk.progress() * 100.0) as u64;
            tracing::info!(percent, keys = progress.keys.load(Relaxed), "writing a snapshot");
        }
    }
    if progress.stopped.load(Relaxed) {
        return Err("the server stops".into());
    }
    let spoiled = walk.is_spoiled();
    drop(walk);
    if spoiled {
        return Ok(None);
    }
    writer.finish(&*opened.log).map_err(text).map(Some)
}

/// Works in short bursts. On a machine whose cores are all busy the scheduler would otherwise take a core away from a
/// worker for milliseconds at a time; measured with 1 M records on two cores, p99.9 of reads was 4.5 ms.
struct Pace {
    since: Instant,
}

const BURST: Duration = Duration::from_micros(150);
const REST: Duration = Duration::from_micros(350);

impl Pace {
    /// Rests when a burst is over.
    fn rest(&mut self, is_urgent: bool) {
        if !is_urgent && self.since.elapsed() > BURST {
            std::thread::sleep(REST);
            self.since = Instant::now();
        }
    }
}

/// The largest buffer that is kept for the next part.
const IMAGE_BYTES_MAX: usize = 1024 * 1024;

/// Removes older snapshots and the part of the journal that the new one replaces. If that fails, they stay until the
/// next time.
fn drop_replaced(opened: &OpenedLog, info: &SnapshotInfo) {
    if let Err(error) = opened.snapshots.remove_older(info) {
        let error = anyhow::Error::new(error);
        tracing::warn!(error = format_args!("{error:#}"), "an old snapshot could not be removed");
    }
    if let Err(error) = opened.maintenance.forget(info.min) {
        tracing::warn!(%error, "an old part of the journal could not be removed");
    }
}

/// Requests a snapshot when the journal has grown long or changes are old.
fn follow_rules(keeper: &Keeper, engine: &Engine) {
    let settings = &keeper.settings;
    let Some(opened) = keeper.opened() else { return };
    let (snapshot_bytes, last_save, last_failure, changes_at_last_save) = {
        let state = keeper.snapshots.state.lock();
        (state.snapshot_bytes, state.last_save, state.last_failure, state.changes_at_last_save)
    };
    if last_failure.is_some_and(|at| at.elapsed() < RETRY_AFTER) {
        return;
    }
    if keeper.state() == JournalState::Fenced {
        // The directory is another writer's.
        return;
    }
    if keeper.state() == JournalState::StartFailed {
        // The snapshot that the journal begins with has failed.
        return keeper.snapshots.request(SnapshotReason::Compaction);
    }
    let percentage = settings.auto_aof_rewrite_percentage();
    if keeper.state() == JournalState::Sound && percentage > 0 {
        let grown = opened.maintenance.bytes_since_forget();
        let limit = settings.auto_aof_rewrite_min_size().max(snapshot_bytes.saturating_mul(percentage) / 100);
        if grown > limit {
            tracing::info!(journal_bytes = grown, snapshot_bytes, "the journal has grown long: writing a snapshot");
            return keeper.snapshots.request(SnapshotReason::Compaction);
        }
    }
    let changes = engine.statistics.totals().changes.saturating_sub(changes_at_last_save);
    let age_s = last_save.map_or(u64::MAX, |at| at.elapsed().as_secs());
    if let Some((seconds, _)) =
        settings.save_points().iter().find(|(seconds, count)| age_s >= *seconds && changes >= *count)
    {
        tracing::info!(changes, seconds, "writing a snapshot");
        keeper.snapshots.request(SnapshotReason::Save);
    }
}
