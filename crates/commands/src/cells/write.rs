//! CELL.INIT, CELL.SET, CELL.CAS and CELL.DEL: the commands that change a cell. They decide by `cell-max-versions` how
//! many versions are kept, and record that number.

use super::name;
use crate::shared::deadline::TimeForm;
use crate::shared::options::{argument, error, number, once, shown, unknown_option};
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use keyspace::types::cell::{self, CellRef, TIME_MAX_US, VERSION_MAX, Version};
use keyspace::{Cause, Effect, Key};
use numbers::parse_i64;

pub(super) fn init(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, value) = (name(&mut cx.args)?, cx.args.bytes()?);
    let options = Options::take(&mut cx.args, cx.keys.now_ms(), Allowed::LIFETIME)?;
    let version = match stamp_of(&mut cx.keys, key)? {
        Some(current) => current.version,
        None => write(cx, key, None, value, options.lifetime, "cell.init")?,
    };
    cx.reply.integer(version as i64);
    Ok(())
}

pub(super) fn set(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, value) = (name(&mut cx.args)?, cx.args.bytes()?);
    let options = Options::take(&mut cx.args, cx.keys.now_ms(), Allowed::LIFETIME_OR_PERSIST)?;
    let current = stamp_of(&mut cx.keys, key)?;
    let version = write(cx, key, current, value, options.lifetime, "cell.set")?;
    cx.reply.integer(version as i64);
    Ok(())
}

pub(super) fn cas(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, expected, value) = (name(&mut cx.args)?, expected(cx.args.bytes()?)?, cx.args.bytes()?);
    let options = Options::take(&mut cx.args, cx.keys.now_ms(), Allowed::ALL)?;
    let current = stamp_of(&mut cx.keys, key)?;
    let version = match current.map_or(0, |current| current.version) == expected {
        true => Some(write(cx, key, current, value, options.lifetime, "cell.cas")?),
        false => None,
    };
    if options.with_current {
        cx.reply.array(3);
    }
    match version {
        Some(version) => cx.reply.integer(version as i64),
        None => cx.reply.null(),
    }
    if options.with_current {
        match cx.keys.view().typed::<CellRef>(key)?.map(|cell| cell.current()) {
            Some(current) => {
                cx.reply.bulk(current.value);
                cx.reply.integer(current.number as i64);
            }
            None => {
                cx.reply.null();
                cx.reply.null();
            }
        }
    }
    Ok(())
}

pub(super) fn del(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, mut condition) = (name(&mut cx.args)?, None);
    while let Some(word) = cx.args.try_next() {
        if !is_word(word, "IF") {
            return Err(unknown_option(&cx.args));
        }
        once(&mut condition, number(&mut cx.args, "the version behind IF", 1, i64::MAX)? as u64, "IF")?;
    }
    let is_meant = |current: CellStamp| condition.is_none_or(|version| version == current.version);
    let is_deleted = stamp_of(&mut cx.keys, key)?.is_some_and(is_meant);
    if is_deleted {
        cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
        cx.keys.notify(Events::MODULE, "cell.del", key);
    }
    cx.reply.integer(i64::from(is_deleted));
    Ok(())
}

/// What a command that changes a cell needs to know about it.
#[derive(Clone, Copy)]
struct CellStamp {
    /// The number of its newest version.
    version: u64,
    time_us: u64,
    /// The number of versions.
    kept: u64,
}

/// The stamp of the cell at a key that is about to be changed.
#[inline]
fn stamp_of(keys: &mut Recorder<'_>, key: Key<'_>) -> Result<Option<CellStamp>, CommandError> {
    keys.look_at::<CellRef, _>(key, |cell| {
        let cell = cell?;
        cell.prefetch_write();
        let (version, time_us) = cell.stamp();
        Some(CellStamp { version, time_us, kept: cell.len() as u64 })
    })
}

/// The version that CELL.CAS expects; 0 is none.
#[inline]
fn expected(arg: &[u8]) -> Result<u64, CommandError> {
    if let Some(version) = parse_i64(arg).and_then(|version| u64::try_from(version).ok()) {
        return Ok(version);
    }
    match is_word(arg, "NONE") {
        true => Ok(0),
        false => {
            Err(error(format!("the expected version must be NONE or a whole number not below 0, not {}", shown(arg))))
        }
    }
}

/// Writes the next version of a cell, and returns its number.
fn write(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    current: Option<CellStamp>,
    value: &[u8],
    lifetime: Option<Lifetime>,
    event: &'static str,
) -> Result<u64, CommandError> {
    let (number, time_us, older) = match current {
        None => (1, cx.now_us, 0),
        Some(current) => {
            if current.version >= VERSION_MAX {
                return Err(CommandError::fixed(
                    "ERR the version of the cell is at its maximum: CELL.DEL it to begin anew at 1",
                ));
            }
            let older = match cx.settings.cell_max_versions() {
                0 => current.kept,
                limit => (limit - 1).min(current.kept),
            };
            (current.version + 1, cx.now_us.max(current.time_us + 1), older)
        }
    };
    if time_us > TIME_MAX_US {
        return Err(CommandError::fixed("ERR the time of the cell is at its maximum: CELL.DEL it to begin anew"));
    }
    cx.keys.record(&Effect::change(key, cell::Change::Write { version: Version { number, time_us, value }, older }));
    cx.keys.notify(Events::MODULE, event, key);
    match lifetime {
        Some(Lifetime::Until(deadline)) => {
            cx.keys.record(&Effect::Deadline { key, deadline: Some(deadline) });
            cx.keys.notify(Events::GENERIC, "expire", key);
        }
        Some(Lifetime::Forever) if cx.keys.view().deadline(key).flatten().is_some() => {
            cx.keys.record(&Effect::Deadline { key, deadline: None });
            cx.keys.notify(Events::GENERIC, "persist", key);
        }
        Some(Lifetime::Forever) | None => {}
    }
    Ok(number)
}

/// What happens to the deadline. Without this it stays.
#[derive(Clone, Copy)]
enum Lifetime {
    Until(u64),
    Forever,
}

/// The options that a command accepts.
#[derive(Clone, Copy)]
struct Allowed {
    persist: bool,
    with_current: bool,
}

impl Allowed {
    const LIFETIME: Allowed = Allowed { persist: false, with_current: false };
    const LIFETIME_OR_PERSIST: Allowed = Allowed { persist: true, with_current: false };
    const ALL: Allowed = Allowed { persist: true, with_current: true };
}

#[derive(Default)]
struct Options {
    lifetime: Option<Lifetime>,
    with_current: bool,
}

impl Options {
    #[inline]
    fn take(args: &mut Args<'_>, now_ms: u64, allowed: Allowed) -> Result<Options, CommandError> {
        match args.is_empty() {
            true => Ok(Options::default()),
            false => Options::take_some(args, now_ms, allowed),
        }
    }

    fn take_some(args: &mut Args<'_>, now_ms: u64, allowed: Allowed) -> Result<Options, CommandError> {
        let (mut lifetime, mut with_current) = (None, None);
        while let Some(word) = args.try_next() {
            if let Some(form @ (TimeForm::Seconds | TimeForm::Milliseconds)) = TimeForm::of_word(word) {
                once(&mut lifetime, Lifetime::Until(deadline(form, args, now_ms)?), "the lifetime")?;
            } else if allowed.persist && is_word(word, "PERSIST") {
                once(&mut lifetime, Lifetime::Forever, "the lifetime")?;
            } else if allowed.with_current && is_word(word, "WITHCURRENT") {
                once(&mut with_current, true, "WITHCURRENT")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        Ok(Options { lifetime, with_current: with_current.unwrap_or_default() })
    }
}

/// The deadline that EX or PX sets.
fn deadline(form: TimeForm, args: &mut Args<'_>, now_ms: u64) -> Result<u64, CommandError> {
    let option = if form == TimeForm::Seconds { "EX" } else { "PX" };
    let time = argument(args, &format!("the time behind {option}"))?;
    let instant = parse_i64(time).filter(|time| *time > 0).and_then(|time| form.instant(time, now_ms));
    match instant {
        Some(instant) => Ok(instant as u64),
        None => Err(error(format!("the time behind {option} must be a positive number that fits in 63 bits of ms"))),
    }
}
