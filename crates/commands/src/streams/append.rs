//! XADD, XLEN and XSETID.

use super::idempotency::{find_added, remember};
use super::ids::{NewId, id, reply_id};
use super::stamp_ms;
use super::trim::{Options, trim};
use execution::args::is_word;
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::Effect;
use keyspace::types::stream::{CHUNK_BYTES_MAX, Change, Field, Stream, StreamId};
use smallvec::SmallVec;

pub(super) fn xadd(cx: &mut WriteCx<'_>) -> CommandResult {
    const NOT_ABOVE_ZERO: CommandError = CommandError::fixed("ERR The ID specified in XADD must be greater than 0-0");
    const EXHAUSTED: CommandError =
        CommandError::fixed("ERR The stream has exhausted the last possible ID, unable to add more items");
    const TOO_LARGE: CommandError = CommandError::fixed("ERR Elements are too large to be stored");
    let key = cx.args.key()?;
    let options = Options::of_xadd(&mut cx.args, cx.keys.thresholds().stream.entries_max)?;
    let words = cx.args.left();
    let id = options.id.filter(|_| words >= 2 && words.is_multiple_of(2));
    let id = id.ok_or(CommandError::WrongArity("xadd".into()))?;
    if id == NewId::Exact(StreamId::MIN) {
        return Err(NOT_ABOVE_ZERO);
    }
    let now_ms = stamp_ms(cx);
    let last = match cx.keys.to_change::<&Stream>(key)? {
        Some(stream) => stream.last(),
        None if options.makes_stream => StreamId::MIN,
        None => {
            cx.reply.null();
            return Ok(());
        }
    };
    if last == StreamId::MAX && options.given.is_none() {
        return Err(EXHAUSTED);
    }
    let id = next_id(last, id, now_ms);
    let mut fields: SmallVec<[Field<'_>; 8]> = SmallVec::new();
    let mut bytes = 0;
    while let Some(name) = cx.args.try_next() {
        let value = cx.args.bytes()?;
        bytes += (name.len() + value.len()) as u64;
        fields.push((name, value));
    }
    let given = options.given.map(|given| given.resolve(&fields));
    if let Some((producer, own_id)) = &given
        && let Some(added) = find_added(cx, key, producer, own_id)?
    {
        reply_id(&mut cx.reply, added);
        return Ok(());
    }
    let id = id?;
    if bytes > CHUNK_BYTES_MAX {
        return Err(TOO_LARGE);
    }
    cx.keys.record(&Effect::change(key, Change::Append { id, fields: &fields }));
    if let Some((producer, own_id)) = &given {
        remember(cx, key, producer, own_id, id)?;
    }
    cx.keys.notify(Events::STREAM, "xadd", key);
    if let Some(trimming) = options.trimming {
        trim(&mut cx.keys, key, &trimming)?;
    }
    reply_id(&mut cx.reply, id);
    Ok(())
}

/// The id of a new entry after the last one.
fn next_id(last: StreamId, asked: NewId, now_ms: u64) -> Result<StreamId, CommandError> {
    const NOT_ABOVE_LAST: CommandError =
        CommandError::fixed("ERR The ID specified in XADD is equal or smaller than the target stream top item");
    let id = match asked {
        NewId::Auto => last.after_at(now_ms),
        NewId::Ms(ms) if ms == last.ms => last.seq.checked_add(1).map(|seq| StreamId { ms, seq }),
        NewId::Ms(ms) => Some(StreamId { ms, seq: 0 }),
        NewId::Exact(id) => Some(id),
    };
    id.filter(|id| *id > last).ok_or(NOT_ABOVE_LAST)
}

pub(super) fn xlen(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let stream = cx.keys.typed::<&Stream>(key)?;
    cx.keys.looked_up(key, stream.is_some());
    cx.reply.integer(stream.map_or(0, Stream::len) as i64);
    Ok(())
}

pub(super) fn xsetid(cx: &mut WriteCx<'_>) -> CommandResult {
    const NEGATIVE: CommandError = CommandError::fixed("ERR entries_added must be positive");
    const BELOW_DELETED: CommandError =
        CommandError::fixed("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
    const BELOW_CURRENT_DELETED: CommandError =
        CommandError::fixed("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
    const BELOW_TOP: CommandError =
        CommandError::fixed("ERR The ID specified in XSETID is smaller than the target stream top item");
    const BELOW_LENGTH: CommandError =
        CommandError::fixed("ERR The entries_added specified in XSETID is smaller than the target stream length");
    let key = cx.args.key()?;
    let last = id(cx.args.bytes()?, 0)?;
    let (mut added, mut max_deleted) = (None, StreamId::MIN);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "ENTRIESADDED") && !cx.args.is_empty() {
            added = Some(u64::try_from(cx.args.int()?).map_err(|_| NEGATIVE)?);
        } else if is_word(word, "MAXDELETEDID") && !cx.args.is_empty() {
            max_deleted = id(cx.args.bytes()?, 0)?;
            if last < max_deleted {
                return Err(BELOW_DELETED);
            }
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let stream = cx.keys.to_change::<&Stream>(key)?.ok_or(CommandError::NoSuchKey)?;
    if last < stream.max_deleted() {
        return Err(BELOW_CURRENT_DELETED);
    }
    if let Some(top) = stream.last_entry() {
        if last < top {
            return Err(BELOW_TOP);
        }
        if added.is_some_and(|added| added < stream.len()) {
            return Err(BELOW_LENGTH);
        }
    }
    let added = added.unwrap_or(stream.added());
    let max_deleted = if max_deleted == StreamId::MIN { stream.max_deleted() } else { max_deleted };
    cx.keys.record(&Effect::change(key, Change::SetId { last, added, max_deleted }));
    cx.keys.notify(Events::STREAM, "xsetid", key);
    cx.reply.ok();
    Ok(())
}
