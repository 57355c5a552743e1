//! Commands about the elements of a list: by index, by value, all of them.

use super::ends::record_pop;
use crate::value_reply::ValueReply;
use execution::args::is_word;
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::list::{Change, ListRef, Side};
use keyspace::{Cause, Effect, Scalar};
use numbers::parse_i64;
use resp::Reply;
use std::ops::Range;

pub(super) fn llen(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let list = cx.keys.typed::<ListRef>(key)?;
    cx.keys.looked_up(key, list.is_some());
    cx.reply.integer(list.map_or(0, |list| list.len()) as i64);
    Ok(())
}

pub(super) fn lindex(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let list = cx.keys.typed::<ListRef>(key)?;
    cx.keys.looked_up(key, list.is_some());
    // Redis does not read the index when there is no list.
    let Some(list) = list else {
        cx.reply.null();
        return Ok(());
    };
    let index = index_of(cx.args.int()?, list.len());
    let reply = &mut cx.reply;
    if index.and_then(|index| list.with(index, |element| element.reply(reply))).is_none() {
        cx.reply.null();
    }
    Ok(())
}

/// The index for a number, which is counted from the end if it is negative.
fn index_of(number: i64, len: usize) -> Option<usize> {
    let index = if number < 0 { number + len as i64 } else { number };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// The indexes from one number to another, both included.
fn range_of(start: i64, stop: i64, len: usize) -> Range<usize> {
    let from_end = |number: i64| if number < 0 { number + len as i64 } else { number };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len as i64 - 1));
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

/// How many elements are sampled to estimate the length of the reply.
const JUDGED_BY: usize = 512;

pub(super) fn lrange(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, start, stop) = (cx.args.key()?, cx.args.int()?, cx.args.int()?);
    let list = cx.keys.typed::<ListRef>(key)?;
    cx.keys.looked_up(key, list.is_some());
    let Some(list) = list else {
        cx.reply.array(0);
        return Ok(());
    };
    let range = range_of(start, stop, list.len());
    let reply = &mut cx.reply;
    reply.array(range.len());
    let position = reply.position();
    let visit = |range, reply: &mut Reply<'_>| {
        list.visit(range, Side::Left, |element| {
            element.reply(reply);
            true
        });
    };
    if range.len() <= JUDGED_BY {
        visit(range, reply);
        return Ok(());
    }
    let judged = range.start + JUDGED_BY;
    visit(range.start..judged, reply);
    reply.expect_times(position, (range.end - judged).div_ceil(JUDGED_BY));
    visit(judged..range.end, reply);
    Ok(())
}

/// The options of LPOS.
struct Search {
    /// Which match is the first in the reply, from 1 on; negative from the end.
    rank: i64,
    from: Side,
    /// The most matches in the reply, 0 for all; `None` for a single one, without an array.
    count: Option<i64>,
    /// The most elements to compare, 0 for all.
    compared_max: i64,
}

impl Search {
    fn take(cx: &mut ReadCx<'_>) -> Result<Search, CommandError> {
        let mut search = Search { rank: 1, from: Side::Left, count: None, compared_max: 0 };
        let not_negative = |text: &[u8], error: &'static str| {
            parse_i64(text).filter(|number| *number >= 0).ok_or(CommandError::fixed(error))
        };
        while let Some(word) = cx.args.try_next() {
            let Some(number) = cx.args.try_next() else { return Err(CommandError::Syntax) };
            if is_word(word, "RANK") {
                search.rank = parse_i64(number).ok_or(CommandError::NotInteger)?;
                if search.rank == 0 {
                    return Err(CommandError::fixed(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use \
                         negative to start from the end of the list",
                    ));
                }
                if search.rank == i64::MIN {
                    return Err(CommandError::fixed(
                        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
                    ));
                }
            } else if is_word(word, "COUNT") {
                search.count = Some(not_negative(number, "ERR COUNT can't be negative")?);
            } else if is_word(word, "MAXLEN") {
                search.compared_max = not_negative(number, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if search.rank < 0 {
            search.from = Side::Right;
            search.rank = -search.rank;
        }
        Ok(search)
    }

    /// The indexes of the matching elements.
    fn find(&self, list: ListRef<'_>, element: &[u8]) -> Vec<usize> {
        let (element, len) = (Scalar::of(element), list.len());
        let compared = match usize::try_from(self.compared_max) {
            Ok(1..) => len.min(self.compared_max as usize),
            _ => len,
        };
        let range = match self.from {
            Side::Left => 0..compared,
            Side::Right => len - compared..len,
        };
        let (mut found, mut equal, mut seen) = (Vec::new(), 0, 0);
        let wanted = self.count.unwrap_or(1);
        list.visit(range, self.from, |other| {
            if other == element {
                equal += 1;
                if equal >= self.rank {
                    found.push(if self.from == Side::Left { seen } else { len - 1 - seen });
                }
            }
            seen += 1;
            wanted == 0 || (found.len() as i64) < wanted
        });
        found
    }
}

pub(super) fn lpos(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, element) = (cx.args.key()?, cx.args.bytes()?);
    let search = Search::take(cx)?;
    let list = cx.keys.typed::<ListRef>(key)?;
    cx.keys.looked_up(key, list.is_some());
    let found = list.map_or(Vec::new(), |list| search.find(list, element));
    match (search.count, found.first()) {
        (Some(_), _) => {
            cx.reply.array(found.len());
            found.iter().for_each(|index| cx.reply.integer(*index as i64));
        }
        (None, Some(index)) => cx.reply.integer(*index as i64),
        (None, None) => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn lset(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let len = cx.keys.look_at::<ListRef, _>(key, |list| list.map(|list| list.len()))?;
    let len = len.ok_or(CommandError::NoSuchKey)?;
    let (number, element) = (cx.args.int()?, cx.args.bytes()?);
    let index = index_of(number, len).ok_or(CommandError::fixed("ERR index out of range"))?;
    cx.keys.record(&Effect::change(key, Change::Set { index, element }));
    cx.keys.notify(Events::LIST, "lset", key);
    cx.reply.ok();
    Ok(())
}

pub(super) fn linsert(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, place, pivot, element) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?, cx.args.bytes()?);
    let behind = if is_word(place, "AFTER") {
        1
    } else if is_word(place, "BEFORE") {
        0
    } else {
        return Err(CommandError::Syntax);
    };
    let found = cx.keys.look_at::<ListRef, _>(key, |list| list.map(|list| first_equal(list, pivot, Side::Left)))?;
    match found {
        None => cx.reply.integer(0),
        Some(None) => cx.reply.integer(-1),
        Some(Some(index)) => {
            let len = cx.keys.record(&Effect::change(key, Change::Insert { index: index + behind, element })).count;
            cx.keys.notify(Events::LIST, "linsert", key);
            cx.reply.integer(len as i64);
        }
    }
    Ok(())
}

/// How many elements precede the first match, from that side on.
fn first_equal(list: ListRef<'_>, element: &[u8], from: Side) -> Option<usize> {
    let (element, mut seen, mut is_found) = (Scalar::of(element), 0, false);
    list.visit(0..list.len(), from, |other| {
        is_found = other == element;
        seen += 1;
        !is_found
    });
    is_found.then(|| seen - 1)
}

pub(super) fn lrem(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, number, element) = (cx.args.key()?, cx.args.int()?, cx.args.bytes()?);
    let side = if number < 0 { Side::Right } else { Side::Left };
    let found = cx.keys.look_at::<ListRef, _>(key, |list| {
        list.filter(|list| first_equal(*list, element, side).is_some()).map(|list| list.len())
    })?;
    let Some(len) = found else {
        cx.reply.integer(0);
        return Ok(());
    };
    let count = match usize::try_from(number.unsigned_abs()) {
        Ok(1..) => len.min(number.unsigned_abs() as usize),
        _ => len,
    };
    let removed = cx.keys.record(&Effect::change(key, Change::Remove { side, count, element }));
    cx.keys.notify(Events::LIST, "lrem", key);
    if removed.emptied() {
        cx.keys.notify(Events::GENERIC, "del", key);
    }
    cx.reply.integer(removed.count as i64);
    Ok(())
}

pub(super) fn ltrim(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, start, stop) = (cx.args.key()?, cx.args.int()?, cx.args.int()?);
    if let Some(len) = cx.keys.look_at::<ListRef, _>(key, |list| list.map(|list| list.len()))? {
        let kept = range_of(start, stop, len);
        let is_gone = kept.is_empty();
        if is_gone {
            cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
        } else {
            for (side, count) in [(Side::Left, kept.start), (Side::Right, len - kept.end)] {
                if count > 0 {
                    record_pop(&mut cx.keys, key, side, count, false);
                }
            }
        }
        cx.keys.notify(Events::LIST, "ltrim", key);
        if is_gone {
            cx.keys.notify(Events::GENERIC, "del", key);
        }
    }
    cx.reply.ok();
    Ok(())
}
