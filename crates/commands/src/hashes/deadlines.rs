//! Commands for the deadlines of single hash fields, and those that read or write fields and deadlines in one step.

use super::fields::notify_fields_deleted;
use crate::shared::deadline::TimeForm;
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::hash;
use keyspace::{Cause, Effect, HashRef, Key};
use numbers::parse_i64;
use smallvec::SmallVec;

/// The last instant a field can expire at, in unix milliseconds: Redis keeps it in 46 bits.
const DEADLINE_MAX_MS: i64 = (1 << 46) - 1;

/// Replies for one field.
const NO_FIELD: i64 = -2;
const NO_DEADLINE: i64 = -1;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
const DELETED: i64 = 2;

/// When HEXPIRE may set a deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// NX: the field has none.
    Absent,
    /// XX: it has one.
    Present,
    /// GT: it has an earlier one; no deadline counts as the latest.
    Later,
    /// LT: it has a later one, or none.
    Earlier,
}

impl Condition {
    fn of_word(word: &[u8]) -> Option<Condition> {
        const WORDS: [(&str, Condition); 4] = [
            ("NX", Condition::Absent),
            ("XX", Condition::Present),
            ("GT", Condition::Later),
            ("LT", Condition::Earlier),
        ];
        WORDS.iter().find(|(name, _)| is_word(word, name)).map(|(_, condition)| *condition)
    }

    fn is_met(self, before: Option<u64>, deadline: u64) -> bool {
        match self {
            Condition::Always => true,
            Condition::Absent => before.is_none(),
            Condition::Present => before.is_some(),
            Condition::Later => before.is_some_and(|before| deadline > before),
            Condition::Earlier => before.is_none_or(|before| deadline < before),
        }
    }
}

pub(super) fn hexpire(cx: &mut WriteCx<'_>) -> CommandResult {
    expire(cx, TimeForm::Seconds)
}

pub(super) fn hpexpire(cx: &mut WriteCx<'_>) -> CommandResult {
    expire(cx, TimeForm::Milliseconds)
}

pub(super) fn hexpireat(cx: &mut WriteCx<'_>) -> CommandResult {
    expire(cx, TimeForm::UnixSeconds)
}

pub(super) fn hpexpireat(cx: &mut WriteCx<'_>) -> CommandResult {
    expire(cx, TimeForm::UnixMilliseconds)
}

fn expire(cx: &mut WriteCx<'_>, form: TimeForm) -> CommandResult {
    let key = cx.args.key()?;
    cx.keys.view().typed::<HashRef>(key)?;
    let deadline = field_deadline(&mut cx.args, form, cx.keys.now_ms(), &cx.command.full_name)?;
    let condition = cx.args.peek().and_then(Condition::of_word);
    if condition.is_some() {
        cx.args.try_next();
    }
    let condition = condition.unwrap_or(Condition::Always);
    check_fields(&mut cx.args, "ERR Parameter `numFields` should be greater than 0")?;
    cx.keys.to_change::<HashRef>(key)?;
    cx.reply.array(cx.args.left());
    let mut changed = false;
    for field in cx.args.rest() {
        let answer = match cx.keys.view().typed::<HashRef>(key)?.and_then(|hash| hash.deadline(field)) {
            None => NO_FIELD,
            Some(before) if !condition.is_met(before, deadline) => NOT_MET,
            Some(_) => set_deadline(cx, key, field, deadline),
        };
        changed |= matches!(answer, DONE | DELETED);
        cx.reply.integer(answer);
    }
    if changed {
        notify_deadlines_set(cx, key, deadline);
    }
    Ok(())
}

/// Publishes that fields got a deadline, or were deleted because the deadline has passed.
fn notify_deadlines_set(cx: &WriteCx<'_>, key: Key<'_>, deadline: u64) {
    match deadline <= cx.keys.now_ms() {
        true => notify_fields_deleted(cx.keys.view(), key),
        false => cx.keys.notify(Events::HASH, "hexpire", key),
    }
}

/// Sets the deadline of a field, or deletes the field when the deadline has passed. Returns which.
fn set_deadline(cx: &mut WriteCx<'_>, key: Key<'_>, field: &[u8], deadline: u64) -> i64 {
    if deadline <= cx.keys.now_ms() {
        cx.keys.record(&Effect::change(key, hash::Change::Delete { fields: &[field], cause: Cause::Deleted }));
        DELETED
    } else {
        cx.keys.record(&Effect::change(key, hash::Change::Deadline { field, deadline: Some(deadline) }));
        DONE
    }
}

/// Reads a time and turns it into the deadline of a field. Unlike a key's, it may be zero.
fn field_deadline(args: &mut Args<'_>, form: TimeForm, now_ms: u64, command: &str) -> Result<u64, CommandError> {
    let time = args.int()?;
    if time < 0 {
        return Err(CommandError::fixed("ERR invalid expire time, must be >= 0"));
    }
    match form.instant(time, now_ms) {
        Some(instant) if instant <= DEADLINE_MAX_MS => Ok(instant as u64),
        _ => Err(CommandError::invalid_expire(command)),
    }
}

/// Reads `FIELDS n` and checks that n fields follow.
fn check_fields(args: &mut Args<'_>, bad_count: &'static str) -> CommandResult {
    if !args.take_word("FIELDS") {
        return Err(CommandError::fixed("ERR Mandatory argument FIELDS is missing or not at the right position"));
    }
    match args.try_next().and_then(parse_i64) {
        Some(count) if count < 1 => Err(CommandError::fixed(bad_count)),
        None => Err(CommandError::fixed(bad_count)),
        Some(count) if count as u64 != args.left() as u64 => {
            Err(CommandError::fixed("ERR The `numfields` parameter must match the number of arguments"))
        }
        Some(_) => Ok(()),
    }
}

const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

pub(super) fn httl(cx: &mut ReadCx<'_>) -> CommandResult {
    let now_ms = cx.keys.clock_ms;
    reply_deadlines(cx, |deadline| seconds(deadline.saturating_sub(now_ms)))
}

pub(super) fn hpttl(cx: &mut ReadCx<'_>) -> CommandResult {
    let now_ms = cx.keys.clock_ms;
    reply_deadlines(cx, |deadline| deadline.saturating_sub(now_ms))
}

pub(super) fn hexpiretime(cx: &mut ReadCx<'_>) -> CommandResult {
    reply_deadlines(cx, seconds)
}

pub(super) fn hpexpiretime(cx: &mut ReadCx<'_>) -> CommandResult {
    reply_deadlines(cx, |deadline| deadline)
}

/// Rounded up: a field that lives for another millisecond has a second left.
fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1000)
}

/// Replies with a number for the deadline of each field.
fn reply_deadlines(cx: &mut ReadCx<'_>, about: impl Fn(u64) -> u64) -> CommandResult {
    let key = cx.args.key()?;
    let hash = cx.keys.typed::<HashRef>(key)?;
    check_fields(&mut cx.args, NOT_POSITIVE)?;
    cx.keys.looked_up(key, hash.is_some());
    cx.reply.array(cx.args.left());
    for field in cx.args.rest() {
        cx.reply.integer(match hash.and_then(|hash| hash.deadline(field)) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(deadline)) => about(deadline) as i64,
        });
    }
    Ok(())
}

pub(super) fn hpersist(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    cx.keys.view().typed::<HashRef>(key)?;
    check_fields(&mut cx.args, NOT_POSITIVE)?;
    cx.keys.to_change::<HashRef>(key)?;
    cx.reply.array(cx.args.left());
    let mut changed = false;
    for field in cx.args.rest() {
        cx.reply.integer(match cx.keys.view().typed::<HashRef>(key)?.and_then(|hash| hash.deadline(field)) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(_)) => {
                cx.keys.record(&Effect::change(key, hash::Change::Deadline { field, deadline: None }));
                changed = true;
                DONE
            }
        });
    }
    if changed {
        cx.keys.notify(Events::HASH, "hpersist", key);
    }
    Ok(())
}

/// What HGETEX and HSETEX do to the deadlines of fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ttl {
    Keep,
    Clear,
    Until(u64),
}

pub(super) fn hgetex(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    cx.keys.view().typed::<HashRef>(key)?;
    let ttl = if cx.args.take_word("PERSIST") {
        Ttl::Clear
    } else if let Some(form) = cx.args.peek().and_then(TimeForm::of_word) {
        cx.args.try_next();
        Ttl::Until(field_deadline(&mut cx.args, form, cx.keys.now_ms(), "hgetex")?)
    } else {
        Ttl::Keep
    };
    check_fields(&mut cx.args, NOT_POSITIVE)?;
    let found = cx.keys.to_change::<HashRef>(key)?.is_some();
    cx.keys.view().count(found);
    cx.reply.array(cx.args.left());
    let mut changed = false;
    for field in cx.args.rest() {
        let hash = cx.keys.view().typed::<HashRef>(key)?;
        let Some(value) = hash.and_then(|hash| hash.get(field)) else {
            cx.reply.null();
            continue;
        };
        value.reply(&mut cx.reply);
        match ttl {
            Ttl::Until(deadline) => {
                set_deadline(cx, key, field, deadline);
                changed = true;
            }
            Ttl::Clear if hash.and_then(|hash| hash.deadline(field)).flatten().is_some() => {
                cx.keys.record(&Effect::change(key, hash::Change::Deadline { field, deadline: None }));
                changed = true;
            }
            Ttl::Clear | Ttl::Keep => {}
        }
    }
    match ttl {
        Ttl::Until(deadline) if changed => notify_deadlines_set(cx, key, deadline),
        Ttl::Clear if changed => cx.keys.notify(Events::HASH, "hpersist", key),
        _ => {}
    }
    Ok(())
}

/// When HSETEX may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// FNX: none of the fields exists.
    None,
    /// FXX: all of them exist.
    All,
}

pub(super) fn hsetex(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (presence, ttl) = hsetex_options(&mut cx.args, cx.keys.now_ms())?;
    let mut fields: SmallVec<[(&[u8], &[u8]); 16]> = SmallVec::with_capacity(cx.args.left() / 2);
    while let (Some(field), Some(value)) = (cx.args.try_next(), cx.args.try_next()) {
        fields.push((field, value));
    }
    cx.keys.to_change::<HashRef>(key)?;
    let hash = cx.keys.view().typed::<HashRef>(key)?;
    let is_there = |(field, _): &(&[u8], &[u8])| hash.is_some_and(|hash: HashRef<'_>| hash.get(field).is_some());
    let may_write = match presence {
        None => true,
        Some(Presence::None) => !fields.iter().any(is_there),
        Some(Presence::All) => fields.iter().all(is_there),
    };
    if may_write {
        match ttl {
            // A field that would expire at once is not written; the old field is deleted.
            Ttl::Until(deadline) if deadline <= cx.keys.now_ms() => {
                let gone: SmallVec<[&[u8]; 16]> =
                    fields.iter().copied().filter(|pair| is_there(pair)).map(|(field, _)| field).collect();
                if hash.is_none() {
                    cx.keys.notify(Events::NEW_KEY, "new", key);
                }
                if !gone.is_empty() {
                    cx.keys.record(&Effect::change(key, hash::Change::Delete { fields: &gone, cause: Cause::Deleted }));
                }
                cx.keys.notify(Events::HASH, "hset", key);
                notify_fields_deleted(cx.keys.view(), key);
            }
            Ttl::Until(deadline) => {
                cx.keys.record(&Effect::change(key, hash::Change::Set { fields: &fields, keep_deadlines: true }));
                for (field, _) in fields {
                    cx.keys.record(&Effect::change(key, hash::Change::Deadline { field, deadline: Some(deadline) }));
                }
                cx.keys.notify(Events::HASH, "hset", key);
                cx.keys.notify(Events::HASH, "hexpire", key);
            }
            Ttl::Keep | Ttl::Clear => {
                cx.keys.record(&Effect::change(
                    key,
                    hash::Change::Set { fields: &fields, keep_deadlines: ttl == Ttl::Keep },
                ));
                cx.keys.notify(Events::HASH, "hset", key);
            }
        }
    }
    cx.reply.integer(i64::from(may_write));
    Ok(())
}

/// Reads the options of HSETEX up to `FIELDS n` and checks that n pairs follow.
fn hsetex_options(args: &mut Args<'_>, now_ms: u64) -> Result<(Option<Presence>, Ttl), CommandError> {
    const TWO_CONDITIONS: CommandError = CommandError::fixed("ERR Only one of FXX or FNX arguments can be specified");
    const TWO_TIMES: CommandError =
        CommandError::fixed("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
    let (mut presence, mut ttl) = (None, None);
    while let Some(word) = args.try_next() {
        let condition = match word {
            _ if is_word(word, "FNX") => Some(Presence::None),
            _ if is_word(word, "FXX") => Some(Presence::All),
            _ => None,
        };
        let form = TimeForm::of_word(word);
        if is_word(word, "FIELDS") {
            check_pairs(args)?;
            return Ok((presence, ttl.unwrap_or(Ttl::Clear)));
        } else if condition.is_some() {
            if presence.is_some() {
                return Err(TWO_CONDITIONS);
            }
            presence = condition;
        } else if form.is_some() || is_word(word, "KEEPTTL") {
            if ttl.is_some() {
                return Err(TWO_TIMES);
            }
            ttl = Some(match form {
                Some(form) => Ttl::Until(field_deadline(args, form, now_ms, "hsetex")?),
                None => Ttl::Keep,
            });
        } else {
            return Err(CommandError::said(format!("ERR unknown argument: {}", String::from_utf8_lossy(word))));
        }
    }
    Err(CommandError::WrongArity("hsetex".into()))
}

/// Reads the number of pairs and checks that so many follow.
fn check_pairs(args: &mut Args<'_>) -> CommandResult {
    let wrong_arity = CommandError::WrongArity("hsetex".into());
    if args.left() < 3 {
        return Err(wrong_arity);
    }
    match parse_i64(args.bytes()?) {
        Some(count) if (1..=i64::from(i32::MAX)).contains(&count) => {
            if args.left() as i64 == count * 2 {
                Ok(())
            } else {
                Err(wrong_arity)
            }
        }
        _ => Err(CommandError::fixed("ERR invalid number of fields")),
    }
}

pub(super) fn hgetdel(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    cx.keys.view().typed::<HashRef>(key)?;
    check_fields(&mut cx.args, NOT_POSITIVE)?;
    cx.keys.to_change::<HashRef>(key)?;
    cx.reply.array(cx.args.left());
    let mut deleted = false;
    for field in cx.args.rest() {
        match cx.keys.view().typed::<HashRef>(key)?.and_then(|hash| hash.get(field)) {
            Some(value) => {
                value.reply(&mut cx.reply);
                cx.keys.record(&Effect::change(key, hash::Change::Delete { fields: &[field], cause: Cause::Deleted }));
                deleted = true;
            }
            None => cx.reply.null(),
        }
    }
    if deleted {
        notify_fields_deleted(cx.keys.view(), key);
    }
    Ok(())
}
