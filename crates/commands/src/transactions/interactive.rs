//! TXN.BEGIN, TXN.COMMIT and TXN.ROLLBACK. `execution::interactive` runs the commands in between.

use crate::shared::options::unknown_option;
use execution::args::is_word;
use execution::context::ServerCx;
use execution::error::{CommandError, CommandResult};
use execution::interactive;

pub(super) fn begin(cx: &mut ServerCx<'_>) -> CommandResult {
    match cx.args.try_next() {
        None => interactive::begin_interactive(cx.worker, cx.client),
        Some(word) if is_word(word, "READONLY") && cx.args.is_empty() => {
            interactive::reading::begin_reading(cx.engine, cx.worker, cx.client)?;
        }
        Some(_) => return Err(unknown_option(&cx.args)),
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn commit(cx: &mut ServerCx<'_>) -> CommandResult {
    let sequence = interactive::commit::commit_interactive(cx.engine, cx.worker, cx.client)?;
    cx.reply.integer(sequence as i64);
    Ok(())
}

pub(super) fn rollback(cx: &mut ServerCx<'_>) -> CommandResult {
    if !interactive::roll_back(cx.engine, cx.client) {
        return Err(CommandError::fixed("ERR TXN.ROLLBACK without TXN.BEGIN: no transaction is open"));
    }
    cx.reply.ok();
    Ok(())
}
