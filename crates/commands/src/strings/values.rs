//! String commands. Bits of strings are in `bits`.

use crate::shared::deadline::TimeForm;
use crate::value_reply::ValueReply;
use algorithms::lcs;
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::string;
use keyspace::{Cause, Effect, Key, Scalar, StringRef, Value};
use numbers::long_double::LongDouble;
use numbers::parse_i64;

/// When SET may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    Always,
    Absent,
    Present,
    /// IFEQ: the string there equals this one.
    Equals(&'a [u8]),
    /// IFNE: there is no string, or it differs.
    Differs(&'a [u8]),
}

/// What SET does to the deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ttl {
    Clear,
    Keep,
    Until(u64),
}

pub(super) fn get(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.typed::<StringRef>(key)?;
    cx.keys.looked_up(key, found.is_some());
    match found {
        Some(string) => string.reply(&mut cx.reply),
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn set(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, value) = (cx.args.key()?, cx.args.bytes()?);
    let (mut condition, mut keep, mut time, mut get) = (Condition::Always, false, None, false);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "NX") && matches!(condition, Condition::Always | Condition::Absent) {
            condition = Condition::Absent;
        } else if is_word(word, "XX") && matches!(condition, Condition::Always | Condition::Present) {
            condition = Condition::Present;
        } else if is_word(word, "IFEQ") && condition == Condition::Always {
            condition = Condition::Equals(cx.args.bytes()?);
        } else if is_word(word, "IFNE") && condition == Condition::Always {
            condition = Condition::Differs(cx.args.bytes()?);
        } else if is_word(word, "GET") {
            get = true;
        } else if is_word(word, "KEEPTTL") && time.is_none() {
            keep = true;
        } else {
            time = Some(take_time(&mut cx.args, word, time, keep)?);
        }
    }
    // The time is checked after the whole syntax and before any condition, as in Redis.
    let ttl = match time {
        Some((form, mut at)) => Ttl::Until(form.deadline(&mut at, cx.keys.now_ms(), "set")?),
        None if keep => Ttl::Keep,
        None => Ttl::Clear,
    };
    store(cx, key, value, condition, ttl, get)
}

/// Takes an option such as `EX 10`. It may be repeated, but not mixed with another form or with `excluded`.
fn take_time<'a>(
    args: &mut Args<'a>,
    word: &[u8],
    before: Option<(TimeForm, Args<'a>)>,
    excluded: bool,
) -> Result<(TimeForm, Args<'a>), CommandError> {
    match TimeForm::of_word(word) {
        Some(form) if !excluded && before.is_none_or(|(other, _)| other == form) => {
            let at = *args;
            args.bytes()?;
            Ok((form, at))
        }
        _ => Err(CommandError::Syntax),
    }
}

/// SET and its older forms.
fn store(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    value: &[u8],
    condition: Condition<'_>,
    ttl: Ttl,
    get: bool,
) -> CommandResult {
    // A plain SET does not read the old value: the effect replaces it.
    let blind = condition == Condition::Always && ttl != Ttl::Keep && !get;
    let entry_deadline = if blind { None } else { cx.keys.view().deadline(key) };
    let may_write = match condition {
        Condition::Always => true,
        Condition::Absent => entry_deadline.is_none(),
        Condition::Present => entry_deadline.is_some(),
        Condition::Equals(expected) => {
            cx.keys.view().typed::<StringRef>(key)?.is_some_and(|string| string.with_bytes(|bytes| bytes == expected))
        }
        Condition::Differs(other) => {
            cx.keys.view().typed::<StringRef>(key)?.is_none_or(|string| string.with_bytes(|bytes| bytes != other))
        }
    };
    if get {
        let found = cx.keys.view().typed::<StringRef>(key)?;
        cx.keys.view().looked_up(key, found.is_some());
        match found {
            Some(string) => string.reply(&mut cx.reply),
            None => cx.reply.null(),
        }
    }
    if may_write {
        let deadline = match ttl {
            Ttl::Clear => None,
            Ttl::Keep => entry_deadline.flatten(),
            Ttl::Until(deadline) => Some(deadline),
        };
        if deadline.is_some_and(|deadline| deadline <= cx.keys.now_ms()) {
            set_for_no_time(cx, key)?;
        } else {
            cx.keys.replace(&Effect::change(key, string::Change::Set { value: Scalar::of(value), deadline }))?;
            cx.keys.notify(Events::STRING, "set", key);
            if matches!(ttl, Ttl::Until(_)) {
                cx.keys.notify(Events::GENERIC, "expire", key);
            }
        }
    }
    match (get, may_write) {
        (true, _) => {}
        (false, true) => cx.reply.ok(),
        (false, false) => cx.reply.null(),
    }
    Ok(())
}

/// SET with a deadline in the past: deletes the key, with the events of a SET that expires at once.
fn set_for_no_time(cx: &mut WriteCx<'_>, key: Key<'_>) -> CommandResult {
    let exists = cx.keys.view().exists(key);
    cx.keys.replace(&Effect::Delete { key, cause: Cause::Deleted })?;
    if !exists {
        cx.keys.notify(Events::NEW_KEY, "new", key);
    }
    cx.keys.notify(Events::STRING, "set", key);
    cx.keys.notify(Events::GENERIC, "expire", key);
    cx.keys.notify(Events::EXPIRED, "expired", key);
    Ok(())
}

pub(super) fn setnx(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, value) = (cx.args.key()?, cx.args.bytes()?);
    cx.keys.remove_if_expired(cx.client.db, key);
    let absent = !cx.keys.view().exists(key);
    if absent {
        cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::of(value), deadline: None }));
        cx.keys.notify(Events::STRING, "set", key);
    }
    cx.reply.integer(i64::from(absent));
    Ok(())
}

pub(super) fn setex(cx: &mut WriteCx<'_>) -> CommandResult {
    set_for(cx, TimeForm::Seconds, "setex")
}

pub(super) fn psetex(cx: &mut WriteCx<'_>) -> CommandResult {
    set_for(cx, TimeForm::Milliseconds, "psetex")
}

fn set_for(cx: &mut WriteCx<'_>, form: TimeForm, command: &str) -> CommandResult {
    let key = cx.args.key()?;
    let deadline = form.deadline(&mut cx.args, cx.keys.now_ms(), command)?;
    let value = cx.args.bytes()?;
    store(cx, key, value, Condition::Always, Ttl::Until(deadline), false)
}

pub(super) fn getset(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, value) = (cx.args.key()?, cx.args.bytes()?);
    store(cx, key, value, Condition::Always, Ttl::Clear, true)
}

pub(super) fn getdel(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.view().typed::<StringRef>(key)?;
    cx.keys.view().looked_up(key, found.is_some());
    match found {
        Some(string) => {
            string.reply(&mut cx.reply);
            cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            cx.keys.notify(Events::GENERIC, "del", key);
        }
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn getex(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (mut time, mut persist) = (None, false);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "PERSIST") && time.is_none() {
            persist = true;
        } else {
            time = Some(take_time(&mut cx.args, word, time, persist)?);
        }
    }
    let found = cx.keys.view().typed::<StringRef>(key)?;
    cx.keys.view().looked_up(key, found.is_some());
    let Some(string) = found else {
        cx.reply.null();
        return Ok(());
    };
    string.reply(&mut cx.reply);
    if persist && cx.keys.view().deadline(key).flatten().is_some() {
        cx.keys.record(&Effect::Deadline { key, deadline: None });
        cx.keys.notify(Events::GENERIC, "persist", key);
    } else if let Some((form, mut at)) = time {
        let deadline = form.deadline(&mut at, cx.keys.now_ms(), "getex")?;
        if deadline <= cx.keys.now_ms() {
            cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            cx.keys.notify(Events::GENERIC, "del", key);
        } else {
            cx.keys.record(&Effect::Deadline { key, deadline: Some(deadline) });
            cx.keys.notify(Events::GENERIC, "expire", key);
        }
    }
    Ok(())
}

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

pub(super) fn incr(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    add(cx, key, 1)
}

pub(super) fn decr(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    add(cx, key, -1)
}

pub(super) fn incrby(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, by) = (cx.args.key()?, cx.args.int()?);
    add(cx, key, by)
}

pub(super) fn decrby(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, by) = (cx.args.key()?, cx.args.int()?);
    let by = by.checked_neg().ok_or(CommandError::fixed("ERR decrement would overflow"))?;
    add(cx, key, by)
}

fn add(cx: &mut WriteCx<'_>, key: Key<'_>, by: i64) -> CommandResult {
    // An expired key reads as absent, and the effect replaces it.
    let (current, deadline) = match cx.keys.view().entry(key) {
        None => (0, None),
        Some(entry) => match cx.keys.view().value_of(cx.keys.db(), key, entry) {
            Value::String(Scalar::Number(number)) => (number, entry.deadline()),
            Value::String(Scalar::Bytes(bytes)) => {
                (parse_i64(bytes).ok_or(CommandError::NotInteger)?, entry.deadline())
            }
            _ => return Err(CommandError::WrongType),
        },
    };
    let sum = current.checked_add(by).ok_or(CommandError::fixed("ERR increment or decrement would overflow"))?;
    cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::Number(sum), deadline }));
    cx.keys.notify(Events::STRING, "incrby", key);
    cx.reply.integer(sum);
    Ok(())
}

pub(super) fn incrbyfloat(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, by) = (cx.args.key()?, cx.args.bytes()?);
    cx.keys.remove_if_expired(cx.client.db, key);
    let current = match cx.keys.view().typed::<StringRef>(key)? {
        None => LongDouble::parse(b"0"),
        Some(string) => string.with_bytes(LongDouble::parse),
    };
    let (Some(current), Some(by)) = (current, LongDouble::parse(by)) else { return Err(CommandError::NotFloat) };
    let sum = current.add(by);
    if sum.is_nan_or_infinite() {
        return Err(CommandError::fixed("ERR increment would produce NaN or Infinity"));
    }
    let text = sum.format_human();
    let deadline = cx.keys.view().deadline(key).flatten();
    cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::Bytes(&text), deadline }));
    cx.keys.notify(Events::STRING, "incrbyfloat", key);
    cx.reply.bulk(&text);
    Ok(())
}

pub(super) fn append(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, tail) = (cx.args.key()?, cx.args.bytes()?);
    cx.keys.remove_if_expired(cx.client.db, key);
    let len = match cx.keys.view().typed::<StringRef>(key)? {
        None => {
            // A new key gets the compact form that SET would have given it.
            cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::of(tail), deadline: None }));
            cx.keys.notify(Events::STRING, "append", key);
            cx.reply.integer(tail.len() as i64);
            return Ok(());
        }
        Some(string) => string.len(),
    };
    check_length(cx, len, tail.len())?;
    let written = cx.keys.record(&Effect::change(key, string::Change::Write { offset: len, bytes: tail }));
    cx.keys.notify(Events::STRING, "append", key);
    cx.reply.integer(written.count as i64);
    Ok(())
}

/// Refuses a string longer than `proto-max-bulk-len`.
fn check_length(cx: &WriteCx<'_>, len: usize, more: usize) -> CommandResult {
    match len.checked_add(more) {
        Some(total) if total as u64 <= cx.settings.proto_max_bulk_len() => Ok(()),
        _ => Err(CommandError::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)")),
    }
}

pub(super) fn strlen(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.typed::<StringRef>(key)?;
    cx.keys.looked_up(key, found.is_some());
    cx.reply.integer(found.map_or(0, Scalar::len) as i64);
    Ok(())
}

pub(super) fn getrange(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, start, end) = (cx.args.key()?, cx.args.int()?, cx.args.int()?);
    let found = cx.keys.typed::<StringRef>(key)?;
    cx.keys.looked_up(key, found.is_some());
    let Some(string) = found else {
        cx.reply.bulk(b"");
        return Ok(());
    };
    string.with_bytes(|bytes| {
        let len = bytes.len() as i64;
        if start < 0 && end < 0 && start > end {
            return cx.reply.bulk(b"");
        }
        let from = if start < 0 { len.saturating_add(start).max(0) } else { start };
        let to = (if end < 0 { len.saturating_add(end).max(0) } else { end }).min(len - 1);
        match from <= to && len > 0 {
            true => cx.reply.bulk(&bytes[from as usize..=to as usize]),
            false => cx.reply.bulk(b""),
        }
    });
    Ok(())
}

pub(super) fn setrange(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, offset, bytes) = (cx.args.key()?, cx.args.int()?, cx.args.bytes()?);
    let Ok(offset) = usize::try_from(offset) else { return Err(CommandError::fixed("ERR offset is out of range")) };
    cx.keys.remove_if_expired(cx.client.db, key);
    let len = cx.keys.view().typed::<StringRef>(key)?.map_or(0, Scalar::len);
    if bytes.is_empty() {
        cx.reply.integer(len as i64);
        return Ok(());
    }
    check_length(cx, offset, bytes.len())?;
    let written = cx.keys.record(&Effect::change(key, string::Change::Write { offset, bytes }));
    cx.keys.notify(Events::STRING, "setrange", key);
    cx.reply.integer(written.count as i64);
    Ok(())
}

/// The most memory of LCS, which needs four bytes for each pair of bytes.
const LCS_BYTES_MAX: u64 = u32::MAX as u64;

pub(super) fn lcs_command(cx: &mut ReadCx<'_>) -> CommandResult {
    let (a, b) = (cx.args.key()?, cx.args.key()?);
    let text = |key| match cx.keys.typed::<StringRef>(key) {
        Ok(found) => {
            cx.keys.looked_up(key, found.is_some());
            Ok(found.map(|string| string.bytes().into_owned()).unwrap_or_default())
        }
        Err(_) => Err(CommandError::fixed("ERR The specified keys must contain string values")),
    };
    // The keys are checked before the options, as in Redis.
    let (a, b) = (text(a)?, text(b)?);
    let (mut want_len, mut want_idx, mut min_len, mut with_len) = (false, false, 0, false);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "IDX") {
            want_idx = true;
        } else if is_word(word, "LEN") {
            want_len = true;
        } else if is_word(word, "WITHMATCHLEN") {
            with_len = true;
        } else if is_word(word, "MINMATCHLEN") && !cx.args.is_empty() {
            min_len = cx.args.int()?.max(0) as usize;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if want_idx && want_len {
        return Err(CommandError::fixed("ERR If you want both the length and indexes, please just use IDX."));
    }
    let too_large =
        |_| CommandError::fixed("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    if want_len {
        cx.reply.integer(lcs::length(&a, &b, LCS_BYTES_MAX).map_err(too_large)? as i64);
        return Ok(());
    }
    let found = lcs::lcs(&a, &b, LCS_BYTES_MAX).map_err(too_large)?;
    if !want_idx {
        cx.reply.bulk(&found.string());
        return Ok(());
    }
    let matches: Vec<_> = found.matches.iter().filter(|found| found.len >= min_len).collect();
    cx.reply.map(2);
    cx.reply.bulk(b"matches");
    cx.reply.array(matches.len());
    for found in matches {
        cx.reply.array(if with_len { 3 } else { 2 });
        for (start, end) in [found.a, found.b] {
            cx.reply.array(2);
            cx.reply.integer(start as i64);
            cx.reply.integer(end as i64);
        }
        if with_len {
            cx.reply.integer(found.len as i64);
        }
    }
    cx.reply.bulk(b"len");
    cx.reply.integer(found.len as i64);
    Ok(())
}
