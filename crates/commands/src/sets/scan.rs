//! SSCAN: the members of a set, step by step.

use crate::shared::scanning::{Selection, parse_cursor, step_size};
use crate::value_reply::ValueReply;
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::types::set::SetRef;
use resp::Reply;

/// The default COUNT of SSCAN.
const SCAN_COUNT: usize = 10;

pub(super) fn sscan(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let cursor = parse_cursor(cx.args.bytes()?).ok_or(CommandError::fixed("ERR invalid cursor"))?;
    let set = cx.keys.typed::<SetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    let Some(set) = set else {
        // Redis does not check the options then.
        cx.reply.array(2);
        cx.reply.bulk(b"0");
        cx.reply.array(0);
        return Ok(());
    };
    let (mut count, mut selection) = (SCAN_COUNT, Selection::All);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "COUNT") {
            count = step_size(cx.args.int()?)?;
        } else if is_word(word, "MATCH") {
            selection = Selection::of(cx.args.bytes()?);
        } else if is_word(word, "NOVALUES") {
            return Err(CommandError::fixed("ERR NOVALUES option can only be used in HSCAN"));
        } else {
            return Err(CommandError::Syntax);
        }
    }
    // The cursor precedes the members in the reply but is known after them, so they are buffered.
    let (mut found, mut items) = (0, Vec::new());
    let mut reply = Reply::new(&mut items, cx.reply.protocol());
    // No step returns a cursor of more than 32 bits: such a cursor is at the end.
    let cursor = u32::try_from(cursor).unwrap_or(u32::MAX);
    let next = set.scan(cursor, count, |member| {
        if member.with_bytes(|name| selection.has(name)) {
            member.reply(&mut reply);
            found += 1;
        }
    });
    cx.reply.array(2);
    cx.reply.bulk_integer(next.map_or(0, i64::from));
    cx.reply.array(found);
    cx.reply.raw(&items);
    Ok(())
}
