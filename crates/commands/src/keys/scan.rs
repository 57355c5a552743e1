//! Lists the names of a database: KEYS all at once, SCAN a few at a time. Refuses to change anything, even to remove
//! expired keys.

use crate::shared::scanning::{ScanCursor, Selection, parse_cursor, step_size};
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::ValueType;
use resp::Reply;

pub(super) fn keys(cx: &mut ReadCx<'_>) -> CommandResult {
    let selection = Selection::of(cx.args.bytes()?);
    let open = cx.reply.open_array();
    let mut len = 0;
    for (_, shard) in cx.keys.locked().shards() {
        let names = shard.db(cx.keys.db()).iter(cx.keys.now_ms).map(|entry| entry.name());
        for name in names.filter(|name| selection.has(name)) {
            cx.reply.bulk(name);
            len += 1;
        }
    }
    cx.reply.close(open, len);
    Ok(())
}

/// The default COUNT of SCAN.
const COUNT_DEFAULT: usize = 10;

pub(super) fn scan(cx: &mut ReadCx<'_>) -> CommandResult {
    let cursor = parse_cursor(cx.args.bytes()?).ok_or(CommandError::fixed("ERR invalid cursor"))?;
    let mut at = ScanCursor::from_number(cursor);
    let (mut selection, mut count, mut type_name) = (Selection::All, COUNT_DEFAULT, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "COUNT") {
            count = step_size(cx.args.int()?)?;
        } else if is_word(word, "MATCH") {
            selection = Selection::of(cx.args.bytes()?);
        } else if is_word(word, "TYPE") {
            type_name = Some(cx.args.bytes()?);
        } else if is_word(word, "NOVALUES") {
            return Err(CommandError::fixed("ERR NOVALUES option can only be used in HSCAN"));
        } else {
            return Err(CommandError::Syntax);
        }
    }
    // The cursor precedes the names in the reply but is known after them.
    let (mut names, mut len, mut seen) = (Vec::new(), 0, 0);
    let shard_count = cx.shard_count();
    while at.shard < shard_count && seen < count {
        let next = cx.shard(at.shard, |db| {
            db.scan(at.position, count - seen, cx.keys.now_ms, |entry| {
                seen += 1;
                if selection.has(entry.name()) && type_name.is_none_or(|name| is_word(name, ValueType::of(entry).name))
                {
                    Reply::new(&mut names, cx.reply.protocol()).bulk(entry.name());
                    len += 1;
                }
            })
        });
        at = match next {
            Some(position) => ScanCursor { position, ..at },
            None => ScanCursor { shard: at.shard + 1, position: 0 },
        };
    }
    cx.reply.array(2);
    cx.reply.bulk_integer(if at.shard < shard_count { at.to_number() } else { 0 });
    cx.reply.array(len);
    cx.reply.raw(&names);
    Ok(())
}
