//! Commands that push elements to an end of a list, or pop them, blocking or not. Moves from list to list are in
//! `moves`.

use super::{pop_event, push_event, side};
use crate::shared::deadline::timeout;
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use execution::waiting::keys::{Wait, WaitKeys, WaitRole};
use keyspace::types::list::{Change, ListRef, Side};
use keyspace::{Cause, Effect, Key, Value};
use numbers::parse_i64;
use resp::Reply;
use smallvec::SmallVec;
use std::ops::Range;

// Pushes --------------------------------------------------------------------------------------------------------------

pub(super) fn lpush(cx: &mut WriteCx<'_>) -> CommandResult {
    push(cx, Side::Left, false)
}

pub(super) fn rpush(cx: &mut WriteCx<'_>) -> CommandResult {
    push(cx, Side::Right, false)
}

pub(super) fn lpushx(cx: &mut WriteCx<'_>) -> CommandResult {
    push(cx, Side::Left, true)
}

pub(super) fn rpushx(cx: &mut WriteCx<'_>) -> CommandResult {
    push(cx, Side::Right, true)
}

fn push(cx: &mut WriteCx<'_>, side: Side, only_known: bool) -> CommandResult {
    let key = cx.args.key()?;
    let is_known = cx.keys.look_at::<ListRef, _>(key, |list| list.is_some())?;
    if only_known && !is_known {
        cx.reply.integer(0);
        return Ok(());
    }
    let elements: SmallVec<[&[u8]; 8]> = cx.args.rest().collect();
    let len = cx.keys.record(&Effect::change(key, Change::Push { side, elements: &elements })).count;
    cx.keys.notify(Events::LIST, push_event(side), key);
    cx.reply.integer(len as i64);
    Ok(())
}

// Pops ----------------------------------------------------------------------------------------------------------------

/// A list of more elements than this that loses all of them is deleted as a whole: it is freed when no lock is held.
const EMPTIED_AT_ONCE_MAX: usize = 1024;

/// Records the removal of so many elements at an end of a list, or of all. True when the key is removed.
pub(super) fn record_pop(keys: &mut Recorder<'_>, key: Key<'_>, side: Side, count: usize, is_all: bool) -> bool {
    match is_all && count > EMPTIED_AT_ONCE_MAX {
        true => {
            keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            true
        }
        false => keys.record(&Effect::change(key, Change::Pop { side, count })).emptied(),
    }
}

/// Records a pop, and notifies subscribers.
fn take(keys: &mut Recorder<'_>, key: Key<'_>, side: Side, count: usize, is_all: bool) {
    let is_gone = record_pop(keys, key, side, count, is_all);
    keys.notify(Events::LIST, pop_event(side), key);
    if is_gone {
        keys.notify(Events::GENERIC, "del", key);
    }
}

/// The indexes of so many elements at an end.
fn indexes(list: ListRef<'_>, side: Side, count: usize) -> Range<usize> {
    let len = list.len();
    match side {
        Side::Left => 0..count.min(len),
        Side::Right => len - count.min(len)..len,
    }
}

/// Replies so many elements, in the order in which they are popped.
fn reply_elements(list: ListRef<'_>, side: Side, count: usize, reply: &mut Reply<'_>) {
    list.visit(indexes(list, side, count), side, |element| {
        element.reply(reply);
        true
    });
}

pub(super) fn lpop(cx: &mut WriteCx<'_>) -> CommandResult {
    pop(cx, Side::Left)
}

pub(super) fn rpop(cx: &mut WriteCx<'_>) -> CommandResult {
    pop(cx, Side::Right)
}

fn pop(cx: &mut WriteCx<'_>, side: Side) -> CommandResult {
    let key = cx.args.key()?;
    match cx.args.left() {
        0 => pop_one(cx, key, side),
        1 => pop_several(cx, key, side),
        _ => Err(CommandError::WrongArity(cx.command.command.name.into())),
    }
}

fn pop_one(cx: &mut WriteCx<'_>, key: Key<'_>, side: Side) -> CommandResult {
    let reply = &mut cx.reply;
    let is_there = cx.keys.look_at::<ListRef, _>(key, |list| match list {
        Some(list) => {
            reply_elements(list, side, 1, reply);
            true
        }
        None => {
            reply.null();
            false
        }
    })?;
    if is_there {
        take(&mut cx.keys, key, side, 1, false);
    }
    Ok(())
}

fn pop_several(cx: &mut WriteCx<'_>, key: Key<'_>, side: Side) -> CommandResult {
    let count = parse_i64(cx.args.bytes()?).and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(CommandError::fixed("ERR value is out of range, must be positive"))?;
    let reply = &mut cx.reply;
    let (taken, is_all) = cx.keys.look_at::<ListRef, _>(key, |list| match list {
        Some(list) => {
            let taken = count.min(list.len());
            reply.array(taken);
            reply_elements(list, side, taken, reply);
            (taken, taken == list.len())
        }
        None => {
            reply.null_array();
            (0, false)
        }
    })?;
    if taken > 0 {
        take(&mut cx.keys, key, side, taken, is_all);
    }
    Ok(())
}

// From the first of several lists that is there -----------------------------------------------------------------------

pub(super) fn blpop(cx: &mut WriteCx<'_>) -> CommandResult {
    pop_or_wait(cx, Side::Left)
}

pub(super) fn brpop(cx: &mut WriteCx<'_>) -> CommandResult {
    pop_or_wait(cx, Side::Right)
}

fn pop_or_wait(cx: &mut WriteCx<'_>, side: Side) -> CommandResult {
    let (request, names) = (cx.args.request(), cx.args.left() - 1);
    let until_ms = timeout(request.arg(request.len() - 1), cx.keys.now_ms())?;
    for _ in 0..names {
        let key = cx.args.key()?;
        let reply = &mut cx.reply;
        let is_there = cx.keys.look_at::<ListRef, _>(key, |list| {
            list.is_some_and(|list| {
                reply.array(2);
                reply.bulk(key.name);
                reply_elements(list, side, 1, reply);
                true
            })
        })?;
        if is_there {
            take(&mut cx.keys, key, side, 1, false);
            return Ok(());
        }
    }
    cx.reply.null_array();
    wait_for_list(cx, until_ms, WaitKeys::All);
    Ok(())
}

pub(super) fn lmpop(cx: &mut WriteCx<'_>) -> CommandResult {
    let several = Several::take(&mut cx.args)?;
    if !pop_from_first(cx, &several)? {
        cx.reply.null_array();
    }
    Ok(())
}

pub(super) fn blmpop(cx: &mut WriteCx<'_>) -> CommandResult {
    let seconds = cx.args.bytes()?;
    let several = Several::take(&mut cx.args)?;
    let until_ms = timeout(seconds, cx.keys.now_ms())?;
    if !pop_from_first(cx, &several)? {
        cx.reply.null_array();
        wait_for_list(cx, until_ms, WaitKeys::All);
    }
    Ok(())
}

/// Waits until one of these keys is a list. On timeout the client gets a null array.
pub(super) fn wait_for_list(cx: &mut WriteCx<'_>, until_ms: Option<u64>, keys: WaitKeys) {
    let condition = Box::new(|value: Option<&Value<'_>>| matches!(value, Some(Value::List(_))));
    cx.client.wait_or_null_array(Wait { until_ms, keys, condition, role: WaitRole::Taker });
}

/// The arguments of LMPOP and BLMPOP.
struct Several<'a> {
    keys: SmallVec<[Key<'a>; 4]>,
    side: Side,
    count: usize,
}

impl<'a> Several<'a> {
    /// Parses the arguments from the number of keys on.
    fn take(args: &mut Args<'a>) -> Result<Several<'a>, CommandError> {
        let positive = |text: &[u8], error: &'static str| {
            let number = parse_i64(text).and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0);
            number.ok_or(CommandError::fixed(error))
        };
        let number = positive(args.bytes()?, "ERR numkeys should be greater than 0")?;
        if number >= args.left() {
            return Err(CommandError::Syntax);
        }
        let keys = (0..number).map(|_| args.key()).collect::<Result<_, _>>()?;
        let side = side(args.bytes()?)?;
        let mut count = None;
        while let Some(word) = args.try_next() {
            if count.is_some() || !is_word(word, "COUNT") || args.is_empty() {
                return Err(CommandError::Syntax);
            }
            count = Some(positive(args.bytes()?, "ERR count should be greater than 0")?);
        }
        Ok(Several { keys, side, count: count.unwrap_or(1) })
    }
}

/// Pops elements from the first existing list, and replies them with its name; false when there is none.
fn pop_from_first(cx: &mut WriteCx<'_>, several: &Several<'_>) -> Result<bool, CommandError> {
    let (side, count) = (several.side, several.count);
    for key in &several.keys {
        let reply = &mut cx.reply;
        let taken = cx.keys.look_at::<ListRef, _>(*key, |list| {
            list.map(|list| {
                let taken = count.min(list.len());
                reply.array(2);
                reply.bulk(key.name);
                reply.array(taken);
                reply_elements(list, side, taken, reply);
                (taken, taken == list.len())
            })
        })?;
        if let Some((taken, is_all)) = taken {
            take(&mut cx.keys, *key, side, taken, is_all);
            return Ok(true);
        }
    }
    Ok(false)
}
