//! XDELEX and XACKDEL, and what becomes of references to deleted entries: KEEPREF, DELREF and ACKED. Knows which entries
//! and references go; refuses to know how they are removed (`keyspace::types::stream`).

use super::ids::id;
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use keyspace::types::stream::{Change, References, Stream, StreamId};
use keyspace::{Effect, Key};
use numbers::parse_i64;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The reply for an id with nothing to delete.
const NOT_FOUND: i64 = -1;
const DELETED: i64 = 1;
/// The reply for an entry that a group still needs.
const STILL_NEEDED: i64 = 2;

/// What a word says of references, if it is about them.
pub(super) fn references_of(word: &[u8]) -> Option<References> {
    if is_word(word, "KEEPREF") {
        Some(References::Keep)
    } else if is_word(word, "DELREF") {
        Some(References::Delete)
    } else if is_word(word, "ACKED") {
        Some(References::Acknowledged)
    } else {
        None
    }
}

/// Takes `IDS numids id …` behind the word IDS.
pub(super) fn take_ids(
    args: &mut Args<'_>,
    no_number: CommandError,
    too_few: CommandError,
) -> Result<Vec<StreamId>, CommandError> {
    let count = parse_i64(args.bytes()?).and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    let count = count.ok_or(no_number)?;
    if count > args.left() {
        return Err(too_few);
    }
    (0..count).map(|_| id(args.bytes()?, 0)).collect()
}

/// The arguments of XDELEX and XACKDEL behind the key and the group.
struct Asked {
    references: References,
    ids: Vec<StreamId>,
}

impl Asked {
    fn take(args: &mut Args<'_>) -> Result<Asked, CommandError> {
        const NO_NUMBER: CommandError = CommandError::fixed("ERR Number of IDs must be a positive integer");
        const TOO_FEW: CommandError =
            CommandError::fixed("ERR The `numids` parameter must match the number of arguments");
        let (mut references, mut ids) = (None, None);
        while let Some(word) = args.try_next() {
            if let Some(given) = references_of(word).filter(|_| references.is_none()) {
                references = Some(given);
            } else if ids.is_none() && is_word(word, "IDS") && !args.is_empty() {
                ids = Some(take_ids(args, NO_NUMBER, TOO_FEW)?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(Asked { references: references.unwrap_or_default(), ids: ids.ok_or(CommandError::Syntax)? })
    }
}

pub(super) fn xdelex(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let Asked { references, ids } = Asked::take(&mut cx.args)?;
    let stream = cx.keys.to_change::<&Stream>(key)?;
    let (mut seen, mut deleted) = (BTreeSet::new(), Vec::new());
    cx.reply.array(ids.len());
    for id in &ids {
        let is_new = seen.insert(*id);
        let found = stream.filter(|stream| stream.get(*id).is_some());
        cx.reply.integer(match found {
            Some(stream) if references == References::Acknowledged && stream.is_referenced(*id) => STILL_NEEDED,
            Some(_) if is_new => {
                deleted.push(*id);
                DELETED
            }
            _ => NOT_FOUND,
        });
    }
    if stream.is_some() && references == References::Delete {
        // Those of entries that are gone already, too.
        forget(&mut cx.keys, key, &seen.into_iter().collect::<Vec<_>>())?;
    }
    delete(&mut cx.keys, key, &deleted);
    Ok(())
}

pub(super) fn xackdel(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, name) = (cx.args.key()?, cx.args.bytes()?);
    let Asked { references, ids } = Asked::take(&mut cx.args)?;
    let stream = cx.keys.to_change::<&Stream>(key)?;
    let found = stream.and_then(|stream| Some((stream, stream.group(name)?)));
    cx.reply.array(ids.len());
    let Some((stream, group)) = found else {
        ids.iter().for_each(|_| cx.reply.integer(NOT_FOUND));
        return Ok(());
    };
    let (mut acknowledged, mut deleted) = (BTreeSet::new(), Vec::new());
    // The others that may need an entry once this group has acknowledged it.
    let others = || stream.groups().filter(|(other, _)| *other != name);
    for id in &ids {
        if group.get(*id).is_none() || !acknowledged.insert(*id) {
            cx.reply.integer(NOT_FOUND);
            continue;
        }
        let is_needed = references == References::Acknowledged
            && (group.last < *id || others().any(|(_, group)| group.last < *id || group.get(*id).is_some()));
        cx.reply.integer(if is_needed { STILL_NEEDED } else { DELETED });
        if !is_needed && stream.get(*id).is_some() {
            deleted.push(*id);
        }
    }
    let acknowledged: Vec<StreamId> = acknowledged.into_iter().collect();
    if !acknowledged.is_empty() {
        cx.keys.record(&Effect::change(key, Change::Acknowledge { group: name, ids: &acknowledged }));
    }
    if references == References::Delete {
        forget(&mut cx.keys, key, &acknowledged)?;
    }
    delete(&mut cx.keys, key, &deleted);
    Ok(())
}

/// Deletes entries that exist.
fn delete(keys: &mut Recorder<'_>, key: Key<'_>, ids: &[StreamId]) {
    if !ids.is_empty() {
        keys.record(&Effect::change(key, Change::Delete { ids }));
        keys.notify(Events::STREAM, "xdel", key);
    }
}

/// Removes what is pending of these entries, each given once, in all groups.
pub(super) fn forget(keys: &mut Recorder<'_>, key: Key<'_>, ids: &[StreamId]) -> CommandResult {
    let Some(stream) = keys.view().typed::<&Stream>(key)? else { return Ok(()) };
    let pending = stream.groups().filter_map(|(name, group)| {
        let ids: Vec<StreamId> = ids.iter().copied().filter(|id| group.get(*id).is_some()).collect();
        (!ids.is_empty()).then(|| (name.to_vec(), ids))
    });
    for (group, ids) in pending.collect::<SmallVec<[_; 4]>>() {
        keys.record(&Effect::change(key, Change::Acknowledge { group: &group, ids: &ids }));
    }
    Ok(())
}
