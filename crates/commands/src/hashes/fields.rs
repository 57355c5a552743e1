//! Hash commands. Deadlines of fields are in `deadlines`.

use crate::value_reply::ValueReply;
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use execution::view::View;
use keyspace::types::hash;
use keyspace::types::hash::FieldName;
use keyspace::{Cause, Effect, HashRef, Key, Scalar};
use numbers::long_double::LongDouble;
use numbers::parse_i64;
use resp::Reply;
use smallvec::SmallVec;

pub(super) fn hset(cx: &mut WriteCx<'_>) -> CommandResult {
    let created = set_fields(cx, "hset")?;
    cx.reply.integer(created as i64);
    Ok(())
}

pub(super) fn hmset(cx: &mut WriteCx<'_>) -> CommandResult {
    set_fields(cx, "hmset")?;
    cx.reply.ok();
    Ok(())
}

fn set_fields(cx: &mut WriteCx<'_>, command: &'static str) -> Result<usize, CommandError> {
    let key = cx.args.key()?;
    if !cx.args.left().is_multiple_of(2) {
        return Err(CommandError::WrongArity(command.into()));
    }
    cx.keys.prepare::<HashRef>(key)?;
    let mut fields: SmallVec<[(&[u8], &[u8]); 16]> = SmallVec::with_capacity(cx.args.left() / 2);
    while let (Some(field), Some(value)) = (cx.args.try_next(), cx.args.try_next()) {
        fields.push((field, value));
    }
    let created =
        cx.keys.record(&Effect::change(key, hash::Change::Set { fields: &fields, keep_deadlines: false })).count;
    cx.keys.notify(Events::HASH, "hset", key);
    Ok(created)
}

pub(super) fn hsetnx(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, field, value) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let absent = cx.keys.to_change::<HashRef>(key)?.is_none_or(|hash| hash.get(field).is_none());
    if absent {
        cx.keys.record(&Effect::change(key, hash::Change::Set { fields: &[(field, value)], keep_deadlines: false }));
        cx.keys.notify(Events::HASH, "hset", key);
    }
    cx.reply.integer(i64::from(absent));
    Ok(())
}

pub(super) fn hget(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, field) = (cx.args.key()?, cx.args.bytes()?);
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    match hash.and_then(|hash| hash.get(field)) {
        Some(value) => value.reply(&mut cx.reply),
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn hmget(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    cx.reply.array(cx.args.left());
    for field in cx.args.rest() {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => value.reply(&mut cx.reply),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn hgetall(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    let Some(hash) = hash else {
        cx.reply.map(0);
        return Ok(());
    };
    cx.reply.map(hash.len());
    for (field, value) in hash.iter() {
        field.reply(&mut cx.reply);
        value.reply(&mut cx.reply);
    }
    Ok(())
}

pub(super) fn hkeys(cx: &mut ReadCx<'_>) -> CommandResult {
    list(cx, |(field, _), reply| field.reply(reply))
}

pub(super) fn hvals(cx: &mut ReadCx<'_>) -> CommandResult {
    list(cx, |(_, value), reply| value.reply(reply))
}

/// Replies an array with one element for each field.
fn list(cx: &mut ReadCx<'_>, element: fn((FieldName<'_>, Scalar<'_>), &mut Reply<'_>)) -> CommandResult {
    let key = cx.args.key()?;
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    cx.reply.array(hash.map_or(0, |hash| hash.len()));
    for pair in hash.iter().flat_map(HashRef::iter) {
        element(pair, &mut cx.reply);
    }
    Ok(())
}

pub(super) fn hdel(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let fields: SmallVec<[&[u8]; 8]> = cx.args.rest().collect();
    let removed = match cx.keys.to_change::<HashRef>(key)? {
        Some(hash) if fields.iter().any(|field| hash.get(field).is_some()) => {
            let removed =
                cx.keys.record(&Effect::change(key, hash::Change::Delete { fields: &fields, cause: Cause::Deleted }));
            notify_fields_deleted(cx.keys.view(), key);
            removed.count
        }
        _ => 0,
    };
    cx.reply.integer(removed as i64);
    Ok(())
}

/// Publishes that fields of a hash were deleted, and, if none is left, the key.
pub(crate) fn notify_fields_deleted(keys: &View<'_>, key: Key<'_>) {
    keys.notify(Events::HASH, "hdel", key);
    if keys.tells(Events::GENERIC) && !keys.exists(key) {
        keys.notify(Events::GENERIC, "del", key);
    }
}

pub(super) fn hexists(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, field) = (cx.args.key()?, cx.args.bytes()?);
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    cx.reply.integer(i64::from(hash.is_some_and(|hash| hash.get(field).is_some())));
    Ok(())
}

pub(super) fn hlen(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    cx.reply.integer(hash.map_or(0, |hash| hash.len()) as i64);
    Ok(())
}

pub(super) fn hstrlen(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, field) = (cx.args.key()?, cx.args.bytes()?);
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    cx.reply.integer(hash.and_then(|hash| hash.get(field)).map_or(0, Scalar::len) as i64);
    Ok(())
}

pub(super) fn hincrby(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, field, by) = (cx.args.key()?, cx.args.bytes()?, cx.args.int()?);
    let current = match cx.keys.to_change::<HashRef>(key)?.and_then(|hash| hash.get(field)) {
        None => 0,
        Some(Scalar::Number(number)) => number,
        Some(Scalar::Bytes(bytes)) => {
            parse_i64(bytes).ok_or(CommandError::fixed("ERR hash value is not an integer"))?
        }
    };
    let sum = current.checked_add(by).ok_or(CommandError::fixed("ERR increment or decrement would overflow"))?;
    let mut digits = itoa::Buffer::new();
    let fields = [(field, digits.format(sum).as_bytes())];
    cx.keys.record(&Effect::change(key, hash::Change::Set { fields: &fields, keep_deadlines: true }));
    cx.keys.notify(Events::HASH, "hincrby", key);
    cx.reply.integer(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, field, by) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let by = LongDouble::parse(by).ok_or(CommandError::NotFloat)?;
    if by.is_nan_or_infinite() {
        return Err(CommandError::fixed("ERR value is NaN or Infinity"));
    }
    let current = match cx.keys.to_change::<HashRef>(key)?.and_then(|hash| hash.get(field)) {
        None => LongDouble::parse(b"0"),
        Some(value) => value.with_bytes(LongDouble::parse),
    };
    let sum = current.ok_or(CommandError::fixed("ERR hash value is not a float"))?.add(by);
    if sum.is_nan_or_infinite() {
        return Err(CommandError::fixed("ERR increment would produce NaN or Infinity"));
    }
    let text = sum.format_human();
    cx.keys.record(&Effect::change(key, hash::Change::Set { fields: &[(field, &text)], keep_deadlines: true }));
    cx.keys.notify(Events::HASH, "hincrbyfloat", key);
    cx.reply.bulk(&text);
    Ok(())
}
