//! IDX.CREATE, IDX.RANGE and related commands. The indexes themselves are in `execution::indexes`.

use super::filters::{Filter, Filters, pass};
use super::record_reply::{RecordReply, RecordReplyOptions};
use super::times::bound_at;
use crate::shared::options::{Names, argument, error, limit, missing, names, once, shown, unknown_option};
use crate::shared::returned::Returned;
use crate::shared::sliced_array::SlicedArray;
use crate::shared::slices;
use execution::args::{Args, is_word};
use execution::background_tasks::{BackgroundTask, IndexBackfill};
use execution::commit;
use execution::conditions;
use execution::context::{After, ScriptCx};
use execution::database_tokens::DatabaseToken;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::indexes;
use execution::revealed;
use execution::slices::{RECORDS_PER_LOOK, TimeSlice};
use execution::ticket::Ticket;
use execution::view::View;
use execution::waiting::{Blocked, Event};
use execution::worker::Worker;
use keyspace::IndexRef;
use keyspace::db::Db;
use keyspace::garbage::Garbage;
use keyspace::index::{Condition, Definition, HeldWhere, Index};
use keyspace::types::sorted_set::{Direction, ScoreRange};
use keyspace::{Definable, Effect, Locked, Value};
use resp::{Protocol, Reply};
use std::sync::Arc;

/// `IDX.CREATE name [IFABSENT] …`
struct Create<'a> {
    name: &'a [u8],
    if_absent: bool,
    definition: Definition,
}

pub(super) fn create(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let Create { name, if_absent, definition } = Create::take(&mut cx.args)?;
    let engine = cx.engine;
    let reply: fn(&mut Reply<'_>) = if if_absent { |reply| reply.integer(1) } else { |reply| reply.ok() };
    if let Some(held) = &mut cx.held {
        // In a transaction or script, which holds all locks, the index is built at once.
        let same = if if_absent { indexes::find_same(engine, name, &definition)? } else { None };
        match same {
            Some(index) if index.is_built() => cx.reply.integer(0),
            Some(_) => return Err(error(format!("the index {} is not complete yet", shown(name)))),
            None => {
                engine.indexes.pass_limits(held, name, cx.worker.now_ms)?;
                let usage = engine.usage(&mut cx.worker.random);
                let mut view = View::new(held.lend(), 0, cx.worker.now_ms, usage, &cx.worker.metrics.stats);
                view.notify_through(
                    &cx.worker.batch.notifications,
                    engine.settings.notify_keyspace_events().published(),
                );
                let mut keys = view.into_recorder(engine, &mut cx.worker.batch.effects);
                keys.record(&Effect::Define { what: Definable::Index, name, definition: &definition.encode() });
                keys.finish();
                reply(&mut cx.reply);
            }
        }
        return Ok(());
    }
    let index = {
        let mut locked = engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?;
        // An error, or that the index is there, reveals an earlier change.
        cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
        let same = if if_absent { indexes::find_same(engine, name, &definition)? } else { None };
        match same {
            Some(index) if index.is_built() => {
                cx.reply.integer(0);
                return Ok(());
            }
            Some(index) => {
                drop(locked);
                let token = slices::take_token(cx)?;
                return slices::run(cx, token, index, await_complete, slices::reply_integer);
            }
            None => indexes::begin_index(engine, &mut locked, name, definition)?,
        }
    };
    if engine.background_tasks.is_served() {
        let (ticket, handle) = (Arc::new(Ticket::default()), cx.client.handle.clone());
        cx.after = After::Block(Blocked { until_ms: None, event: Event::Background(ticket.clone()), silent: false });
        let backfill = IndexBackfill { index, ticket, handle, protocol: cx.client.protocol, reply };
        engine.background_tasks.send(BackgroundTask::Backfill(backfill));
        return Ok(());
    }
    let sequence = indexes::backfill_index(engine, cx.worker, &index)?;
    cx.client.last_batch = cx.client.last_batch.max(sequence);
    cx.client.depends_on = cx.client.depends_on.max(sequence);
    reply(&mut cx.reply);
    Ok(())
}

/// Returns 0 once an index is complete that another client is creating.
fn await_complete(
    index: &mut Arc<Index>,
    engine: &Engine,
    _: &mut Worker,
    _: &DatabaseToken,
) -> Option<Result<i64, CommandError>> {
    let is_listed = engine.indexes.list().find(&index.name).is_some_and(|listed| Arc::ptr_eq(listed, index));
    match (is_listed, index.is_built()) {
        (true, true) => Some(Ok(0)),
        (true, false) => None,
        (false, _) => Some(Err(CommandError::fixed("ERR the index was dropped before it was complete"))),
    }
}

impl<'a> Create<'a> {
    fn take(args: &mut Args<'a>) -> Result<Create<'a>, CommandError> {
        let name = argument(args, "the name of the index")?;
        let owned = |names: Names<'_>| names.iter().map(|name| name.to_vec()).collect();
        let (mut if_absent, mut prefixes, mut field, mut condition, mut stamp) = (None, None, None, None, None);
        let (mut group, mut held) = (None, None);
        while let Some(word) = args.try_next() {
            if is_word(word, "IFABSENT") {
                once(&mut if_absent, true, "IFABSENT")?;
            } else if is_word(word, "PREFIX") {
                once(&mut prefixes, names(args, "PREFIX")?, "PREFIX")?;
            } else if is_word(word, "FIELD") {
                once(&mut field, argument(args, "the field behind FIELD")?.to_vec(), "FIELD")?;
            } else if is_word(word, "ONLY") || is_word(word, "EXCLUDE") {
                let option = String::from_utf8_lossy(word).to_uppercase();
                let field = argument(args, &format!("the field behind {option}"))?.to_vec();
                let values = owned(names(args, &option)?);
                once(&mut condition, Condition { field, values, only: option == "ONLY" }, "ONLY or EXCLUDE")?;
            } else if is_word(word, "STAMP") {
                once(&mut stamp, true, "STAMP")?;
            } else if is_word(word, "GROUP") {
                once(&mut group, argument(args, "the field behind GROUP")?.to_vec(), "GROUP")?;
            } else if is_word(word, "HELD") {
                let field = argument(args, "the field behind HELD")?.to_vec();
                once(&mut held, HeldWhere { field, values: owned(names(args, "HELD")?) }, "HELD")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        let prefixes = prefixes.ok_or_else(|| missing("PREFIX, which says which records are in the index"))?;
        if prefixes.is_empty() {
            return Err(CommandError::fixed("ERR PREFIX must name at least one prefix; the empty one is all names"));
        }
        let prefixes = owned(prefixes);
        let field = field.ok_or_else(|| missing("FIELD, which names the field that is the score"))?;
        let definition = Definition { prefixes, field, condition, stamp: stamp.unwrap_or_default(), group, held };
        Ok(Create { name, if_absent: if_absent.unwrap_or_default(), definition })
    }
}

pub(super) fn drop_index(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let name = argument(&mut cx.args, "the name of the index")?;
    let (engine, worker) = (cx.engine, &mut *cx.worker);
    let mut own = match cx.held {
        Some(_) => None,
        None => Some(engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?),
    };
    let lent = cx.held.as_mut().map(Locked::lend).or(own.as_mut().map(Locked::lend));
    let mut locked = lent.expect("one of them is there");
    // That there is none reveals an earlier change.
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    let usage = engine.usage(&mut worker.random);
    let mut view = View::new(locked.lend(), cx.client.db, worker.now_ms, usage, &worker.metrics.stats);
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    let dropped = indexes::drop_index(engine, &mut keys, name);
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, Some(cx.client), &mut locked);
    drop(locked);
    drop(own);
    engine.free(garbage);
    cx.reply.integer(i64::from(dropped));
    Ok(())
}

pub(super) fn list(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let indexes = cx.engine.indexes.list();
    revealed::await_definitions(cx)?;
    let complete = || indexes.iter().filter(|index| index.is_built());
    cx.reply.array(complete().count());
    complete().for_each(|index| cx.reply.bulk(&index.name));
    Ok(())
}

/// Calls `look` with an index while everything is locked and nothing in it has expired; `None` when the command has to
/// yield first. In a transaction or script there is no slice: it keeps its locks anyway. The token of a command with
/// more than one slice is checked, or taken.
fn with_index<T>(
    cx: &mut ScriptCx<'_, '_>,
    name: &[u8],
    token: Option<&mut Option<DatabaseToken>>,
    look: impl FnOnce(IndexRef<'_>, Option<TimeSlice<'_>>, &mut Reply<'_>) -> T,
) -> Result<Option<T>, CommandError> {
    let ScriptCx { engine, client, worker, reply, held, .. } = cx;
    let mut own;
    let is_held = held.is_some();
    let mut locked = match held {
        Some(held) => held.lend(),
        None => match indexes::lock_for_index(engine, worker, client.db)? {
            Some(all) => {
                own = all;
                own.lend()
            }
            None => return Ok(None),
        },
    };
    match token {
        Some(Some(token)) => token.pass(&locked)?,
        Some(token) if !is_held => *token = Some(engine.databases.take_token(&locked, client.db)),
        _ => {}
    }
    let slice = (!is_held).then(|| TimeSlice::begin(engine));
    indexes::expire_for_index(engine, worker, client.db, &mut locked);
    client.depends_on = client.depends_on.max(locked.changed_by());
    match IndexRef::find(&locked, client.db, name) {
        Some(index) => Ok(Some(look(index, slice, reply))),
        None => Err(error(format!("there is no index {}", shown(name)))),
    }
}

pub(super) fn info(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let name = argument(&mut cx.args, "the name of the index")?;
    let db = cx.client.db;
    let found = with_index(cx, name, None, |index, _, reply| {
        let definition = &index.index().definition;
        let has_queues = definition.has_queues();
        reply.map(if has_queues { 10 } else { 7 });
        reply.bulk(b"prefixes");
        reply.array(definition.prefixes.len());
        definition.prefixes.iter().for_each(|prefix| reply.bulk(prefix));
        reply.bulk(b"field");
        reply.bulk(&definition.field);
        for (option, only) in [("only", true), ("exclude", false)] {
            reply.bulk(option.as_bytes());
            match definition.condition.as_ref().filter(|condition| condition.only == only) {
                None => reply.null(),
                Some(condition) => {
                    reply.array(1 + condition.values.len());
                    reply.bulk(&condition.field);
                    condition.values.iter().for_each(|value| reply.bulk(value));
                }
            }
        }
        reply.bulk(b"stamp");
        reply.integer(i64::from(definition.stamp));
        if has_queues {
            put_groups(reply, index.index(), db);
        }
        reply.bulk(b"entries");
        reply.integer(index.len() as i64);
        reply.bulk(b"bytes");
        reply.integer(index.heap_bytes() as i64);
    })?;
    if found.is_none() {
        cx.after = After::Again;
    }
    Ok(())
}

/// What an index with GROUP or HELD has beside the others.
fn put_groups(reply: &mut Reply<'_>, index: &Index, db: usize) {
    reply.bulk(b"group");
    match &index.definition.group {
        Some(group) => reply.bulk(group),
        None => reply.null(),
    }
    reply.bulk(b"held");
    match &index.definition.held {
        Some(held) => {
            reply.array(1 + held.values.len());
            reply.bulk(&held.field);
            held.values.iter().for_each(|value| reply.bulk(value));
        }
        None => reply.null(),
    }
    reply.bulk(b"groups");
    reply.integer(index.groups.lock(db).len() as i64);
}

/// `IDX.RANGE name min max …`
struct Range<'a> {
    name: &'a [u8],
    wanted: ScoreRange,
    direction: Direction,
    filters: Filters<'a>,
    limit: usize,
    reply_options: RecordReplyOptions<'a>,
}

/// The progress of an IDX.RANGE.
#[derive(Default)]
struct RangeProgress {
    /// The time of `NOW`: all slices search the same scores.
    began_ms: u64,
    found: usize,
    /// The records found so far.
    body: SlicedArray,
    /// The last record visited.
    last: Option<(f64, Vec<u8>)>,
    returned: Returned,
}

impl<'a> Range<'a> {
    fn take(args: &mut Args<'a>, now_ms: u64) -> Result<Range<'a>, CommandError> {
        let name = argument(args, "the name of the index")?;
        let mut bound = |what: &str| bound_at(argument(args, what)?, now_ms, what);
        let wanted = ScoreRange { min: bound("min")?, max: bound("max")? };
        let (mut reversed, mut limit_asked, mut reply_options) = (None, None, RecordReplyOptions::default());
        let mut filters = Filters::new();
        while let Some(word) = args.try_next() {
            if is_word(word, "REV") {
                once(&mut reversed, true, "REV")?;
            } else if is_word(word, "FILTER") {
                filters.push(Filter::take(args)?);
            } else if is_word(word, "LIMIT") {
                once(&mut limit_asked, limit(args)?, "LIMIT")?;
            } else if !reply_options.take(word, args)? {
                return Err(unknown_option(args));
            }
        }
        Ok(Range {
            name,
            wanted,
            direction: if reversed.is_some() { Direction::Descending } else { Direction::Ascending },
            filters,
            limit: limit_asked.unwrap_or(usize::MAX),
            reply_options,
        })
    }

    /// Visits records until the slice is over. True when there are no more.
    fn look(
        &self,
        index: IndexRef<'_>,
        progress: &mut RangeProgress,
        now_ms: u64,
        (protocol, bytes_max): (Protocol, usize),
        slice: Option<TimeSlice<'_>>,
    ) -> bool {
        if !progress.returned.begin_slice(&index, slice) {
            return false;
        }
        let is_over = || slice.is_some_and(|slice| slice.is_over());
        let mut members = remaining(index, &self.wanted, self.direction, progress.last.as_ref());
        let mut reply = progress.body.writer(protocol, bytes_max);
        let (mut looked_at, mut latest, mut found) = (0, None, Vec::new());
        let ended = loop {
            if progress.found == self.limit {
                break true;
            }
            if looked_at % RECORDS_PER_LOOK == 0 && looked_at > 0 && is_over() {
                break false;
            }
            let Some((db, entry, score)) = members.next_entry() else { break true };
            looked_at += 1;
            latest = Some((score, entry.name()));
            // While clients are paused, expired keys are not removed, so they may still be here.
            let hash = match db.value(entry, now_ms) {
                Value::Hash(hash) if !Db::is_expired(entry, now_ms) => hash,
                _ => continue,
            };
            if !pass(&self.filters, hash) || progress.returned.contains(entry.name()) {
                continue;
            }
            progress.found += 1;
            found.push(entry.name());
            let record = RecordReply { name: entry.name(), score: Some(score), hash, deadline_ms: entry.deadline() };
            self.reply_options.reply(&record, now_ms, &mut reply);
        };
        // A range that ends in its first slice need not remember what it has returned.
        if !ended {
            progress.returned.add(&found);
            if progress.last.is_none() {
                progress.body.expect_more(progress.found, looked_at, members.left(), bytes_max);
            }
            progress.last = latest.map(|(score, name)| (score, name.to_vec())).or(progress.last.take());
        }
        ended
    }
}

pub(super) fn range(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let (mut progress, mut token) = match cx.client.resume() {
        Some((progress, token)) => (progress, Some(token)),
        None => (RangeProgress { began_ms: cx.worker.now_ms, ..RangeProgress::default() }, None),
    };
    let range = Range::take(&mut cx.args, progress.began_ms)?;
    let (now_ms, protocol, bytes_max) = (cx.worker.now_ms, cx.reply.protocol(), cx.client.output_bytes_max);
    let ended = with_index(cx, range.name, Some(&mut token), |index, slice, _| {
        range.look(index, &mut progress, now_ms, (protocol, bytes_max), slice)
    })?;
    if ended != Some(true) && progress.body.len() <= bytes_max {
        cx.leave(progress, token);
        return Ok(());
    }
    progress.body.send(progress.found, &mut cx.reply);
    if !progress.returned.is_empty() {
        // A long list of names takes long to free.
        cx.engine.free(Garbage::of(progress.returned));
    }
    Ok(())
}

/// The records of a range after the last one visited.
pub(super) fn remaining<'i>(
    index: IndexRef<'i>,
    range: &ScoreRange,
    direction: Direction,
    last: Option<&(f64, Vec<u8>)>,
) -> keyspace::views::index_ref::IndexMembers<'i> {
    let (mut start, mut end) = index.by_score(range);
    if let Some((score, name)) = last {
        match direction {
            Direction::Ascending => start = index.up_to(*score, name),
            Direction::Descending => end = index.before(*score, name),
        }
    }
    for (start, end) in start.iter().zip(&mut end) {
        *end = (*end).max(*start);
    }
    index.between(&start, &end, direction)
}
