//! Removes a few expired keys and fields of one shard.

use crate::commit;
use crate::engine::Engine;
use crate::view::View;
use crate::worker::Worker;
use keyspace::DATABASES;
use keyspace::types::hash;
use keyspace::{Cause, Effect, Key, Usage};

/// Keys removed under one lock: tens of microseconds.
const KEYS_PER_LOCK: usize = 64;
/// Fields removed from one hash under one lock.
const FIELDS_PER_LOCK: usize = 256;

/// Removes a few expired keys and fields of one shard; true when there were any.
pub fn expire_some(engine: &Engine, shard: usize, worker: &mut Worker) -> bool {
    let stats = &worker.metrics.stats;
    // No entry is created or touched here, so any kind of usage will do. Never block here: a thread that holds the
    // shard for long (a snapshot of a huge value does) would delay all clients of this worker.
    let Some(mut locked) = engine.keyspace.try_lock_shard(shard) else { return false };
    let mut view = View::new(locked.lend(), 0, worker.now_ms, Usage::Time, stats).without_touching();
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    let mut any = false;
    for db in 0..DATABASES {
        let (overdue, fields) = {
            let Some((_, shard)) = keys.view().locked().shards().next() else { return false };
            let shard = shard.db(db);
            if shard.with_deadline() == 0 && shard.with_field_deadlines() == 0 {
                continue;
            }
            let fields = shard.expired_field_names(worker.now_ms, FIELDS_PER_LOCK);
            (shard.expired_keys(worker.now_ms, KEYS_PER_LOCK), fields)
        };
        any |= !overdue.is_empty() || fields.is_some();
        for name in &overdue {
            keys.record_in(db, &Effect::Delete { key: Key::new(name), cause: Cause::Expired });
        }
        stats.expired_keys.add(overdue.len() as u64);
        if let Some((name, fields)) = fields
            && !overdue.contains(&name)
        {
            let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
            let cause = Cause::Expired;
            keys.record_in(db, &Effect::change(Key::new(&name), hash::Change::Delete { fields: &fields, cause }));
            stats.expired_fields.add(fields.len() as u64);
        }
    }
    any |= keys.forget_readers(KEYS_PER_LOCK) > 0;
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, None, &mut locked);
    engine.free(garbage);
    any
}
