//! SESSION.INFO and SESSION.LIST: what there is of a session, and which sessions there are.

use crate::commands::shared::listing::{Among, ListOptions};
use crate::commands::shared::options::unknown_option;
use crate::error::CommandResult;
use crate::execution::context::{ReadCx, WholeServer};
use keyspace::ValueType;
use keyspace::types::session;

pub(super) fn info(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.session(key)?;
    cx.keys.looked_up(key, found.is_some());
    let Some(session) = found else {
        cx.reply.null();
        return Ok(());
    };
    let attached = cx.server().attached_client(session).is_some();
    cx.reply.map(10);
    cx.reply.bulk(b"sid");
    cx.reply.bulk(key.name);
    for (name, number) in [
        ("created_at", session.created_ms()),
        ("ttl_ms", session.ttl_ms()),
        ("low", session.low()),
        ("replies", session.answers() as u64),
        ("reply_bytes", session.answer_bytes() as u64),
        ("pending", session.pending_len() as u64),
        ("last_id", session.last_id()),
        ("attached", attached.into()),
    ] {
        cx.reply.bulk(name.as_bytes());
        cx.reply.integer(number as i64);
    }
    cx.reply.bulk(b"capabilities");
    cx.reply.map(session.capabilities().count());
    for (name, value) in session.capabilities() {
        cx.reply.bulk(name);
        cx.reply.bulk(value);
    }
    Ok(())
}

pub(super) fn list(cx: &mut ReadCx<'_>) -> CommandResult {
    let mut options = ListOptions::default();
    while let Some(word) = cx.args.try_next() {
        if !options.take(word, &mut cx.args)? {
            return Err(unknown_option(word));
        }
    }
    options.reply(cx, Among::AllKeys, |entry| ValueType::of(entry).is(&session::TYPE));
    Ok(())
}
