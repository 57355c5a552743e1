//! Commands that move an element from an end of a list to an end of another, or of the same.

use super::ends::{record_pop, wait_for_list};
use super::{pop_event, push_event, side};
use crate::shared::deadline::timeout;
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use execution::waiting::keys::WaitKeys;
use keyspace::types::list::{Change, ListRef, Side};
use keyspace::{Effect, Key};
use smallvec::{SmallVec, smallvec};

pub(super) fn lmove(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    let (from_side, to_side) = (side(cx.args.bytes()?)?, side(cx.args.bytes()?)?);
    move_or_null(cx, (from, from_side), (to, to_side))
}

pub(super) fn rpoplpush(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    move_or_null(cx, (from, Side::Right), (to, Side::Left))
}

pub(super) fn blmove(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    let (from_side, to_side) = (side(cx.args.bytes()?)?, side(cx.args.bytes()?)?);
    move_or_wait(cx, (from, from_side), (to, to_side))
}

pub(super) fn brpoplpush(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    move_or_wait(cx, (from, Side::Right), (to, Side::Left))
}

/// An end of the list at a key.
type End<'a> = (Key<'a>, Side);

fn move_or_null(cx: &mut WriteCx<'_>, from: End<'_>, to: End<'_>) -> CommandResult {
    if !move_element(cx, from, to)? {
        cx.reply.null();
    }
    Ok(())
}

/// Moves an element, or waits for one. The last argument is the timeout.
fn move_or_wait(cx: &mut WriteCx<'_>, from: End<'_>, to: End<'_>) -> CommandResult {
    let until_ms = timeout(cx.args.bytes()?, cx.keys.now_ms())?;
    if !move_element(cx, from, to)? {
        cx.reply.null();
        // It waits only for its first key.
        wait_for_list(cx, until_ms, WaitKeys::At(smallvec![1]));
    }
    Ok(())
}

/// Moves an element and replies it; false when there is no list to take it from.
fn move_element(
    cx: &mut WriteCx<'_>,
    (from, from_side): End<'_>,
    (to, to_side): End<'_>,
) -> Result<bool, CommandError> {
    let element: Option<SmallVec<[u8; 128]>> = cx.keys.look_at::<ListRef, _>(from, |list| {
        let list = list?;
        let index = if from_side == Side::Left { 0 } else { list.len() - 1 };
        list.with(index, |element| element.with_bytes(SmallVec::from_slice))
    })?;
    let Some(element) = element else { return Ok(false) };
    if to.name != from.name {
        cx.keys.look_at::<ListRef, _>(to, |_| ())?;
    }
    // IMPORTANT: push first. Otherwise moving the only element of a list to the same list would remove the key, and its
    // deadline with it.
    cx.keys.record(&Effect::change(to, Change::Push { side: to_side, elements: &[&element] }));
    cx.keys.notify(Events::LIST, push_event(to_side), to);
    // If both sides and lists are the same, the pop removes the element that was just pushed.
    let is_gone = record_pop(&mut cx.keys, from, from_side, 1, false);
    cx.keys.notify(Events::LIST, pop_event(from_side), from);
    if is_gone {
        cx.keys.notify(Events::GENERIC, "del", from);
    }
    cx.reply.bulk(&element);
    Ok(true)
}
