//! Commands about several strings: MGET, MSET, MSETNX, MSETEX.

use super::conditions::Condition;
use super::values::{Ttl, take_time, write};
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::string;
use keyspace::{Effect, Key, Scalar, Value};
use numbers::parse_i64;

pub(super) fn mget(cx: &mut ReadCx<'_>) -> CommandResult {
    cx.reply.array(cx.args.left());
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let found = cx.keys.get(key);
        cx.keys.looked_up(key, found.is_some());
        match found {
            Some(Value::String(string)) => string.reply(&mut cx.reply),
            // Keys of other types read as absent here, as in Redis.
            Some(_) | None => cx.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn mset(cx: &mut WriteCx<'_>) -> CommandResult {
    check_pairs(cx, "mset")?;
    if cx.keys.view().has_own_values() {
        pass_pairs(cx)?;
    }
    set_pairs(cx)?;
    cx.reply.ok();
    Ok(())
}

pub(super) fn msetnx(cx: &mut WriteCx<'_>) -> CommandResult {
    check_pairs(cx, "msetnx")?;
    let mut ahead = cx.args;
    while !ahead.is_empty() {
        let key = ahead.key()?;
        ahead.bytes()?;
        if cx.keys.view().exists(key) {
            cx.reply.integer(0);
            return Ok(());
        }
    }
    set_pairs(cx)?;
    cx.reply.integer(1);
    Ok(())
}

fn check_pairs(cx: &WriteCx<'_>, command: &'static str) -> CommandResult {
    if cx.args.left().is_multiple_of(2) { Ok(()) } else { Err(CommandError::WrongArity(command.into())) }
}

/// Refuses the pairs if the value of one of their keys cannot be replaced.
#[cold]
fn pass_pairs(cx: &WriteCx<'_>) -> CommandResult {
    let mut ahead = cx.args;
    while !ahead.is_empty() {
        let key = ahead.key()?;
        ahead.bytes()?;
        cx.keys.pass_replace(cx.keys.db(), key)?;
    }
    Ok(())
}

fn set_pairs(cx: &mut WriteCx<'_>) -> CommandResult {
    while !cx.args.is_empty() {
        let (key, value) = (cx.args.key()?, cx.args.bytes()?);
        cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::of(value), deadline: None }));
        cx.keys.notify(Events::STRING, "set", key);
    }
    Ok(())
}

/// MSETEX: MSET with the conditions and deadlines of SET, for all or none of its keys.
pub(super) fn msetex(cx: &mut WriteCx<'_>) -> CommandResult {
    let count = parse_i64(cx.args.bytes()?).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=i32::MAX as usize).contains(count));
    let count = count.ok_or(CommandError::fixed("ERR invalid numkeys value"))?;
    if count > cx.args.left() / 2 {
        return Err(CommandError::fixed("ERR wrong number of key-value pairs"));
    }
    let pairs = cx.args;
    for _ in 0..count * 2 {
        cx.args.bytes()?;
    }
    let (mut condition, mut keep, mut time) = (Condition::Always, false, None);
    while let Some(word) = cx.args.try_next() {
        if let Some(with) = condition.with_existence(word) {
            condition = with;
        } else if is_word(word, "KEEPTTL") && time.is_none() {
            keep = true;
        } else {
            time = Some(take_time(&mut cx.args, word, time, keep)?);
        }
    }
    let ttl = match time {
        Some((form, mut at)) => Ttl::Until(form.deadline(&mut at, cx.keys.now_ms(), "msetex")?),
        None if keep => Ttl::Keep,
        None => Ttl::Clear,
    };
    let may_write = every_key(pairs, count, |key| {
        let exists = cx.keys.view().exists(key);
        condition.holds(cx, key, exists)
    })?;
    if may_write {
        if cx.keys.view().has_own_values() {
            every_key(pairs, count, |key| cx.keys.pass_replace(cx.keys.db(), key).map(|()| true))?;
        }
        let mut pairs = pairs;
        for _ in 0..count {
            let (key, value) = (pairs.key()?, pairs.bytes()?);
            let before = cx.keys.view().deadline(key).flatten();
            write(cx, key, value, ttl, before)?;
        }
    }
    cx.reply.integer(i64::from(may_write));
    Ok(())
}

/// Whether the test holds for the key of each of so many pairs.
fn every_key<'a>(
    mut pairs: Args<'a>,
    count: usize,
    mut test: impl FnMut(Key<'a>) -> Result<bool, CommandError>,
) -> Result<bool, CommandError> {
    for _ in 0..count {
        let key = pairs.key()?;
        pairs.bytes()?;
        if !test(key)? {
            return Ok(false);
        }
    }
    Ok(true)
}
