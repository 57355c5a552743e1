//! SESSION.PUSH, SESSION.PENDING and SESSION.ACK: requests to the client of a session.

use super::NO_SESSION;
use crate::shared::options::{error, limit, number, once, unknown_option};
use execution::args::is_word;
use execution::context::{ReadCx, WriteCx};
use execution::error::CommandResult;
use execution::settings::events::Events;
use execution::waiting::keys::{Condition, Wait, WaitKeys, WaitRole};
use keyspace::types::session::{self, NUMBER_MAX, Session};
use keyspace::{Effect, Value};

/// The default LIMIT of SESSION.PENDING.
const LIMIT_DEFAULT: usize = 1000;

pub(super) fn push(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, payload) = (cx.args.key()?, cx.args.bytes()?);
    let session = cx.keys.view().typed::<&Session>(key)?.ok_or(NO_SESSION)?;
    let limit = cx.settings.session_pending_max();
    if session.pending_len() as u64 >= limit {
        return Err(error(format!(
            "{limit} requests of the session are pending (session-pending-max): SESSION.ACK some first"
        )));
    }
    let id = session.last_id() + 1;
    // Times of requests never decrease, even when the clock is set back.
    let at_ms = cx.keys.now_ms().max(session.newest_sent_ms());
    if id > NUMBER_MAX {
        return Err(error("the session has had as many requests as it can: open another one".into()));
    }
    cx.keys.record(&Effect::change(key, session::Change::Push { id, at_ms, payload }));
    cx.keys.notify(Events::MODULE, "session.push", key);
    cx.reply.integer(id as i64);
    Ok(())
}

pub(super) fn ack(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let asked = number(&mut cx.args, "the id of the request", 0, i64::MAX)? as u64;
    let session = cx.keys.view().typed::<&Session>(key)?.ok_or(NO_SESSION)?;
    // An id beyond the last one does not acknowledge future requests.
    let upto = asked.min(session.last_id());
    let first = session.pending_after(0).next();
    let mut count = 0;
    if first.is_some_and(|first| first.id <= upto) {
        count = cx.keys.record(&Effect::change(key, session::Change::Acknowledge { upto })).count;
        cx.keys.notify(Events::MODULE, "session.ack", key);
    }
    cx.reply.integer(count as i64);
    Ok(())
}

pub(super) fn pending(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (mut after, mut limit_asked, mut block_ms) = (None, None, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "AFTER") {
            once(&mut after, number(&mut cx.args, "the id behind AFTER", 0, i64::MAX)? as u64, "AFTER")?;
        } else if is_word(word, "LIMIT") {
            once(&mut limit_asked, limit(&mut cx.args)?, "LIMIT")?;
        } else if is_word(word, "BLOCK") {
            let wait_ms = number(&mut cx.args, "the time behind BLOCK", 0, i64::MAX)?;
            once(&mut block_ms, wait_ms as u64, "BLOCK")?;
        } else {
            return Err(unknown_option(&cx.args));
        }
    }
    let (after, limit) = (after.unwrap_or(0), limit_asked.unwrap_or(LIMIT_DEFAULT));
    let session = cx.keys.typed::<&Session>(key)?;
    cx.keys.looked_up(key, session.is_some());
    let session = session.ok_or(NO_SESSION)?;
    let requests = session.pending_after(after);
    let count = requests.len().min(limit);
    cx.reply.array(count);
    for request in requests.take(count) {
        cx.reply.array(3);
        cx.reply.integer(request.id as i64);
        cx.reply.bulk(request.payload);
        cx.reply.integer(request.sent_ms as i64);
    }
    if count == 0
        && limit > 0
        && let Some(block_ms) = block_ms
        && cx.client.offer().is_none()
    {
        let until_ms = (block_ms > 0).then(|| cx.keys.now_ms.saturating_add(block_ms));
        let condition = another_request(after, session);
        cx.client.wait(Wait { until_ms, keys: WaitKeys::All, condition, role: WaitRole::Reader });
    }
    Ok(())
}

/// The condition that ends a wait for a request after an id: a new request, or the end of the session.
fn another_request(after: u64, session: &Session) -> Condition {
    let birth = session.birth();
    Box::new(move |value| match value {
        Some(Value::Session(session)) => session.birth() != birth || session.pending_after(after).len() > 0,
        _ => true,
    })
}
