//! Executes requests: finds the row, passes the gates, dispatches. Knows nothing of sockets; the connection calls
//! `execute`.

use super::engine::Engine;
use super::worker::Worker;
use crate::acl;
use crate::ahead::Ahead;
use crate::call::Call;
use crate::client::{Client, ReplyMode};
use crate::client_eviction;
use crate::client_eviction::GROWN_BYTES;
use crate::command::{CommandRow, Flags, KeyRange, Locks};
use crate::context::After;
use crate::error::CommandError;
use crate::eviction;
use crate::flow::Flow;
use crate::gates;
use crate::interactive;
use crate::invalidations;
use crate::metrics;
use crate::run;
use crate::scripts;
use crate::transaction;
use crate::waiting;
use crate::waiting::Event;
use keyspace::Key;
use keyspace::locked::AHEAD_MAX;
use resp::{Reply, Request};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often a thread that serves no clients checks whether a long script has ended.
const SCRIPT_LOOK_EVERY: Duration = Duration::from_micros(500);

/// Prepares to execute several pipelined requests: for requests with one or two keys, takes the locks and prefetches
/// the entries. Pass the result to [`execute_ahead`] with each request.
pub fn look_ahead<'e, 'r>(
    engine: &'e Engine,
    client: &Client,
    requests: impl Iterator<Item = Request<'r>>,
) -> Ahead<'e> {
    let mut keys: SmallVec<[Key<'r>; AHEAD_MAX]> = SmallVec::new();
    let mut rows: SmallVec<[&'static CommandRow; AHEAD_MAX]> = SmallVec::new();
    if client.transaction.is_some() {
        return Ahead::default();
    }
    let (mut is_interactive, mut has_objects) = (client.interactive.is_some(), false);
    let mut last = client.last_command;
    for request in requests.take(AHEAD_MAX) {
        let Ok(row) = run::find_after(engine, last, request) else { break };
        rows.push(row);
        last = Some(row);
        has_objects |= !row.values_are_inline;
        match row.command.keys.locks {
            Locks::Key(at) => keys.push(Key::new(request.arg(usize::from(at)))),
            Locks::Declared if let Some(behind) = row.command.calls_behind => {
                // The key of the called command, if that is the command called last. The session's key was just used,
                // and is in the cache.
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
                    if keys.len() + if is_one { 1 } else { 2 } > AHEAD_MAX {
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
    let mut locks = (keys.len() > 1).then(|| engine.keyspace.lock_ahead(client.db, &keys, has_objects));
    if is_interactive {
        // The commands of an interactive transaction take locks as they need them: only their entries are prefetched.
        locks = None;
    }
    Ahead { locks, rows }
}

/// Executes one request to its end, without yielding. For callers that serve no other clients.
pub fn execute_to_end(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> Flow {
    loop {
        match execute(engine, worker, client, request, out) {
            Flow::Again => {
                // Other threads may want the locks.
                std::thread::yield_now();
                engine.begin(worker);
            }
            Flow::AwaitScript => {
                std::thread::sleep(SCRIPT_LOOK_EVERY);
                engine.begin(worker);
            }
            flow => return flow,
        }
    }
}

/// Executes one request of a client and appends its reply to `out`.
#[inline]
pub fn execute(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> Flow {
    execute_ahead(engine, worker, client, request, out, &mut Ahead::default())
}

/// Executes one request, with locks that [`look_ahead`] may have taken for it.
#[inline]
pub fn execute_ahead(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    request: Request<'_>,
    out: &mut Vec<u8>,
    ahead: &mut Ahead<'_>,
) -> Flow {
    let found = match ahead.rows.pop() {
        Some(row) => Ok(row),
        None => run::find(engine, client, request),
    };
    if let Ok(row) = found
        && let Some(until_ms) =
            engine.pause.holds(|| gates::may_write(engine, client, row, request), worker.monotonic_ms())
        && gates::gates(engine, client, row, request).is_ok()
    {
        client.handle.last_command.store(row.index as u32 + 1, Relaxed);
        engine.pause.wait(&client.handle);
        return Flow::Paused(until_ms);
    }
    if let Ok(row) = found
        && (engine.restrictions.any() || worker.time_stands)
        && let Some(until_ms) = gates::waits_for_data(engine, worker, client, row, request)
    {
        return Flow::Paused(until_ms);
    }
    client.handle.note_active(worker.last_ns);
    if let Ok(row) = found {
        eviction::make_room(engine, worker, row, ahead);
    }
    if engine.tracking.any() {
        invalidations::invalidate_before(engine, worker, ahead);
    }
    if client.handle.has_mail() {
        invalidations::take_messages(client, out);
    }
    let (reply_at, depended_on) = (out.len(), client.depends_on);
    let mut after = After::Continue;
    match found {
        ref found if client.interactive.is_some() => {
            after = interactive::step::run_interactive(engine, worker, client, found.clone(), request, out, ahead);
        }
        Ok(row) if client.transaction.is_some() && !row.command.flags.has(Flags::NOT_QUEUED) => {
            client.last_command = Some(row);
            queue(engine, worker, client, row, request, out);
        }
        Ok(row) => {
            client.last_command = Some(row);
            client.handle.last_command.store(row.index as u32 + 1, Relaxed);
            after = run::run(engine, Call::new(worker, client, row, request), out, ahead);
        }
        Err(_) if is_http(request) => after = After::Close,
        Err(ref error) => {
            client.tally.operations += 1;
            metrics::count_rejected(worker, request);
            let ends_queue = |row: &CommandRow| row.command.flags.has(Flags::ENDS_QUEUE);
            if engine.registry.find(request.arg(0)).is_some_and(ends_queue) {
                // IMPORTANT: `abandon` takes locks.
                ahead.release();
                let error = transaction::abandon(engine, client, error);
                run::fail(worker, client, out, reply_at, &error);
            } else {
                if let Some(transaction) = &mut client.transaction {
                    transaction.failed = true;
                }
                run::fail(worker, client, out, reply_at, error);
            }
        }
    }
    match after {
        After::Continue | After::Close | After::Block(_) => {}
        After::Again => {
            out.truncate(reply_at);
            return Flow::Again;
        }
        After::Detach(begin) => {
            // IMPORTANT: the detached request takes locks.
            ahead.release();
            out.truncate(reply_at);
            return scripts::detached::execute_detachable(engine, worker, client, request, out, begin);
        }
        After::AwaitScript => {
            out.truncate(reply_at);
            engine.scripting.long.park(&client.handle);
            return Flow::AwaitScript;
        }
    }
    if engine.restrictions.any() && client.depends_on > depended_on {
        hide_unpersisted(engine, worker, client, out, reply_at, depended_on);
    }
    if client.caching
        && client.transaction.is_none()
        && !found.as_ref().is_ok_and(|row| row.command.flags.has(Flags::KEEPS_CACHING))
    {
        // CLIENT CACHING applied to this command or transaction only.
        client.caching = false;
    }
    match client.reply_mode {
        ReplyMode::On => {}
        ReplyMode::SkipNext => client.reply_mode = ReplyMode::Skipping,
        ReplyMode::Off | ReplyMode::Skipping => {
            if client.reply_mode == ReplyMode::Skipping {
                client.reply_mode = ReplyMode::On;
            }
            // A subscription message is not a reply, even if it looks like one in RESP2.
            let is_message = found.as_ref().is_ok_and(|row| row.command.flags.has(Flags::SENDS_MESSAGES))
                && out.get(reply_at).is_none_or(|byte| *byte != b'-');
            if !is_message {
                silence(out, reply_at, &mut after);
            }
        }
    }
    if waiting::queueing::has_deferred(engine) {
        // IMPORTANT: serving waiters takes locks.
        ahead.release();
        waiting::serving::serve_deferred(engine, worker);
    }
    match after {
        After::Continue => Flow::Continue,
        After::Close => Flow::Close,
        After::Again | After::Detach(_) | After::AwaitScript => unreachable!("these have returned"),
        After::Block(blocked) => {
            // IMPORTANT: the end of a wait takes locks.
            ahead.release();
            // CLIENT UNBLOCK cannot end a wait for a script. A wait for a key has begun earlier, under the key's locks.
            if !matches!(blocked.event, Event::Background(_) | Event::Value) {
                client.handle.wait_state.begin(0);
            }
            Flow::Block(blocked)
        }
    }
}

/// While the journal has failed, refuses replies that depend on a batch it has not persisted: after a restart that
/// change would be gone. IMPORTANT: a reply that depends on nothing newer is sent, and the connection stays open.
#[cold]
fn hide_unpersisted(
    engine: &Engine,
    worker: &Worker,
    client: &mut Client,
    out: &mut Vec<u8>,
    reply_at: usize,
    depended_on: u64,
) {
    let limit = engine.persistence.readable(client.waits_for_disk(&engine.settings));
    if limit.is_some_and(|limit| client.depends_on > limit && client.last_batch <= limit) {
        client.depends_on = depended_on;
        run::fail(worker, client, out, reply_at, &engine.restrictions.refusal());
    }
}

/// Queues a command for EXEC.
pub(super) fn queue(
    engine: &Engine,
    worker: &Worker,
    client: &mut Client,
    row: &'static CommandRow,
    request: Request<'_>,
    out: &mut Vec<u8>,
) {
    let refused = match gates::gates(engine, client, row, request) {
        Ok(()) if row.command.flags.has(Flags::NO_MULTI) => {
            Some(CommandError::fixed("ERR Command not allowed inside a transaction"))
        }
        gates => gates.err(),
    };
    if let Some(error) = &refused {
        gates::note_if_denied(engine, client, error, acl::Context::Multi);
    }
    client.tally.operations += 1;
    let request_bytes = || request.iter().map(|arg| arg.len() + size_of::<usize>()).sum();
    let refused = match refused {
        None if engine.acl.limits_memory() => client_eviction::pass_user_limit(engine, client, request_bytes()).err(),
        refused => refused,
    };
    let bytes_max = engine.settings.client_query_buffer_limit();
    let transaction = client.transaction.as_mut().expect("only commands of a transaction are queued");
    let before = transaction.bytes();
    let refused = refused
        .or_else(|| client_eviction::pass_queue_limit(engine, transaction.bytes()).err())
        .or_else(|| transaction.push(row, request, bytes_max).err());
    client.handle.note_queued(Some((transaction.len(), transaction.bytes())));
    let has_grown = transaction.bytes() / GROWN_BYTES > before / GROWN_BYTES;
    match refused {
        None => Reply::new(out, client.protocol).simple("QUEUED"),
        Some(error) => {
            transaction.failed = true;
            worker.metrics.stats.commands[row.index].rejected.add(1);
            run::fail(worker, client, out, out.len(), &error);
        }
    }
    if has_grown {
        client_eviction::evict_clients(engine, 0);
    }
}

/// Removes a reply, and the one that a blocked client would get later.
fn silence(out: &mut Vec<u8>, reply_at: usize, after: &mut After) {
    out.truncate(reply_at);
    if let After::Block(blocked) = after {
        blocked.silent = true;
    }
}

/// True for a request of a web browser that was tricked into talking to us: it sends one of these words before anything
/// that a page can choose. As in Redis, the connection is closed, so that a page cannot run commands.
#[cold]
fn is_http(request: Request<'_>) -> bool {
    ["post", "host:"].iter().any(|word| request.arg(0).eq_ignore_ascii_case(word.as_bytes()))
}
