//! Indexes of records: creation, backfill, removal, and what commands may do with an index as a key. Knows when an
//! index is complete; refuses to know how records are found in it (`keyspace::views::index_ref`).
//!
//! Every write updates a new index from the moment it is known; existing records are backfilled a few at a time while
//! commands go on. Write or backfill, the first to reach a record adds it, so none is missed and none is there twice.
//! The index can be read, and is in the journal, once the backfill is complete.

use crate::clients::ticket::Ticket;
use crate::error::{CommandError, CommandResult};
use crate::execution::background_tasks::{CommandOnCopy, Task};
use crate::execution::client::Client;
use crate::execution::command::{CommandRow, Flags, Handler, KeyFlags, Locks};
use crate::execution::context::After;
use crate::execution::engine::Engine;
use crate::execution::recorder::Recorder;
use crate::execution::view::View;
use crate::execution::waiting::waiter::WaitPhase;
use crate::execution::waiting::{Blocked, Event};
use crate::execution::worker::Worker;
use keyspace::DATABASES;
use keyspace::db::Db;
use keyspace::index::{Definition, INDEXES_MAX, Index, Indexes};
use keyspace::shard::Shard;
use keyspace::{Definable, Effect, Key, Locked, Usage};
use resp::{Reply, Request};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Records visited under one lock during a backfill: about a hundred microseconds.
const RECORDS_PER_LOCK: usize = 256;

/// The most pending index changes that are applied while everything is locked: about a quarter of a millisecond, which
/// a slice has beside its own work.
const PENDING_AT_ONCE: usize = 1024;
/// The most expired keys, and hashes with expired fields, that are removed while everything is locked: about as long.
const EXPIRED_AT_ONCE: usize = 128;
/// How long a command that works in slices keeps its thread, and the locks, at a time. A request of another client may
/// have to wait for two of them: for the one during which it arrives, and for the one before replies are sent.
pub(crate) const SLICE_NS: u64 = 250_000;
/// Records looked at between two looks at the clock.
pub(crate) const RECORDS_PER_LOOK: usize = 32;

/// The most elements that a command which does not work in slices walks over while everything is locked: about as long.
const WALK_MAX: usize = 512;

/// Left in `Client::unfinished` by a command that would walk over more: it is to run on copies of its indexes.
pub(crate) struct CopyWanted;

/// A command under whose locks an index may be read.
#[derive(Clone, Copy)]
pub(crate) enum OnIndex<'a> {
    /// None of its keys is an index.
    No,
    /// None of its keys is an index, and no other command shares its locks.
    NoneAlone,
    /// In a transaction or script, which holds its locks anyway: all is read at once.
    AtOnce,
    /// It may leave what does not fit into this slice for the next.
    InSlices(Slice<'a>),
    /// It reads copies of the indexes, and holds only the locks of its own keys.
    OnCopies(&'a Shard),
}

impl<'a> OnIndex<'a> {
    pub(crate) fn slice(self) -> Option<Slice<'a>> {
        match self {
            OnIndex::InSlices(slice) => Some(slice),
            OnIndex::No | OnIndex::NoneAlone | OnIndex::AtOnce | OnIndex::OnCopies(_) => None,
        }
    }

    /// Shows the command's keys as it reads them.
    pub(crate) fn view(self, mut view: View<'a>, engine: &Engine) -> View<'a> {
        match self {
            OnIndex::No | OnIndex::NoneAlone => view,
            OnIndex::AtOnce => view.with_indexes(),
            OnIndex::InSlices(_) => {
                if engine.background_tasks.is_served() {
                    view.walk_max = WALK_MAX;
                }
                view.with_indexes()
            }
            OnIndex::OnCopies(copies) => view.with_index_copies(copies),
        }
    }
}

/// A command's share of its thread, after which others have theirs.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    engine: &'a Engine,
    until_ns: u64,
}

impl<'a> Slice<'a> {
    pub(crate) fn begin(engine: &'a Engine) -> Slice<'a> {
        Slice { engine, until_ns: engine.clock.monotonic_ns() + SLICE_NS }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.engine.clock.monotonic_ns() >= self.until_ns
    }

    /// Leaves what takes long to free to another thread.
    pub(crate) fn free(&self, large: impl Send + 'static) {
        self.engine.free(vec![Box::new(large)]);
    }
}

/// What a start reports about indexes.
#[derive(Debug, Default)]
pub struct RevivedIndexes {
    /// Indexes of the configuration that a client has dropped.
    pub notes: Vec<String>,
    /// Indexes that the configuration defines in another way than a client has.
    pub conflicts: Vec<String>,
    /// Which cannot be made.
    pub failures: Vec<String>,
}

impl Engine {
    /// All indexes that there are now.
    pub fn indexes(&self) -> Indexes {
        self.indexes.read().clone()
    }

    /// True when there is an index.
    pub(crate) fn has_indexes(&self) -> bool {
        !self.indexes.read().is_empty()
    }

    /// True when one of these names is an index.
    pub(crate) fn any_is_index<'n>(&self, mut names: impl Iterator<Item = &'n [u8]>) -> bool {
        let indexes = self.indexes.read();
        !indexes.is_empty() && names.any(|name| indexes.position(name).is_some())
    }

    /// After a start: builds the indexes that clients have created, and those of the configuration whose names no
    /// client has created or dropped, from the recovered records.
    ///
    /// Acknowledged commands win: a client's definition, or its drop, takes precedence over the configuration.
    pub fn revive_indexes(&self, configured: &[(Vec<u8>, Definition)]) -> RevivedIndexes {
        let mut locked = self.keyspace.lock_all();
        let mut revived = RevivedIndexes::default();
        let decided: BTreeMap<Vec<u8>, Option<Vec<u8>>> = locked
            .definitions()
            .indexes()
            .map(|(name, definition)| (name.to_vec(), definition.map(<[u8]>::to_vec)))
            .collect();
        let mut made: Vec<(Vec<u8>, Definition)> = Vec::new();
        for (name, definition) in &decided {
            let Some(bytes) = definition else { continue };
            match Definition::decode(bytes) {
                Some(definition) => made.push((name.clone(), definition)),
                None => revived
                    .failures
                    .push(format!("the definition of the index '{}' is of another version", name.escape_ascii())),
            }
        }
        let decided_count = made.len();
        for (name, definition) in configured {
            let said = name.escape_ascii();
            match decided.get(name) {
                Some(None) => revived.notes.push(format!(
                    "the index '{said}' of the configuration is not made: a client has dropped it with IDX.DROP"
                )),
                Some(Some(_)) => {
                    let kept = made.iter().find(|(other, kept)| other == name && kept != definition);
                    revived.conflicts.extend(kept.map(|(_, kept)| {
                        format!(
                            "the index '{said}' has two definitions: a client has made it with {kept}, which holds; the \
                             configuration says {definition}. To have the latter, drop the index, or change the \
                             configuration"
                        )
                    }));
                }
                None if self.any_has(&locked, Key::new(name)) => revived.failures.push(format!(
                    "the index '{said}' of the configuration cannot be made: there is a key of that name"
                )),
                None if made.len() >= INDEXES_MAX => revived.failures.push(format!(
                    "the index '{said}' of the configuration cannot be made: there are {INDEXES_MAX} others"
                )),
                None => made.push((name.clone(), definition.clone())),
            }
        }
        // Indexes of the configuration are listed first.
        made.rotate_left(decided_count);
        let indexes = made.into_iter().fold(Indexes::default(), |indexes, (name, definition)| {
            indexes.with(Arc::new(Index::new(&name, definition)))
        });
        locked.set_indexes(&indexes);
        for (at, index) in indexes.iter().enumerate() {
            locked.build_index(at);
            index.set_built();
        }
        *self.indexes.write() = indexes;
        *self.configured_indexes.write() = configured.iter().map(|(name, _)| name.clone()).collect();
        self.note_stamping();
        revived
    }

    /// True when a key is there in any database.
    fn any_has(&self, locked: &Locked<'_>, key: Key<'_>) -> bool {
        let now_ms = self.clock.unix_us() / 1000;
        (0..DATABASES).any(|db| locked.db(db, key).entry(key).is_some_and(|entry| !Db::is_expired(entry, now_ms)))
    }

    /// Notes whether writes have to look for records to stamp.
    fn note_stamping(&self) {
        let stamps = self.indexes.read().iter().any(|index| index.definition.stamp);
        self.stamps.store(stamps, Relaxed);
    }

    /// Checks that an index of that name can be created. Everything is locked.
    pub(crate) fn pass_index_limits(&self, locked: &Locked<'_>, name: &[u8]) -> CommandResult {
        let indexes = self.indexes();
        let taken = match indexes.position(name).is_some() {
            true => Some("an index"),
            false => self.any_has(locked, Key::new(name)).then_some("a key"),
        };
        if let Some(taken) = taken {
            let name = name.escape_ascii();
            return Err(CommandError::said(format!("ERR the name '{name}' is taken by {taken}")));
        }
        if indexes.iter().len() >= INDEXES_MAX {
            let text = format!("ERR there are {INDEXES_MAX} indexes, and every write looks at each: drop one first");
            return Err(CommandError::said(text));
        }
        Ok(())
    }

    /// Registers a new index, to be backfilled. Everything is locked.
    pub(crate) fn begin_index(
        &self,
        locked: &mut Locked<'_>,
        name: &[u8],
        definition: Definition,
    ) -> Result<Arc<Index>, CommandError> {
        self.pass_index_limits(locked, name)?;
        let index = Arc::new(Index::new(name, definition));
        self.set_indexes(locked, self.indexes().with(index.clone()));
        Ok(index)
    }

    /// Sets the indexes. Everything is locked.
    fn set_indexes(&self, locked: &mut Locked<'_>, indexes: Indexes) {
        locked.set_indexes(&indexes);
        *self.indexes.write() = indexes.clone();
        // IMPORTANT: after that. A client that is about to wait looks whether its index is still there.
        self.record_waiters.keep_only(&indexes);
        self.note_stamping();
    }

    /// Applies the definition of an index to the live catalogue: creates or drops it. Everything is locked. On the
    /// server that ran the backfill, the index is complete already; elsewhere it is built here.
    pub(crate) fn define_index(&self, locked: &mut Locked<'_>, name: &[u8], definition: Option<&[u8]>) {
        let (indexes, key) = (self.indexes(), Key::new(name));
        let Some(definition) = definition.and_then(Definition::decode) else {
            if indexes.position(name).is_some() {
                self.set_indexes(locked, indexes.without(name));
            }
            return;
        };
        let index = match indexes.find(name) {
            Some(known) if known.definition == definition => known.clone(),
            _ => {
                let index = Arc::new(Index::new(name, definition));
                let indexes = indexes.without(name).with(index.clone());
                let at = indexes.position(name).expect("it was just added");
                self.set_indexes(locked, indexes);
                locked.build_index(at);
                index
            }
        };
        index.set_built();
        // For clients that WATCH the name, a key now exists.
        (0..DATABASES).for_each(|db| locked.watched_mut(key).changed(db, key, false));
    }

    /// Backfills an index while commands go on, then records it. Returns the sequence number of its batch.
    pub(crate) fn backfill_index(&self, worker: &mut Worker, index: &Arc<Index>) -> Result<u64, CommandError> {
        // IMPORTANT: from the last shard to the first. A thread that locks all shards begins at the first; in that
        // order it would follow us from shard to shard, holding all shards behind us.
        for shard in (0..self.keyspace.shard_count()).rev() {
            let mut from = Some(0);
            while let Some(position) = from {
                let mut locked = self.keyspace.lock_shard(shard);
                from = locked.index_some(position, RECORDS_PER_LOCK);
                // Waiting threads get the lock next.
                locked.release_fairly();
            }
        }
        let mut locked = self.keyspace.lock_all();
        if !self.indexes().iter().any(|known| Arc::ptr_eq(known, index)) {
            return Err(CommandError::fixed("ERR the index was dropped before it was complete"));
        }
        let usage = Usage::Time;
        let view = View::new(locked.lend(), 0, worker.now_ms, usage, &worker.books.stats);
        let mut keys = view.into_recorder(self, &mut worker.batch.effects);
        self.finish_index(&mut keys, index);
        keys.finish();
        Ok(self.commit(worker, None, &mut locked).unwrap_or(0))
    }

    /// An index is full. Everything is locked.
    pub(crate) fn finish_index(&self, keys: &mut Recorder<'_>, index: &Arc<Index>) {
        keys.record(&Effect::Define {
            what: Definable::Index,
            name: &index.name,
            definition: &index.definition.encode(),
        });
    }

    /// Drops an index. Everything is locked. False when there was none.
    pub(crate) fn drop_index(&self, keys: &mut Recorder<'_>, name: &[u8]) -> bool {
        let indexes = self.indexes();
        if indexes.position(name).is_none() {
            return false;
        }
        // Read before the effect is applied, which takes locks of its own.
        let is_configured = self.configured_indexes.read().contains(name);
        match is_configured {
            // Or the next start would make it again.
            true => keys.record(&Effect::Define { what: Definable::Index, name, definition: b"" }),
            false => keys.record(&Effect::Undefine { what: Definable::Index, name }),
        };
        true
    }

    /// True when one of a request's keys, whose shards are locked, is the name of an index.
    #[inline]
    pub(crate) fn meets_index(
        &self,
        locked: &Locked<'_>,
        db: usize,
        row: &'static CommandRow,
        request: Request<'_>,
        first_key: Option<(usize, Key<'_>)>,
    ) -> bool {
        if let Some((_, key)) = first_key {
            return locked.db(db, key).indexes().position(key.name).is_some();
        }
        if row.command.keys.locks != Locks::Keys {
            return false;
        }
        let Some((_, shard)) = locked.shards().next() else { return false };
        let indexes = shard.db(db).indexes();
        !indexes.is_empty() && row.key_positions(request).any(|at| indexes.position(request.arg(at)).is_some())
    }

    /// Runs a command one of whose keys is an index, with everything locked.
    #[cold]
    pub(crate) fn run_on_index(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        reply: Reply<'_>,
        after: &mut After,
    ) -> CommandResult {
        let mut locked = match self.lock_for_index(worker, client.db) {
            Ok(Some(locked)) => locked,
            Ok(None) => {
                *after = After::Again;
                return Ok(());
            }
            Err(error) => {
                client.unfinished = None;
                return Err(error);
            }
        };
        let how = OnIndex::InSlices(Slice::begin(self));
        let result = self.run_on_index_under(worker, client, row, request, reply, &mut locked, how);
        drop(locked);
        match &result {
            Ok(()) if client.unfinished.as_ref().is_some_and(|unfinished| unfinished.is::<CopyWanted>()) => {
                client.unfinished = None;
                *after = self.send_to_copies(client, row, request);
            }
            Ok(()) if client.unfinished.is_some() => *after = After::Again,
            Ok(()) => {}
            Err(_) => client.unfinished = None,
        }
        // No effect tells of an index, so nothing can wait for one: the reply of a timeout stands.
        client.wait_phase = WaitPhase::Idle;
        result
    }

    /// Runs a command one of whose keys is an index, under locks that are already held.
    #[cold]
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    pub(crate) fn run_on_index_under(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        reply: Reply<'_>,
        locked: &mut Locked<'_>,
        how: OnIndex<'_>,
    ) -> CommandResult {
        self.pass_index_rules(row, request)?;
        if !locked.holds_all() {
            return Err(CommandError::fixed("ERR a script that reads an index has to name it among its KEYS"));
        }
        self.expire_for_index(worker, client.db, locked);
        self.run_under(worker, client, row, request, reply, locked, None, how)
    }

    /// Refuses a command that would change an index, or read one that is not complete.
    pub(crate) fn pass_index_rules(&self, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
        let indexes = self.indexes();
        let found = row.found_keys(request);
        let keys = || found.ranges.iter().flat_map(|range| range.positions().map(|at| (request.arg(at), range.flags)));
        let met = || keys().filter_map(|(name, flags)| indexes.find(name).map(|index| (index, flags)));
        if let Some((index, _)) = met().find(|(_, flags)| row.refuses_index(*flags)) {
            return Err(is_index(&index.name));
        }
        match met().find(|(index, _)| !index.is_built()) {
            Some((index, _)) => {
                let name = index.name.escape_ascii();
                Err(CommandError::said(format!("ERR the index '{name}' is not complete yet")))
            }
            None => Ok(()),
        }
    }

    /// Leaves a command to the background thread, which runs it on copies of its indexes.
    fn send_to_copies(&self, client: &Client, row: &'static CommandRow, request: Request<'_>) -> After {
        let ticket = Arc::new(Ticket::default());
        self.background_tasks.send(Task::OnCopy(CommandOnCopy {
            row,
            request: request.iter().collect(),
            db: client.db,
            protocol: client.protocol,
            output_bytes_max: client.output_bytes_max,
            no_touch: client.no_touch,
            tracker: client.tracker.clone(),
            caching: client.caching,
            ticket: ticket.clone(),
            handle: client.handle.clone(),
        }));
        After::Block(Blocked { until_ms: None, event: Event::Background(ticket), silent: false })
    }

    /// Locks everything, to read an index of a database. If there is too much to expire or too many pending index
    /// changes, does a slice of that work instead, a shard at a time, and returns `None`: yield, then call again.
    pub(crate) fn lock_for_index(&self, worker: &mut Worker, db: usize) -> Result<Option<Locked<'_>>, CommandError> {
        let locked = self.keyspace.lock_all_unless_busy().ok_or_else(|| self.busy())?;
        let now_ms = worker.now_ms;
        let overdue = if self.may_expire() { locked.expired_up_to(db, now_ms, EXPIRED_AT_ONCE + 1) } else { 0 };
        if locked.pending_changes(db) <= PENDING_AT_ONCE && overdue <= EXPIRED_AT_ONCE {
            return Ok(Some(locked));
        }
        drop(locked);
        let until_ns = self.clock.monotonic_ns() + SLICE_NS;
        // From the last to the first, for the same reason as in `backfill_index`.
        for shard in (0..self.keyspace.shard_count()).rev() {
            let mut is_over = false;
            while overdue > 0 && !is_over && self.expire_some(shard, worker) {
                is_over = self.clock.monotonic_ns() >= until_ns;
            }
            let mut locked = self.keyspace.lock_shard_unless_busy(shard).ok_or_else(|| self.busy())?;
            // IMPORTANT: check the time only after real work, or a slice could end before it reaches a shard that has
            // any.
            if locked.pending_changes(db) > 0 {
                locked.apply_pending(db);
                locked.release_fairly();
                is_over |= self.clock.monotonic_ns() >= until_ns;
            }
            if is_over {
                break;
            }
        }
        Ok(None)
    }

    /// True when a transaction or script may read indexes of a database without blocking others for long: see
    /// [`Engine::lock_for_index`].
    pub(crate) fn is_ready_for_index(&self, worker: &mut Worker, db: usize) -> Result<bool, CommandError> {
        Ok(self.lock_for_index(worker, db)?.is_some())
    }

    /// Removes expired keys and fields, so that no index has them, and applies pending index changes. Everything is
    /// locked.
    pub(crate) fn expire_for_index(&self, worker: &mut Worker, db: usize, locked: &mut Locked<'_>) {
        if !self.may_expire() {
            return locked.apply_pending(db);
        }
        let events = self.published_events(Handler::Container);
        let mut view = View::new(locked.lend(), db, worker.now_ms, Usage::Time, &worker.books.stats).without_touching();
        view.notify_through(&worker.batch.notifications, events);
        let mut keys = view.into_recorder(self, &mut worker.batch.effects);
        keys.expire_everything();
        let garbage = keys.finish().take_garbage();
        self.commit(worker, None, locked);
        self.free(garbage);
        locked.apply_pending(db);
    }
}

/// The error for commands that would change an index.
pub(crate) fn is_index(name: &[u8]) -> CommandError {
    let name = name.escape_ascii();
    CommandError::said(format!(
        "ERR '{name}' is an index: it changes with its records, and no command changes or watches it"
    ))
}

impl CommandRow {
    /// True when it reads an index that is not one of its keys, but named by an argument.
    pub(crate) fn names_index(&self) -> bool {
        self.command.flags.has(Flags::READS_INDEXES) && matches!(self.command.handler, Handler::Script(_))
    }

    /// True when a key that is used with these flags may not be an index. WATCH accepts none: no effect describes
    /// changes of an index.
    fn refuses_index(&self, flags: KeyFlags) -> bool {
        let may_be = !flags.writes() && self.command.flags.has(Flags::READS_INDEXES);
        matches!(self.command.handler, Handler::Write(_)) && !may_be
    }
}
