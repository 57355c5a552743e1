//! Whole values with their deadlines, from RESTORE or from another server's file. Knows which effects store them;
//! refuses to know their encodings.

use crate::commit;
use crate::engine::Engine;
use crate::expiry;
use crate::recorder::Recorder;
use crate::view::View;
use crate::worker::Worker;
use formats::Value;
use keyspace::types::{self, Restored};
use keyspace::{Cause, DATABASES, Effect, Image, Key};

/// The result of storing a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoredKey {
    /// False when the whole value had expired.
    pub key: bool,
    /// How many of its elements had expired.
    pub elements_expired: usize,
}

/// There is no such database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchDatabase;

/// Stores a value at a key and replaces the old one. Leaves out what has expired at `now_ms`; 0 keeps everything, for
/// values to which later commands of the file may give a new deadline.
pub fn restore(
    engine: &Engine,
    worker: &mut Worker,
    db: u64,
    key: &[u8],
    value: &Value,
    deadline: Option<u64>,
    now_ms: u64,
) -> Result<RestoredKey, NoSuchDatabase> {
    let db = usize::try_from(db).ok().filter(|db| *db < engine.settings.databases().min(DATABASES));
    let db = db.ok_or(NoSuchDatabase)?;
    let key = Key::new(key);
    let usage = engine.usage(&mut worker.random);
    let mut locked = engine.keyspace.lock_key(key);
    let view = View::new(locked.lend(), db, worker.now_ms, usage, &worker.metrics.stats);
    let mut keys = view.without_touching().into_recorder(engine, &mut worker.batch.effects);
    // Expired or not, the old key is deleted.
    if keys.view().locked().db(db, key).entry(key).is_some() {
        keys.record(&Effect::Delete { key, cause: Cause::Deleted });
    }
    let restored = record(&mut keys, key, value, deadline, now_ms);
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, None, &mut locked);
    engine.free(garbage);
    Ok(restored)
}

/// Removes everything that has expired, after an import, during which nothing expires, and marks the rest as used now.
/// Returns how many keys and fields were removed.
pub fn expire_after_import(engine: &Engine, worker: &mut Worker) -> (u64, u64) {
    const LONG_NS: u64 = 1 << 60;
    engine.begin(worker);
    let removed = |worker: &Worker| {
        let stats = &worker.metrics.stats;
        (stats.expired_keys.get(), stats.expired_fields.get())
    };
    let before = removed(worker);
    while expiry::expire_cycle(engine, worker, 0, 1, LONG_NS) {}
    let after = removed(worker);
    for shard in 0..engine.keyspace.shard_count() {
        let usage = engine.usage(&mut worker.random);
        let locked = engine.keyspace.lock_shard(shard);
        for db in locked.shards().flat_map(|(_, shard)| (0..DATABASES).map(|db| shard.db(db))) {
            db.iter(worker.now_ms).for_each(|entry| entry.touch(usage.fresh(worker.now_ms)));
        }
    }
    (after.0 - before.0, after.1 - before.1)
}

/// Records a value for a key that does not exist. Leaves out what has expired at `now_ms`.
pub fn record(keys: &mut Recorder<'_>, key: Key<'_>, value: &Value, deadline: Option<u64>, now_ms: u64) -> RestoredKey {
    if deadline.is_some_and(|deadline| deadline <= now_ms) {
        return RestoredKey::default();
    }
    let Some((value_type, Restored { image, elements_expired })) = types::image_of(value, now_ms, keys.thresholds())
    else {
        return RestoredKey::default();
    };
    if !image.is_empty() {
        keys.record(&Effect::Put { key, value: Image { value_type, bytes: &image }, deadline });
    }
    RestoredKey { key: !image.is_empty(), elements_expired }
}
