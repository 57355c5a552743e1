//! Commits changes: the effects recorded under locks become one journal batch, notifications are published, waiters are
//! served. Plain commands, transactions, scripts, sweeps, index work, expiry and replay all end here; no code does
//! these steps by hand.

use crate::client::Client;
use crate::engine::Engine;
use crate::notifications;
use crate::worker::Worker;
use keyspace::Locked;

/// Commits the effects that the worker has recorded under `locked`, on behalf of a client or of the server itself:
/// appends the batch, publishes its notifications, serves waiters, notes what the client's reply depends on. Returns
/// the batch's sequence number, if there is a batch. Does nothing inside a transaction or script: those commit once, at
/// their end.
#[inline]
pub fn commit(
    engine: &Engine,
    worker: &mut Worker,
    client: Option<&mut Client>,
    locked: &mut Locked<'_>,
) -> Option<u64> {
    if worker.batch.is_atomic {
        return None;
    }
    let sequence = worker.batch.append(&*engine.persistence, locked, worker.now_ms);
    let by = client.as_ref().map_or(0, |client| client.id());
    publish_and_serve(engine, worker, sequence.unwrap_or(0), by, locked);
    if let (Some(client), Some(sequence)) = (client, sequence) {
        client.last_batch = sequence;
        client.depends_on = client.depends_on.max(sequence);
    }
    engine.free(locked.take_garbage());
    sequence
}

/// Commits a batch that the journal already contains, under its number.
pub fn commit_replayed(engine: &Engine, worker: &mut Worker, sequence: u64, locked: &mut Locked<'_>) {
    locked.set_changed_by(sequence);
    publish_and_serve(engine, worker, sequence, 0, locked);
    engine.free(locked.take_garbage());
}

#[inline]
fn publish_and_serve(engine: &Engine, worker: &mut Worker, sequence: u64, by: u64, locked: &mut Locked<'_>) {
    if worker.batch.notifications.is_idle() {
        return;
    }
    notifications::publish(engine, &worker.batch.notifications, sequence, by);
    worker.batch.notifications.make_records_ready(&engine.waiting.records, locked, worker.now_ms);
    if !worker.batch.is_serving && worker.batch.notifications.has_ready() {
        (engine.procedures.serve_ready)(engine, worker, locked);
    }
}
