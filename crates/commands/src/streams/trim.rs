//! XTRIM, XDEL, and the options by which XADD trims. Knows the options and Redis's limits; refuses to know which
//! entries are removed (`keyspace::types::stream::Trimming`).

use super::ids::{NewId, id, new_id, text_of};
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use keyspace::types::stream::{Change, Keep, Stream, StreamId, Trimming};
use keyspace::{Effect, Key};
use numbers::parse_i64;
use smallvec::SmallVec;

/// The options of XADD and XTRIM before the id.
pub(super) struct Options {
    pub(super) makes_stream: bool,
    pub(super) trimming: Option<Trimming>,
    /// The id of XADD; `None` when it is missing.
    pub(super) id: Option<NewId>,
}

impl Options {
    /// The options of XADD, up to the id.
    pub(super) fn of_xadd(args: &mut Args<'_>, entries_max: usize) -> Result<Options, CommandError> {
        Options::take(args, true, entries_max)
    }

    fn take(args: &mut Args<'_>, is_xadd: bool, entries_max: usize) -> Result<Options, CommandError> {
        let mut options = Options { makes_stream: true, trimming: None, id: None };
        let (mut keep, mut is_approximate, mut limit) = (None, false, None);
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
            } else if is_xadd && is_word(word, "NOMKSTREAM") {
                options.makes_stream = false;
            } else if is_xadd {
                options.id = Some(new_id(word, 0)?);
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
        options.trimming = keep.map(|keep| Trimming { keep, is_approximate, limit });
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
    let Some(trimmed) = keys.view().typed::<&Stream>(key)?.and_then(|stream| stream.trimmed(trimming)) else {
        return Ok(0);
    };
    keys.record(&Effect::change(key, Change::Trim { upto: trimmed.upto }));
    if trimmed.count > 0 {
        keys.notify(Events::STREAM, "xtrim", key);
    }
    Ok(trimmed.count)
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
