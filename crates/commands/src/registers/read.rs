//! REG.GET and REG.MGET: the value and the version of a register.

use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::Key;
use keyspace::types::register::{Current, RegisterRef};
use resp::Reply;

pub(super) fn get(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    reply_register(cx, key)
}

pub(super) fn mget(cx: &mut ReadCx<'_>) -> CommandResult {
    cx.reply.array(cx.args.left());
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        reply_register(cx, key)?;
    }
    Ok(())
}

/// `[value, version]`, or nil for a register that has no value yet.
fn reply_register(cx: &mut ReadCx<'_>, key: Key<'_>) -> Result<(), CommandError> {
    let register = cx.keys.typed::<RegisterRef>(key)?;
    cx.keys.looked_up(key, register.is_some());
    match register.and_then(|register| register.current()) {
        Some(current) => reply_current(&mut cx.reply, current),
        None => cx.reply.null(),
    }
    Ok(())
}

fn reply_current(reply: &mut Reply<'_>, current: Current<'_>) {
    reply.array(2);
    reply.bulk(current.value);
    match i64::try_from(current.version.round) {
        Ok(round) if current.version.epoch == 0 => reply.bulk_integer(round),
        _ => reply.bulk(current.version.to_string().as_bytes()),
    }
}
