//! Commands about one string. Several are in `multiple`, numbers in `counters`, comparisons in `conditions`; bits of
//! strings are in the family `bits`.

use super::conditions::Condition;
use crate::shared::deadline::TimeForm;
use crate::value_reply::ValueReply;
use algorithms::lcs;
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::string;
use keyspace::{Cause, Effect, Key, Scalar, StringRef};

/// What SET does to the deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ttl {
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
        if let Some(with) = condition.with(word, || cx.args.bytes())? {
            condition = with;
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
pub(super) fn take_time<'a>(
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
    let may_write = condition.holds(cx, key, entry_deadline.is_some())?;
    if get {
        let found = cx.keys.view().typed::<StringRef>(key)?;
        cx.keys.view().looked_up(key, found.is_some());
        match found {
            Some(string) => string.reply(&mut cx.reply),
            None => cx.reply.null(),
        }
    }
    if may_write {
        write(cx, key, value, ttl, entry_deadline.flatten())?;
    }
    match (get, may_write) {
        (true, _) => {}
        (false, true) => cx.reply.ok(),
        (false, false) => cx.reply.null(),
    }
    Ok(())
}

/// Writes a string, in place of whatever is there, and tells of it. `before` is the key's deadline until now.
pub(super) fn write(cx: &mut WriteCx<'_>, key: Key<'_>, value: &[u8], ttl: Ttl, before: Option<u64>) -> CommandResult {
    let deadline = match ttl {
        Ttl::Clear => None,
        Ttl::Keep => before,
        Ttl::Until(deadline) => Some(deadline),
    };
    if deadline.is_some_and(|deadline| deadline <= cx.keys.now_ms()) {
        return set_for_no_time(cx, key);
    }
    cx.keys.replace(&Effect::change(key, string::Change::Set { value: Scalar::of(value), deadline }))?;
    cx.keys.notify(Events::STRING, "set", key);
    if matches!(ttl, Ttl::Until(_)) {
        cx.keys.notify(Events::GENERIC, "expire", key);
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
