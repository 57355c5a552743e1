//! Set commands about given members, and about all members. Random members are in `random`, operations on several sets
//! in `algebra`, SSCAN in `scan`.

use crate::value_reply::ValueReply;
use execution::context::{ReadCx, WriteCx};
use execution::error::CommandResult;
use execution::settings::events::Events;
use keyspace::types::set::{Change, SetRef};
use keyspace::{Effect, Scalar};
use smallvec::SmallVec;

pub(super) fn sadd(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let mut members: SmallVec<[&[u8]; 8]> = cx.args.rest().collect();
    if let Some(set) = cx.keys.to_change::<SetRef>(key)? {
        members.retain(|member| !set.has(Scalar::Bytes(member)));
    }
    let added = match members.is_empty() {
        true => 0,
        false => {
            let added = cx.keys.record(&Effect::change(key, Change::Add { members: &members })).count;
            cx.keys.notify(Events::SET, "sadd", key);
            added
        }
    };
    cx.reply.integer(added as i64);
    Ok(())
}

pub(super) fn srem(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let mut members: SmallVec<[&[u8]; 8]> = cx.args.rest().collect();
    match cx.keys.to_change::<SetRef>(key)? {
        Some(set) => members.retain(|member| set.has(Scalar::Bytes(member))),
        None => members.clear(),
    }
    let removed = match members.is_empty() {
        true => 0,
        false => {
            let removed = cx.keys.record(&Effect::change(key, Change::Remove { members: &members }));
            cx.keys.notify(Events::SET, "srem", key);
            if removed.emptied() {
                cx.keys.notify(Events::GENERIC, "del", key);
            }
            removed.count
        }
    };
    cx.reply.integer(removed as i64);
    Ok(())
}

pub(super) fn smove(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to, member) = (cx.args.key()?, cx.args.key()?, cx.args.bytes()?);
    let has_member = |set: SetRef<'_>| set.has(Scalar::Bytes(member));
    let db = cx.keys.db();
    cx.keys.remove_if_expired(db, from);
    cx.keys.remove_if_expired(db, to);
    if !cx.keys.view().exists(from) {
        // Redis does not check the other key then.
        cx.reply.integer(0);
        return Ok(());
    }
    let is_there = cx.keys.view().typed::<SetRef>(from)?.is_some_and(has_member);
    let is_known = cx.keys.view().typed::<SetRef>(to)?.is_some_and(has_member);
    if is_there && from.name != to.name {
        let removed = cx.keys.record(&Effect::change(from, Change::Remove { members: &[member] }));
        cx.keys.notify(Events::SET, "srem", from);
        if removed.emptied() {
            cx.keys.notify(Events::GENERIC, "del", from);
        }
        if !is_known {
            cx.keys.record(&Effect::change(to, Change::Add { members: &[member] }));
            cx.keys.notify(Events::SET, "sadd", to);
        }
    }
    cx.reply.integer(i64::from(is_there));
    Ok(())
}

pub(super) fn sismember(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, member) = (cx.args.key()?, cx.args.bytes()?);
    let set = cx.keys.typed::<SetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.integer(i64::from(set.is_some_and(|set| set.has(Scalar::Bytes(member)))));
    Ok(())
}

pub(super) fn smismember(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.typed::<SetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.array(cx.args.left());
    for member in cx.args.rest() {
        cx.reply.integer(i64::from(set.is_some_and(|set| set.has(Scalar::Bytes(member)))));
    }
    Ok(())
}

pub(super) fn scard(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.typed::<SetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.integer(set.map_or(0, |set| set.len()) as i64);
    Ok(())
}

pub(super) fn smembers(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.typed::<SetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.set(set.map_or(0, |set| set.len()));
    for member in set.iter().flat_map(SetRef::iter) {
        member.reply(&mut cx.reply);
    }
    Ok(())
}
