//! The end of an interactive transaction: its effects are applied to the shared keyspace as one batch, if no key has
//! changed since it read them. Refuses to know which commands have recorded them.

use super::transaction::InteractiveTransaction;
use super::{CONFLICT, Engine, reading};
use crate::batch_limit;
use crate::client::Client;
use crate::commit;
use crate::conditions;
use crate::error::{CommandError, CommandResult};
use crate::gates;
use crate::interactive;
use crate::view::View;
use crate::worker::Worker;
use keyspace::effects::codec::Decoder;
use keyspace::{Fate, Key, Locked, Touch, Touches};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// Ends a client's transaction and applies it. Returns the number of its batch, or the last batch's number if it has
/// written nothing. On an error nothing is applied, and the transaction has ended too.
pub fn commit_interactive(engine: &Engine, worker: &mut Worker, client: &mut Client) -> Result<u64, CommandError> {
    let Some(open) = client.interactive.as_deref() else {
        return Err(CommandError::fixed("ERR TXN.COMMIT without TXN.BEGIN: no transaction is open"));
    };
    if let Some(error) = &open.failed {
        let error = error.clone();
        client.interactive = None;
        return Err(error);
    }
    if let Some(reading) = open.reading {
        return reading::commit_reading(engine, worker, client, reading);
    }
    if let Err(error) = pass_commit_gates(engine, open) {
        interactive::roll_back(engine, client);
        return Err(error);
    }
    let shards: SmallVec<[usize; 16]> = open.keys.iter().map(|key| engine.keyspace.shard_of_key(key)).collect();
    let Some(mut locked) = engine.keyspace.lock_shards_unless_busy(shards) else {
        let busy = conditions::busy(engine);
        if busy != CommandError::AwaitsScript {
            interactive::roll_back(engine, client);
        }
        return Err(busy);
    };
    if engine.forks.any()
        && let Err(error) = pass_forks_since(engine, open)
    {
        drop(locked);
        interactive::roll_back(engine, client);
        return Err(error);
    }
    let mut ended = client.interactive.take().expect("the client is in a transaction");
    let is_index = |key: Key<'_>| locked.db(ended.db, key).indexes().position(key.name).is_some();
    let is_applicable = !ended.conflicts(worker.now_ms) && !ended.keys.iter().any(is_index);
    // Before its changes are applied: they must not trigger its own watches.
    unwatch_touched(engine, &ended, &mut locked);
    if !is_applicable {
        // IMPORTANT: the error reveals the batch that has changed a key, so it waits for the journal as a read does.
        client.depends_on = client.depends_on.max(locked.changed_by());
        drop(locked);
        client.handle.note_transaction(None);
        engine.transactions.conflicts.fetch_add(1, Relaxed);
        interactive::recycle(engine, worker, ended);
        return Err(CONFLICT);
    }
    let sequence = apply_interactive(engine, worker, client, &mut ended, &mut locked);
    drop(locked);
    client.handle.note_transaction(None);
    worker.metrics.stats.transactions_committed.add(1);
    interactive::recycle(engine, worker, ended);
    Ok(sequence)
}

/// Checks the gates for the effects of a transaction: they may have closed since its commands passed them.
fn pass_commit_gates(engine: &Engine, open: &InteractiveTransaction) -> CommandResult {
    if !open.has_written() {
        return Ok(());
    }
    engine.restrictions.pass_write()?;
    gates::pass_replicas(engine)?;
    if open.needs_memory {
        gates::pass_memory_limit(engine)?;
    }
    batch_limit::pass_batch_bytes(engine, open.batch.effects.len())
}

/// Checks the names that a transaction has written: a fork may have reserved them since.
#[cold]
fn pass_forks_since(engine: &Engine, open: &InteractiveTransaction) -> CommandResult {
    let mut effects = Decoder::new(&open.batch.effects);
    while let Some((db, effect)) = effects.next().expect("effects that were just recorded can be read") {
        if let Touches::Keys(touches) = effect.touches(db) {
            for Touch { db, key, .. } in touches.into_iter().filter(|touch| touch.fate != Fate::Read) {
                engine.forks.pass_name(db, key.name)?;
            }
        }
    }
    Ok(())
}

fn unwatch_touched(engine: &Engine, ended: &InteractiveTransaction, locked: &mut Locked<'_>) {
    ended.keys.iter().for_each(|key| locked.watched_mut(key).unwatch(ended.db, key, &ended.keys.changed));
    engine.watches.subtract(ended.keys.len());
}

/// Applies the effects of a transaction, under the locks of all its keys, and commits them.
fn apply_interactive(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    ended: &mut InteractiveTransaction,
    locked: &mut Locked<'_>,
) -> u64 {
    let usage = engine.usage(&mut worker.random);
    let mut view = View::new(locked.lend(), ended.db, worker.now_ms, usage, &worker.metrics.stats);
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    if ended.has_written() {
        // Expired keys were absent to the transaction, so its effects apply to absent keys.
        for key in ended.keys.private() {
            keys.remove_if_expired(ended.db, key);
        }
    }
    // The events of its commands were noted when they ran.
    keys.stop_noting_events();
    worker.batch.notifications.append(&ended.batch.notifications);
    let mut effects = Decoder::new(&ended.batch.effects);
    while let Some((db, effect)) = effects.next().expect("effects that were just recorded can be read") {
        keys.record_again(db, &effect);
    }
    let garbage = keys.finish().take_garbage();
    let sequence = commit::commit(engine, worker, Some(client), locked);
    engine.free(garbage);
    sequence.unwrap_or_else(|| engine.persistence.tail())
}
