//! TXN.BEGIN, TXN.COMMIT and TXN.ROLLBACK. What happens in between is in `execution::interactive`.

use crate::error::{CommandError, CommandResult};
use crate::execution::context::ServerCx;

pub(super) fn begin(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.begin_interactive(cx.worker, cx.client);
    cx.reply.ok();
    Ok(())
}

pub(super) fn commit(cx: &mut ServerCx<'_>) -> CommandResult {
    let sequence = cx.engine.commit_interactive(cx.worker, cx.client)?;
    cx.reply.integer(sequence as i64);
    Ok(())
}

pub(super) fn rollback(cx: &mut ServerCx<'_>) -> CommandResult {
    if !cx.engine.roll_back(cx.client) {
        return Err(CommandError::fixed("ERR TXN.ROLLBACK without TXN.BEGIN"));
    }
    cx.reply.ok();
    Ok(())
}
