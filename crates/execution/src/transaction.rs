//! EXEC: runs queued commands under one set of locks. Knows which locks it needs; refuses to know what commands do.

use crate::acl::Context;
use crate::batch_limit;
use crate::call::Call;
use crate::client::Client;
use crate::command::{CommandRow, Flags, Locks};
use crate::commit;
use crate::conditions;
use crate::context::After;
use crate::dispatch;
use crate::engine::Engine;
use crate::error::{CommandError, DEMOTED};
use crate::gates;
use crate::queued::Transaction;
use crate::worker::Worker;
use keyspace::Locked;
use resp::{Reply, Request};
use smallvec::SmallVec;

/// Which shards a command needs.
enum Need {
    Some(SmallVec<[usize; 16]>),
    All,
}

/// Removes all watches of a client (UNWATCH). IMPORTANT: the caller holds no shard locks.
pub fn unwatch(engine: &Engine, client: &mut Client) {
    if let Some(list) = engine.watches.take(&mut client.watches, &client.handle) {
        engine.watches.remove(&engine.keyspace, list);
    }
}

/// Ends a transaction that cannot be executed, and returns its error.
pub fn abandon(engine: &Engine, client: &mut Client, why: &CommandError) -> CommandError {
    client.transaction = None;
    client.handle.note_queued(None);
    unwatch(engine, client);
    let why = why.to_string();
    let why = why.strip_prefix("ERR ").unwrap_or(&why);
    CommandError::said(format!("EXECABORT Transaction discarded because of: {why}"))
}

/// Executes the commands of a transaction under the same locks, and writes their replies as one array; null when a
/// watched key has changed.
pub fn run_transaction(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    transaction: &Transaction,
    reply: &mut Reply<'_>,
) -> Result<After, CommandError> {
    let Some(mut locked) = lock_for(engine, client, transaction) else {
        return match conditions::busy(engine) {
            CommandError::AwaitsScript => Err(CommandError::AwaitsScript),
            busy => Err(abandon(engine, client, &busy)),
        };
    };
    // IMPORTANT: once more, under the locks: see `handler::run_under`.
    if engine.restrictions.is_following() && may_write(transaction) {
        drop(locked);
        let error = engine.restrictions.pass_write().err().unwrap_or(CommandError::fixed(DEMOTED));
        return Err(abandon(engine, client, &error));
    }
    let is_changed = client.watches.have_changed() || client.watches.any_has_expired(&locked, worker.now_ms);
    if is_changed {
        // IMPORTANT: a null reply reveals the batch that has changed a watched key, so it waits for the journal as a
        // read does.
        client.depends_on = client.depends_on.max(locked.changed_by());
        drop(locked);
        unwatch(engine, client);
        reply.null_array();
        return Ok(After::Continue);
    }
    if let Err(error) = batch_limit::pass_batch_limit_together(engine, &locked, client.db, transaction) {
        // The error reveals the sizes of values.
        client.depends_on = client.depends_on.max(locked.changed_by());
        drop(locked);
        return Err(abandon(engine, client, &error));
    }
    // Before the commands run, as in Redis: an UNWATCH among them has nothing to do, and so takes no lock.
    let watches = engine.watches.take(&mut client.watches, &client.handle);
    // Prefetch all entries, so that the waits for memory overlap.
    for (row, request) in transaction.commands() {
        row.keys(request).for_each(|key| locked.db(client.db, key).prefetch(key.hash));
    }
    let reply_at = reply.position();
    reply.array(transaction.len());
    let mut after = After::Continue;
    worker.batch.is_atomic = true;
    let reply_bytes_max = client.reply_bytes_max;
    for (row, request) in transaction.commands() {
        // The replies are one for the user's limit.
        client.reply_bytes_max = reply_bytes_max.saturating_sub(reply.position() - reply_at);
        if let Err(error) = gates::pass_user(engine, client, row, request) {
            refuse_late(engine, worker, client, row, &error, reply);
            continue;
        }
        let call = Call::new(worker, client, row, request).find_only_key();
        let asked = dispatch::execute_on(engine, call, reply, &mut locked);
        // It was counted when it was queued.
        client.tally.operations = client.tally.operations.saturating_sub(1);
        // HELLO may have changed it.
        reply.set_protocol(client.protocol);
        if matches!(asked, After::Close) {
            after = asked;
        }
    }
    worker.batch.is_atomic = false;
    client.reply_bytes_max = reply_bytes_max;
    commit::commit(engine, worker, Some(client), &mut locked);
    drop(locked);
    if let Some(list) = watches {
        engine.watches.remove(&engine.keyspace, list);
    }
    Ok(after)
}

/// Refuses a command of a transaction whose user has lost the right to it since it was queued.
#[cold]
fn refuse_late(
    engine: &Engine,
    worker: &Worker,
    client: &Client,
    row: &CommandRow,
    error: &CommandError,
    reply: &mut Reply<'_>,
) {
    gates::note_if_denied(engine, client, error, Context::Multi);
    worker.metrics.stats.commands[row.index].rejected.add(1);
    let why = error.to_string();
    let why = why.strip_prefix("NOPERM ").unwrap_or(&why);
    let text = format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is \
         no longer allowed for the following reason: {why}"
    );
    worker.metrics.stats.count_error(&text);
    reply.error(&text);
}

fn may_write(transaction: &Transaction) -> bool {
    transaction.commands().any(|(row, request)| row.flags_of(request).has(Flags::WRITE))
}

/// True when one of the commands reads an index.
pub fn reads_index(engine: &Engine, transaction: &Transaction) -> bool {
    let reads = |(row, request): (&'static CommandRow, Request<'_>)| {
        row.names_index() || engine.indexes.has_any_of(row.key_positions(request).map(|at| request.arg(at)))
    };
    transaction.commands().any(reads)
}

/// The locks for all commands of a transaction, and for the keys that are watched.
fn lock_for<'e>(engine: &'e Engine, client: &Client, transaction: &Transaction) -> Option<Locked<'e>> {
    let mut need = Need::Some(client.watches.keys().map(|(_, name)| engine.keyspace.shard_of(name)).collect());
    for (row, request) in transaction.commands() {
        let Need::Some(shards) = &mut need else { break };
        if engine.indexes.has_any_of(row.key_positions(request).map(|at| request.arg(at))) {
            need = Need::All;
            break;
        }
        match row.locks(request) {
            Locks::None => {}
            Locks::Key(_) | Locks::Keys => {
                shards.extend(row.keys(request).map(|key| engine.keyspace.shard_of(key.name)))
            }
            // A script inside a transaction may touch any key.
            Locks::Everything | Locks::Walk | Locks::Declared => need = Need::All,
        }
    }
    match need {
        Need::Some(shards) => engine.keyspace.lock_shards_unless_busy(shards),
        Need::All => engine.keyspace.lock_all_unless_busy(),
    }
}
