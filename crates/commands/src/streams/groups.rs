//! XGROUP and XACK.

use super::ids::{id, id_or_end, text_of};
use super::stamp_ms;
use execution::args::is_word;
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use keyspace::types::stream::{Change, Group, Stream, StreamId};
use keyspace::{Effect, Key};
use smallvec::SmallVec;

const NO_KEY: CommandError = CommandError::fixed(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
);

/// The error for a group that does not exist.
pub(super) fn no_group_for(group: &[u8], key: Key<'_>) -> CommandError {
    let (group, key) = (String::from_utf8_lossy(group), String::from_utf8_lossy(key.name));
    CommandError::said(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

/// The error for a key or a group that does not exist.
pub(super) fn no_key_or_group(key: Key<'_>, group: &[u8]) -> CommandError {
    let (group, key) = (String::from_utf8_lossy(group), String::from_utf8_lossy(key.name));
    CommandError::said(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
}

/// The error for a subcommand with wrong arguments.
pub(super) fn subcommand_syntax(container: &str, given: &[u8]) -> CommandError {
    let given = String::from_utf8_lossy(&given[..given.len().min(128)]);
    CommandError::said(format!(
        "ERR unknown subcommand or wrong number of arguments for '{given}'. Try {container} HELP."
    ))
}

/// The options of CREATE and SETID, after the id.
struct Options {
    makes_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn take(cx: &mut WriteCx<'_>, may_make_stream: bool) -> Result<Options, CommandError> {
        let mut options = Options { makes_stream: false, entries_read: None };
        while let Some(word) = cx.args.try_next() {
            if may_make_stream && is_word(word, "MKSTREAM") {
                options.makes_stream = true;
            } else if is_word(word, "ENTRIESREAD") && !cx.args.is_empty() {
                options.entries_read = match cx.args.int()? {
                    -1 => None,
                    read => Some(
                        u64::try_from(read)
                            .map_err(|_| CommandError::fixed("ERR value for ENTRIESREAD must be positive or -1"))?,
                    ),
                };
            } else {
                return Err(subcommand_syntax("XGROUP", cx.args.request().arg(1)));
            }
        }
        Ok(options)
    }
}

pub(super) fn create(cx: &mut WriteCx<'_>) -> CommandResult {
    const WORDS_MAX: usize = 8;
    let (key, group, at) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let options = Options::take(cx, true)?;
    let words = cx.args.request().len();
    let stream = cx.keys.to_change::<&Stream>(key)?;
    if stream.is_none() && !options.makes_stream {
        return Err(NO_KEY);
    }
    if words > WORDS_MAX {
        return Err(subcommand_syntax("XGROUP", cx.args.request().arg(1)));
    }
    let last = match text_of(at) {
        b"$" => stream.map(Stream::last).unwrap_or_default(),
        _ => id(at, 0)?,
    };
    if stream.is_some_and(|stream| stream.group(group).is_some()) {
        return Err(CommandError::fixed("BUSYGROUP Consumer Group name already exists"));
    }
    let entries_read = options.entries_read;
    cx.keys.record(&Effect::change(key, Change::CreateGroup { group, last, entries_read }));
    cx.keys.notify(Events::STREAM, "xgroup-create", key);
    cx.reply.ok();
    Ok(())
}

/// Finds the stream and the group of a subcommand.
fn needed<'k>(keys: &'k mut Recorder<'_>, key: Key<'_>, group: &[u8]) -> Result<(&'k Stream, &'k Group), CommandError> {
    let stream = keys.to_change::<&Stream>(key)?.ok_or(NO_KEY)?;
    let found = stream.group(group).ok_or_else(|| no_group_for(group, key))?;
    Ok((stream, found))
}

pub(super) fn setid(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, group, at) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let options = Options::take(cx, false)?;
    let request = cx.args.request();
    let (stream, _) = needed(&mut cx.keys, key, group)?;
    if !matches!(request.len(), 5 | 7) {
        return Err(subcommand_syntax("XGROUP", request.arg(1)));
    }
    let last = match text_of(at) {
        b"$" => stream.last(),
        _ => id_or_end(at, 0)?,
    };
    let entries_read = options.entries_read;
    cx.keys.record(&Effect::change(key, Change::SetGroup { group, last, entries_read }));
    cx.keys.notify(Events::STREAM, "xgroup-setid", key);
    cx.reply.ok();
    Ok(())
}

pub(super) fn destroy(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, group) = (cx.args.key()?, cx.args.bytes()?);
    let stream = cx.keys.to_change::<&Stream>(key)?.ok_or(NO_KEY)?;
    let found = stream.group(group).is_some();
    if found {
        cx.keys.record(&Effect::change(key, Change::DestroyGroup { group }));
        cx.keys.notify(Events::STREAM, "xgroup-destroy", key);
    }
    cx.reply.integer(found.into());
    Ok(())
}

pub(super) fn create_consumer(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, group, consumer) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let (_, found) = needed(&mut cx.keys, key, group)?;
    let is_new = found.consumer(consumer).is_none();
    if is_new {
        let at_ms = stamp_ms(cx) as i64;
        cx.keys.record(&Effect::change(key, Change::CreateConsumer { group, consumer, at_ms }));
        cx.keys.notify(Events::STREAM, "xgroup-createconsumer", key);
    }
    cx.reply.integer(is_new.into());
    Ok(())
}

pub(super) fn delete_consumer(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, group, consumer) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let (_, found) = needed(&mut cx.keys, key, group)?;
    let pending = found.consumer(consumer).map(|consumer| consumer.len());
    if pending.is_some() {
        cx.keys.record(&Effect::change(key, Change::DeleteConsumer { group, consumer }));
        cx.keys.notify(Events::STREAM, "xgroup-delconsumer", key);
    }
    cx.reply.integer(pending.unwrap_or(0) as i64);
    Ok(())
}

pub(super) fn xack(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, group) = (cx.args.key()?, cx.args.bytes()?);
    let Some(found) = cx.keys.to_change::<&Stream>(key)?.and_then(|stream| stream.group(group)) else {
        cx.reply.integer(0);
        return Ok(());
    };
    let ids = cx.args.rest().map(|arg| id(arg, 0)).collect::<Result<SmallVec<[StreamId; 16]>, _>>()?;
    let pending: SmallVec<[StreamId; 16]> = ids.into_iter().filter(|id| found.get(*id).is_some()).collect();
    let mut count = 0;
    if !pending.is_empty() {
        count = cx.keys.record(&Effect::change(key, Change::Acknowledge { group, ids: &pending })).count;
    }
    cx.reply.integer(count as i64);
    Ok(())
}
