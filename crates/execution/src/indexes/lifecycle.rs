//! Fills and drops indexes. Refuses to know how records are found in one (`keyspace::views::index_ref`).
//!
//! Every write updates a new index from the moment it is registered; existing records are backfilled a few at a time
//! while commands continue. A record is added by the first write or backfill step that reaches it, so none is missed
//! and none is added twice. When the backfill is complete, the index is readable and in the journal.

use crate::commit;
use crate::engine::Engine;
use crate::error::{CommandError, DEMOTED};
use crate::indexes::definitions::define_index;
use crate::recorder::Recorder;
use crate::view::View;
use crate::worker::Worker;
use keyspace::index::Index;
use keyspace::{Definable, Effect, Usage};
use std::sync::Arc;

/// Records visited under one lock during a backfill: about a hundred microseconds.
const RECORDS_PER_LOCK: usize = 256;

/// Backfills an index while commands continue, then records its definition. Returns the sequence number of its batch.
pub fn backfill_index(engine: &Engine, worker: &mut Worker, index: &Arc<Index>) -> Result<u64, CommandError> {
    // IMPORTANT: from the last shard to the first. A thread that locks all shards begins at the first; in the same
    // order it would follow us from shard to shard, and keep all shards before ours locked.
    for shard in (0..engine.keyspace.shard_count()).rev() {
        let mut from = Some(0);
        while let Some(position) = from {
            let mut locked = engine.keyspace.lock_shard(shard);
            from = locked.index_some(position, RECORDS_PER_LOCK);
            // Waiting threads get the lock next.
            locked.release_fairly();
        }
    }
    let mut locked = engine.keyspace.lock_all();
    if !engine.indexes.list().iter().any(|known| Arc::ptr_eq(known, index)) {
        return Err(CommandError::fixed("ERR the index was dropped before it was complete"));
    }
    if engine.restrictions.is_following() {
        // It was not in the journal yet, so no other server has it.
        define_index(engine, &mut locked, &index.name, None);
        return Err(CommandError::fixed(DEMOTED));
    }
    let usage = Usage::Time;
    let mut view = View::new(locked.lend(), 0, worker.now_ms, usage, &worker.metrics.stats);
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    finish_index(&mut keys, index);
    keys.finish();
    Ok(commit::commit(engine, worker, None, &mut locked).unwrap_or(0))
}

/// Records that an index is complete. Everything is locked.
pub fn finish_index(keys: &mut Recorder<'_>, index: &Arc<Index>) {
    keys.record(&Effect::Define { what: Definable::Index, name: &index.name, definition: &index.definition.encode() });
}

/// Drops an index. Everything is locked. False when there was none.
pub fn drop_index(engine: &Engine, keys: &mut Recorder<'_>, name: &[u8]) -> bool {
    let indexes = engine.indexes.list();
    if indexes.position(name).is_none() {
        return false;
    }
    // Read before the effect is applied, because applying it takes the catalogue's locks.
    let is_configured = engine.indexes.is_configured(name);
    match is_configured {
        // A tombstone; without it the next start would create the index again.
        true => keys.record(&Effect::Define { what: Definable::Index, name, definition: b"" }),
        false => keys.record(&Effect::Undefine { what: Definable::Index, name }),
    };
    true
}
