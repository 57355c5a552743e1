//! The longest reply of a user (`limit:reply`). A reply that only tells is replaced by an error; one that is the only
//! trace of a change is sent, however long it is. Knows which is which by the row and the request; refuses to know what a command does.

use crate::client::Client;
use crate::clients::ClientHandle;
use crate::clients::account::limits::Limit;
use crate::command::{CommandRow, Flags, Handler};
use crate::error::{CommandError, CommandResult, REPLY_TOO_LONG};
use crate::worker::Worker;
use resp::Request;

/// Refuses a reply of the command that has just run, and is longer than the limit, if it may be replaced by an error.
#[cold]
pub fn pass(worker: &Worker, client: &Client, row: &CommandRow, request: Request<'_>) -> CommandResult {
    if !is_replaceable(worker, row, request) {
        return Ok(());
    }
    Err(refuse(&client.handle))
}

/// The error in place of a reply that is too long. Counts it.
pub fn refuse(handle: &ClientHandle) -> CommandError {
    // Not by its user: a client that stands in for another may have none.
    if let Some(account) = handle.account() {
        account.counters.count_refused(Limit::Reply);
    }
    REPLY_TOO_LONG
}

/// The most bytes of a reply that are written: no more than the limit, if the whole is to be replaced then.
#[inline]
pub fn bytes_max(client: &Client, row: &CommandRow) -> usize {
    match row.command.handler {
        Handler::Read(_) => client.reply_bytes_max,
        _ => usize::MAX,
    }
}

/// True when nothing is lost with the reply.
fn is_replaceable(worker: &Worker, row: &CommandRow, request: Request<'_>) -> bool {
    /// What these have done is told by their replies alone, or is not a reply.
    const NOT_ALONE: Flags =
        Flags::WRITE.union(Flags::NO_AUTH).union(Flags::SENDS_MESSAGES).union(Flags::ENDS_QUEUE).union(Flags::ENDS_TXN);
    match row.command.handler {
        Handler::Read(_) => true,
        Handler::Server(_) => !row.flags_of(request).intersects(NOT_ALONE),
        // Some of them are no scripts, and write themselves (CLAIM, SWEEP). A session keeps the reply of its command: a
        // repeated call gets the same one.
        Handler::Script(_) => {
            let may_have_written = row.flags_of(request).has(Flags::WRITE) || worker.batch.script_has_written;
            !may_have_written && row.command.calls_behind.is_none()
        }
        Handler::Write(_) => {
            let only_tells = row.command.only_tells.is_some_and(|only_tells| only_tells(request));
            only_tells || !row.flags_of(request).has(Flags::WRITE)
        }
        Handler::Container => false,
    }
}
