//! Deadlines of keys: sets, reads and removes them. Deadlines of hash fields are in `hashes::deadlines`.

use super::dump::pass_free_key;
use crate::shared::deadline::TimeForm;
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::{Cause, Effect};
use numbers::parse_i64;

pub(super) fn expire(cx: &mut WriteCx<'_>) -> CommandResult {
    expire_in(cx, TimeForm::Seconds, "expire")
}

pub(super) fn pexpire(cx: &mut WriteCx<'_>) -> CommandResult {
    expire_in(cx, TimeForm::Milliseconds, "pexpire")
}

pub(super) fn expireat(cx: &mut WriteCx<'_>) -> CommandResult {
    expire_in(cx, TimeForm::UnixSeconds, "expireat")
}

pub(super) fn pexpireat(cx: &mut WriteCx<'_>) -> CommandResult {
    expire_in(cx, TimeForm::UnixMilliseconds, "pexpireat")
}

fn expire_in(cx: &mut WriteCx<'_>, form: TimeForm, command: &str) -> CommandResult {
    let (key, time) = (cx.args.key()?, cx.args.bytes()?);
    let conditions = Conditions::take(&mut cx.args)?;
    let time = parse_i64(time).ok_or(CommandError::NotInteger)?;
    let instant = form.instant(time, cx.keys.now_ms()).ok_or_else(|| CommandError::invalid_expire(command))?;
    let current = cx.keys.view().deadline(key);
    if current.is_some() {
        pass_free_key(cx.keys.view(), key)?;
    }
    let may_set = current.is_some_and(|current| conditions.hold(current, instant));
    if may_set {
        let (effect, event) = match u64::try_from(instant) {
            Ok(deadline) if deadline > cx.keys.now_ms() => {
                (Effect::Deadline { key, deadline: Some(deadline) }, "expire")
            }
            // The deadline has passed.
            _ => (Effect::Delete { key, cause: Cause::Deleted }, "del"),
        };
        cx.keys.record(&effect);
        cx.keys.notify(Events::GENERIC, event, key);
    }
    cx.reply.integer(i64::from(may_set));
    Ok(())
}

/// The conditions NX, XX, GT and LT: all that are given must hold.
#[derive(Default)]
struct Conditions {
    /// The key has no deadline.
    nx: bool,
    /// It has one.
    xx: bool,
    /// The new one is later; no deadline counts as the latest.
    gt: bool,
    /// The new one is sooner.
    lt: bool,
}

impl Conditions {
    fn take(args: &mut Args<'_>) -> Result<Conditions, CommandError> {
        let mut asked = Conditions::default();
        while let Some(word) = args.try_next() {
            if is_word(word, "NX") {
                asked.nx = true;
            } else if is_word(word, "XX") {
                asked.xx = true;
            } else if is_word(word, "GT") {
                asked.gt = true;
            } else if is_word(word, "LT") {
                asked.lt = true;
            } else {
                return Err(CommandError::said(format!("ERR Unsupported option {}", String::from_utf8_lossy(word))));
            }
        }
        if asked.nx && (asked.xx || asked.gt || asked.lt) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(CommandError::fixed(text));
        }
        if asked.gt && asked.lt {
            return Err(CommandError::fixed("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(asked)
    }

    fn hold(&self, current: Option<u64>, instant: i64) -> bool {
        match current {
            None => !self.xx && !self.gt,
            Some(current) => {
                let current = i64::try_from(current).unwrap_or(i64::MAX);
                !self.nx && (!self.gt || instant > current) && (!self.lt || instant < current)
            }
        }
    }
}

pub(super) fn ttl(cx: &mut ReadCx<'_>) -> CommandResult {
    reply_deadline(cx, |deadline, now_ms| seconds(deadline - now_ms))
}

pub(super) fn pttl(cx: &mut ReadCx<'_>) -> CommandResult {
    reply_deadline(cx, |deadline, now_ms| deadline - now_ms)
}

pub(super) fn expiretime(cx: &mut ReadCx<'_>) -> CommandResult {
    reply_deadline(cx, |deadline, _| seconds(deadline))
}

pub(super) fn pexpiretime(cx: &mut ReadCx<'_>) -> CommandResult {
    reply_deadline(cx, |deadline, _| deadline)
}

/// Rounds to the nearest second.
fn seconds(ms: u64) -> u64 {
    (ms + 500) / 1000
}

const NO_KEY: i64 = -2;
const NO_DEADLINE: i64 = -1;

/// Replies with `time` of the deadline, which is not earlier than now.
fn reply_deadline(cx: &mut ReadCx<'_>, time: fn(deadline: u64, now_ms: u64) -> u64) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.deadline(key);
    cx.keys.looked_up(key, found.is_some());
    cx.reply.integer(match found {
        None => NO_KEY,
        Some(None) => NO_DEADLINE,
        // For an import source a key is there whose deadline has passed.
        Some(Some(deadline)) => time(deadline.max(cx.keys.clock_ms), cx.keys.clock_ms) as i64,
    });
    Ok(())
}

pub(super) fn persist(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let had_one = cx.keys.view().deadline(key).flatten().is_some();
    if had_one {
        pass_free_key(cx.keys.view(), key)?;
        cx.keys.record(&Effect::Deadline { key, deadline: None });
        cx.keys.notify(Events::GENERIC, "persist", key);
    }
    cx.reply.integer(i64::from(had_one));
    Ok(())
}
