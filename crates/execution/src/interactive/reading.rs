//! Read-only transactions (TXN.BEGIN READONLY): cells as they were at one instant, whatever others write meanwhile.
//! Knows when such a transaction begins and ends and how it runs a command; refuses to know how cells are kept
//! (`instants`).

use super::request::{Stop, keys_of, lock_each, only_key};
use super::transaction::{InteractiveTransaction, Reading};
use super::{LOST, rules};
use crate::call::Call;
use crate::client::Client;
use crate::command::Locks;
use crate::conditions;
use crate::dispatch;
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::instants::AtInstant;
use crate::interactive;
use crate::worker::Worker;
use resp::Reply;
use std::sync::atomic::Ordering::Relaxed;

/// Begins a read-only transaction of a client without a transaction. Everything is locked for a moment: the instant lies
/// between two batches. An error when a long script holds a lock.
pub fn begin_reading(engine: &Engine, worker: &mut Worker, client: &mut Client) -> CommandResult {
    let locked = engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?;
    let now_ms = worker.now_ms;
    let id = engine.instants.begin(client.db, now_ms, client.handle.clone());
    let tail = engine.persistence.tail().max(locked.changed_by());
    // A follower has no tail of its own, and perhaps no batch yet that it has applied since it has loaded a snapshot.
    let sequence = match engine.restrictions.is_following() {
        true => tail.max(engine.persistence.replication().sequence),
        false => tail,
    };
    locked.release_fairly();
    interactive::begin_interactive(worker, client);
    let open = client.interactive.as_deref_mut().expect("it was just begun");
    open.reading = Some(Reading { id, sequence, now_ms });
    Ok(())
}

/// Runs a command of a read-only transaction.
pub(super) fn read(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    open: &InteractiveTransaction,
    Reading { id, sequence, now_ms }: Reading,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let Call { worker, client, row, request, .. } = call;
    let (row, request, reply_at) = (*row, *request, out.len());
    let keys = match row.command.keys.locks {
        Locks::Walk => Default::default(),
        _ => keys_of(row, request),
    };
    let locked = match keys.is_empty() {
        true => Some(engine.keyspace.lock_none()),
        false => lock_each(engine, &keys),
    };
    let mut locked = locked.ok_or_else(|| Stop::Refused(conditions::busy(engine)))?;
    rules::pass_index_rule(row, &locked, open.db, &keys).map_err(Stop::Refused)?;
    let at_instant = AtInstant::new(&engine.instants, id, &keys, |key| engine.keyspace.shard_of_key(key));
    let Some((instant, db)) = at_instant else { return Err(Stop::Conflict) };
    let known = client.depends_on;
    let mut reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
    let again = Call::new(worker, client, row, request).with_only_key(only_key(row, &keys));
    dispatch::execute_at_instant(engine, again, &mut reply, &mut locked, (&instant, db, now_ms));
    drop(locked);
    if instant.is_lost() {
        out.truncate(reply_at);
        return Err(Stop::Conflict);
    }
    // The reply reveals nothing later than the instant, whatever has changed the locked shards since.
    client.depends_on = known.max(client.depends_on.min(sequence));
    Ok(())
}

/// Makes the reply to a transaction that was lost wait for the journal as a read does: it reveals that cells have
/// changed. They count as changed before their batch is appended, so this takes all locks. An error while a long script
/// holds one.
pub(super) fn await_loss(engine: &Engine, client: &mut Client) -> CommandResult {
    let locked = engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?;
    client.depends_on = client.depends_on.max(locked.changed_by());
    locked.release_fairly();
    Ok(())
}

/// Ends a read-only transaction. Returns the newest batch at its instant.
pub(super) fn commit_reading(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    Reading { id, sequence, .. }: Reading,
) -> Result<u64, CommandError> {
    if engine.instants.is_lost(id) {
        await_loss(engine, client)?;
    }
    let kept = engine.instants.end(id);
    client.handle.note_transaction(None);
    let mut ended = client.interactive.take().expect("the client is in a transaction");
    ended.reading = None;
    interactive::recycle(engine, worker, ended);
    match kept {
        Some(kept) => {
            engine.free(kept);
            client.depends_on = client.depends_on.max(sequence);
            worker.metrics.stats.transactions_committed.add(1);
            Ok(sequence)
        }
        None => {
            engine.transactions.conflicts.fetch_add(1, Relaxed);
            Err(LOST)
        }
    }
}
