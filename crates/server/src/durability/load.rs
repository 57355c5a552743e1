//! The start: reads the data into the engine, and reports how far it is. Knows the order and the progress; what the
//! bytes mean is the engine's business.

use super::keeper::Keeper;
use super::snapshot_thread;
use crate::config::ConfiguredIndexes;
use crate::platform::clock::unix_s;
use anyhow::{Context, Result, anyhow, bail};
use engine::Engine;
use engine::execution::indexes::IndexConflict;
use engine::execution::replay::Replay;
use engine::execution::walk::{Placement, SnapshotPart};
use engine::persistence::Loading;
use journal::{Follower, History, LogPlace};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the log says how far it is.
const LOG_EVERY: Duration = Duration::from_secs(1);
/// How many batches or parts of a snapshot, of how many bytes, are applied together.
const PARTS_AT_ONCE: usize = 256;
const BATCHES_AT_ONCE: usize = 1024;
const BYTES_AT_ONCE: usize = 1024 * 1024;
/// Parts or batches between two looks at the clock.
const LOOK_EVERY: u64 = 256;

/// The indexes that the configuration names.
pub(crate) struct Indexes {
    pub(crate) configured: ConfiguredIndexes,
    /// Those that its sweepers need.
    pub(crate) swept: Vec<String>,
}

/// Reads everything into the engine, and then opens the journal for what comes next.
pub(crate) fn load(
    place: &dyn LogPlace,
    keeper: &Arc<Keeper>,
    engine: &Arc<Engine>,
    indexes: &Indexes,
    threads: usize,
) -> Result<()> {
    let mut reading = place.read().with_context(|| format!("{} cannot be read", place.name()))?;
    engine::set_reading(engine, true);
    let keys = replay(&mut *reading, engine, threads, |loading| keeper.set_loading(loading))?;
    engine::set_reading(engine, false);
    revive_indexes(engine, indexes)?;
    let snapshot_bytes = reading.snapshot().map_or(0, |snapshot| snapshot.bytes);
    let opened = reading.into_log().context("the journal cannot be opened for writing")?;
    keeper.snapshots.set_found(snapshot_bytes, keys);
    keeper.open(Arc::downgrade(engine), opened);
    snapshot_thread::start_once(keeper, engine);
    undo_forks(engine);
    finish_restores(engine);
    Ok(())
}

/// Reads the data of a server that follows, as far as it is there, and returns what goes on reading.
pub(super) fn read_live(
    place: &dyn LogPlace,
    keeper: &Keeper,
    engine: &Arc<Engine>,
    indexes: &Indexes,
    threads: usize,
) -> Result<Box<dyn Follower>> {
    let mut reading = place.read_live().with_context(|| format!("{} cannot be read", place.name()))?;
    engine::set_reading(engine, true);
    replay(&mut *reading, engine, threads, |loading| keeper.set_loading(loading))?;
    engine::set_reading(engine, false);
    revive_indexes(engine, indexes)?;
    Ok(reading.into_follower()?)
}

/// Makes the indexes of the data and of the configuration, once all data is read.
fn revive_indexes(engine: &Engine, indexes: &Indexes) -> Result<()> {
    let Indexes { configured: indexes, swept } = indexes;
    let revived = engine::revive_indexes(engine, &indexes.definitions);
    for index in &revived.dropped {
        tracing::info!(%index, "an index of the configuration is not created: a client has dropped it with IDX.DROP");
    }
    for IndexConflict { index, kept, configured } in &revived.conflicts {
        tracing::error!(
            %index,
            %kept,
            %configured,
            "an index has two definitions: a client's, which is kept, and the configuration's. Drop the index, or change \
             the configuration"
        );
    }
    for failure in &revived.failures {
        // A configuration that cannot work is an error. The default index is no reason to refuse data from elsewhere.
        anyhow::ensure!(indexes.are_defaults, "{failure}");
        tracing::warn!(index = %failure.index, reason = %failure.reason, "an index cannot be created");
    }
    // Not before the data is loaded: IDX.CREATE may have made the index, and then it is in the data.
    for missing in swept.iter().filter(|name| engine.indexes.list().find(name.as_bytes()).is_none()) {
        if indexes.definitions.iter().any(|(name, _)| name == missing.as_bytes()) {
            // A client has dropped it: the server starts without it.
            tracing::warn!(index = %missing, "the sweeper has nothing to sweep: a client has dropped its index with IDX.DROP");
            continue;
        }
        bail!(
            "a table [[sweeper]] of the configuration names the index {missing}, which is neither in the configuration nor \
             in the data"
        );
    }
    Ok(())
}

/// Removes what a fork has made that was not complete when the server ended.
pub(crate) fn undo_forks(engine: &Engine) {
    match engine::undo_forks(engine, &mut engine.worker(0)) {
        0 => {}
        keys => tracing::warn!(keys, "an unfinished CELL.FORK is undone: its copies are removed"),
    }
}

/// Does what a restore of registers had left to be done when the server ended.
pub(crate) fn finish_restores(engine: &Engine) {
    match engine::finish_restores(engine, &mut engine.worker(0)) {
        0 => {}
        registers => tracing::warn!(registers, "an unfinished REG.RESTORE is completed"),
    }
}

/// Reads the snapshot and the batches since into the engine. Returns how many keys there are now.
pub(crate) fn replay(
    history: &mut dyn History,
    engine: &Arc<Engine>,
    threads: usize,
    report: impl Fn(Loading),
) -> Result<u64> {
    let placement = match history.meta() {
        Some(meta) => {
            Some(Placement::decode(meta).context("the snapshot was written by a version that is not known here")?)
        }
        None => None,
    };
    let mut replay = Replay::new(engine, placement).on_threads(engine, threads);
    let mut watch = Watch::new(history, report);
    let mut read = 0;
    loop {
        let (mut parts, mut bytes, mut keys) = (Vec::new(), 0, 0);
        while parts.len() < PARTS_AT_ONCE && bytes < BYTES_AT_ONCE {
            let Some(journal::StoredPart { stamp, entries, payload }) = history.next_part()? else { break };
            let part = SnapshotPart { shard: stamp.shard, end: stamp.end, sequence: stamp.sequence.0, keys: entries };
            (bytes, keys) = (bytes + payload.len(), keys + u64::from(entries));
            parts.push((part, payload.to_vec()));
            watch.note(history, read + keys);
        }
        if parts.is_empty() {
            break;
        }
        replay.parts(parts).map_err(|error| anyhow!("the snapshot cannot be read: {error}"))?;
        read += keys;
        delay(engine, keys);
    }
    loop {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while batches.len() < BATCHES_AT_ONCE && bytes < BYTES_AT_ONCE {
            let Some(journal::Batch { sequence, payload, .. }) = history.next_batch()? else { break };
            bytes += payload.len();
            batches.push((sequence.0, payload.to_vec()));
            read += 1;
            watch.note(history, read);
        }
        let Some((last, _)) = batches.last() else { break };
        let (last, count) = (*last, batches.len());
        let applied = replay.many(batches);
        applied.map_err(|error| anyhow!("a batch of the journal up to {last} cannot be applied: {error}"))?;
        delay(engine, count as u64);
    }
    for failure in engine::revive_functions(engine) {
        tracing::warn!(error = %failure, "functions in the data cannot be called");
    }
    history.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let keys = engine.keyspace.keys();
    if read > 0 {
        let seconds = watch.began.elapsed().as_secs_f32();
        tracing::info!(keys, records = read, seconds, "the data is read");
    }
    Ok(keys)
}

/// Does what `key-load-delay` asks for after so many keys, or batches of the journal.
fn delay(engine: &Engine, keys: u64) {
    let us = match engine.settings.key_load_delay() {
        0 => return,
        us @ 1.. => keys * us.cast_unsigned(),
        part => keys / part.unsigned_abs(),
    };
    std::thread::sleep(Duration::from_micros(us));
}

/// Reports how far reading is, now and then.
struct Watch<T> {
    report: T,
    began: Instant,
    since_s: u64,
    log_at: Instant,
    count: u64,
}

impl<T: Fn(Loading)> Watch<T> {
    fn new(history: &dyn History, report: T) -> Watch<T> {
        let began = Instant::now();
        let watch = Watch { report, began, since_s: unix_s(), log_at: began + LOG_EVERY, count: 0 };
        watch.report_now(history);
        watch
    }

    /// A part or a batch more was read; `records` keys and batches so far.
    fn note(&mut self, history: &dyn History, records: u64) {
        self.count += 1;
        if !self.count.is_multiple_of(LOOK_EVERY) {
            return;
        }
        let Loading { total_bytes, loaded_bytes, left_s, .. } = self.report_now(history);
        if Instant::now() >= self.log_at {
            self.log_at = Instant::now() + LOG_EVERY;
            let percent = loaded_bytes * 100 / total_bytes.max(1);
            let per_second = (records as f64 / self.began.elapsed().as_secs_f64()) as u64;
            tracing::info!(percent, records, per_second, seconds_left = left_s, "reading the data");
        }
    }

    fn report_now(&self, history: &dyn History) -> Loading {
        let journal::ReadProgress { bytes_read, bytes_total } = history.progress();
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let left_s = elapsed_s * bytes_total.saturating_sub(bytes_read) as f64 / bytes_read.max(1) as f64;
        let loading = Loading {
            since_s: self.since_s,
            total_bytes: bytes_total,
            loaded_bytes: bytes_read,
            left_s: left_s.ceil() as u64,
        };
        (self.report)(loading);
        loading
    }
}
