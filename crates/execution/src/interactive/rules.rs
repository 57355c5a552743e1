//! Which commands may be part of an interactive transaction: those whose keys are all arguments, and those about the
//! connection. Everything follows from the command's row.

use crate::command::{CommandRow, Flags, Locks};
use crate::error::{CommandError, CommandResult};
use keyspace::{Key, Locked};
use resp::Request;

/// Commands that are never part of a transaction, whatever their keys are: they manage the server, send messages, or
/// begin and end transactions themselves.
const NEVER: Flags =
    Flags::ADMIN.union(Flags::PUBSUB).union(Flags::NO_MULTI).union(Flags::NOT_QUEUED).union(Flags::NO_TXN);

/// Refuses a request that cannot be part of an interactive transaction.
pub fn pass_transaction_rules(row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    let command = row.command;
    if command.flags.has(NEVER) {
        return Err(refused(row, "it is not about data; send it outside of one"));
    }
    if matches!(row.locks(request), Locks::Everything | Locks::Walk) {
        return Err(refused(row, "its keys are not all arguments; send it outside of one"));
    }
    if command.crosses_databases.is_some_and(|holds| holds(request)) {
        return Err(refused(row, "it touches another database; send it outside of one"));
    }
    Ok(())
}

/// Refuses a request that cannot be part of a read-only transaction: only commands that read cells can be, and those
/// about the connection.
pub(super) fn pass_reading_rules(row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    if row.command.flags.has(Flags::AT_INSTANT) {
        return Ok(());
    }
    pass_transaction_rules(row, request)?;
    match row.command.keys.locks {
        Locks::None => Ok(()),
        _ => Err(CommandError::said(format!(
            "ERR {} cannot be part of a read-only transaction: it has only CELL.GET, CELL.GETV, CELL.MGET, CELL.HISTORY \
             and CELL.LIST; end it, or begin one without READONLY",
            shown_name(row)
        ))),
    }
}

/// Refuses a request with an index among its keys, which are locked.
pub(super) fn pass_index_rule(
    row: &'static CommandRow,
    locked: &Locked<'_>,
    db: usize,
    keys: &[Key<'_>],
) -> CommandResult {
    match keys.iter().any(|key| locked.db(db, *key).indexes().position(key.name).is_some()) {
        true => Err(refused(row, "one of its keys is an index; send it outside of one")),
        false => Ok(()),
    }
}

fn refused(row: &CommandRow, why: &str) -> CommandError {
    let name = shown_name(row);
    CommandError::said(format!("ERR {name} cannot be part of an interactive transaction: {why}"))
}

/// The name of a command as clients write it.
fn shown_name(row: &CommandRow) -> String {
    row.full_name.replace('|', " ").to_uppercase()
}
