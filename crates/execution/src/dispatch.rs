//! From a row to its handler: takes the locks that the command's keys need. Knows locks; refuses to know what comes
//! before (gates) and what a handler gets (`handler`).

use crate::ahead::Ahead;
use crate::call::Call;
use crate::command::{Flags, Handler, Locks};
use crate::conditions;
use crate::context::After;
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::handler;
use crate::indexes;
use crate::indexes::OnIndex;
use crate::instants::AtInstant;
use crate::metrics;
use crate::reply_limit;
use crate::waiting;
use crate::waiting::waiter::WaitPhase;
use keyspace::{Key, Locked};
use resp::Reply;
use smallvec::SmallVec;

#[inline]
pub fn dispatch(engine: &Engine, call: &mut Call<'_, '_>, out: &mut Vec<u8>, ahead: &mut Ahead<'_>) -> CommandResult {
    let (row, request) = (call.row, call.request);
    let command = row.command;
    let reply_at = out.len();
    let reply = Reply::new(out, call.client.protocol).limited(call.client.output_bytes_max);
    if let Handler::Server(handler) = command.handler {
        ahead.release();
        return handler::run_server(engine, call, reply, handler);
    }
    if let Handler::Script(handler) = command.handler {
        ahead.release();
        if engine.waiting.records.any() {
            // In a transaction or script, a claim cannot yield to them.
            waiting::records::serving::serve_due_records(engine, call.worker);
        }
        let result = handler::run_scripting(engine, call, reply, handler, None);
        if command.flags.has(Flags::BLOCKING)
            && let Some(blocked) = waiting::records::queueing::begin_record_wait(
                engine,
                call.client,
                row,
                request,
                (out, reply_at),
                call.worker.now_ms,
            )?
        {
            call.after = After::Block(blocked);
        }
        return result;
    }
    let (mut locked, only_key) = match command.keys.locks {
        Locks::Key(at) => {
            let at = usize::from(at);
            let key = Key::new(request.arg(at));
            (ahead.lock_key(&engine.keyspace, key).ok_or_else(|| conditions::busy(engine))?, Some((at, key)))
        }
        _ => {
            let locks = row.locks(request);
            if locks != Locks::Keys {
                ahead.release();
            }
            let locked = match locks {
                Locks::Key(_) | Locks::Keys => {
                    let keys: SmallVec<[Key<'_>; 4]> = row.keys(request).collect();
                    ahead.lock_keys(&engine.keyspace, &keys)
                }
                Locks::Everything => engine.keyspace.lock_all_unless_busy(),
                Locks::None | Locks::Walk | Locks::Declared => Some(engine.keyspace.lock_none()),
            };
            (locked.ok_or_else(|| conditions::busy(engine))?, None)
        }
    };
    call.only_key = only_key;
    if indexes::meets_index(&locked, call.client.db, row, request, only_key) {
        drop(locked);
        ahead.release();
        let reply = Reply::new(out, call.client.protocol).limited(call.client.output_bytes_max);
        return indexes::run_on_index(engine, call, reply);
    }
    let reply = Reply::new(out, call.client.protocol).limited(call.client.output_bytes_max);
    let result = handler::run_under(engine, call, reply, &mut locked, OnIndex::NoneAlone);
    if call.client.unfinished.is_some() {
        drop(locked);
        ahead.release();
        match result {
            Ok(()) => call.after = After::Again,
            Err(_) => call.client.unfinished = None,
        }
        return result;
    }
    if command.flags.has(Flags::BLOCKING)
        && let Some(blocked) =
            waiting::queueing::begin_wait(engine, call.client, row, request, out, reply_at, &mut locked)
    {
        call.after = After::Block(blocked);
    }
    result
}

/// Executes one of several commands that share their locks, and appends its reply.
pub fn execute_on(engine: &Engine, mut call: Call<'_, '_>, reply: &mut Reply<'_>, locked: &mut Locked<'_>) -> After {
    let reply_at = reply.position();
    let (row, request) = (call.row, call.request);
    let result = match row.command.handler {
        Handler::Server(handler) => handler::run_server(engine, &mut call, reply.lend(), handler),
        Handler::Script(handler) => {
            let held = Some(locked.lend());
            handler::run_scripting(engine, &mut call, reply.lend(), handler, held)
        }
        _ => {
            let bytes_max = match call.worker.in_script {
                // It is not sent to the client.
                true => usize::MAX,
                false => reply_at.saturating_add(reply_limit::bytes_max(call.client, row)),
            };
            let reply = reply.lend().within(bytes_max);
            match indexes::meets_index(locked, call.client.db, row, request, call.only_key) {
                true => indexes::run_on_index_under(engine, &mut call, reply, locked, OnIndex::AtOnce),
                false => handler::run_under(engine, &mut call, reply, locked, OnIndex::No),
            }
        }
    };
    conclude(engine, call, reply, reply_at, result)
}

/// Executes a command that reads cells at an instant, of this time in unix milliseconds, and appends its reply. `db` is
/// where the database of the transaction is now.
pub fn execute_at_instant(
    engine: &Engine,
    mut call: Call<'_, '_>,
    reply: &mut Reply<'_>,
    locked: &mut Locked<'_>,
    (instant, db, now_ms): (&AtInstant<'_>, usize, u64),
) {
    let reply_at = reply.position();
    let selected = std::mem::replace(&mut call.client.db, db);
    let now = (call.worker.now_ms, call.worker.now_us);
    (call.worker.now_ms, call.worker.now_us) = (now_ms, now_ms * 1000);
    let result = handler::run_under(engine, &mut call, reply.lend(), locked, OnIndex::NoneAtInstant(instant));
    (call.worker.now_ms, call.worker.now_us) = now;
    call.client.db = selected;
    conclude(engine, call, reply, reply_at, result);
}

/// Ends one of several commands that share their locks: its metrics, and its error if it has one.
fn conclude(
    engine: &Engine,
    call: Call<'_, '_>,
    reply: &mut Reply<'_>,
    reply_at: usize,
    result: CommandResult,
) -> After {
    let (row, request) = (call.row, call.request);
    let Call { worker, client, after, .. } = call;
    // Commands do not wait for keys here: the client gets the timeout reply that the handler has written.
    client.wait_phase = WaitPhase::Idle;
    metrics::record_command(engine, worker, client, row, request, || reply.position().saturating_sub(reply_at));
    let mut result = result;
    if reply.position().saturating_sub(reply_at) > client.reply_bytes_max && result.is_ok() && !worker.in_script {
        result = reply_limit::pass(worker, client, row, request);
    }
    if let Err(error) = result {
        worker.batch.has_panicked |= worker.batch.is_private && error == CommandError::Internal;
        worker.metrics.stats.commands[row.index].failed.add(1);
        let text = error.to_string();
        worker.metrics.stats.count_error(&text);
        reply.truncate(reply_at);
        reply.error(&text);
    }
    let after = match after {
        // No command blocks inside a transaction or script.
        After::Block(blocked) => {
            reply.raw(&waiting::outcome(engine, worker, client, &blocked.event, true).unwrap_or_default());
            After::Continue
        }
        after => after,
    };
    if reply.position() == reply_at {
        // Outside a transaction the command has no reply (CLIENT REPLY SKIP); inside, each command has one.
        reply.null();
    }
    after
}
