//! Commands that pop members from either end of a sorted set, blocking or not.

use super::members::{Answer, remove_ranks, reply_score};
use crate::shared::deadline::timeout;
use crate::value_reply::ValueReply;
use execution::args::is_word;
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::waiting::keys::{Wait, WaitKeys, WaitRole};
use keyspace::types::sorted_set::Direction;
use keyspace::{Key, SortedSetRef, Value};
use numbers::parse_i64;
use std::ops::Range;

/// Which end of a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
    fn event(self) -> &'static str {
        match self {
            End::Min => "zpopmin",
            End::Max => "zpopmax",
        }
    }

    /// The ranks of so many members at this end, and the order in which they are taken.
    fn ranks(self, len: usize, count: usize) -> (Range<usize>, Direction) {
        let count = count.min(len);
        match self {
            End::Min => (0..count, Direction::Ascending),
            End::Max => (len - count..len, Direction::Descending),
        }
    }
}

pub(super) fn zpopmin(cx: &mut WriteCx<'_>) -> CommandResult {
    pop(cx, End::Min)
}

pub(super) fn zpopmax(cx: &mut WriteCx<'_>) -> CommandResult {
    pop(cx, End::Max)
}

fn pop(cx: &mut WriteCx<'_>, end: End) -> CommandResult {
    let key = cx.args.key()?;
    if cx.args.left() > 1 {
        return Err(CommandError::Syntax);
    }
    let count = match cx.args.try_next() {
        None => None,
        Some(text) => {
            let count = parse_i64(text).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CommandError::fixed("ERR value is out of range, must be positive"))?)
        }
    };
    let set = cx.keys.to_change::<SortedSetRef>(key)?;
    let Some(set) = set.filter(|_| count != Some(0)) else {
        cx.reply.array(0);
        return Ok(());
    };
    let (ranks, direction) = end.ranks(set.len(), count.unwrap_or(1));
    let members = set.members(ranks.clone(), direction);
    if count.is_some() {
        let mut answer = Answer { reply: &mut cx.reply, scores: true };
        answer.begin(ranks.len());
        members.for_each(|member| answer.add(&member));
    } else {
        // A single pair is a flat array, even in RESP3.
        cx.reply.array(2);
        for member in members {
            member.name.reply(&mut cx.reply);
            reply_score(&mut cx.reply, member.score);
        }
    }
    remove_ranks(&mut cx.keys, key, ranks, end.event());
    Ok(())
}

pub(super) fn zmpop(cx: &mut WriteCx<'_>) -> CommandResult {
    let Multi { keys, end, count } = Multi::take(cx)?;
    for key in keys {
        if pop_several(cx, key, end, count)? {
            return Ok(());
        }
    }
    cx.reply.null_array();
    Ok(())
}

pub(super) fn bzpopmin(cx: &mut WriteCx<'_>) -> CommandResult {
    pop_or_wait(cx, End::Min)
}

pub(super) fn bzpopmax(cx: &mut WriteCx<'_>) -> CommandResult {
    pop_or_wait(cx, End::Max)
}

fn pop_or_wait(cx: &mut WriteCx<'_>, end: End) -> CommandResult {
    let (request, names) = (cx.args.request(), cx.args.left() - 1);
    let until_ms = timeout(request.arg(request.len() - 1), cx.keys.now_ms())?;
    for _ in 0..names {
        let key = cx.args.key()?;
        let Some(set) = cx.keys.to_change::<SortedSetRef>(key)? else { continue };
        let (ranks, direction) = end.ranks(set.len(), 1);
        cx.reply.array(3);
        cx.reply.bulk(key.name);
        for member in set.members(ranks.clone(), direction) {
            member.name.reply(&mut cx.reply);
            reply_score(&mut cx.reply, member.score);
        }
        remove_ranks(&mut cx.keys, key, ranks, end.event());
        return Ok(());
    }
    wait_for_members(cx, until_ms);
    Ok(())
}

pub(super) fn bzmpop(cx: &mut WriteCx<'_>) -> CommandResult {
    let seconds = cx.args.bytes()?;
    let Multi { keys, end, count } = Multi::take(cx)?;
    let until_ms = timeout(seconds, cx.keys.now_ms())?;
    for key in keys {
        if pop_several(cx, key, end, count)? {
            return Ok(());
        }
    }
    wait_for_members(cx, until_ms);
    Ok(())
}

/// Waits until one of the sets exists.
fn wait_for_members(cx: &mut WriteCx<'_>, until_ms: Option<u64>) {
    cx.reply.null_array();
    let condition = Box::new(|value: Option<&Value<'_>>| matches!(value, Some(Value::SortedSet(_))));
    cx.client.wait(Wait { until_ms, keys: WaitKeys::All, condition, role: WaitRole::Taker });
}

/// The options of ZMPOP and BZMPOP.
struct Multi<'a> {
    keys: Vec<Key<'a>>,
    end: End,
    count: usize,
}

impl<'a> Multi<'a> {
    /// Parses the arguments from the number of keys on.
    fn take(cx: &mut WriteCx<'a>) -> Result<Multi<'a>, CommandError> {
        let args = &mut cx.args;
        let number =
            parse_i64(args.bytes()?).and_then(|number| usize::try_from(number).ok()).filter(|count| *count > 0);
        let number = number.ok_or(CommandError::fixed("ERR numkeys should be greater than 0"))?;
        if number >= args.left() {
            return Err(CommandError::Syntax);
        }
        let keys = (0..number).map(|_| args.key()).collect::<Result<_, _>>()?;
        let end = args.bytes()?;
        let end = if is_word(end, "MIN") {
            End::Min
        } else if is_word(end, "MAX") {
            End::Max
        } else {
            return Err(CommandError::Syntax);
        };
        let mut count = None;
        while let Some(word) = args.try_next() {
            if count.is_some() || !is_word(word, "COUNT") || args.is_empty() {
                return Err(CommandError::Syntax);
            }
            let given =
                parse_i64(args.bytes()?).and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
            count = Some(given.ok_or(CommandError::fixed("ERR count should be greater than 0"))?);
        }
        Ok(Multi { keys, end, count: count.unwrap_or(1) })
    }
}

/// Pops members from a set and replies them with its name; false when the set does not exist.
fn pop_several(cx: &mut WriteCx<'_>, key: Key<'_>, end: End, count: usize) -> Result<bool, CommandError> {
    let Some(set) = cx.keys.to_change::<SortedSetRef>(key)? else { return Ok(false) };
    let (ranks, direction) = end.ranks(set.len(), count);
    cx.reply.array(2);
    cx.reply.bulk(key.name);
    cx.reply.array(ranks.len());
    for member in set.members(ranks.clone(), direction) {
        cx.reply.array(2);
        member.name.reply(&mut cx.reply);
        reply_score(&mut cx.reply, member.score);
    }
    remove_ranks(&mut cx.keys, key, ranks, end.event());
    Ok(true)
}
