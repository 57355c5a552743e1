//! Queues clients for records. Refuses to know how they are served (`serving`).

use super::{RecordWaiter, was_dropped};

use super::lines::{NOTHING_SEARCHED, line_id};
use crate::client::Client;
use crate::command::CommandRow;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::waiting::waiter::{BlockedCommand, WaitPhase};
use crate::waiting::{Blocked, Event};
use keyspace::index::Index;
use resp::Request;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Queues a client whose command has just requested to wait for records. The reply written so far becomes the timeout
/// reply.
pub fn begin_record_wait(
    engine: &Engine,
    client: &mut Client,
    command: &'static CommandRow,
    request: Request<'_>,
    (out, reply_at): (&mut Vec<u8>, usize),
    now_ms: u64,
) -> Result<Option<Blocked>, CommandError> {
    let wait = match std::mem::take(&mut client.wait_phase) {
        WaitPhase::RecordsRequested(wait) => wait,
        other => {
            client.wait_phase = other;
            return Ok(None);
        }
    };
    let Some(mut place) = wait.place else { return Ok(None) };
    let known = engine.indexes.read();
    let mut lines = engine.waiting.records.lines.lock();
    let line_of = |(index, _): &(Arc<Index>, usize)| line_id(index, place.db);
    // IMPORTANT: under the lock of the indexes. Dropping an index later finds this waiter in its line.
    let is_dropped = |joined: &&(Arc<Index>, usize)| {
        lines.line(line_of(joined)).is_none_or(|line| line.is_dropped)
            || !known.iter().any(|index| Arc::ptr_eq(index, &joined.0))
    };
    if let Some((index, _)) = place.indexes.iter().find(is_dropped) {
        let error = was_dropped(&index.name);
        drop((lines, known));
        return Err(error);
    }
    // The number is assigned under the lock, so that later waiters have higher numbers in every line.
    let blocked =
        BlockedCommand::new(engine.waiting.keys.next_number(), client, command, request, out.split_off(reply_at));
    client.handle.wait_state.begin(blocked.number);
    let indexes = place.indexes.iter().map(|(index, _)| index.clone()).collect();
    let waiter = Arc::new(RecordWaiter { blocked, indexes, criteria: wait.criteria });
    for (at, joined) in place.indexes.iter().enumerate() {
        let searched = wait.searched.get(at).copied().unwrap_or(NOTHING_SEARCHED);
        lines.add(line_of(joined), waiter.blocked.number, &waiter, searched, joined.1, now_ms);
        lines.end_search(line_of(joined));
    }
    // IMPORTANT: even when nothing is ready: it may be the first waiter that waits for a time.
    engine.waiting.records.has_work.store(true, SeqCst);
    drop((lines, known));
    // The waiter has taken over the place.
    place.indexes.clear();
    engine.waiting.records.count.fetch_add(1, SeqCst);
    client.wait_phase = WaitPhase::RecordsQueued(waiter);
    Ok(Some(Blocked { until_ms: wait.until_ms, event: Event::Value, silent: false }))
}
