//! CELL.GET, CELL.GETV, CELL.MGET and CELL.HISTORY: the current and past values of a cell. CELL.GETV can wait for a newer version.

use super::name;
use crate::shared::options::{error, limit, number, once, unknown_option};
use execution::args::{Args, is_word};
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use execution::waiting::keys::{Condition, Wait, WaitKeys, WaitRole};
use keyspace::Value;
use keyspace::types::cell::{CellRef, Version};
use resp::Reply;

pub(super) fn get(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = name(&mut cx.args)?;
    let cell = cx.keys.typed::<CellRef>(key)?;
    cx.keys.looked_up(key, cell.is_some());
    match cell {
        Some(cell) => cx.reply.bulk(cell.current().value),
        None => cx.reply.null(),
    }
    Ok(())
}

/// The version that CELL.GETV is to return.
#[derive(Clone, Copy)]
enum Asked {
    Current,
    Version(u64),
    AsOf(u64),
    After { version: u64, block_ms: Option<u64> },
}

impl Asked {
    fn take(args: &mut Args<'_>) -> Result<Asked, CommandError> {
        let (mut which, mut block_ms) = (None, None);
        while let Some(word) = args.try_next() {
            let mut value = |what: &str, least| Ok::<_, CommandError>(number(args, what, least, i64::MAX)? as u64);
            if is_word(word, "VERSION") {
                once(&mut which, Asked::Version(value("the version behind VERSION", 1)?), WHICH)?;
            } else if is_word(word, "ASOF") {
                once(&mut which, Asked::AsOf(value("the time behind ASOF", 0)?), WHICH)?;
            } else if is_word(word, "AFTER") {
                let version = value("the version behind AFTER", 0)?;
                once(&mut which, Asked::After { version, block_ms: None }, WHICH)?;
            } else if is_word(word, "BLOCK") {
                once(&mut block_ms, value("the time behind BLOCK", 0)?, "BLOCK")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        match (which, block_ms) {
            (Some(Asked::After { version, .. }), block_ms) => Ok(Asked::After { version, block_ms }),
            (_, Some(_)) => {
                Err(error("BLOCK needs AFTER, which says what to wait for: send AFTER version BLOCK ms".into()))
            }
            (which, None) => Ok(which.unwrap_or(Asked::Current)),
        }
    }

    fn of<'c>(&self, cell: CellRef<'c>) -> Option<Version<'c>> {
        match *self {
            Asked::Current => Some(cell.current()),
            Asked::Version(number) => cell.version(number),
            Asked::AsOf(time_us) => cell.as_of(time_us),
            Asked::After { version, .. } => Some(cell.current()).filter(|current| current.number > version),
        }
    }
}

const WHICH: &str = "the version";

pub(super) fn getv(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = name(&mut cx.args)?;
    let asked = Asked::take(&mut cx.args)?;
    if let Asked::After { block_ms: Some(_), .. } = asked
        && cx.keys.at_instant().is_some()
    {
        return Err(error(
            "BLOCK cannot wait in a read-only transaction, which sees no new version: leave it out".into(),
        ));
    }
    let is_served = cx.client.offer().is_some();
    let cell = match cx.keys.get(key) {
        Some(Value::Cell(cell)) => Some(cell),
        // It was a cell when the wait began, and was removed since.
        Some(_) if is_served => None,
        Some(other) => return Err(CommandError::wrong_type(other.value_type())),
        None => None,
    };
    cx.keys.looked_up(key, cell.is_some());
    match cell.and_then(|cell| asked.of(cell)) {
        Some(version) => reply_version(&mut cx.reply, version),
        None => {
            cx.reply.null();
            let seen = cell.map(|cell| cell.current()).map(|current| (current.number, current.time_us));
            if let Asked::After { version, block_ms: Some(block_ms) } = asked
                && (seen.is_some() || version == 0)
                && !is_served
            {
                let until_ms = (block_ms > 0).then(|| cx.keys.now_ms.saturating_add(block_ms));
                let condition = newer_or_gone(version, seen);
                cx.client.wait(Wait { until_ms, keys: WaitKeys::All, condition, role: WaitRole::Reader });
            }
        }
    }
    Ok(())
}

/// The condition that ends a wait for a version after `after`. `seen` is the version, with its time, that existed when
/// the wait began. A cell without that version, or with another time, has replaced the one that was waited for.
fn newer_or_gone(after: u64, seen: Option<(u64, u64)>) -> Condition {
    Box::new(move |value| match (value, seen) {
        (Some(Value::Cell(cell)), seen) => {
            let current = cell.current().number;
            let is_another = |(number, time_us)| {
                current < number || cell.version(number).is_some_and(|version| version.time_us != time_us)
            };
            current > after || seen.is_some_and(is_another)
        }
        (_, seen) => seen.is_some(),
    })
}

pub(super) fn mget(cx: &mut ReadCx<'_>) -> CommandResult {
    cx.reply.array(cx.args.left());
    while !cx.args.is_empty() {
        let key = name(&mut cx.args)?;
        let cell = cx.keys.typed::<CellRef>(key)?;
        cx.keys.looked_up(key, cell.is_some());
        match cell {
            Some(cell) => reply_version(&mut cx.reply, cell.current()),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// The default LIMIT of CELL.HISTORY.
const LIMIT_DEFAULT: usize = 1000;

pub(super) fn history(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = name(&mut cx.args)?;
    let (mut limit_asked, mut before) = (None, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "LIMIT") {
            once(&mut limit_asked, limit(&mut cx.args)?, "LIMIT")?;
        } else if is_word(word, "BEFORE") {
            let version = number(&mut cx.args, "the version behind BEFORE", 1, i64::MAX)?;
            once(&mut before, version as u64, "BEFORE")?;
        } else {
            return Err(unknown_option(&cx.args));
        }
    }
    let cell = cx.keys.typed::<CellRef>(key)?;
    cx.keys.looked_up(key, cell.is_some());
    let open = cx.reply.open_array();
    let versions = cell.iter().flat_map(|cell| cell.newest_first(before.unwrap_or(u64::MAX)));
    let mut len = 0;
    for version in versions.take(limit_asked.unwrap_or(LIMIT_DEFAULT)) {
        reply_version(&mut cx.reply, version);
        len += 1;
    }
    cx.reply.close(open, len);
    Ok(())
}

fn reply_version(reply: &mut Reply<'_>, version: Version<'_>) {
    reply.array(3);
    reply.bulk(version.value);
    reply.integer(version.number as i64);
    reply.integer(version.time_us as i64);
}
