//! One command of an interactive transaction. It runs on the shared keyspace if it only reads keys that the transaction
//! has not written, otherwise on the private one. Knows locks, copies and limits; refuses to know what the command
//! does.

use super::request::{Keys, Stop, keys_of, lock_each, only_key};
use super::transaction::{InteractiveTransaction, bytes_of};
use super::{CONFLICT, Engine, LOST, reading};
use crate::acl::Context;
use crate::ahead::Ahead;
use crate::caching;
use crate::call::Call;
use crate::client::Client;
use crate::client_eviction;
use crate::client_eviction::GROWN_BYTES;
use crate::command::{CommandRow, Flags, Handler, Locks};
use crate::conditions;
use crate::context::After;
use crate::dispatch;
use crate::error::{CommandError, CommandResult};
use crate::forks;
use crate::gates;
use crate::interactive;
use crate::panics;
use crate::pending_batch::PendingBatch;
use crate::run;
use crate::scripts;
use crate::view::View;
use crate::waiting;
use crate::worker::Worker;
use keyspace::db::Db;
use keyspace::shard::Shard;
use keyspace::{Key, KeyCopy, Locked};
use resp::{Reply, Request};
use std::sync::atomic::Ordering::Relaxed;

/// Executes a request of a client with an open transaction, and appends its reply. Returns what the connection does
/// next.
#[inline(never)]
pub fn run_interactive(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    found: Result<&'static CommandRow, CommandError>,
    request: Request<'_>,
    out: &mut Vec<u8>,
    ahead: &mut Ahead<'_>,
) -> After {
    let (reply_at, counted) = (out.len(), client.tally.operations);
    interactive::end_if_overdue(engine, client, worker.monotonic_ms());
    if let Ok(row) = found
        && worker.must_detach()
        && let Some(begin) = scripts::leaving::may_run_long(engine, row)
    {
        return After::Detach(begin);
    }
    if let Ok(row) = found {
        client.last_command = Some(row);
        client.handle.last_command.store(row.index as u32 + 1, Relaxed);
        if row.command.flags.has(Flags::ENDS_TXN) {
            return run::run(engine, Call::new(worker, client, row, request), out, ahead);
        }
    }
    let result = match admitted(engine, worker, client, found, request) {
        Err(stop) => Err(stop),
        Ok(row) if row.command.keys.locks == Locks::None => {
            let after = run::run(engine, Call::new(worker, client, row, request), out, ahead);
            if let After::Block(blocked) = after {
                // Commands do not wait in a transaction.
                out.extend_from_slice(
                    &waiting::outcome(engine, worker, client, &blocked.event, true).unwrap_or_default(),
                );
            }
            return After::Continue;
        }
        Ok(row) => {
            ahead.release();
            worker.secrets.clear();
            step(engine, Call::new(worker, client, row, request), out)
        }
    };
    let result = match result {
        Err(Stop::Conflict) => {
            ahead.release();
            Err(await_change(engine, client).map_or_else(Stop::Refused, |()| Stop::Conflict))
        }
        result => result,
    };
    let error = match result {
        Ok(()) => return After::Continue,
        Err(Stop::Refused(CommandError::AwaitsScript)) => return After::AwaitScript,
        Err(Stop::Refused(error)) => error,
        Err(Stop::Conflict) => {
            let error = if is_reading(client) { LOST } else { CONFLICT };
            interactive::fail_interactive(engine, client, error.clone(), &engine.transactions.conflicts);
            error
        }
        Err(Stop::Failed(error)) => {
            interactive::fail_interactive(engine, client, error.clone(), &engine.transactions.rolled_back);
            error
        }
    };
    if client.tally.operations == counted {
        client.tally.operations += 1;
    }
    run::fail(worker, client, out, reply_at, &error);
    After::Continue
}

/// Makes the reply to a conflict wait for the journal as a read does: it reveals the batch that has changed a key of
/// the transaction. A key counts as changed before that batch is appended, so this takes the locks of all its keys. An
/// error while a long script holds one: the change may be the script's, which has not ended.
fn await_change(engine: &Engine, client: &mut Client) -> CommandResult {
    let open = client.interactive.as_deref().expect("the client is in a transaction");
    if open.reading.is_some() {
        return reading::await_loss(engine, client);
    }
    let shards = open.keys.iter().map(|key| engine.keyspace.shard_of_key(key)).collect();
    let locked = engine.keyspace.lock_shards_unless_busy(shards).ok_or_else(|| conditions::busy(engine))?;
    client.depends_on = client.depends_on.max(locked.changed_by());
    Ok(())
}

/// True when the client's transaction only reads cells.
fn is_reading(client: &Client) -> bool {
    client.interactive.as_deref().is_some_and(|open| open.reading.is_some())
}

/// Finds the row of a request and checks that it may be part of the client's transaction, as far as is known without
/// locks.
fn admitted(
    engine: &Engine,
    worker: &Worker,
    client: &Client,
    found: Result<&'static CommandRow, CommandError>,
    request: Request<'_>,
) -> Result<&'static CommandRow, Stop> {
    let open = client.interactive.as_deref().expect("the client is in a transaction");
    let passed = match (&open.failed, found) {
        (Some(error), _) => Err(Stop::Refused(error.clone())),
        (None, Err(error)) => Err(Stop::Refused(error)),
        (None, Ok(_)) if open.conflicts(worker.now_ms) => Err(Stop::Conflict),
        (None, Ok(_)) if open.reading.is_some_and(|reading| engine.instants.is_lost(reading.id)) => Err(Stop::Conflict),
        (None, Ok(row)) => {
            let rules = match open.reading {
                None => interactive::rules::pass_transaction_rules,
                Some(_) => interactive::rules::pass_reading_rules,
            };
            let gates = gates::gates(engine, client, row, request).and_then(|()| rules(row, request));
            gates.map(|()| row).map_err(|error| {
                gates::note_if_denied(engine, client, &error, Context::TopLevel);
                Stop::Refused(error)
            })
        }
    };
    if passed.is_err()
        && let Ok(row) = run::find(engine, client, request)
    {
        worker.metrics.stats.commands[row.index].rejected.add(1);
    }
    passed
}

/// Runs a command with keys.
fn step(engine: &Engine, mut call: Call<'_, '_>, out: &mut Vec<u8>) -> Result<(), Stop> {
    if let Some(open) = call.client.interactive.take_if(|open| open.reading.is_some()) {
        let reading = open.reading.expect("it was just seen");
        let result = reading::read(engine, &mut call, &open, reading, out);
        call.client.interactive = Some(open);
        return result;
    }
    let keys = keys_of(call.row, call.request);
    call.only_key = only_key(call.row, &keys);
    let mut open = call.client.interactive.take().expect("the client is in a transaction");
    let only_reads = matches!(call.row.command.handler, Handler::Read(_));
    let result = match only_reads && !keys.iter().any(|key| open.keys.is_private(*key)) {
        true => read_shared(engine, &mut call, &mut open, &keys, out),
        false => run_private(engine, &mut call, &mut open, &keys, out),
    };
    call.client.interactive = Some(open);
    result
}

/// Runs a command that only reads keys which the transaction has not written, and watches them.
fn read_shared(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    open: &mut InteractiveTransaction,
    keys: &[Key<'_>],
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let Call { worker, client, row, request, only_key, .. } = call;
    let (row, request, only_key) = (*row, *request, *only_key);
    let now_ms = worker.now_ms;
    let locked = lock_each(engine, keys);
    let mut locked = locked.ok_or_else(|| Stop::Refused(conditions::busy(engine)))?;
    client.depends_on = client.depends_on.max(locked.changed_by());
    pass_locked(engine, open, row, &locked, keys, 0, now_ms)?;
    let mut reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
    let again = Call::new(worker, client, row, request).with_only_key(only_key);
    dispatch::execute_on(engine, again, &mut reply, &mut locked);
    // After the command: a key that it found expired is removed now.
    keys.iter().for_each(|key| touch(engine, open, &mut locked, *key, now_ms));
    drop(locked);
    client.handle.note_transaction(Some(open.memory_bytes()));
    Ok(())
}

/// Runs a command on the private keyspace, into which its keys are copied first.
fn run_private(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    open: &mut InteractiveTransaction,
    keys: &[Key<'_>],
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let Call { worker, client, row, request, only_key, .. } = call;
    let (row, request, only_key) = (*row, *request, *only_key);
    let memory_before = open.memory_bytes();
    let protocol = client.protocol;
    forks::pass_forks(engine, open.db, row, request).map_err(Stop::Refused)?;
    copy_keys(engine, worker, client, open, row, keys)?;
    let (db, reply_at) = (open.db, out.len());
    let InteractiveTransaction { private, batch, .. } = &mut *open;
    let mut locked = Locked::alone(private.get_or_insert_default());
    std::mem::swap(&mut worker.batch, batch);
    let savepoint = match row.command.handler {
        Handler::Script(_) => Some(Savepoint::new(worker, &locked, db, keys)),
        _ => None,
    };
    let mut reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
    let ran = panics::catch_across_threads(|| {
        let again = Call::new(worker, client, row, request).with_only_key(only_key);
        dispatch::execute_on(engine, again, &mut reply, &mut locked);
        Ok(())
    });
    let has_panicked = std::mem::take(&mut worker.batch.has_panicked) || ran.is_err();
    let touched_others = std::mem::take(&mut worker.batch.touched_undeclared_key);
    let was_cut_short = std::mem::take(&mut worker.batch.script_was_cut_short);
    if (touched_others || was_cut_short)
        && let Some(savepoint) = savepoint
    {
        savepoint.restore(worker, &mut locked, db, keys);
    }
    engine.free(locked.take_garbage());
    drop(locked);
    std::mem::swap(&mut worker.batch, batch);
    open.measure(keys);
    worker.catch_up();
    if has_panicked {
        // The private state cannot be trusted any more; none of it is shared.
        worker.in_script = false;
        // A script that panicked may have left its own values here.
        (client.db, client.protocol) = (open.db, protocol);
        return Err(Stop::Failed(CommandError::Internal));
    }
    if touched_others {
        out.truncate(reply_at);
        return Err(Stop::Refused(CommandError::fixed(
            "ERR the script touched a key that it did not declare, which it may not in an interactive transaction; \
             nothing of it was kept: declare the key in KEYS",
        )));
    }
    open.needs_memory |= row.command.flags.has(Flags::DENYOOM);
    if row.command.flags.has(Flags::READONLY) {
        caching::invalidate_own_reads(engine, client, keys.iter().map(|key| key.name));
    }
    pass_bytes(engine, open, 0)?;
    let memory = open.memory_bytes();
    if let Err(error) = client_eviction::pass_user_limit(engine, client, memory.saturating_sub(memory_before)) {
        return Err(Stop::Failed(error));
    }
    client.handle.note_transaction(Some(memory));
    if memory / GROWN_BYTES > memory_before / GROWN_BYTES {
        client_eviction::evict_clients(engine, 0);
    }
    Ok(())
}

/// Copies keys into the private keyspace that are not there yet, and watches them.
fn copy_keys(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    open: &mut InteractiveTransaction,
    row: &'static CommandRow,
    keys: &[Key<'_>],
) -> Result<(), Stop> {
    if let Handler::Script(_) = row.command.handler {
        // IMPORTANT: the reply depends on the batch that defined the function, and that batch is not known.
        client.depends_on = client.depends_on.max(engine.persistence.tail());
    }
    let new: Keys<'_> = keys.iter().copied().filter(|key| !open.keys.is_private(*key)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let (db, now_ms) = (open.db, worker.now_ms);
    let locked = lock_each(engine, &new);
    let mut locked = locked.ok_or_else(|| Stop::Refused(conditions::busy(engine)))?;
    let new_bytes = bytes_of(&locked, db, &new);
    // Even if it is refused because of the values there.
    client.depends_on = client.depends_on.max(locked.changed_by());
    pass_locked(engine, open, row, &locked, &new, new_bytes, now_ms)?;
    let mut private = open.private.take().unwrap_or_default();
    let mut copies = Locked::alone(&mut private);
    for key in &new {
        touch(engine, open, &mut locked, *key, now_ms);
        open.keys.set_private(*key);
        let is_expired = |entry: &&keyspace::Entry| Db::is_expired(entry, now_ms);
        let copy = match locked.db(db, *key).entry(*key).filter(is_expired) {
            Some(_) => KeyCopy::ABSENT,
            None => locked.copy_of(db, *key),
        };
        copies.put_copy(db, *key, copy);
    }
    drop(locked);
    remove_expired_fields(engine, worker, open, &mut copies, &new);
    drop(copies);
    open.private = Some(private);
    Ok(())
}

/// Removes fields of copied hashes that had expired before the copy: from now on, a field of a copy that expires is a
/// conflict.
fn remove_expired_fields(
    engine: &Engine,
    worker: &mut Worker,
    open: &mut InteractiveTransaction,
    copies: &mut Locked<'_>,
    keys: &[Key<'_>],
) {
    let (db, now_ms) = (open.db, worker.now_ms);
    let has_expired = |(_, shard): (usize, &Shard)| shard.db(db).has_expired(now_ms);
    if !copies.shards().any(has_expired) {
        return;
    }
    let usage = engine.usage(&mut worker.random);
    let PendingBatch { effects, notifications, .. } = &mut open.batch;
    let mut view = View::new(copies.lend(), db, now_ms, usage, &worker.metrics.stats).without_touching();
    view.notify_through(notifications, engine.settings.notify_keyspace_events().published());
    let mut recorder = view.into_recorder_of(engine, true, effects);
    keys.iter().for_each(|key| recorder.remove_expired(*key));
}

/// Checks a command that has locked its keys: the state is the one that the transaction has seen, no key is an index,
/// and with `bytes` more the transaction stays within its limits.
fn pass_locked(
    engine: &Engine,
    open: &InteractiveTransaction,
    row: &'static CommandRow,
    locked: &Locked<'_>,
    keys: &[Key<'_>],
    bytes: usize,
    now_ms: u64,
) -> Result<(), Stop> {
    if open.conflicts(now_ms) {
        return Err(Stop::Conflict);
    }
    interactive::rules::pass_index_rule(row, locked, open.db, keys).map_err(Stop::Refused)?;
    let new = keys.iter().filter(|key| !open.keys.has(**key));
    let (count, name_bytes) = new.fold((0, 0), |(count, bytes), key| (count + 1, bytes + key.name.len()));
    let keys_max = engine.settings.txn_max_keys();
    if (open.keys.len() + count) as u64 > keys_max {
        let why = format!(
            "ERR the transaction touches more than {keys_max} keys (txn-max-keys) and was rolled back: begin one with fewer"
        );
        return Err(Stop::Failed(CommandError::said(why)));
    }
    pass_bytes(engine, open, bytes + name_bytes)
}

/// Fails a transaction that would exceed its limits with `bytes` more.
fn pass_bytes(engine: &Engine, open: &InteractiveTransaction, bytes: usize) -> Result<(), Stop> {
    let bytes_max = engine.settings.txn_max_bytes();
    if (open.held_bytes() + bytes) as u64 <= bytes_max {
        return Ok(());
    }
    let why = format!(
        "ERR the transaction holds more than {bytes_max} bytes (txn-max-bytes) and was rolled back: begin a smaller one"
    );
    Err(Stop::Failed(CommandError::said(why)))
}

/// Watches a key whose shard is locked, if it is not watched yet.
fn touch(engine: &Engine, open: &mut InteractiveTransaction, locked: &mut Locked<'_>, key: Key<'_>, now_ms: u64) {
    if !open.keys.add(key) {
        return;
    }
    let entry = locked.db(open.db, key).entry(key);
    let was_expired = entry.is_some_and(|entry| Db::is_expired(entry, now_ms));
    let next_expiry_ms = entry.and_then(|entry| Db::next_expiry(entry, now_ms)).unwrap_or(u64::MAX);
    open.next_expiry_ms = open.next_expiry_ms.min(next_expiry_ms);
    locked.watched_mut(key).watch(open.db, key, &open.keys.changed, was_expired);
    engine.watches.add();
}

/// The keys of a script before it ran, and the length of the transaction's batch.
struct Savepoint {
    copies: Vec<KeyCopy>,
    effects: usize,
    notifications: usize,
}

impl Savepoint {
    fn new(worker: &Worker, locked: &Locked<'_>, db: usize, keys: &[Key<'_>]) -> Savepoint {
        Savepoint {
            copies: keys.iter().map(|key| locked.copy_of(db, *key)).collect(),
            effects: worker.batch.effects.len(),
            notifications: worker.batch.notifications.len(),
        }
    }

    fn restore(self, worker: &mut Worker, locked: &mut Locked<'_>, db: usize, keys: &[Key<'_>]) {
        keys.iter().zip(self.copies).for_each(|(key, copy)| locked.put_copy(db, *key, copy));
        worker.batch.effects.truncate(self.effects);
        worker.batch.notifications.truncate(self.notifications);
    }
}
