//! Commands for keys of any type, one by one or a whole database at a time. `scan` lists names, `expire` has the
//! deadlines.

use super::dump::{pass_free, pass_free_key, pass_name};
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WholeServer, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::DATABASES;
use keyspace::db::Db;
use keyspace::{Cause, Effect, Key, ValueType};
use numbers::parse_i64;
use resp::Request;
use smallvec::SmallVec;

/// DEL and UNLINK. Both free large values in the background.
pub(super) fn delete(cx: &mut WriteCx<'_>) -> CommandResult {
    let mut deleted = 0;
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        if cx.keys.view().exists(key) {
            cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            cx.keys.notify(Events::GENERIC, "del", key);
            deleted += 1;
        }
    }
    cx.reply.integer(deleted);
    Ok(())
}

pub(super) fn exists(cx: &mut ReadCx<'_>) -> CommandResult {
    let mut found = 0;
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let there = cx.keys.exists(key);
        cx.keys.looked_up(key, there);
        found += i64::from(there);
    }
    cx.reply.integer(found);
    Ok(())
}

pub(super) fn touch(cx: &mut ReadCx<'_>) -> CommandResult {
    let mut touched = 0;
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let entry = cx.keys.entry(key);
        let found = entry.is_some() || cx.keys.index_at(key).is_some();
        cx.keys.looked_up(key, found);
        touched += i64::from(found);
        if let Some(entry) = entry {
            // Even with CLIENT NO-TOUCH on: TOUCH is explicit.
            cx.keys.use_entry(entry);
        }
    }
    cx.reply.integer(touched);
    Ok(())
}

pub(super) fn type_of(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.get(key);
    cx.keys.looked_up(key, found.is_some());
    cx.reply.simple(found.map_or("none", |value| value.value_type().name));
    Ok(())
}

/// How many random keys RANDOMKEY tries before it searches for one that has not expired.
const RANDOM_TRIES: usize = 100;

pub(super) fn randomkey(cx: &mut ReadCx<'_>) -> CommandResult {
    let now_ms = cx.keys.now_ms;
    let parts: Vec<&Db> = cx.keys.locked().shards().map(|(_, shard)| shard.db(cx.keys.db())).collect();
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let by_luck = (0..RANDOM_TRIES.min(total)).find_map(|_| {
        let mut at = cx.random.usize(..total);
        let part = parts.iter().find(|part| match at.checked_sub(part.len()) {
            Some(behind) => {
                at = behind;
                false
            }
            None => true,
        })?;
        part.random(cx.random).filter(|entry| !Db::is_expired(entry, now_ms))
    });
    match by_luck.or_else(|| parts.iter().find_map(|part| part.iter(now_ms).next())) {
        Some(entry) => cx.reply.bulk(entry.name()),
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn rename(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    if !cx.keys.view().exists(from) {
        return Err(CommandError::NoSuchKey);
    }
    pass_free_key(cx.keys.view(), from)?;
    if from.name != to.name {
        pass_target(cx, from, to)?;
        rename_key(cx, from, to)?;
    }
    cx.reply.ok();
    Ok(())
}

/// Refuses a name that no value of the type of `from` can have.
fn pass_target(cx: &WriteCx<'_>, from: Key<'_>, to: Key<'_>) -> CommandResult {
    match cx.keys.view().entry(from) {
        Some(entry) => {
            pass_free(ValueType::of(entry))?;
            pass_name(ValueType::of(entry), to)
        }
        None => Ok(()),
    }
}

fn rename_key(cx: &mut WriteCx<'_>, from: Key<'_>, to: Key<'_>) -> CommandResult {
    cx.keys.replace(&Effect::Rename { from, to })?;
    cx.keys.notify(Events::GENERIC, "rename_from", from);
    cx.keys.notify(Events::GENERIC, "rename_to", to);
    Ok(())
}

pub(super) fn renamenx(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    if !cx.keys.view().exists(from) {
        return Err(CommandError::NoSuchKey);
    }
    // Even when both names are the same.
    let free = !cx.keys.view().exists(to);
    if free {
        pass_target(cx, from, to)?;
        rename_key(cx, from, to)?;
    }
    cx.reply.integer(i64::from(free));
    Ok(())
}

const SAME_OBJECT: CommandError = CommandError::fixed("ERR source and destination objects are the same");
const NO_SUCH_DB: CommandError = CommandError::fixed("ERR DB index is out of range");

/// The next argument as the number of a database.
fn database(args: &mut Args<'_>) -> Result<usize, CommandError> {
    let index = args.int()?;
    if i32::try_from(index).is_err() {
        return Err(CommandError::fixed("ERR value is out of range, value must between -2147483648 and 2147483647"));
    }
    known_database(index)
}

fn known_database(index: i64) -> Result<usize, CommandError> {
    usize::try_from(index).ok().filter(|db| *db < DATABASES).ok_or(NO_SUCH_DB)
}

pub(super) fn copy(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    let (mut to_db, mut replace) = (cx.keys.db(), false);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "REPLACE") {
            replace = true;
        } else if is_word(word, "DB") {
            to_db = database(&mut cx.args)?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if to_db == cx.keys.db() && from.name == to.name {
        return Err(SAME_OBJECT);
    }
    let found = cx.keys.view().exists(from);
    cx.keys.view().looked_up(from, found);
    let copied = found && (replace || cx.keys.view().entry_in(to_db, to).is_none());
    if copied {
        pass_target(cx, from, to)?;
        cx.server().forks.pass_name(to_db, to.name)?;
        cx.keys.replace(&Effect::Copy { from, to, to_db })?;
        cx.keys.notify_in(to_db, Events::GENERIC, "copy_to", to);
    }
    cx.reply.integer(i64::from(copied));
    Ok(())
}

/// True for a COPY that names a database.
pub(super) fn copies_to_db(request: Request<'_>) -> bool {
    request.iter().skip(3).any(|word| is_word(word, "DB"))
}

/// Where a COPY names databases.
pub(super) fn databases_of_copy(request: Request<'_>) -> SmallVec<[usize; 2]> {
    (3..request.len()).filter(|at| is_word(request.arg(*at), "DB")).map(|at| at + 1).collect()
}

pub(super) fn move_to(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let to_db = database(&mut cx.args)?;
    if to_db == cx.keys.db() {
        return Err(SAME_OBJECT);
    }
    let moved = cx.keys.view().exists(key) && cx.keys.view().entry_in(to_db, key).is_none();
    if moved {
        pass_free_key(cx.keys.view(), key)?;
        cx.server().forks.pass_name(to_db, key.name)?;
        cx.keys.record(&Effect::Move { key, to_db });
        cx.keys.notify(Events::GENERIC, "move_from", key);
        cx.keys.notify_in(to_db, Events::GENERIC, "move_to", key);
    }
    cx.reply.integer(i64::from(moved));
    Ok(())
}

pub(super) fn dbsize(cx: &mut ReadCx<'_>) -> CommandResult {
    let db = cx.keys.db();
    let len: usize = cx.keys.locked().shards().map(|(_, shard)| shard.db(db).len()).sum();
    cx.reply.integer(len as i64);
    Ok(())
}

pub(super) fn flushdb(cx: &mut WriteCx<'_>) -> CommandResult {
    flush(cx, &Effect::FlushDb)
}

pub(super) fn flushall(cx: &mut WriteCx<'_>) -> CommandResult {
    flush(cx, &Effect::FlushAll)
}

/// SYNC and ASYNC are the same: memory is always freed in the background.
fn flush(cx: &mut WriteCx<'_>, effect: &Effect<'_>) -> CommandResult {
    let _ = cx.args.take_word("SYNC") || cx.args.take_word("ASYNC");
    cx.args.finish()?;
    // Recorded even if there are no keys: a follower may hold keys that this server never had.
    cx.keys.record(effect);
    cx.reply.ok();
    Ok(())
}

pub(super) fn swapdb(cx: &mut WriteCx<'_>) -> CommandResult {
    let mut index = |refusal| {
        let index = parse_i64(cx.args.bytes()?).filter(|index| i32::try_from(*index).is_ok());
        index.ok_or(CommandError::fixed(refusal))
    };
    let (a, b) = (index("ERR invalid first DB index")?, index("ERR invalid second DB index")?);
    let (a, b) = (known_database(a)?, known_database(b)?);
    cx.server().databases.pass_swap(a, b)?;
    if a != b {
        cx.keys.record(&Effect::SwapDb { a, b });
    }
    cx.reply.ok();
    Ok(())
}
