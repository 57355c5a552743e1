//! SESSION.INFO and SESSION.LIST: facts about a session, and the names of sessions.

use crate::shared::listing::{Among, ListOptions};
use crate::shared::options::unknown_option;
use execution::context::{ReadCx, WholeServer};
use execution::error::CommandResult;
use execution::sessions;
use keyspace::ValueType;
use keyspace::types::session;
use keyspace::types::session::Session;

pub(super) fn info(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.typed::<&Session>(key)?;
    cx.keys.looked_up(key, found.is_some());
    let Some(session) = found else {
        cx.reply.null();
        return Ok(());
    };
    let attached = sessions::attachments::attached_client(cx.server(), session).is_some();
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
            return Err(unknown_option(&cx.args));
        }
    }
    options.reply(cx, Among::AllKeys, |entry| ValueType::of(entry).is(&session::TYPE));
    Ok(())
}
