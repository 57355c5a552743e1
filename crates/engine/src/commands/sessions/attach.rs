//! SESSION.ATTACH and SESSION.DETACH: the connection that a session's requests are sent to as they come.

use super::NO_SESSION;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::{ReadCx, WholeServer, WriteCx};
use keyspace::Effect;
use keyspace::types::session;
use resp::Protocol;

pub(super) fn attach(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    if cx.client.protocol != Protocol::Resp3 {
        return Err(CommandError::fixed("ERR requests of a session are sent in RESP3: HELLO 3 first"));
    }
    let engine = cx.server();
    let session = cx.keys.session_to_change(key)?.ok_or(NO_SESSION)?;
    // From here on every request is noted for this client; those that are pending go first.
    session.attach(cx.client.id());
    let last = session.last_id();
    let first = session.pending_after(0).next().map(|first| first.id);
    let at_ms = cx.keys.now_ms.max(session.newest_sent_ms());
    engine.sessions.note_attached();
    for request in session.pending_after(0) {
        cx.keys.deliver(cx.client.id(), key, request);
    }
    if let Some(first) = first {
        cx.keys.record(&Effect::change(key, session::Change::Sent { first, last, at_ms }));
    }
    let attached = cx.client.attached.get_or_insert_default();
    if attached.insert((cx.keys.db(), key.name.into())) {
        cx.client.handle.add_name(key.name.len());
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn detach(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    if let Some(attached) = &mut cx.client.attached {
        if attached.remove(&(cx.keys.db(), key.name.into())) {
            cx.client.handle.remove_names(1, key.name.len());
        }
        if attached.is_empty() {
            cx.client.attached = None;
        }
    }
    let session = cx.keys.session(key)?;
    let own = session.filter(|session| session.attached() == cx.client.handle.id);
    if let Some(session) = own {
        session.detach();
    }
    cx.reply.integer(own.is_some().into());
    Ok(())
}
