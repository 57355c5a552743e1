//! MULTI, EXEC and WATCH: queued commands, and keys that must not change before EXEC. Knows what is queued and watched,
//! and which locks EXEC needs; refuses to know what commands do.

use crate::clients::ClientHandle;
use crate::clients::pubsub::Subscriptions;
use crate::error::CommandError;
use crate::execution::client::Client;
use crate::execution::command::{CommandRow, Locks};
use crate::execution::context::After;
use crate::execution::engine::Engine;
use crate::execution::worker::Worker;
use keyspace::db::Db;
use keyspace::interest::watchers::{ChangeFlag, Watched};
use keyspace::{Key, Locked};
use resp::{OwnedRequest, Reply, Request};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Commands queued since MULTI.
#[derive(Default)]
pub struct Transaction {
    queue: Vec<(&'static CommandRow, OwnedRequest)>,
    bytes: usize,
    /// A command could not be queued: EXEC will fail.
    pub failed: bool,
}

/// About how many bytes a queued command takes besides its arguments.
const QUEUED_OVERHEAD_BYTES: usize = 80;

/// Keys that a client watches. Most clients never watch, and pay one pointer for it.
#[derive(Default)]
pub struct Watches(Option<Box<WatchList>>);

#[derive(Default)]
pub(crate) struct WatchList {
    /// By database and name: there may be very many.
    keys: BTreeSet<(usize, Box<[u8]>)>,
    /// How long their names are altogether.
    name_bytes: usize,
    /// Set when one of them changes.
    changed: ChangeFlag,
}

impl WatchList {
    /// Keys that are in the tables of their shards, whose names take so many bytes, with the flag that is set there.
    pub(crate) fn new(keys: BTreeSet<(usize, Box<[u8]>)>, name_bytes: usize, changed: ChangeFlag) -> WatchList {
        WatchList { keys, name_bytes, changed }
    }
}

impl Transaction {
    /// Queues a command, as long as all of them take no more than `bytes_max`.
    pub fn push(&mut self, row: &'static CommandRow, request: Request<'_>, bytes_max: u64) -> Result<(), CommandError> {
        let bytes: usize = request.iter().map(|arg| arg.len() + size_of::<usize>()).sum();
        let taken = bytes + QUEUED_OVERHEAD_BYTES;
        if (self.bytes + taken) as u64 > bytes_max {
            return Err(CommandError::fixed("ERR the transaction is longer than client-query-buffer-limit allows"));
        }
        self.bytes += taken;
        let mut owned = OwnedRequest::with_capacity(bytes - request.len() * size_of::<usize>(), request.len());
        request.iter().for_each(|arg| owned.push(arg));
        self.queue.push((row, owned));
        Ok(())
    }

    /// What they take, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many commands are queued.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True when none is.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The commands in their order.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static CommandRow, Request<'_>)> {
        self.queue.iter().map(|(row, request)| (*row, request.as_request()))
    }
}

impl Watches {
    /// Watches one more key of a database, whose shard is locked. False when it is watched already.
    pub(crate) fn add(&mut self, db: usize, key: Key<'_>, watched: &mut Watched, was_expired: bool) -> bool {
        let list = self.0.get_or_insert_default();
        let is_new = list.keys.insert((db, key.name.into()));
        if is_new {
            watched.watch(db, key, &list.changed, was_expired);
            list.name_bytes += key.name.len();
        }
        is_new
    }

    fn keys(&self) -> impl Iterator<Item = &(usize, Box<[u8]>)> {
        self.0.iter().flat_map(|list| &list.keys)
    }

    /// How many keys are watched.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.keys.len())
    }

    /// True when none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when one of them has changed.
    fn have_changed(&self) -> bool {
        self.0.as_ref().is_some_and(|list| list.changed.load(Relaxed))
    }
}

/// How many watches or subscriptions are removed in one slice.
const FORGET_SLICE: usize = 512;

/// What is left of a client whose connection has ended: watches and subscriptions in shared tables.
pub struct Departed {
    handle: Arc<ClientHandle>,
    /// Of WATCH, and of an interactive transaction.
    watches: [Option<WatchList>; 2],
    subscriptions: Subscriptions,
}

/// Which shards a command needs.
enum Need {
    Some(SmallVec<[usize; 16]>),
    All,
}

impl Engine {
    /// Removes all watches, subscriptions and tracking of a client at once (RESET).
    pub fn forget(&self, client: &mut Client) {
        self.detach_all(client);
        let mut departed = self.depart(client);
        while self.forget_some(&mut departed) {}
    }

    /// Forgets a client whose connection ends, except watches and subscriptions, of which there may be many:
    /// `forget_some` removes those.
    pub fn depart(&self, client: &mut Client) -> Departed {
        self.stop_waiting(client);
        self.stop_tracking(client);
        let watches = [self.take_watches(client), self.roll_back_in_slices(client)];
        Departed { handle: client.handle.clone(), watches, subscriptions: std::mem::take(&mut client.subscriptions) }
    }

    /// Removes some of a departed client's watches and subscriptions. True when there are more.
    pub fn forget_some(&self, departed: &mut Departed) -> bool {
        for watches in &mut departed.watches {
            if let Some(list) = watches.take() {
                *watches = self.remove_watches(list, FORGET_SLICE);
            }
            if watches.is_some() {
                return true;
            }
        }
        let ended = self.pubsub.unsubscribe_some(&mut departed.subscriptions, &departed.handle, FORGET_SLICE);
        ended == FORGET_SLICE
    }

    /// UNWATCH. IMPORTANT: the caller holds no shard locks.
    pub fn unwatch(&self, client: &mut Client) {
        if let Some(list) = self.take_watches(client) {
            self.remove_watches(list, usize::MAX);
        }
    }

    /// Takes a client's watches, which are still in the tables of their shards.
    fn take_watches(&self, client: &mut Client) -> Option<WatchList> {
        let list = *client.watches.0.take()?;
        self.watches.fetch_sub(list.keys.len(), Relaxed);
        client.handle.watching.store(0, Relaxed);
        client.handle.remove_names(list.keys.len(), list.name_bytes);
        Some(list)
    }

    /// Removes watches that could not be removed while a script held the locks.
    pub(crate) fn remove_left_watches(&self) {
        let left = std::mem::take(&mut *self.left_watches.lock());
        left.into_iter().for_each(|list| {
            self.remove_watches(list, usize::MAX);
        });
    }

    /// Takes up to `count_max` watches out of the tables of their shards, and returns those that are left. Never block
    /// on a shard lock here: a long script may hold it, and the client that could SCRIPT KILL it may be on this thread.
    /// Watches in locked shards are removed when the script has ended.
    pub(crate) fn remove_watches(&self, mut list: WatchList, count_max: usize) -> Option<WatchList> {
        for _ in 0..count_max {
            let (db, name) = list.keys.pop_first()?;
            let key = Key::new(&name);
            match self.keyspace.lock_key_unless_busy(key) {
                Some(mut locked) => locked.watched_mut(key).unwatch(db, key, &list.changed),
                None => {
                    list.keys.insert((db, name));
                    self.left_watches.lock().push(list);
                    return None;
                }
            }
        }
        Some(list)
    }

    /// Ends a transaction that cannot be executed, and returns its error.
    pub(crate) fn abandon(&self, client: &mut Client, why: &CommandError) -> CommandError {
        client.transaction = None;
        client.handle.note_queued(None);
        self.unwatch(client);
        let why = why.to_string();
        let why = why.strip_prefix("ERR ").unwrap_or(&why);
        CommandError::said(format!("EXECABORT Transaction discarded because of: {why}"))
    }

    /// Executes the commands of a transaction, all under the same locks, and writes their replies as one array; null
    /// when a watched key has changed.
    pub(crate) fn run_transaction(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        transaction: &Transaction,
        reply: &mut Reply<'_>,
    ) -> Result<After, CommandError> {
        let Some(mut locked) = self.lock_for(client, transaction) else {
            return Err(self.abandon(client, &self.busy()));
        };
        let is_changed = client.watches.have_changed() || self.watched_key_expired(client, &locked, worker.now_ms);
        if is_changed {
            drop(locked);
            self.unwatch(client);
            reply.null_array();
            return Ok(After::Continue);
        }
        if let Err(error) = self.pass_batch_limit_together(&locked, client.db, transaction) {
            drop(locked);
            return Err(self.abandon(client, &error));
        }
        // Before the commands run, as in Redis: UNWATCH among them has nothing to do, and so takes no lock.
        let watches = self.take_watches(client);
        // Their waits for memory overlap.
        for (row, request) in transaction.commands() {
            row.keys(request).for_each(|key| locked.db(client.db, key).prefetch(key));
        }
        reply.array(transaction.len());
        let mut after = After::Continue;
        worker.batch.is_atomic = true;
        for (row, request) in transaction.commands() {
            let asked = self.execute_under(worker, client, row, request, reply, &mut locked);
            if matches!(asked, After::Close) {
                after = asked;
            }
        }
        worker.batch.is_atomic = false;
        self.commit(worker, Some(client), &mut locked);
        drop(locked);
        if let Some(list) = watches {
            self.remove_watches(list, usize::MAX);
        }
        Ok(after)
    }

    /// True when one of the commands reads an index.
    pub(crate) fn reads_index(&self, transaction: &Transaction) -> bool {
        let reads = |(row, request): (&'static CommandRow, Request<'_>)| {
            row.names_index() || self.any_is_index(row.key_positions(request).map(|at| request.arg(at)))
        };
        transaction.commands().any(reads)
    }

    /// The locks for all commands of a transaction, and for the keys that are watched.
    fn lock_for(&self, client: &Client, transaction: &Transaction) -> Option<Locked<'_>> {
        let mut need = Need::Some(client.watches.keys().map(|(_, name)| self.keyspace.shard_of(name)).collect());
        for (row, request) in transaction.commands() {
            let Need::Some(shards) = &mut need else { break };
            if self.any_is_index(row.key_positions(request).map(|at| request.arg(at))) {
                need = Need::All;
                break;
            }
            match row.locks(request) {
                Locks::None => {}
                Locks::Key(_) | Locks::Keys => {
                    shards.extend(row.keys(request).map(|key| self.keyspace.shard_of(key.name)))
                }
                // A script inside a transaction may touch any key.
                Locks::Everything | Locks::Walk | Locks::Declared => need = Need::All,
            }
        }
        match need {
            Need::Some(shards) => self.keyspace.lock_shards_unless_busy(shards),
            Need::All => self.keyspace.lock_all_unless_busy(),
        }
    }

    /// True when a watched key has expired but is not removed yet.
    fn watched_key_expired(&self, client: &Client, locked: &Locked<'_>, now_ms: u64) -> bool {
        let Some(list) = &client.watches.0 else { return false };
        list.keys.iter().any(|(db, name)| {
            let key = Key::new(name);
            let overdue = locked.db(*db, key).entry(key).is_some_and(|entry| Db::is_expired(entry, now_ms));
            overdue && !locked.shard(key).watched.was_expired(*db, key, &list.changed)
        })
    }
}
