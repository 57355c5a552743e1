//! XRANGE and XREVRANGE, and the form of an entry in a reply.

use super::ids::{end, reply_id, start};
use crate::value_reply::ValueReply;
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::types::stream::{EntryRef, Stream};
use resp::Reply;

pub(super) fn xrange(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, false)
}

pub(super) fn xrevrange(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, true)
}

fn range(cx: &mut ReadCx<'_>, is_reversed: bool) -> CommandResult {
    let key = cx.args.key()?;
    let (first, second) = (cx.args.bytes()?, cx.args.bytes()?);
    let (from, to) = if is_reversed { (second, first) } else { (first, second) };
    let (from, to) = (start(from)?, end(to)?);
    let mut count = None;
    while let Some(word) = cx.args.try_next() {
        if !is_word(word, "COUNT") || cx.args.is_empty() {
            return Err(CommandError::Syntax);
        }
        count = Some(cx.args.int()?);
    }
    let found = cx.keys.typed::<&Stream>(key)?;
    cx.keys.looked_up(key, found.is_some());
    let Some(stream) = found else {
        cx.reply.array(0);
        return Ok(());
    };
    // In Redis a negative count means none.
    let count = match count {
        Some(..=0) => {
            cx.reply.null_array();
            return Ok(());
        }
        Some(count) => count as usize,
        None => usize::MAX,
    };
    match is_reversed {
        true => reply_entries(&mut cx.reply, stream.range_back(to, from).take(count)),
        false => reply_entries(&mut cx.reply, stream.range(from, to).take(count)),
    };
    Ok(())
}

/// Writes entries as an array. Returns their number.
pub(super) fn reply_entries<'a>(reply: &mut Reply<'_>, entries: impl Iterator<Item = EntryRef<'a>>) -> usize {
    let open = reply.open_array();
    let mut count = 0;
    for entry in entries {
        reply_entry(reply, &entry);
        count += 1;
    }
    reply.close(open, count);
    count
}

/// Writes an entry: its id, and its fields as a flat array.
#[inline]
pub(super) fn reply_entry(reply: &mut Reply<'_>, entry: &EntryRef<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    reply_fields(reply, entry);
}

/// Writes the fields of an entry as a flat array.
#[inline]
pub(super) fn reply_fields(reply: &mut Reply<'_>, entry: &EntryRef<'_>) {
    reply.array(2 * entry.len());
    for (name, value) in entry.fields() {
        name.reply(reply);
        value.reply(reply);
    }
}
