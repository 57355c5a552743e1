//! Commands with an index among their keys: they lock everything, and may work in slices. Knows when an index can be
//! read; refuses to know how records are found in it (`keyspace::views::index_ref`).

use super::catalogue::is_index;
use super::on_index::OnIndex;
use crate::background_tasks::{BackgroundTask, CommandOnCopy};
use crate::call::Call;
use crate::client::Client;
use crate::command::{CommandRow, Flags, Handler, KeyFlags, Locks};
use crate::commit;
use crate::conditions;
use crate::context::After;
use crate::database_tokens::DatabaseToken;
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::expiry::keys::expire_some;
use crate::handler;
use crate::slices::{SLICE_NS, TimeSlice};
use crate::ticket::Ticket;
use crate::view::View;
use crate::waiting::waiter::WaitPhase;
use crate::waiting::{Blocked, Event};
use crate::worker::Worker;
use keyspace::{Key, Locked, Usage};
use resp::{Reply, Request};
use std::sync::Arc;

/// The most pending index changes that are applied while everything is locked: about a quarter of a millisecond, in
/// addition to the slice's own work.
const PENDING_AT_ONCE: usize = 1024;
/// The most expired keys, and hashes with expired fields, that are removed while everything is locked: about as long.
const EXPIRED_AT_ONCE: usize = 128;

/// True when one of a request's keys, whose shards are locked, is the name of an index.
#[inline]
pub fn meets_index(
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

/// Runs a command with an index among its keys, with everything locked.
#[cold]
pub fn run_on_index(engine: &Engine, call: &mut Call<'_, '_>, reply: Reply<'_>) -> CommandResult {
    let (row, request) = (call.row, call.request);
    let mut locked = match lock_for_index(engine, call.worker, call.client.db) {
        Ok(Some(locked)) => locked,
        Ok(None) => {
            call.after = After::Again;
            return Ok(());
        }
        Err(error) => {
            call.client.unfinished = None;
            return Err(error);
        }
    };
    let how = OnIndex::InSlices(TimeSlice::begin(engine));
    let result = run_on_index_under(engine, call, reply, &mut locked, how);
    let Call { client, after, .. } = call;
    let wants_copies = std::mem::take(&mut client.wants_index_copies);
    match &result {
        Ok(()) if wants_copies => {
            let token = engine.databases.take_token(&locked, client.db);
            drop(locked);
            *after = send_to_copies(engine, client, row, request, token);
        }
        Ok(()) if client.unfinished.is_some() => *after = After::Again,
        Ok(()) => {}
        Err(_) => client.unfinished = None,
    }
    // Effects do not name indexes, so a command cannot wait for one: the client gets the timeout reply.
    client.wait_phase = WaitPhase::Idle;
    result
}

/// Runs a command with an index among its keys, under locks that are already held.
#[cold]
pub fn run_on_index_under(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    reply: Reply<'_>,
    locked: &mut Locked<'_>,
    how: OnIndex<'_>,
) -> CommandResult {
    // Even if it is refused because of the index.
    call.client.depends_on = call.client.depends_on.max(locked.changed_by());
    pass_index_rules(engine, call.row, call.request)?;
    if !locked.holds_all() {
        return Err(CommandError::fixed("ERR a script that reads an index has to name it among its KEYS"));
    }
    expire_for_index(engine, call.worker, call.client.db, locked);
    call.only_key = None;
    handler::run_under(engine, call, reply, locked, how)
}

/// Refuses a command that would change an index, or read one whose backfill is not complete.
pub fn pass_index_rules(engine: &Engine, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    let indexes = engine.indexes.list();
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

/// Sends a command to the background thread, which runs it on copies of its indexes.
fn send_to_copies(
    engine: &Engine,
    client: &Client,
    row: &'static CommandRow,
    request: Request<'_>,
    token: DatabaseToken,
) -> After {
    let ticket = Arc::new(Ticket::default());
    engine.background_tasks.send(BackgroundTask::OnCopy(CommandOnCopy {
        row,
        request: request.iter().collect(),
        db: client.db,
        token,
        protocol: client.protocol,
        output_bytes_max: client.output_bytes_max,
        reply_bytes_max: client.reply_bytes_max,
        no_touch: client.no_touch,
        tracker: client.tracker.clone(),
        caching: client.caching,
        ticket: ticket.clone(),
        handle: client.handle.clone(),
    }));
    After::Block(Blocked { until_ms: None, event: Event::Background(ticket), silent: false })
}

/// Locks everything in order to read an index of a database. If there is too much to expire, or too many pending index
/// changes, does a slice of that work instead, one shard at a time, and returns `None`: yield, then call again.
pub fn lock_for_index<'e>(
    engine: &'e Engine,
    worker: &mut Worker,
    db: usize,
) -> Result<Option<Locked<'e>>, CommandError> {
    let locked = engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?;
    let now_ms = worker.now_ms;
    let overdue =
        if conditions::may_expire(engine) { locked.expired_up_to(db, now_ms, EXPIRED_AT_ONCE + 1) } else { 0 };
    if locked.pending_changes(db) <= PENDING_AT_ONCE && overdue <= EXPIRED_AT_ONCE {
        return Ok(Some(locked));
    }
    drop(locked);
    let until_ns = engine.clock.monotonic_ns() + SLICE_NS;
    // From the last shard to the first, for the same reason as in `backfill_index`.
    for shard in (0..engine.keyspace.shard_count()).rev() {
        let mut is_over = false;
        while overdue > 0 && !is_over && expire_some(engine, shard, worker) {
            is_over = engine.clock.monotonic_ns() >= until_ns;
        }
        let mut locked = engine.keyspace.lock_shard_unless_busy(shard).ok_or_else(|| conditions::busy(engine))?;
        // IMPORTANT: check the time only after real work, or a slice could end before it reaches a shard that has
        // any.
        if locked.pending_changes(db) > 0 {
            locked.apply_pending(db);
            locked.release_fairly();
            is_over |= engine.clock.monotonic_ns() >= until_ns;
        }
        if is_over {
            break;
        }
    }
    Ok(None)
}

/// True when a transaction or script may read indexes of a database without blocking others for long: see
/// [`lock_for_index`].
pub fn is_ready_for_index(engine: &Engine, worker: &mut Worker, db: usize) -> Result<bool, CommandError> {
    Ok(lock_for_index(engine, worker, db)?.is_some())
}

/// Removes expired keys and fields, so that no index contains them, and applies pending index changes. Everything is
/// locked.
pub fn expire_for_index(engine: &Engine, worker: &mut Worker, db: usize, locked: &mut Locked<'_>) {
    if !conditions::may_expire(engine) {
        return locked.apply_pending(db);
    }
    let events = conditions::published_events(engine, Handler::Container);
    let mut view = View::new(locked.lend(), db, worker.now_ms, Usage::Time, &worker.metrics.stats).without_touching();
    view.notify_through(&worker.batch.notifications, events);
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    keys.expire_everything();
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, None, locked);
    engine.free(garbage);
    locked.apply_pending(db);
}

impl CommandRow {
    /// True when it reads an index that an argument names, which is not one of its keys.
    pub fn names_index(&self) -> bool {
        self.command.flags.has(Flags::READS_INDEXES) && matches!(self.command.handler, Handler::Script(_))
    }

    /// True when a key that is used with these flags may not be an index. WATCH accepts none: no effect describes
    /// changes of an index.
    fn refuses_index(&self, flags: KeyFlags) -> bool {
        let may_be = !flags.writes() && self.command.flags.has(Flags::READS_INDEXES);
        matches!(self.command.handler, Handler::Write(_)) && !may_be
    }
}
