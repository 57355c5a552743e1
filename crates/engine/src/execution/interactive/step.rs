//! One command of an interactive transaction: on the shared keyspace if it only reads what the transaction has not
//! written, otherwise on the private one. Knows locks, copies and limits; refuses to know what the command does.

use super::transaction::{InteractiveTransaction, bytes_of};
use super::{CONFLICT, Engine};
use crate::error::CommandError;
use crate::execution::client::Client;
use crate::execution::client_eviction::GROWN_BYTES;
use crate::execution::command::{CommandRow, Flags, Handler, Locks};
use crate::execution::commit::PendingBatch;
use crate::execution::context::After;
use crate::execution::execute::Ahead;
use crate::execution::view::View;
use crate::execution::worker::Worker;
use crate::panics;
use keyspace::db::Db;
use keyspace::shard::Shard;
use keyspace::{Key, KeyCopy, Locked};
use resp::{Reply, Request};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// Why a command was not run.
enum Stop {
    /// It is refused, and the transaction goes on.
    Refused(CommandError),
    /// Another client was first, or a key has expired.
    Conflict,
    /// The transaction has failed for another reason.
    Failed(CommandError),
}

/// The keys of one request, each once.
type Keys<'r> = SmallVec<[Key<'r>; 4]>;

impl Engine {
    /// Executes a request of a client that has begun a transaction, and appends its reply.
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    #[inline(never)]
    pub(crate) fn run_interactive(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        found: Result<&'static CommandRow, CommandError>,
        request: Request<'_>,
        out: &mut Vec<u8>,
        after: &mut After,
        ahead: &mut Ahead<'_>,
    ) {
        let reply_at = out.len();
        self.end_if_overdue(client, worker.monotonic_ms());
        if let Ok(row) = found {
            client.last_command = Some(row);
            client.handle.last_command.store(row.index as u32 + 1, Relaxed);
            if row.command.flags.has(Flags::ENDS_TXN) {
                return self.run(worker, client, row, request, out, after, ahead);
            }
        }
        let result = match self.admitted(worker, client, found, request) {
            Err(stop) => Err(stop),
            Ok(row) if row.command.keys.locks == Locks::None => {
                self.run(worker, client, row, request, out, after, ahead);
                if let After::Block(blocked) = std::mem::take(after) {
                    // Nothing waits in a transaction.
                    out.extend_from_slice(&self.outcome(worker, client, &blocked.event, true).unwrap_or_default());
                }
                return;
            }
            Ok(row) => {
                ahead.release();
                worker.secrets.clear();
                self.step(worker, client, row, request, out)
            }
        };
        let error = match result {
            Ok(()) => return,
            Err(Stop::Refused(error)) => error,
            Err(Stop::Conflict) => {
                self.fail_interactive(client, CONFLICT, &self.transactions.conflicts);
                CONFLICT
            }
            Err(Stop::Failed(error)) => {
                self.fail_interactive(client, error.clone(), &self.transactions.rolled_back);
                error
            }
        };
        self.fail(worker, client, out, reply_at, &error);
    }

    /// The row of a request that may be part of the client's transaction, as far as is known without locks.
    fn admitted(
        &self,
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
            (None, Ok(row)) => {
                let gates = self.gates(client, row, request).and_then(|()| self.pass_transaction_rules(row, request));
                gates.map(|()| row).map_err(Stop::Refused)
            }
        };
        if passed.is_err()
            && let Ok(row) = self.find(client, request)
        {
            worker.books.stats.commands[row.index].rejected.add(1);
        }
        passed
    }

    /// Runs a command with keys.
    fn step(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let keys = keys_of(row, request);
        let mut open = client.interactive.take().expect("the client is in a transaction");
        let only_reads = matches!(row.command.handler, Handler::Read(_));
        let result = match only_reads && !keys.iter().any(|key| open.keys.is_private(*key)) {
            true => self.read_shared(worker, client, &mut open, row, request, &keys, out),
            false => self.run_private(worker, client, &mut open, row, request, &keys, out),
        };
        client.interactive = Some(open);
        result
    }

    /// Runs a command that only reads keys which the transaction has not written, and watches them.
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    fn read_shared(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        open: &mut InteractiveTransaction,
        row: &'static CommandRow,
        request: Request<'_>,
        keys: &[Key<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let now_ms = worker.now_ms;
        let locked = self.lock_each(keys);
        let mut locked = locked.ok_or_else(|| Stop::Refused(self.busy()))?;
        self.pass_locked(open, row, &locked, keys, 0, now_ms)?;
        let mut reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
        self.execute_on(worker, client, row, request, &mut reply, &mut locked, only_key(row, keys));
        // After the command: if it has met an expired key, that is gone now.
        keys.iter().for_each(|key| self.touch(open, &mut locked, *key, now_ms));
        drop(locked);
        client.handle.note_transaction(Some(open.memory_bytes()));
        Ok(())
    }

    /// Runs a command on the private keyspace, into which its keys are copied first.
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    fn run_private(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        open: &mut InteractiveTransaction,
        row: &'static CommandRow,
        request: Request<'_>,
        keys: &[Key<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let memory_before = open.memory_bytes();
        let protocol = client.protocol;
        self.pass_forks(open.db, row, request).map_err(Stop::Refused)?;
        self.copy_keys(worker, client, open, row, keys)?;
        let (db, reply_at) = (open.db, out.len());
        let InteractiveTransaction { private, batch, .. } = &mut *open;
        let mut locked = Locked::alone(private.get_or_insert_default());
        std::mem::swap(&mut worker.batch, batch);
        let savepoint = match row.command.handler {
            Handler::Script(_) => Some(Savepoint::new(worker, &locked, db, keys)),
            _ => None,
        };
        let mut reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
        let ran = panics::catch(|| {
            self.execute_on(worker, client, row, request, &mut reply, &mut locked, only_key(row, keys));
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
        self.free(locked.take_garbage());
        drop(locked);
        std::mem::swap(&mut worker.batch, batch);
        open.measure(keys);
        worker.catch_up();
        if has_panicked {
            // What it has left behind cannot be trusted; nothing of it is shared.
            worker.in_script = false;
            // A script has its own while it runs.
            (client.db, client.protocol) = (open.db, protocol);
            return Err(Stop::Failed(CommandError::Internal));
        }
        if touched_others {
            out.truncate(reply_at);
            return Err(Stop::Refused(CommandError::fixed(
                "ERR the script touched a key that it did not declare, which it may not in an interactive transaction; \
                 nothing of it was kept",
            )));
        }
        open.needs_memory |= row.command.flags.has(Flags::DENYOOM);
        if row.command.flags.has(Flags::READONLY) {
            self.invalidate_own_reads(client, keys.iter().map(|key| key.name));
        }
        self.pass_bytes(open, 0)?;
        let memory = open.memory_bytes();
        client.handle.note_transaction(Some(memory));
        if memory / GROWN_BYTES > memory_before / GROWN_BYTES {
            self.evict_clients();
        }
        Ok(())
    }

    /// Copies those keys into the private keyspace that are not there yet, and watches them.
    fn copy_keys(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        open: &mut InteractiveTransaction,
        row: &'static CommandRow,
        keys: &[Key<'_>],
    ) -> Result<(), Stop> {
        if let Handler::Script(_) = row.command.handler {
            // IMPORTANT: the reply tells of the batch that has defined the function, whichever that is.
            client.depends_on = client.depends_on.max(self.persistence.tail());
        }
        let new: Keys<'_> = keys.iter().copied().filter(|key| !open.keys.is_private(*key)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let (db, now_ms) = (open.db, worker.now_ms);
        let locked = self.lock_each(&new);
        let mut locked = locked.ok_or_else(|| Stop::Refused(self.busy()))?;
        let new_bytes = bytes_of(&locked, db, &new);
        self.pass_locked(open, row, &locked, &new, new_bytes, now_ms)?;
        client.depends_on = client.depends_on.max(locked.changed_by());
        let mut private = open.private.take().unwrap_or_default();
        let mut copies = Locked::alone(&mut private);
        for key in &new {
            self.touch(open, &mut locked, *key, now_ms);
            open.keys.set_private(*key);
            let is_expired = |entry: &&keyspace::Entry| Db::is_expired(entry, now_ms);
            let copy = match locked.db(db, *key).entry(*key).filter(is_expired) {
                Some(_) => KeyCopy::ABSENT,
                None => locked.copy_of(db, *key),
            };
            copies.put_copy(db, *key, copy);
        }
        drop(locked);
        self.remove_expired_fields(worker, open, &mut copies, &new);
        drop(copies);
        open.private = Some(private);
        Ok(())
    }

    /// Removes the fields of copied hashes that had expired before: from now on, a field of a copy that expires is a
    /// conflict.
    fn remove_expired_fields(
        &self,
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
        let usage = self.usage(&mut worker.random);
        let PendingBatch { effects, notifications, .. } = &mut open.batch;
        let mut view = View::new(copies.lend(), db, now_ms, usage, &worker.books.stats).without_touching();
        view.notify_through(notifications, self.settings.notify_keyspace_events().published());
        let mut recorder = view.into_recorder_of(self, true, effects);
        // It fails for keys of other types, which have no fields.
        keys.iter().for_each(|key| drop(recorder.prepare_hash(*key)));
    }

    fn lock_each(&self, keys: &[Key<'_>]) -> Option<Locked<'_>> {
        match keys {
            [key] => self.keyspace.lock_key_unless_busy(*key),
            several => self.keyspace.lock_keys_unless_busy(several.iter().copied()),
        }
    }

    /// Checks what a command that has locked its keys needs: that the state is still the one that the transaction has
    /// seen, that no key is an index, and that it stays within its limits with `bytes` more.
    fn pass_locked(
        &self,
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
        self.pass_index_rule(row, locked, open.db, keys).map_err(Stop::Refused)?;
        let new = keys.iter().filter(|key| !open.keys.has(**key));
        let (count, name_bytes) = new.fold((0, 0), |(count, bytes), key| (count + 1, bytes + key.name.len()));
        let keys_max = self.settings.txn_max_keys();
        if (open.keys.len() + count) as u64 > keys_max {
            let why =
                format!("ERR the transaction touches more than {keys_max} keys (txn-max-keys) and was rolled back");
            return Err(Stop::Failed(CommandError::said(why)));
        }
        self.pass_bytes(open, bytes + name_bytes)
    }

    /// Fails a transaction that holds more than it may, with `bytes` more.
    fn pass_bytes(&self, open: &InteractiveTransaction, bytes: usize) -> Result<(), Stop> {
        let bytes_max = self.settings.txn_max_bytes();
        if (open.held_bytes() + bytes) as u64 <= bytes_max {
            return Ok(());
        }
        let why = format!("ERR the transaction holds more than {bytes_max} bytes (txn-max-bytes) and was rolled back");
        Err(Stop::Failed(CommandError::said(why)))
    }

    /// Watches a key whose shard is locked, if it is not watched yet.
    fn touch(&self, open: &mut InteractiveTransaction, locked: &mut Locked<'_>, key: Key<'_>, now_ms: u64) {
        if !open.keys.add(key) {
            return;
        }
        let entry = locked.db(open.db, key).entry(key);
        let was_expired = entry.is_some_and(|entry| Db::is_expired(entry, now_ms));
        let next_expiry_ms = entry.and_then(|entry| Db::next_expiry(entry, now_ms)).unwrap_or(u64::MAX);
        open.next_expiry_ms = open.next_expiry_ms.min(next_expiry_ms);
        locked.watched_mut(key).watch(open.db, key, &open.keys.changed, was_expired);
        self.watches.fetch_add(1, Relaxed);
    }
}

/// What the keys of a script were before it ran, and how much the transaction had recorded.
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

/// The key of a command that has one at a fixed place, with that place.
fn only_key<'r>(row: &'static CommandRow, keys: &[Key<'r>]) -> Option<(usize, Key<'r>)> {
    match (row.command.keys.locks, keys) {
        (Locks::Key(at), [key]) => Some((usize::from(at), *key)),
        _ => None,
    }
}

/// The keys of a request, each once. Those that a script declares are its keys.
fn keys_of<'r>(row: &'static CommandRow, request: Request<'r>) -> Keys<'r> {
    let mut keys: Keys<'r> = match row.command.keys.locks {
        Locks::Key(at) => SmallVec::from_slice(&[Key::new(request.arg(usize::from(at)))]),
        Locks::Declared => {
            let ranges = row.found_keys(request).ranges;
            ranges.into_iter().flat_map(|range| range.positions()).map(|at| Key::new(request.arg(at))).collect()
        }
        _ => row.keys(request).collect(),
    };
    if keys.len() > 1 {
        keys.sort_unstable_by_key(|key| key.name);
        keys.dedup_by_key(|key| key.name);
    }
    keys
}
