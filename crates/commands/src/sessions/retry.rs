//! SESSION.RETRY and SESSION.HASRETRY: find requests that were not acknowledged for long, in all sessions of a
//! database, oldest first.

use crate::shared::options::{limit, number, once, unknown_option};
use crate::shared::sliced_array::SlicedArray;
use execution::args::is_word;
use execution::commit;
use execution::conditions;
use execution::context::{ReadCx, ScriptCx};
use execution::database_tokens::DatabaseToken;
use execution::error::{CommandError, CommandResult};
use execution::own_changes;
use execution::settings::events::Events;
use execution::slices::TimeSlice;
use keyspace::db::Db;
use keyspace::types::session::{self, Request, Session, session};
use keyspace::{Effect, Key, Locked};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The default LIMIT of SESSION.RETRY.
const LIMIT_DEFAULT: usize = 1000;
/// Requests that are found, and then marked, between two checks of the clock.
const REQUESTS_PER_LOOK: usize = 64;

/// The most times the first slice's number of requests that is reserved for: the total is not known.
const EXPECTED_SHARE: usize = 1000;

/// The progress of earlier slices.
struct Progress {
    /// The token of the database, once sessions were read.
    token: Option<DatabaseToken>,
    body: SlicedArray,
    found: usize,
    /// Requests last sent before this time are found.
    before_ms: u64,
    /// Requests that are found are marked as sent at this time or later.
    sent_ms: u64,
}

pub(super) fn retry(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let before_ms = number(&mut cx.args, "the time", 0, i64::MAX)? as u64;
    let mut limit_asked = None;
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "LIMIT") {
            once(&mut limit_asked, limit(&mut cx.args)?, "LIMIT")?;
        } else {
            return Err(unknown_option(&cx.args));
        }
    }
    let limit = limit_asked.unwrap_or(LIMIT_DEFAULT);
    let now_ms = cx.worker.now_ms;
    let mut progress = match cx.client.resume::<Progress>() {
        Some((progress, token)) => Progress { token: Some(token), ..progress },
        None => {
            // Found requests are marked as sent, and must not be found again: with a time in the future, they are marked
            // as sent one millisecond after now.
            let sent_ms = if before_ms > now_ms { after(now_ms) } else { now_ms };
            let before_ms = until_now(before_ms, now_ms);
            Progress { token: None, body: SlicedArray::default(), found: 0, before_ms, sent_ms }
        }
    };
    let time = TimeSlice::begin(cx.engine);
    let bytes_max = cx.client.output_bytes_max;
    loop {
        let wanted = (limit - progress.found).min(REQUESTS_PER_LOOK);
        let found = match slice(cx, &mut progress, wanted) {
            // It continues when the script has ended.
            Err(CommandError::AwaitsScript) if progress.found > 0 => {
                let token = progress.token.take();
                cx.leave(progress, token);
                return Err(CommandError::AwaitsScript);
            }
            // The requests found so far are marked, so they are replied.
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
            let token = progress.token.take();
            cx.leave(progress, token);
            return Ok(());
        }
    }
    progress.body.send(progress.found, &mut cx.reply);
    Ok(())
}

/// With a time in the future, requests sent until now are meant.
fn until_now(before_ms: u64, now_ms: u64) -> u64 {
    before_ms.min(after(now_ms))
}

fn after(now_ms: u64) -> u64 {
    now_ms.saturating_add(1)
}

/// Finds up to so many requests and marks them as sent now, under all locks, as one batch. Returns how many.
fn slice(cx: &mut ScriptCx<'_, '_>, progress: &mut Progress, count: usize) -> Result<usize, CommandError> {
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    let mut own;
    let is_part = cx.held.is_some();
    let mut locked = match &mut cx.held {
        Some(held) => held.lend(),
        None => {
            engine.restrictions.pass_write()?;
            own = engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?;
            own.lend()
        }
    };
    // Even if it finds nothing.
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    match &progress.token {
        // The reply has the requests that were marked before the database was emptied.
        Some(token) if token.pass(&locked).is_err() => return Ok(0),
        None if !is_part => progress.token = Some(engine.databases.take_token(&locked, db)),
        _ => {}
    }
    let mut writer = progress.body.writer(cx.client.protocol, cx.client.output_bytes_max);
    let found = oldest(&locked, db, now_ms, progress.before_ms, count, |name, request| {
        writer.array(4);
        writer.bulk(name);
        writer.integer(request.id as i64);
        writer.bulk(request.payload);
        // Before it is marked: how long the client has not acknowledged it.
        writer.integer(request.sent_ms as i64);
    });
    progress.found += found.len();
    let mut keys = own_changes::own_changes(engine, cx.worker, locked.lend(), db);
    for (name, id) in &found {
        let key = Key::new(name);
        let Ok(Some(session)) = keys.view().typed::<&Session>(key) else { continue };
        let at_ms = now_ms.max(progress.sent_ms).max(session.newest_sent_ms());
        keys.record(&Effect::change(key, session::Change::Sent { first: *id, last: *id, at_ms }));
        keys.notify(Events::MODULE, "session.retry", key);
    }
    keys.finish();
    commit::commit(engine, cx.worker, Some(cx.client), &mut locked);
    Ok(found.len())
}

/// The remaining pending requests of one session, oldest first.
struct Stream<'a> {
    next: Request<'a>,
    rest: Box<dyn Iterator<Item = Request<'a>> + 'a>,
    name: &'a [u8],
    /// The shard whose next session follows this one; `None` once that was fetched.
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

/// Visits the pending requests of all sessions that were last sent before a time, oldest first, up to so many.
/// Everything is locked. Each shard orders its sessions by their oldest requests: its next session is fetched when the
/// first request of the last one is visited.
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

/// Whether `retry` with this time would find a request now.
pub(super) fn has_retry(cx: &mut ReadCx<'_>) -> CommandResult {
    let now_ms = cx.keys.now_ms;
    let before_ms = until_now(number(&mut cx.args, "the time", 0, i64::MAX)? as u64, now_ms);
    let is_old = |db: &Db| db.unacknowledged(before_ms).any(|(_, entry)| !Db::is_expired(entry, now_ms));
    let any = (0..cx.shard_count()).any(|shard| cx.shard(shard, is_old));
    cx.reply.integer(any.into());
    Ok(())
}
