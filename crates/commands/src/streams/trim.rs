//! XTRIM, XDEL, and the options by which XADD trims. Knows the options and Redis's limits; refuses to know which
//! entries are removed (`keyspace::types::stream::Trimming`).

use super::idempotency::Given;
use super::ids::{NewId, id, new_id, text_of};
use super::references::{forget, references_of};
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use keyspace::types::stream::{Change, Keep, References, Stream, StreamId, Trimming};
use keyspace::{Effect, Key};
use numbers::parse_i64;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The options of XADD and XTRIM before the id.
pub(super) struct Options<'a> {
    pub(super) makes_stream: bool,
    /// IDMP and IDMPAUTO.
    pub(super) given: Option<Given<'a>>,
    pub(super) trimming: Option<Trimming>,
    /// The id of XADD; `None` when it is missing.
    pub(super) id: Option<NewId>,
}

impl<'a> Options<'a> {
    /// The options of XADD, up to the id.
    pub(super) fn of_xadd(args: &mut Args<'a>, entries_max: usize) -> Result<Options<'a>, CommandError> {
        Options::take(args, true, entries_max)
    }

    fn take(args: &mut Args<'a>, is_xadd: bool, entries_max: usize) -> Result<Options<'a>, CommandError> {
        const GIVEN_TWICE: CommandError = CommandError::fixed("ERR IDMP/IDMPAUTO specified multiple times");
        const NOT_AUTO: CommandError =
            CommandError::fixed("ERR IDMP/IDMPAUTO can be used only with auto-generated IDs");
        let mut options = Options { makes_stream: true, given: None, trimming: None, id: None };
        let (mut keep, mut is_approximate, mut limit, mut references) = (None, false, None, None);
        while let Some(word) = args.try_next() {
            let more = args.left();
            if is_xadd && text_of(word) == b"*" {
                options.id = Some(NewId::Auto);
                break;
            }
            let (by_length, by_id) = (is_word(word, "MAXLEN"), is_word(word, "MINID"));
            if (by_length || by_id) && more > 0 {
                if keep.is_some() {
                    return Err(CommandError::fixed(
                        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                    ));
                }
                let mut value = args.bytes()?;
                is_approximate = more >= 2 && text_of(value) == b"~";
                if is_approximate || more >= 2 && text_of(value) == b"=" {
                    value = args.bytes()?;
                }
                keep = Some(if by_id { Keep::From(id(value, 0)?) } else { Keep::Newest(count(value, "MAXLEN")?) });
            } else if is_word(word, "LIMIT") && more > 0 {
                limit = Some(count(args.bytes()?, "LIMIT")?);
            } else if let Some(given) = references_of(word) {
                if references.is_some() {
                    return Err(CommandError::Syntax);
                }
                references = Some(given);
            } else if is_xadd && is_word(word, "NOMKSTREAM") {
                options.makes_stream = false;
            } else if is_xadd {
                if let Some(given) = Given::take(word, args)? {
                    if options.given.is_some() {
                        return Err(GIVEN_TWICE);
                    }
                    options.given = Some(given);
                    continue;
                }
                options.id = Some(new_id(word, 0)?);
                if options.given.is_some() {
                    return Err(NOT_AUTO);
                }
                break;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if keep.is_none() && limit.is_some_and(|limit| limit > 0) {
            return Err(CommandError::fixed(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if keep.is_none() && !is_xadd {
            return Err(CommandError::fixed("ERR syntax error, XTRIM must be called with a trimming strategy"));
        }
        if limit.is_some() && !is_approximate {
            return Err(CommandError::fixed("ERR syntax error, LIMIT cannot be used without the special ~ option"));
        }
        let limit = limit.unwrap_or(if is_approximate { default_limit(entries_max) } else { 0 });
        let references = references.unwrap_or_default();
        options.trimming = keep.map(|keep| Trimming { keep, is_approximate, limit, references });
        Ok(options)
    }
}

/// The most entries that an approximate trimming removes by default: a hundred chunks.
fn default_limit(entries_max: usize) -> u64 {
    const NO_MAX: u64 = 10_000;
    const MAX: u64 = 1_000_000;
    match (entries_max as u64).saturating_mul(100) {
        0 => NO_MAX,
        limit => limit.min(MAX),
    }
}

fn count(text: &[u8], option: &str) -> Result<u64, CommandError> {
    let count = parse_i64(text).ok_or(CommandError::NotInteger)?;
    u64::try_from(count).map_err(|_| CommandError::said(format!("ERR The {option} argument must be >= 0.")))
}

pub(super) fn xtrim(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let entries_max = cx.keys.thresholds().stream.entries_max;
    let trimming = Options::take(&mut cx.args, false, entries_max)?.trimming.ok_or(CommandError::Syntax)?;
    let found = cx.keys.to_change::<&Stream>(key)?.is_some();
    let count = if found { trim(&mut cx.keys, key, &trimming)? } else { 0 };
    cx.reply.integer(count as i64);
    Ok(())
}

/// Trims a stream. Returns how many entries were removed.
pub(super) fn trim(keys: &mut Recorder<'_>, key: Key<'_>, trimming: &Trimming) -> Result<u64, CommandError> {
    if trimming.references == References::Acknowledged {
        return trim_acknowledged(keys, key, trimming);
    }
    let Some(trimmed) = keys.view().typed::<&Stream>(key)?.and_then(|stream| stream.trimmed(trimming)) else {
        return Ok(0);
    };
    if trimming.references == References::Delete {
        let ids = pending_upto(keys, key, trimmed.upto)?;
        forget(keys, key, &ids)?;
    }
    keys.record(&Effect::change(key, Change::Trim { upto: trimmed.upto }));
    if trimmed.count > 0 {
        keys.notify(Events::STREAM, "xtrim", key);
    }
    Ok(trimmed.count)
}

/// The entries up to this id that are pending in a group, each once. What is pending of deleted entries is not among
/// them.
fn pending_upto(keys: &Recorder<'_>, key: Key<'_>, upto: StreamId) -> Result<Vec<StreamId>, CommandError> {
    let Some(stream) = keys.view().typed::<&Stream>(key)? else { return Ok(Vec::new()) };
    let pending = stream.groups().flat_map(|(_, group)| group.pending(..=upto).map(|(id, _)| id));
    let ids: BTreeSet<StreamId> = pending.collect();
    Ok(ids.into_iter().filter(|id| stream.get(*id).is_some()).collect())
}

/// Removes acknowledged entries. What is removed from the front counts as trimmed, and what is removed between entries
/// that stay counts as deleted, so that lags are right.
fn trim_acknowledged(keys: &mut Recorder<'_>, key: Key<'_>, trimming: &Trimming) -> Result<u64, CommandError> {
    let Some(stream) = keys.view().typed::<&Stream>(key)? else { return Ok(0) };
    let removed = stream.trimmed_acknowledged(trimming);
    let entries = stream.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id);
    let in_front = removed.iter().zip(entries).take_while(|(removed, id)| **removed == *id).count();
    let (front, behind) = removed.split_at(in_front);
    if let Some(upto) = front.last() {
        keys.record(&Effect::change(key, Change::Trim { upto: *upto }));
    }
    if !behind.is_empty() {
        keys.record(&Effect::change(key, Change::Delete { ids: behind }));
    }
    if !removed.is_empty() {
        keys.notify(Events::STREAM, "xtrim", key);
    }
    Ok(removed.len() as u64)
}

pub(super) fn xdel(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let Some(stream) = cx.keys.to_change::<&Stream>(key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let ids = cx.args.rest().map(|arg| id(arg, 0)).collect::<Result<SmallVec<[StreamId; 8]>, _>>()?;
    let found: SmallVec<[StreamId; 8]> = ids.into_iter().filter(|id| stream.get(*id).is_some()).collect();
    let mut count = 0;
    if !found.is_empty() {
        count = cx.keys.record(&Effect::change(key, Change::Delete { ids: &found })).count;
        cx.keys.notify(Events::STREAM, "xdel", key);
    }
    cx.reply.integer(count as i64);
    Ok(())
}
