//! Waiting for replicas, of which there are none.

use crate::command::{Command, Flags, exactly, server};
use crate::context::{After, ServerCx};
use crate::engine::Blocked;
use crate::error::{CommandError, CommandResult};
use crate::pure::numbers::parse_i64;

fn wait(cx: &mut ServerCx<'_>) -> CommandResult {
    let replicas = cx.args.int()?;
    let timeout_ms =
        parse_i64(cx.args.bytes()?).ok_or(CommandError::fixed("ERR timeout is not an integer or out of range"))?;
    let Ok(timeout_ms) = u64::try_from(timeout_ms) else {
        return Err(CommandError::fixed("ERR timeout is negative"));
    };
    let until_ms = cx.now_ms + timeout_ms;
    if i64::try_from(until_ms).is_err() {
        return Err(CommandError::fixed("ERR timeout is out of range"));
    }
    if replicas <= 0 {
        cx.reply.integer(0);
    } else {
        let until_ms = (timeout_ms > 0).then_some(until_ms);
        cx.after = After::Block(Blocked { until_ms, timeout_reply: b":0\r\n".to_vec(), silent: false });
    }
    Ok(())
}

pub(super) const COMMANDS: &[Command] = &[server("wait", exactly(3), wait)
    .flag(Flags::BLOCKING)
    .tips(&["request_policy:all_shards", "response_policy:agg_min"])];
