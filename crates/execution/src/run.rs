//! Runs one request that is not queued: finds its row, passes the gates, dispatches, records metrics. Refuses to know
//! what the connection does next.

use super::engine::Engine;
use super::worker::Worker;
use crate::acl::Context;
use crate::ahead::Ahead;
use crate::call::Call;
use crate::client::Client;
use crate::command::{CommandRow, Flags, Handler};
use crate::context::After;
use crate::dispatch;
use crate::error::{CommandError, CommandResult};
use crate::gates;
use crate::metrics;
use crate::panics;
use crate::pending_batch::PendingBatch;
use crate::reply_limit;
use crate::transaction;
use resp::{Reply, Request};

/// Finds the row of a request's command and checks the gates that do not depend on state.
#[inline]
pub fn find(engine: &Engine, client: &Client, request: Request<'_>) -> Result<&'static CommandRow, CommandError> {
    find_after(engine, client.last_command, request)
}

/// Like [`find`], for a request that follows the command `last` in a pipeline.
#[inline]
pub(super) fn find_after(
    engine: &Engine,
    last: Option<&'static CommandRow>,
    request: Request<'_>,
) -> Result<&'static CommandRow, CommandError> {
    let name = request.arg(0);
    let row = match last {
        // Pipelines repeat commands: comparing with the last one is cheaper than a look-up.
        Some(last) if last.name_args == 1 && last.is_named(name) => last,
        _ => match engine.registry.find(name) {
            Some(row) => row,
            None => return Err(unknown_command(request)),
        },
    };
    let row = match row.subcommands.is_empty() {
        true => row,
        false => subcommand(row, request)?,
    };
    if !row.accepts(request.len()) {
        return Err(row.wrong_arity());
    }
    Ok(row)
}

/// Runs a request outside a MULTI, and appends its reply. Returns what the connection does next.
#[inline]
pub fn run(engine: &Engine, mut call: Call<'_, '_>, out: &mut Vec<u8>, ahead: &mut Ahead<'_>) -> After {
    let reply_at = out.len();
    let (row, request) = (call.row, call.request);
    // A request that has already run a slice is not refused: it may have changed something.
    if call.client.unfinished.is_none()
        && let Err(error) = gates::gates(engine, call.client, row, request)
    {
        let Call { worker, client, .. } = call;
        client.tally.operations += 1;
        gates::note_if_denied(engine, client, &error, Context::TopLevel);
        worker.metrics.stats.commands[row.index].rejected.add(1);
        let error = match row.command.flags.has(Flags::ENDS_QUEUE) {
            // IMPORTANT: `abandon` takes locks.
            true => {
                ahead.release();
                transaction::abandon(engine, client, &error)
            }
            false => error,
        };
        fail(worker, client, out, reply_at, &error);
        return After::Continue;
    }
    call.worker.secrets.clear();
    let result = match call.client.reply_bytes_max {
        usize::MAX => handle(engine, &mut call, out, ahead),
        _ => handle_within_limit(engine, &mut call, out, ahead),
    };
    let Call { worker, client, after, .. } = call;
    match (&result, &after) {
        (Err(CommandError::AwaitsScript), _) => return After::AwaitScript,
        (_, After::Again) => {
            note_slice(engine, worker, client);
            return after;
        }
        (_, After::Detach(_)) => return after,
        _ => {}
    }
    worker.last_ns = worker.last_ns.saturating_sub(std::mem::take(&mut client.slices_ns));
    metrics::record_command(engine, worker, client, row, request, || match result {
        Ok(()) => out.len() - reply_at,
        Err(_) => 0,
    });
    if let Err(error) = result {
        worker.metrics.stats.commands[row.index].failed.add(1);
        fail(worker, client, out, reply_at, &error);
    }
    after
}

/// Runs the handler of a request.
#[inline]
fn handle(engine: &Engine, call: &mut Call<'_, '_>, out: &mut Vec<u8>, ahead: &mut Ahead<'_>) -> CommandResult {
    match call.row.command.handler {
        Handler::Server(_) | Handler::Script(_) => {
            let (db, protocol) = (call.client.db, call.client.protocol);
            let result = panics::catch_across_threads(|| dispatch::dispatch(engine, call, out, ahead));
            if result == Err(CommandError::Internal) {
                forget_command(call);
                // A script sets its own values while it runs.
                (call.client.db, call.client.protocol) = (db, protocol);
            }
            result
        }
        _ => dispatch::dispatch(engine, call, out, ahead),
    }
}

/// The same for a client whose user has a limit for replies.
#[cold]
fn handle_within_limit(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    out: &mut Vec<u8>,
    ahead: &mut Ahead<'_>,
) -> CommandResult {
    let (reply_at, output_bytes_max) = (out.len(), call.client.output_bytes_max);
    // What is longer than the limit is not written to its end.
    let reply_end_max = reply_at.saturating_add(reply_limit::bytes_max(call.client, call.row));
    call.client.output_bytes_max = output_bytes_max.min(reply_end_max);
    let result = handle(engine, call, out, ahead);
    call.client.output_bytes_max = output_bytes_max;
    // AUTH may have changed it, or removed it.
    let is_too_long = out.len().saturating_sub(reply_at) > call.client.reply_bytes_max;
    let has_ended = !matches!(call.after, After::Again | After::Detach(_));
    match result.is_ok() && has_ended && is_too_long {
        true => reply_limit::pass(call.worker, call.client, call.row, call.request),
        false => result,
    }
}

/// Adds the time of one slice of a command. It is counted when the command has ended.
#[cold]
fn note_slice(engine: &Engine, worker: &mut Worker, client: &mut Client) {
    let ended_ns = engine.clock.monotonic_ns();
    client.slices_ns += ended_ns.saturating_sub(worker.last_ns);
    worker.last_ns = ended_ns;
}

/// Replaces a partial reply by the error, and counts it.
#[cold]
pub fn fail(worker: &Worker, client: &Client, out: &mut Vec<u8>, reply_at: usize, error: &CommandError) {
    out.truncate(reply_at);
    let text = error.to_string();
    worker.metrics.stats.count_error(&text);
    Reply::new(out, client.protocol).error(&text);
}

/// Discards the partial state of a command that panicked before it changed a key.
#[cold]
fn forget_command(call: &mut Call<'_, '_>) {
    call.worker.in_script = false;
    call.worker.in_hook = false;
    call.worker.batch = PendingBatch::default();
    call.client.unfinished = None;
    call.after = After::Continue;
}

/// The row of a container's subcommand; the container itself when none is named, as COMMAND may be called alone.
fn subcommand(container: &'static CommandRow, request: Request<'_>) -> Result<&'static CommandRow, CommandError> {
    if request.len() < 2 {
        return Ok(container);
    }
    let name = request.arg(1);
    container.subcommand(name).ok_or_else(|| CommandError::unknown_subcommand(container.command.name, name))
}

/// The error for an unknown command, in Redis's words: the name and the beginning of the arguments, cut to a readable
/// length.
#[cold]
pub fn unknown_command(request: Request<'_>) -> CommandError {
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
