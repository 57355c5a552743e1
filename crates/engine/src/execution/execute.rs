//! Executes requests: finds the row, passes the gates, dispatches. Knows nothing of sockets; the connection calls
//! `execute`.

use super::engine::Engine;
use super::worker::Worker;
use crate::error::CommandError;
use crate::execution::client::{Client, ReplyMode};
use crate::execution::client_eviction::GROWN_BYTES;
use crate::execution::command::{CommandRow, Flags, Handler, KeyRange, Locks, registry};
use crate::execution::commit::PendingBatch;
use crate::execution::context::After;
use crate::execution::waiting::{Blocked, Event};
use crate::panics;
use keyspace::locked::{BATCH_MAX, Batch};
use keyspace::{Key, Keyspace, Locked};
use resp::{Reply, Request};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// What the connection does after a request.
pub enum Flow {
    /// Goes on with the next request.
    Continue,
    /// Send the pending output, then close the connection.
    Close,
    /// Waits, with nothing replied yet.
    Block(Blocked),
    /// Keep the request and try again at this time (unix ms), or when woken.
    Paused(u64),
    /// Keep the request, yield to other connections, then execute it again to continue.
    Again,
}

/// What is known of the next requests, and locks taken ahead for them: see [`Engine::look_ahead`].
#[derive(Default)]
pub struct Ahead<'e> {
    batch: Option<Batch<'e>>,
    /// The rows of the next requests, as far as they were looked at; the last first.
    rows: SmallVec<[&'static CommandRow; BATCH_MAX]>,
}

impl<'e> Ahead<'e> {
    /// The shard of a key: lent if it is held, otherwise locked after all held locks are released.
    #[inline]
    pub(crate) fn lock_key<'s>(&'s mut self, keyspace: &'s Keyspace, key: Key<'_>) -> Option<Locked<'s>> {
        if !self.batch.as_ref().is_some_and(|batch| batch.holds(key)) {
            self.release();
        }
        match &mut self.batch {
            Some(batch) => Some(batch.lend(key)),
            None => keyspace.lock_key_unless_busy(key),
        }
    }

    /// The shards of several keys, likewise.
    pub(crate) fn lock_keys<'s>(&'s mut self, keyspace: &'s Keyspace, keys: &[Key<'_>]) -> Option<Locked<'s>> {
        if !self.batch.as_ref().is_some_and(|batch| keys.iter().all(|key| batch.holds(*key))) {
            self.release();
        }
        match &mut self.batch {
            Some(batch) => Some(batch.lend_keys(keys)),
            None => keyspace.lock_keys_unless_busy(keys.iter().copied()),
        }
    }

    /// Releases all locks: before a command that takes others, or that takes long.
    pub(crate) fn release(&mut self) {
        self.batch = None;
    }
}

impl Engine {
    /// Prepares to execute several pipelined requests: for those that touch one key each or two, takes the locks and
    /// prefetches the entries. Pass the result to [`Engine::execute_ahead`] with each request.
    pub fn look_ahead<'r>(&self, client: &Client, requests: impl Iterator<Item = Request<'r>>) -> Ahead<'_> {
        let mut keys: SmallVec<[Key<'r>; BATCH_MAX]> = SmallVec::new();
        let mut rows: SmallVec<[&'static CommandRow; BATCH_MAX]> = SmallVec::new();
        if client.transaction.is_some() {
            return Ahead::default();
        }
        let (mut is_interactive, mut has_objects) = (client.interactive.is_some(), false);
        let mut last = client.last_command;
        for request in requests.take(BATCH_MAX) {
            let Ok(row) = self.find_after(last, request) else { break };
            rows.push(row);
            last = Some(row);
            has_objects |= !row.values_are_inline;
            match row.command.keys.locks {
                Locks::Key(at) => keys.push(Key::new(request.arg(usize::from(at)))),
                Locks::Declared if let Some(behind) = row.command.calls_behind => {
                    // The key of what is called, if that is what was called before; that of the session was just used.
                    let called = request.skip(usize::from(behind));
                    let key = client.last_called.filter(|last| last.is_plainly(called));
                    match key.and_then(|last| last.only_key(called)) {
                        Some((_, key)) => keys.push(key),
                        None => break,
                    }
                }
                Locks::Declared => match row.found_keys(request).ranges[..] {
                    [KeyRange { first, last, .. }] if first == last => {
                        keys.push(Key::new(request.arg(first as usize)));
                    }
                    _ => break,
                },
                Locks::Keys if row.command.reaches_beyond.is_none() => match row.found_keys(request).ranges[..] {
                    [one, other] if one.first == one.last && other.first == other.last => {
                        let [one, other] = [one, other].map(|range| Key::new(request.arg(range.first as usize)));
                        let is_one = one.name == other.name;
                        if keys.len() + if is_one { 1 } else { 2 } > BATCH_MAX {
                            break;
                        }
                        keys.push(one);
                        if !is_one {
                            keys.push(other);
                        }
                    }
                    _ => break,
                },
                Locks::None if row.command.flags.has(Flags::BEGINS_TXN) => is_interactive = true,
                // Another transaction may follow.
                Locks::None if is_interactive && row.command.flags.has(Flags::ENDS_TXN) => {}
                _ => break,
            }
        }
        rows.reverse();
        let mut batch = (keys.len() > 1).then(|| self.keyspace.lock_batch(client.db, &keys, has_objects));
        if is_interactive {
            // The commands of an interactive transaction take locks as they need them: their entries are prefetched only.
            batch = None;
        }
        Ahead { batch, rows }
    }

    /// Executes one request to its end, without yielding. For callers that serve no other clients.
    pub fn execute_to_end(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        request: Request<'_>,
        out: &mut Vec<u8>,
    ) -> Flow {
        loop {
            match self.execute(worker, client, request, out) {
                Flow::Again => {
                    // Others may want the locks.
                    std::thread::yield_now();
                    self.begin(worker);
                }
                flow => return flow,
            }
        }
    }

    /// Executes one request of a client and appends its reply to `out`.
    #[inline]
    pub fn execute(&self, worker: &mut Worker, client: &mut Client, request: Request<'_>, out: &mut Vec<u8>) -> Flow {
        self.execute_ahead(worker, client, request, out, &mut Ahead::default())
    }

    /// Executes one request, with locks that [`Engine::look_ahead`] may have taken for it.
    #[inline]
    pub fn execute_ahead(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        request: Request<'_>,
        out: &mut Vec<u8>,
        ahead: &mut Ahead<'_>,
    ) -> Flow {
        let reply_at = out.len();
        let depended_on = client.depends_on;
        let found = match ahead.rows.pop() {
            Some(row) => Ok(row),
            None => self.find(client, request),
        };
        if let Ok(row) = found
            && let Some(until_ms) = self.pause.holds(|| self.may_write(client, row, request), worker.monotonic_ms())
            && !row.command.flags.has(Flags::PAUSE_EXEMPT)
            && self.gates(client, row, request).is_ok()
        {
            client.handle.last_command.store(row.index as u32 + 1, Relaxed);
            self.pause.wait(&client.handle);
            return Flow::Paused(until_ms);
        }
        client.handle.note_active(worker.last_ns);
        if let Ok(row) = found {
            self.make_room(worker, row, ahead);
        }
        let mut after = After::Continue;
        match found {
            ref found if client.interactive.is_some() => {
                self.run_interactive(worker, client, found.clone(), request, out, &mut after, ahead);
            }
            Ok(row) if client.transaction.is_some() && !row.command.flags.has(Flags::NOT_QUEUED) => {
                client.last_command = Some(row);
                self.queue(worker, client, row, request, out);
            }
            Ok(row) => {
                client.last_command = Some(row);
                client.handle.last_command.store(row.index as u32 + 1, Relaxed);
                self.run(worker, client, row, request, out, &mut after, ahead);
            }
            Err(_) if is_http(request) => after = After::Close,
            Err(ref error) => {
                count_rejected(worker, request);
                let ends_queue = |row: &CommandRow| row.command.flags.has(Flags::ENDS_QUEUE);
                if self.registry.find(request.arg(0)).is_some_and(ends_queue) {
                    // IMPORTANT: it takes locks.
                    ahead.release();
                    let error = self.abandon(client, error);
                    self.fail(worker, client, out, reply_at, &error);
                } else {
                    if let Some(transaction) = &mut client.transaction {
                        transaction.failed = true;
                    }
                    self.fail(worker, client, out, reply_at, error);
                }
            }
        }
        if matches!(after, After::Again) {
            out.truncate(reply_at);
            return Flow::Again;
        }
        if self.is_restricted() && client.depends_on > depended_on {
            self.hide_unpersisted(worker, client, out, reply_at, depended_on);
        }
        if client.caching
            && client.transaction.is_none()
            && !found.as_ref().is_ok_and(|row| row.command.flags.has(Flags::KEEPS_CACHING))
        {
            // It was for this command, or for this transaction.
            client.caching = false;
        }
        match client.reply_mode {
            ReplyMode::On => {}
            // A subscription message is not a reply, even if it looks like one in RESP2.
            ReplyMode::Off | ReplyMode::Skipping
                if found.as_ref().is_ok_and(|row| row.command.flags.has(Flags::SENDS_MESSAGES))
                    && out.get(reply_at).is_none_or(|byte| *byte != b'-') => {}
            ReplyMode::Off => silence(out, reply_at, &mut after),
            ReplyMode::SkipNext => client.reply_mode = ReplyMode::Skipping,
            ReplyMode::Skipping => {
                silence(out, reply_at, &mut after);
                client.reply_mode = ReplyMode::On;
            }
        }
        if self.has_deferred() {
            // IMPORTANT: it takes locks.
            ahead.release();
            self.serve_deferred(worker);
        }
        match after {
            After::Continue => Flow::Continue,
            After::Close => Flow::Close,
            After::Again => Flow::Again,
            After::Block(blocked) => {
                // IMPORTANT: the end of a wait takes locks.
                ahead.release();
                // CLIENT UNBLOCK cannot end a wait for a script. A wait for a key has already begun, under its locks.
                if !matches!(blocked.event, Event::Background(_) | Event::Value) {
                    client.handle.wait_state.begin(0);
                }
                Flow::Block(blocked)
            }
        }
    }

    /// While the journal has failed, refuses replies that depend on a batch it has not persisted: a restart would bring
    /// back the older state. IMPORTANT: a reply that depends on nothing newer is sent, and the connection stays open.
    #[cold]
    fn hide_unpersisted(
        &self,
        worker: &Worker,
        client: &mut Client,
        out: &mut Vec<u8>,
        reply_at: usize,
        depended_on: u64,
    ) {
        let limit = self.persistence.readable(client.waits_for_disk(&self.settings));
        if limit.is_some_and(|limit| client.depends_on > limit && client.last_batch <= limit) {
            client.depends_on = depended_on;
            self.fail(worker, client, out, reply_at, &self.refusal());
        }
    }

    /// Keeps a command for EXEC.
    pub(super) fn queue(
        &self,
        worker: &Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
    ) {
        let refused = match self.gates(client, row, request) {
            Ok(()) if row.command.flags.has(Flags::NO_MULTI) => {
                Some(CommandError::fixed("ERR Command not allowed inside a transaction"))
            }
            gates => gates.err(),
        };
        let bytes_max = self.settings.client_query_buffer_limit();
        let transaction = client.transaction.as_mut().expect("only commands of a transaction are queued");
        let before = transaction.bytes();
        let refused = refused.or_else(|| transaction.push(row, request, bytes_max).err());
        client.handle.note_queued(Some((transaction.len(), transaction.bytes())));
        let has_grown = transaction.bytes() / GROWN_BYTES > before / GROWN_BYTES;
        match refused {
            None => Reply::new(out, client.protocol).simple("QUEUED"),
            Some(error) => {
                transaction.failed = true;
                worker.books.stats.commands[row.index].rejected.add(1);
                self.fail(worker, client, out, out.len(), &error);
            }
        }
        if has_grown {
            self.evict_clients();
        }
    }

    /// The row of a request's command, once it has passed the gates that do not depend on state.
    #[inline]
    pub(super) fn find(&self, client: &Client, request: Request<'_>) -> Result<&'static CommandRow, CommandError> {
        self.find_after(client.last_command, request)
    }

    /// The same, of a request that follows that command.
    #[inline]
    fn find_after(
        &self,
        last: Option<&'static CommandRow>,
        request: Request<'_>,
    ) -> Result<&'static CommandRow, CommandError> {
        let name = request.arg(0);
        let row = match last {
            // A pipeline repeats itself: comparing with the last command is cheaper than looking it up.
            Some(last) if last.name_args == 1 && last.is_named(name) => last,
            _ => match self.registry.find(name) {
                Some(row) => row,
                None => return Err(unknown_command(request)),
            },
        };
        let row = match row.subcommands.is_empty() {
            true => row,
            false => subcommand(row, request)?,
        };
        if !row.accepts(request.len()) {
            return Err(CommandError::WrongArity(row.full_name.as_str().into()));
        }
        Ok(row)
    }

    #[inline]
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    pub(super) fn run(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
        after: &mut After,
        ahead: &mut Ahead<'_>,
    ) {
        let reply_at = out.len();
        let counters_at = row.index;
        // A request that has already run a slice is not refused: it may have changed something.
        if client.unfinished.is_none()
            && let Err(error) = self.gates(client, row, request)
        {
            worker.books.stats.commands[counters_at].rejected.add(1);
            let error = match row.command.flags.has(Flags::ENDS_QUEUE) {
                // IMPORTANT: it takes locks.
                true => {
                    ahead.release();
                    self.abandon(client, &error)
                }
                false => error,
            };
            return self.fail(worker, client, out, reply_at, &error);
        }
        worker.secrets.clear();
        let result = match row.command.handler {
            Handler::Server(_) | Handler::Script(_) => {
                let (db, protocol) = (client.db, client.protocol);
                let result = panics::catch(|| self.dispatch(worker, client, row, request, out, after, ahead));
                if result == Err(CommandError::Internal) {
                    forget_command(worker, client, after);
                    // A script has its own while it runs.
                    (client.db, client.protocol) = (db, protocol);
                }
                result
            }
            _ => self.dispatch(worker, client, row, request, out, after, ahead),
        };
        if matches!(after, After::Again) {
            return self.note_slice(worker, client);
        }
        worker.last_ns = worker.last_ns.saturating_sub(std::mem::take(&mut client.slices_ns));
        self.keep_books(worker, client, row, request);
        if let Err(error) = result {
            worker.books.stats.commands[counters_at].failed.add(1);
            self.fail(worker, client, out, reply_at, &error);
        }
    }

    /// Notes the time of one slice of a command. It is counted when the command has ended.
    #[cold]
    fn note_slice(&self, worker: &mut Worker, client: &mut Client) {
        let ended_ns = self.clock.monotonic_ns();
        client.slices_ns += ended_ns.saturating_sub(worker.last_ns);
        worker.last_ns = ended_ns;
    }

    /// Replaces a partial reply by the error, and counts it.
    #[cold]
    pub(super) fn fail(
        &self,
        worker: &Worker,
        client: &Client,
        out: &mut Vec<u8>,
        reply_at: usize,
        error: &CommandError,
    ) {
        out.truncate(reply_at);
        let text = error.to_string();
        worker.books.stats.count_error(&text);
        Reply::new(out, client.protocol).error(&text);
    }
}

/// Discards the partial state of a command that panicked before it changed a key.
#[cold]
fn forget_command(worker: &mut Worker, client: &mut Client, after: &mut After) {
    worker.in_script = false;
    worker.in_hook = false;
    worker.batch = PendingBatch::default();
    client.unfinished = None;
    *after = After::Continue;
}

/// Removes a reply, and the one that a blocked client would get later.
fn silence(out: &mut Vec<u8>, reply_at: usize, after: &mut After) {
    out.truncate(reply_at);
    if let After::Block(blocked) = after {
        blocked.silent = true;
    }
}

/// Counts a request that the command it names was not asked to execute, such as one with the wrong number of arguments.
#[cold]
pub(crate) fn count_rejected(worker: &Worker, request: Request<'_>) {
    let Some(command) = registry().find(request.arg(0)) else { return };
    let row = match command.subcommands.is_empty() || request.len() == 1 {
        true => Some(command),
        false => command.subcommand(request.arg(1)),
    };
    if let Some(row) = row {
        worker.books.stats.commands[row.index].rejected.add(1);
    }
}

/// The row of a container's subcommand; the container itself when none is named, as COMMAND may be called alone.
fn subcommand(container: &'static CommandRow, request: Request<'_>) -> Result<&'static CommandRow, CommandError> {
    if request.len() < 2 {
        return Ok(container);
    }
    let name = request.arg(1);
    container.subcommand(name).ok_or_else(|| CommandError::unknown_subcommand(container.command.name, name))
}

/// A web browser that was made to talk to us sends one of these before anything that its page could have chosen. As
/// in Redis, the connection ends there, so that a page cannot run commands.
#[cold]
fn is_http(request: Request<'_>) -> bool {
    ["post", "host:"].iter().any(|word| request.arg(0).eq_ignore_ascii_case(word.as_bytes()))
}

/// Redis's words: the name and the beginning of the arguments, cut to a readable length.
#[cold]
fn unknown_command(request: Request<'_>) -> CommandError {
    let shown = |bytes: &[u8], max: usize| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(max)]).into_owned();
        text.replace(['\r', '\n'], " ")
    };
    let mut args = String::new();
    for arg in request.iter().skip(1) {
        if args.len() >= 128 {
            break;
        }
        args.push_str(&format!("'{}' ", shown(arg, 128 - args.len())));
    }
    CommandError::said(format!(
        "ERR unknown command '{}', with args beginning with: {args}",
        shown(request.arg(0), 128)
    ))
}
