//! MULTI, EXEC, DISCARD, WATCH and UNWATCH: queued commands are executed atomically. `execution::transaction` takes the
//! locks and runs the queue.

use execution::clients::NameKind;
use execution::context::WholeServer;
use execution::context::{After, ServerCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::gates;
use execution::indexes;
use execution::queued::Transaction;
use execution::scripts;
use execution::transaction;
use execution::waiting;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn multi(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.client.transaction.is_some() {
        return Err(CommandError::fixed("ERR MULTI calls can not be nested"));
    }
    cx.client.transaction = Some(Box::default());
    cx.client.handle.note_queued(Some((0, 0)));
    cx.reply.ok();
    Ok(())
}

pub(super) fn exec(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.worker.must_detach()
        && let Some(transaction) = cx.client.transaction.as_deref()
        && let Some(begin) =
            transaction.commands().filter_map(|(row, _)| scripts::leaving::may_run_long(cx.engine, row)).max()
    {
        cx.after = After::Detach(begin);
        return Ok(());
    }
    let reads_index = |transaction: &Transaction| transaction::reads_index(cx.engine, transaction);
    if cx.client.transaction.as_deref().is_some_and(reads_index)
        && !indexes::is_ready_for_index(cx.engine, cx.worker, cx.client.db).unwrap_or(true)
    {
        cx.after = After::Again;
        return Ok(());
    }
    if cx.engine.waiting.records.any() {
        // A claim in the transaction cannot yield to them.
        waiting::records::serving::serve_due_records(cx.engine, cx.worker);
    }
    let Some(transaction) = end(cx) else { return Err(CommandError::fixed("ERR EXEC without MULTI")) };
    if transaction.failed {
        transaction::unwatch(cx.engine, cx.client);
        return Err(CommandError::fixed("EXECABORT Transaction discarded because of previous errors."));
    }
    let refused = transaction
        .commands()
        .filter_map(|(registered, request)| gates::gates(cx.engine, cx.client, registered, request).err())
        // A command to which the user has no right any more is refused alone, as in Redis.
        .find(|error| !matches!(error, CommandError::Denied(_)));
    if let Some(error) = refused {
        return Err(transaction::abandon(cx.engine, cx.client, &error));
    }
    match transaction::run_transaction(cx.engine, cx.worker, cx.client, &transaction, &mut cx.reply) {
        Ok(after) => cx.after = after,
        Err(error) => {
            if error == CommandError::AwaitsScript {
                // EXEC is executed again later: restore the queue.
                cx.client.handle.note_queued(Some((transaction.len(), transaction.bytes())));
                cx.client.transaction = Some(transaction);
            }
            return Err(error);
        }
    }
    Ok(())
}

pub(super) fn discard(cx: &mut ServerCx<'_>) -> CommandResult {
    if end(cx).is_none() {
        return Err(CommandError::fixed("ERR DISCARD without MULTI"));
    }
    transaction::unwatch(cx.engine, cx.client);
    cx.reply.ok();
    Ok(())
}

/// Ends the client's transaction and returns its queued commands.
fn end(cx: &mut ServerCx<'_>) -> Option<Box<Transaction>> {
    cx.client.handle.note_queued(None);
    cx.client.transaction.take()
}

pub(super) fn watch(cx: &mut WriteCx<'_>) -> CommandResult {
    if cx.client.transaction.is_some() {
        return Err(CommandError::fixed("ERR WATCH inside MULTI is not allowed"));
    }
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let was_expired = cx.keys.is_expired(key);
        let db = cx.client.db;
        if cx.client.watches.add(db, key, cx.keys.watched_mut(key), was_expired) {
            cx.server().watches.add();
            cx.client.handle.add_name(NameKind::Watch.bytes(key.name.len()));
        }
    }
    cx.client.handle.watching.store(cx.client.watches.len() as u32, Relaxed);
    cx.reply.ok();
    Ok(())
}

pub(super) fn unwatch(cx: &mut ServerCx<'_>) -> CommandResult {
    transaction::unwatch(cx.engine, cx.client);
    cx.reply.ok();
    Ok(())
}
