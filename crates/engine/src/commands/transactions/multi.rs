//! MULTI, EXEC and their kin: what is queued is executed all at once. The queue and its locks are in `transaction`.

use crate::command::{Command, Flags, at_least, exactly, keys, server, write};
use crate::context::{After, ServerCx, WriteCx};
use crate::error::{CommandError, CommandResult};
use crate::transaction::Transaction;
use std::sync::atomic::Ordering::Relaxed;

fn multi(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.client.transaction.is_some() {
        return Err(CommandError::fixed("ERR MULTI calls can not be nested"));
    }
    cx.client.transaction = Some(Box::default());
    cx.client.handle.note_queued(Some((0, 0)));
    cx.reply.ok();
    Ok(())
}

fn exec(cx: &mut ServerCx<'_>) -> CommandResult {
    let reads_index = |transaction: &Transaction| cx.engine.reads_index(transaction);
    if cx.client.transaction.as_deref().is_some_and(reads_index)
        && !cx.engine.is_ready_for_index(cx.worker, cx.client.db).unwrap_or(true)
    {
        cx.after = After::Again;
        return Ok(());
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

fn discard(cx: &mut ServerCx<'_>) -> CommandResult {
    if end(cx).is_none() {
        return Err(CommandError::fixed("ERR DISCARD without MULTI"));
    }
    cx.engine.unwatch(cx.client);
    cx.reply.ok();
    Ok(())
}

/// The client has no transaction any more; what it had queued.
fn end(cx: &mut ServerCx<'_>) -> Option<Box<Transaction>> {
    cx.client.handle.note_queued(None);
    cx.client.transaction.take()
}

fn watch(cx: &mut WriteCx<'_>) -> CommandResult {
    if cx.client.transaction.is_some() {
        return Err(CommandError::fixed("ERR WATCH inside MULTI is not allowed"));
    }
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let was_overdue = cx.keys.is_overdue(key);
        let db = cx.client.db;
        if cx.client.watches.add(db, key.name, cx.keys.watched_mut(key), was_overdue) {
            cx.engine.watches.fetch_add(1, Relaxed);
            cx.client.handle.add_name(key.name.len());
        }
    }
    cx.client.handle.watching.store(cx.client.watches.len() as u32, Relaxed);
    cx.reply.ok();
    Ok(())
}

fn unwatch(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.unwatch(cx.client);
    cx.reply.ok();
    Ok(())
}

const ANYTIME: Flags = Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE);
const FAST: Flags = ANYTIME.union(Flags::FAST).union(Flags::ALLOW_BUSY);
/// What begins or ends a queue is not queued.
const AT_ONCE: Flags = Flags::NOT_QUEUED;

pub(super) const COMMANDS: &[Command] = &[
    server("discard", exactly(1), discard).flag(FAST).flag(AT_ONCE),
    server("exec", exactly(1), exec).flag(ANYTIME).flag(Flags::SKIP_SLOWLOG).flag(AT_ONCE).flag(Flags::ENDS_QUEUE),
    server("multi", exactly(1), multi).flag(FAST).flag(AT_ONCE),
    server("unwatch", exactly(1), unwatch).flag(FAST),
    write("watch", at_least(2), keys(1, -1, 1).examined(), watch).not_data().flag(FAST).flag(AT_ONCE),
];
