//! MULTI, EXEC, DISCARD, WATCH and UNWATCH: queued commands are executed atomically. The queue and its locks are in
//! `execution::transaction`.

use crate::error::{CommandError, CommandResult};
use crate::execution::context::WholeServer;
use crate::execution::context::{After, ServerCx, WriteCx};
use crate::execution::transaction::Transaction;
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
    let reads_index = |transaction: &Transaction| cx.engine.reads_index(transaction);
    if cx.client.transaction.as_deref().is_some_and(reads_index)
        && !cx.engine.is_ready_for_index(cx.worker, cx.client.db).unwrap_or(true)
    {
        cx.after = After::Again;
        return Ok(());
    }
    if cx.engine.record_waiters.any() {
        // A claim in the transaction cannot let them go first.
        cx.engine.serve_due_records(cx.worker);
    }
    let Some(transaction) = end(cx) else { return Err(CommandError::fixed("ERR EXEC without MULTI")) };
    if transaction.failed {
        cx.engine.unwatch(cx.client);
        return Err(CommandError::fixed("EXECABORT Transaction discarded because of previous errors."));
    }
    let refused =
        transaction.commands().find_map(|(registered, request)| cx.engine.gates(cx.client, registered, request).err());
    if let Some(error) = refused {
        return Err(cx.engine.abandon(cx.client, &error));
    }
    cx.after = cx.engine.run_transaction(cx.worker, cx.client, &transaction, &mut cx.reply)?;
    Ok(())
}

pub(super) fn discard(cx: &mut ServerCx<'_>) -> CommandResult {
    if end(cx).is_none() {
        return Err(CommandError::fixed("ERR DISCARD without MULTI"));
    }
    cx.engine.unwatch(cx.client);
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
            cx.server().watches.fetch_add(1, Relaxed);
            cx.client.handle.add_name(key.name.len());
        }
    }
    cx.client.handle.watching.store(cx.client.watches.len() as u32, Relaxed);
    cx.reply.ok();
    Ok(())
}

pub(super) fn unwatch(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.unwatch(cx.client);
    cx.reply.ok();
    Ok(())
}
