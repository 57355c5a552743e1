//! SESSION.RETRY and SESSION.HASRETRY: requests that were not acknowledged for long, of all sessions of a database, oldest first.

use crate::args::is_word;
use crate::commands::shared::options::{limit, number, once, unknown_option};
use crate::commands::shared::sliced_array::SlicedArray;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::{After, ReadCx, ScriptCx};
use crate::execution::indexes::Slice;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::types::session::{self, Request, session};
use keyspace::{Effect, Key, Locked};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The default LIMIT of SESSION.RETRY.
const LIMIT_DEFAULT: usize = 1000;
/// Requests that are found, and then marked, between two looks at the clock.
const REQUESTS_PER_LOOK: usize = 64;

/// How many times as many as the first slice has found are expected, at most: how many there are is not known.
const EXPECTED_SHARE: usize = 1000;

/// What the slices so far have found.
struct Progress {
    body: SlicedArray,
    found: usize,
    /// Requests that were last sent before then are found.
    before_ms: u64,
    /// No request that was found counts as sent before then.
    sent_ms: u64,
}

pub(super) fn retry(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let before_ms = number(&mut cx.args, "the time", 0, i64::MAX)? as u64;
    let mut limit_asked = None;
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "LIMIT") {
            once(&mut limit_asked, limit(&mut cx.args)?, "LIMIT")?;
        } else {
            return Err(unknown_option(word));
        }
    }
    let limit = limit_asked.unwrap_or(LIMIT_DEFAULT);
    let now_ms = cx.worker.now_ms;
    let resumed = cx.client.unfinished.take().and_then(|unfinished| unfinished.downcast::<Progress>().ok());
    let mut progress = match resumed {
        Some(progress) => *progress,
        None => {
            // What is found is marked as sent, and not found again: with a time to come, what counts is what was sent until now, and it
            // is marked as sent a millisecond later.
            let after_now = now_ms.saturating_add(1);
            let sent_ms = if before_ms > now_ms { after_now } else { now_ms };
            Progress { body: SlicedArray::default(), found: 0, before_ms: before_ms.min(after_now), sent_ms }
        }
    };
    let time = Slice::begin(cx.engine);
    let bytes_max = cx.client.output_bytes_max;
    loop {
        let wanted = (limit - progress.found).min(REQUESTS_PER_LOOK);
        let found = match slice(cx, &mut progress, wanted) {
            // What was found has been marked: it is replied.
            Err(_) if progress.found > 0 => break,
            outcome => outcome?,
        };
        let left = limit - progress.found;
        if found < wanted || left == 0 || progress.body.len() > bytes_max {
            break;
        }
        if cx.held.is_none() && time.is_over() {
            if !progress.body.expects_more() {
                let left = left.min(progress.found * EXPECTED_SHARE);
                progress.body.expect_more(progress.found, progress.found, left, bytes_max);
            }
            cx.client.unfinished = Some(Box::new(progress));
            cx.after = After::Again;
            return Ok(());
        }
    }
    progress.body.send(progress.found, &mut cx.reply);
    Ok(())
}

/// Finds up to so many requests and marks them as sent now, under all locks, as one batch. Returns how many.
fn slice(cx: &mut ScriptCx<'_, '_>, progress: &mut Progress, count: usize) -> Result<usize, CommandError> {
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    let mut own;
    let mut locked = match &mut cx.held {
        Some(held) => held.lend(),
        None => {
            engine.pass_write_restrictions()?;
            own = engine.keyspace.lock_all_unless_busy().ok_or_else(|| engine.busy())?;
            own.lend()
        }
    };
    let mut writer = progress.body.writer(cx.client.protocol, cx.client.output_bytes_max);
    let found = oldest(&locked, db, now_ms, progress.before_ms, count, |name, request| {
        writer.array(3);
        writer.bulk(name);
        writer.integer(request.id as i64);
        writer.bulk(request.payload);
    });
    progress.found += found.len();
    let mut keys = engine.own_changes(cx.worker, locked.lend(), db);
    for (name, id) in &found {
        let key = Key::new(name);
        let Ok(Some(session)) = keys.session_to_change(key) else { continue };
        let at_ms = now_ms.max(progress.sent_ms).max(session.newest_sent_ms());
        keys.record(&Effect::change(key, session::Change::Sent { first: *id, last: *id, at_ms }));
        keys.notify(Events::MODULE, "session.retry", key);
    }
    keys.finish();
    engine.commit(cx.worker, Some(cx.client), &mut locked);
    Ok(found.len())
}

/// The pending requests of one session that were not looked at yet, oldest first.
struct Stream<'a> {
    next: Request<'a>,
    rest: Box<dyn Iterator<Item = Request<'a>> + 'a>,
    name: &'a [u8],
    /// Where its shard's next session comes from, until that was asked for.
    shard: Option<usize>,
}

impl Stream<'_> {
    fn age(&self) -> (u64, &[u8], u64) {
        (self.next.sent_ms, self.name, self.next.id)
    }
}

impl PartialEq for Stream<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.age() == other.age()
    }
}

impl Eq for Stream<'_> {}

impl PartialOrd for Stream<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Stream<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.age().cmp(&other.age())
    }
}

/// Visits the pending requests of all sessions that were last sent before a time, oldest first, up to so many. Everything is locked.
/// Each shard has its sessions by their oldest requests: one more of it is looked at when the last one's turn has come.
fn oldest<'a>(
    locked: &'a Locked<'_>,
    db: usize,
    now_ms: u64,
    before_ms: u64,
    count: usize,
    mut visit: impl FnMut(&[u8], Request<'_>),
) -> Vec<(Vec<u8>, u64)> {
    let mut shards: Vec<_> = locked
        .shards()
        .map(|(_, shard)| {
            let sessions = shard.db(db).unacknowledged(before_ms);
            sessions.map(|(_, entry)| entry).filter(move |entry| !Db::is_expired(entry, now_ms))
        })
        .collect();
    let mut next_of = |shard: usize| {
        let entry = shards[shard].next()?;
        let mut requests = session(entry).sent_before(before_ms);
        let next = requests.next()?;
        Some(Stream { next, rest: Box::new(requests), name: entry.name(), shard: Some(shard) })
    };
    let mut streams: BinaryHeap<Reverse<Stream<'a>>> = BinaryHeap::new();
    streams.extend((0..locked.shards().count()).filter_map(&mut next_of).map(Reverse));
    let mut found = Vec::new();
    while found.len() < count {
        let Some(Reverse(mut stream)) = streams.pop() else { break };
        visit(stream.name, stream.next);
        found.push((stream.name.to_vec(), stream.next.id));
        if let Some(shard) = stream.shard.take() {
            streams.extend(next_of(shard).map(Reverse));
        }
        if let Some(next) = stream.rest.next() {
            streams.push(Reverse(Stream { next, ..stream }));
        }
    }
    found
}

pub(super) fn has_retry(cx: &mut ReadCx<'_>) -> CommandResult {
    let before_ms = number(&mut cx.args, "the time", 0, i64::MAX)? as u64;
    let now_ms = cx.keys.now_ms;
    let is_old = |db: &Db| db.unacknowledged(before_ms).any(|(_, entry)| !Db::is_expired(entry, now_ms));
    let any = (0..cx.shard_count()).any(|shard| cx.shard(shard, is_old));
    cx.reply.integer(any.into());
    Ok(())
}
