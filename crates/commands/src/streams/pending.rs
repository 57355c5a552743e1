//! XPENDING.

use super::groups::no_key_or_group;
use super::ids::{end, reply_id, start};
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::types::stream::{Group, Pending, Stream, StreamId};
use resp::Reply;

/// Which pending entries are requested.
struct Filter<'a> {
    idle_ms: i64,
    from: StreamId,
    to: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

pub(super) fn xpending(cx: &mut ReadCx<'_>) -> CommandResult {
    let words = cx.args.request().len();
    if words != 3 && !(6..=9).contains(&words) {
        return Err(CommandError::Syntax);
    }
    let (key, group) = (cx.args.key()?, cx.args.bytes()?);
    let filter = if words > 3 { Some(filter(cx)?) } else { None };
    let stream = cx.keys.typed::<&Stream>(key)?;
    cx.keys.looked_up(key, stream.is_some());
    let found = stream.and_then(|stream| stream.group(group)).ok_or_else(|| no_key_or_group(key, group))?;
    match filter {
        None => summary(&mut cx.reply, found),
        Some(filter) => list(&mut cx.reply, found, &filter, cx.keys.now_ms as i64),
    }
    Ok(())
}

fn filter<'a>(cx: &mut ReadCx<'a>) -> Result<Filter<'a>, CommandError> {
    let mut idle_ms = 0;
    let is_idle = cx.args.peek().is_some_and(|word| is_word(word, "IDLE"));
    if is_idle {
        cx.args.bytes()?;
        idle_ms = cx.args.int()?;
        if cx.args.left() < 3 {
            return Err(CommandError::Syntax);
        }
    }
    let (from, to) = (cx.args.bytes()?, cx.args.bytes()?);
    let count = usize::try_from(cx.args.int()?).unwrap_or(0);
    let (from, to) = (start(from)?, end(to)?);
    Ok(Filter { idle_ms, from, to, count, consumer: cx.args.try_next() })
}

fn summary(reply: &mut Reply<'_>, group: &Group) {
    reply.array(4);
    reply.integer(group.len() as i64);
    let mut pending = group.pending(..);
    let Some((first, _)) = pending.next() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply_id(reply, first);
    reply_id(reply, pending.next_back().map_or(first, |(last, _)| last));
    let open = reply.open_array();
    let mut count = 0;
    for consumer in group.consumers().filter(|consumer| !consumer.is_empty()) {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(consumer.len() as i64);
        count += 1;
    }
    reply.close(open, count);
}

/// For how long an entry has been pending since its last delivery; -1 when it was released.
pub(super) fn idle_ms(pending: &Pending, now_ms: i64) -> i64 {
    match pending.is_released() {
        true => -1,
        false => now_ms.wrapping_sub(pending.delivered_ms).max(0),
    }
}

fn list(reply: &mut Reply<'_>, group: &Group, filter: &Filter<'_>, now_ms: i64) {
    let open = reply.open_array();
    let mut count = 0;
    if filter.from <= filter.to {
        let range = filter.from..=filter.to;
        let is_idle =
            |pending: &Pending| filter.idle_ms == 0 || now_ms.wrapping_sub(pending.delivered_ms) >= filter.idle_ms;
        let mut put = |(id, pending): (StreamId, &Pending)| {
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(group.owner_of(pending));
            reply.integer(idle_ms(pending, now_ms));
            reply.integer(pending.deliveries() as i64);
            count += 1;
        };
        match filter.consumer {
            None => group.pending(range).filter(|(_, pending)| is_idle(pending)).take(filter.count).for_each(&mut put),
            Some(name) => {
                let ids = group.consumer(name).into_iter().flat_map(|consumer| consumer.pending(range.clone()));
                let pending = ids.filter_map(|id| Some((id, group.get(id)?)));
                pending.filter(|(_, pending)| is_idle(pending)).take(filter.count).for_each(&mut put);
            }
        }
    }
    reply.close(open, count);
}
