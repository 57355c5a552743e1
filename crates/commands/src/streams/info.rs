//! XINFO.

use super::groups::{no_group_for, subcommand_syntax};
use super::ids::reply_id;
use super::ranges::{reply_entries, reply_entry};
use execution::args::Args;
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use execution::view::View;
use keyspace::Key;
use keyspace::types::stream::{Consumer, Group, Idempotency, NEVER_ACTIVE, Stream, StreamId};
use resp::Reply;

/// How many entries FULL shows of each list, by default.
const COUNT_DEFAULT: usize = 10;

fn existing<'k>(keys: &'k View<'_>, key: Key<'_>) -> Result<&'k Stream, CommandError> {
    let stream = keys.typed::<&Stream>(key)?;
    keys.looked_up(key, stream.is_some());
    stream.ok_or(CommandError::NoSuchKey)
}

pub(super) fn consumers(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, name) = (cx.args.key()?, cx.args.bytes()?);
    let group = existing(&cx.keys, key)?.group(name).ok_or_else(|| no_group_for(name, key))?;
    cx.reply.array(group.consumers().len());
    for consumer in group.consumers() {
        let ms_since = |then: i64| (cx.keys.now_ms as i64).wrapping_sub(then).max(0);
        let idle_ms = ms_since(consumer.seen_ms());
        let inactive_ms = match consumer.active_ms() {
            NEVER_ACTIVE => -1,
            active_ms => ms_since(active_ms),
        };
        cx.reply.map(4);
        cx.reply.bulk(b"name");
        cx.reply.bulk(consumer.name());
        cx.reply.bulk(b"pending");
        cx.reply.integer(consumer.len() as i64);
        cx.reply.bulk(b"idle");
        cx.reply.integer(idle_ms);
        cx.reply.bulk(b"inactive");
        cx.reply.integer(inactive_ms);
    }
    Ok(())
}

pub(super) fn groups(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let stream = existing(&cx.keys, key)?;
    cx.reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        cx.reply.map(6);
        cx.reply.bulk(b"name");
        cx.reply.bulk(name);
        cx.reply.bulk(b"consumers");
        cx.reply.integer(group.consumers().len() as i64);
        cx.reply.bulk(b"pending");
        cx.reply.integer(group.len() as i64);
        reply_progress(&mut cx.reply, stream, group);
    }
    Ok(())
}

/// How far a group has read.
fn reply_progress(reply: &mut Reply<'_>, stream: &Stream, group: &Group) {
    reply.bulk(b"last-delivered-id");
    reply_id(reply, group.last);
    reply.bulk(b"entries-read");
    reply_known(reply, group.entries_read.map(|read| read as i64));
    reply.bulk(b"lag");
    reply_known(reply, stream.lag(group));
}

fn reply_known(reply: &mut Reply<'_>, number: Option<i64>) {
    match number {
        Some(number) => reply.integer(number),
        None => reply.null(),
    }
}

pub(super) fn stream(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let stream = existing(&cx.keys, key)?;
    let count = match cx.args.left() {
        0 => None,
        _ => Some(full_count(&mut cx.args)?),
    };
    let reply = &mut cx.reply;
    let idempotency = stream.idempotency();
    let of_producers = if idempotency.is_some() { 6 } else { 0 };
    reply.map(of_producers + if count.is_some() { 9 } else { 10 });
    reply.bulk(b"length");
    reply.integer(stream.len() as i64);
    reply.bulk(b"radix-tree-keys");
    reply.integer(stream.chunks() as i64);
    reply.bulk(b"radix-tree-nodes");
    reply.integer(stream.radix_nodes() as i64);
    reply.bulk(b"last-generated-id");
    reply_id(reply, stream.last());
    reply.bulk(b"max-deleted-entry-id");
    reply_id(reply, stream.max_deleted());
    reply.bulk(b"entries-added");
    reply.integer(stream.added() as i64);
    reply.bulk(b"recorded-first-entry-id");
    reply_id(reply, stream.first());
    if let Some(ids) = idempotency {
        reply_idempotency(reply, ids, cx.keys.now_ms);
    }
    match count {
        None => reply_ends(reply, stream),
        Some(count) => reply_full(reply, stream, count),
    }
    Ok(())
}

/// What is known of producers that use ids of their own.
fn reply_idempotency(reply: &mut Reply<'_>, ids: &Idempotency, now_ms: u64) {
    let (producers, tracked) = ids.tracked(now_ms);
    let fields = [
        ("idmp-duration", ids.retention.duration_ms / 1000),
        ("idmp-maxsize", ids.retention.ids_max),
        ("pids-tracked", producers as u64),
        ("iids-tracked", tracked as u64),
        ("iids-added", ids.added),
        ("iids-duplicates", ids.duplicates),
    ];
    for (name, number) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(number as i64);
    }
}

/// How many entries to show of each list. FULL has been parsed.
fn full_count(args: &mut Args<'_>) -> Result<usize, CommandError> {
    let syntax = |args: &Args<'_>| subcommand_syntax("XINFO", args.request().arg(1));
    if !matches!(args.left(), 1 | 3) || !args.take_word("FULL") {
        return Err(syntax(args));
    }
    if args.is_empty() {
        return Ok(COUNT_DEFAULT);
    }
    if !args.take_word("COUNT") {
        return Err(syntax(args));
    }
    Ok(match args.int()? {
        ..0 => COUNT_DEFAULT,
        0 => usize::MAX,
        count => count as usize,
    })
}

fn reply_ends(reply: &mut Reply<'_>, stream: &Stream) {
    reply.bulk(b"groups");
    reply.integer(stream.groups().len() as i64);
    let first = stream.range(StreamId::MIN, StreamId::MAX).next();
    let last = stream.range_back(StreamId::MAX, StreamId::MIN).next();
    for (name, entry) in [(&b"first-entry"[..], first), (b"last-entry", last)] {
        reply.bulk(name);
        match entry {
            Some(entry) => reply_entry(reply, &entry),
            None => reply.null(),
        }
    }
}

fn reply_full(reply: &mut Reply<'_>, stream: &Stream, count: usize) {
    reply.bulk(b"entries");
    reply_entries(reply, stream.range(StreamId::MIN, StreamId::MAX).take(count));
    reply.bulk(b"groups");
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        reply.map(8);
        reply.bulk(b"name");
        reply.bulk(name);
        reply_progress(reply, stream, group);
        reply.bulk(b"pel-count");
        reply.integer(group.len() as i64);
        reply.bulk(b"nacked-count");
        reply.integer(group.released_len() as i64);
        reply.bulk(b"pending");
        reply.array(group.len().min(count));
        for (id, pending) in group.pending(..).take(count) {
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(group.owner_of(pending));
            reply.integer(pending.delivered_ms);
            reply.integer(pending.deliveries() as i64);
        }
        reply.bulk(b"consumers");
        reply.array(group.consumers().len());
        group.consumers().for_each(|consumer| reply_consumer(reply, group, consumer, count));
    }
}

fn reply_consumer(reply: &mut Reply<'_>, group: &Group, consumer: &Consumer, count: usize) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(consumer.name());
    reply.bulk(b"seen-time");
    reply.integer(consumer.seen_ms());
    reply.bulk(b"active-time");
    reply.integer(consumer.active_ms());
    reply.bulk(b"pel-count");
    reply.integer(consumer.len() as i64);
    reply.bulk(b"pending");
    reply.array(consumer.len().min(count));
    for id in consumer.pending(..).take(count) {
        let pending = group.get(id).expect("what is pending for a consumer is pending in its group");
        reply.array(3);
        reply_id(reply, id);
        reply.integer(pending.delivered_ms);
        reply.integer(pending.deliveries() as i64);
    }
}
