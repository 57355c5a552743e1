//! OBJECT: how a value is stored and when it was last used. OBJECT itself does not touch the key.

use crate::shared::help;
use execution::context::{ReadCx, ServerCx};
use execution::error::{CommandError, CommandResult};
use execution::view::View;
use keyspace::storage::entry::idle_s;
use keyspace::usage::frequency;
use keyspace::{Entry, Key, Scalar, SortedSetRef, Value, ValueType};

/// A value and its entry; an index has no entry.
type Found<'a> = (Option<&'a Entry>, Value<'a>);

/// The value of a key, counted as a look-up.
fn find<'a>(keys: &'a View<'_>, key: Key<'_>) -> Option<Found<'a>> {
    let found = match keys.index_at(key) {
        Some(index) => Some((None, Value::SortedSet(SortedSetRef::Index(index)))),
        None => keys.entry(key).map(|entry| (Some(entry), keys.value_of(keys.db(), key, entry))),
    };
    keys.count(found.is_some());
    found
}

pub(super) fn encoding(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    match find(&cx.keys, key) {
        Some((Some(entry), _)) => cx.reply.bulk(encoding_name(entry).as_bytes()),
        // An index always has the large encoding.
        Some((None, _)) => cx.reply.bulk(b"skiplist"),
        None => cx.reply.null(),
    }
    Ok(())
}

/// The name of the encoding that Redis would use for such a value. Ours differ, but clients expect Redis's names.
pub(crate) fn encoding_name(entry: &Entry) -> &'static str {
    (ValueType::of(entry).encoding)(entry)
}

/// Redis shares the objects of these numbers among all keys and does not count references to them.
const SHARED_NUMBERS: std::ops::Range<i64> = 0..10_000;
const SHARED_REFERENCES: i64 = i32::MAX as i64;

pub(super) fn refcount(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    match find(&cx.keys, key) {
        Some((_, Value::String(Scalar::Number(number)))) if SHARED_NUMBERS.contains(&number) => {
            cx.reply.integer(SHARED_REFERENCES);
        }
        Some(_) => cx.reply.integer(1),
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn idletime(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let Some((entry, _)) = find(&cx.keys, key) else {
        cx.reply.null();
        return Ok(());
    };
    if cx.settings.maxmemory_policy().is_lfu() {
        return Err(CommandError::fixed(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
             policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    // An index is always in use.
    cx.reply.integer(entry.map_or(0, |entry| i64::from(idle_s(entry.used_at(), cx.keys.now_ms))));
    Ok(())
}

pub(super) fn freq(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let Some((entry, _)) = find(&cx.keys, key) else {
        cx.reply.null();
        return Ok(());
    };
    if !cx.settings.maxmemory_policy().is_lfu() {
        return Err(CommandError::fixed(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
             between policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    let decay_minutes = cx.settings.lfu_decay_time();
    let of_entry = |entry: &Entry| frequency(entry.used_at(), cx.keys.now_ms, decay_minutes);
    cx.reply.integer(entry.map_or(0, |entry| i64::from(of_entry(entry))));
    Ok(())
}

const HELP: &[&str] = &[
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
];

pub(super) fn help(cx: &mut ServerCx<'_>) -> CommandResult {
    help::reply(&mut cx.reply, "OBJECT", HELP);
    Ok(())
}
