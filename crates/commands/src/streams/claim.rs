//! XCLAIM and XAUTOCLAIM: move pending entries to another consumer.

use super::groups::no_key_or_group;
use super::ids::{id, reply_id, start};
use super::ranges::reply_entry;
use super::read::{make_consumer, see};
use super::stamp_ms;
use execution::args::is_word;
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use keyspace::types::stream::{Change, Delivery, Group, Pending, Stream, StreamId};
use keyspace::{Effect, Key};
use numbers::parse_i64;
use smallvec::SmallVec;

/// Parses a number; `error` is the text of the error.
fn number(text: &[u8], error: &'static str) -> Result<i64, CommandError> {
    parse_i64(text).ok_or(CommandError::fixed(error))
}

/// The options of XCLAIM after the ids.
#[derive(Default)]
struct Options {
    delivered_ms: Option<i64>,
    deliveries: Option<u64>,
    force: bool,
    just_ids: bool,
    last: StreamId,
}

impl Options {
    fn take(cx: &mut WriteCx<'_>, now_ms: i64) -> Result<Options, CommandError> {
        let mut options = Options::default();
        while let Some(word) = cx.args.try_next() {
            let has_more = !cx.args.is_empty();
            if is_word(word, "FORCE") {
                options.force = true;
            } else if is_word(word, "JUSTID") {
                options.just_ids = true;
            } else if is_word(word, "IDLE") && has_more {
                let idle = number(cx.args.bytes()?, "ERR Invalid IDLE option argument for XCLAIM")?;
                options.delivered_ms = Some(now_ms.wrapping_sub(idle));
            } else if is_word(word, "TIME") && has_more {
                options.delivered_ms = Some(number(cx.args.bytes()?, "ERR Invalid TIME option argument for XCLAIM")?);
            } else if is_word(word, "RETRYCOUNT") && has_more {
                let count = number(cx.args.bytes()?, "ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
                options.deliveries = u64::try_from(count).ok();
            } else if is_word(word, "LASTID") && has_more {
                options.last = id(cx.args.bytes()?, 0)?;
            } else {
                let word = String::from_utf8_lossy(word);
                return Err(CommandError::said(format!("ERR Unrecognized XCLAIM option '{word}'")));
            }
        }
        Ok(options)
    }
}

/// True when a pending entry has been idle for so long, or was released.
fn is_idle(pending: &Pending, idle_ms: i64, now_ms: i64) -> bool {
    idle_ms == 0 || pending.is_released() || now_ms.wrapping_sub(pending.delivered_ms) >= idle_ms
}

/// Finds the stream and its group.
fn found<'k>(keys: &'k Recorder<'_>, key: Key<'_>, group: &[u8]) -> Result<(&'k Stream, &'k Group), CommandError> {
    let stream = keys.view().typed::<&Stream>(key)?;
    let found = stream.and_then(|stream| Some((stream, stream.group(group)?)));
    found.ok_or_else(|| no_key_or_group(key, group))
}

pub(super) fn xclaim(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, group, consumer, idle) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?, cx.args.bytes()?);
    cx.keys.to_change::<&Stream>(key)?;
    found(&cx.keys, key, group)?;
    let idle_ms = number(idle, "ERR Invalid min-idle-time argument for XCLAIM")?.max(0);
    let mut ids = SmallVec::<[StreamId; 16]>::new();
    // The first argument that is not an id begins the options.
    while let Some(Ok(id)) = cx.args.peek().map(|arg| id(arg, 0)) {
        cx.args.bytes()?;
        ids.push(id);
    }
    let now_ms = stamp_ms(cx) as i64;
    let options = Options::take(cx, now_ms)?;
    let (_, at) = found(&cx.keys, key, group)?;
    if options.last > at.last {
        cx.keys.record(&Effect::change(key, Change::Advance { group, last: options.last }));
    }
    make_consumer(cx, key, group, consumer)?;
    // An impossible time counts as now.
    let delivered_ms = options.delivered_ms.filter(|ms| (0..=now_ms).contains(ms)).unwrap_or(now_ms);
    let open = cx.reply.open_array();
    let mut count = 0;
    // An id that is given twice is claimed the second time in the state that the first claim left.
    let is_each_once = {
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    for some in ids.chunks(if is_each_once { ids.len().max(1) } else { 1 }) {
        let (mut claimed, mut gone) = (Vec::new(), Vec::new());
        let (stream, at) = found(&cx.keys, key, group)?;
        for id in some {
            let pending = at.get(*id);
            let Some(entry) = stream.get(*id) else {
                gone.extend(pending.map(|_| *id));
                continue;
            };
            let before = match pending {
                Some(pending) if !is_idle(pending, idle_ms, now_ms) => continue,
                Some(pending) => pending.deliveries(),
                None if options.force => 1,
                None => continue,
            };
            let one_more = u64::from(!options.just_ids);
            let deliveries = options.deliveries.unwrap_or(before.wrapping_add(one_more));
            claimed.push(Delivery { id: *id, delivered_ms, deliveries });
            match options.just_ids {
                true => reply_id(&mut cx.reply, *id),
                false => reply_entry(&mut cx.reply, &entry),
            }
        }
        count += claimed.len();
        record(cx, key, group, consumer, &claimed, &gone);
    }
    cx.reply.close(open, count);
    if count == 0 {
        see(cx, key, group, consumer);
    }
    Ok(())
}

/// Records that entries are pending for a consumer, and that deleted entries are pending for none.
fn record(cx: &mut WriteCx<'_>, key: Key<'_>, group: &[u8], consumer: &[u8], claimed: &[Delivery], gone: &[StreamId]) {
    if !gone.is_empty() {
        cx.keys.record(&Effect::change(key, Change::Acknowledge { group, ids: gone }));
    }
    if !claimed.is_empty() {
        let at_ms = stamp_ms(cx) as i64;
        cx.keys.record(&Effect::change(key, Change::Claim { group, consumer, at_ms, deliveries: claimed }));
    }
}

pub(super) fn xautoclaim(cx: &mut WriteCx<'_>) -> CommandResult {
    const COUNT_MAX: i64 = i64::MAX / 16;
    const BAD_COUNT: CommandError = CommandError::fixed("ERR COUNT must be > 0");
    /// Entries that are checked for each one that may be claimed.
    const LOOKED_AT: usize = 10;
    let (key, group, consumer, idle) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?, cx.args.bytes()?);
    let idle_ms = number(idle, "ERR Invalid min-idle-time argument for XAUTOCLAIM")?.max(0);
    let from = start(cx.args.bytes()?)?;
    let (mut count, mut just_ids) = (100, false);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "COUNT") && !cx.args.is_empty() {
            let given = parse_i64(cx.args.bytes()?).filter(|count| (1..=COUNT_MAX).contains(count));
            count = given.ok_or(BAD_COUNT)? as usize;
        } else if is_word(word, "JUSTID") {
            just_ids = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    cx.keys.to_change::<&Stream>(key)?;
    found(&cx.keys, key, group)?;
    make_consumer(cx, key, group, consumer)?;
    let (stream, at) = found(&cx.keys, key, group)?;
    let now_ms = stamp_ms(cx) as i64;
    let (mut claimed, mut gone) = (Vec::new(), Vec::new());
    let mut pending = at.pending(from..);
    let mut looked_at = 0;
    while looked_at < count.saturating_mul(LOOKED_AT) && claimed.len() + gone.len() < count {
        let Some((id, pending)) = pending.next() else { break };
        looked_at += 1;
        if stream.get(id).is_none() {
            gone.push(id);
        } else if is_idle(pending, idle_ms, now_ms) {
            let deliveries = pending.deliveries().wrapping_add(u64::from(!just_ids));
            claimed.push(Delivery { id, delivered_ms: now_ms, deliveries });
        }
    }
    let next = pending.next().map_or(StreamId::MIN, |(id, _)| id);
    drop(pending);
    cx.reply.array(3);
    reply_id(&mut cx.reply, next);
    cx.reply.array(claimed.len());
    for delivery in &claimed {
        match stream.get(delivery.id) {
            Some(entry) if !just_ids => reply_entry(&mut cx.reply, &entry),
            _ => reply_id(&mut cx.reply, delivery.id),
        }
    }
    cx.reply.array(gone.len());
    gone.iter().for_each(|id| reply_id(&mut cx.reply, *id));
    record(cx, key, group, consumer, &claimed, &gone);
    if claimed.is_empty() {
        see(cx, key, group, consumer);
    }
    Ok(())
}
