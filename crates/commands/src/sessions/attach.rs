//! SESSION.ATTACH and SESSION.DETACH: choose the connection to which a session's requests are sent.

use super::NO_SESSION;
use execution::clients::NameKind;
use execution::commit;
use execution::conditions;
use execution::context::{ReadCx, ScriptCx};
use execution::error::{CommandError, CommandResult};
use execution::indexes::is_index;
use execution::own_changes;
use execution::revealed;
use execution::sessions;
use execution::sessions::lookup::{Found, find};
use keyspace::Effect;
use keyspace::types::session;
use keyspace::types::session::Session;
use resp::Protocol;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn attach(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let key = cx.args.key()?;
    if cx.engine.indexes.has_any_of([key.name].into_iter()) {
        revealed::await_definitions(cx)?;
        return Err(is_index(key.name));
    }
    if cx.client.protocol != Protocol::Resp3 {
        return Err(CommandError::fixed("ERR requests of a session are sent in RESP3: HELLO 3 first"));
    }
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    sessions::attachments::forget_ended_if_many(engine, cx.client, now_ms);
    let mut locked = engine.keyspace.lock_key_unless_busy(key).ok_or_else(|| conditions::busy(engine))?;
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    let Found::Alive(session) = find(&locked, db, key, now_ms)? else { return Err(NO_SESSION) };
    // From here on every request is sent to this client; the pending ones come first.
    session.attach(cx.client.id());
    engine.sessions.note_attached();
    let last = session.last_id();
    let first = session.pending_after(0).next().map(|first| first.id);
    let at_ms = now_ms.max(session.newest_sent_ms());
    for request in session.pending_after(0) {
        cx.worker.batch.notifications.request(cx.client.id(), key.name, request.id, request.payload);
    }
    if let Some(first) = first {
        let mut keys = own_changes::own_changes(engine, cx.worker, locked.lend(), db);
        keys.record(&Effect::change(key, session::Change::Sent { first, last, at_ms }));
        keys.finish();
    }
    commit::commit(engine, cx.worker, Some(cx.client), &mut locked);
    drop(locked);
    let attached = cx.client.attached.get_or_insert_default();
    if attached.names.insert((db, key.name.into())) {
        cx.client.handle.add_name(NameKind::Attachment.bytes(key.name.len()));
        cx.client.handle.has_attached.store(true, Relaxed);
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn detach(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    if let Some(attached) = &mut cx.client.attached {
        if attached.names.remove(&(cx.keys.db(), key.name.into())) {
            cx.client.handle.remove_names(NameKind::Attachment.bytes(key.name.len()));
        }
        if attached.names.is_empty() {
            cx.client.attached = None;
        }
    }
    let session = cx.keys.typed::<&Session>(key)?;
    let own = session.filter(|session| session.attached() == cx.client.handle.id);
    if let Some(session) = own {
        session.detach();
        cx.client.settle_messages(&mut cx.reply);
    }
    cx.reply.integer(own.is_some().into());
    Ok(())
}
