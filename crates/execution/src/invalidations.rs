//! Messages that precede a command's reply: invalidations of keys that the tracking table has no room for, and all that
//! was sent to the command's own client. Knows the order of messages and replies; refuses to know what a command does.

use crate::ahead::Ahead;
use crate::client::Client;
use crate::clients::tracking::Mode;
use crate::commit;
use crate::engine::Engine;
use crate::own_changes;
use crate::worker::Worker;

/// The most keys that are dropped from the table before one command. The expiry cycle drops the others.
const KEYS_PER_COMMAND: usize = 128;

/// Appends to `out` what was sent to the client so far: messages that do not follow from its next command come before
/// that command's reply, as in Redis. In broadcast mode Redis collects invalidations, and sends them after the replies.
#[cold]
pub fn take_messages(client: &mut Client, out: &mut Vec<u8>) {
    let is_broadcast = client.tracker.as_ref().is_some_and(|tracker| tracker.mode == Mode::Broadcast);
    // A slice of the command may have read keys that have changed since: these invalidations come after its reply.
    if !is_broadcast && client.unfinished.is_none() {
        client.depends_on = client.depends_on.max(client.handle.drain_outbox(out));
    }
}

/// Cuts the tracking table back to its limit.
#[cold]
pub fn invalidate_before(engine: &Engine, worker: &mut Worker, ahead: &mut Ahead<'_>) {
    if engine.tracking.keys_beyond(engine.settings.tracking_table_max_keys()) > 0 {
        // IMPORTANT: shrinking the table takes locks.
        ahead.release();
        cut_tracking_table_back(engine, worker);
    }
}

/// Drops keys from the tracking table while it has more than `tracking-table-max-keys`, beginning at a random shard.
/// Never block on a shard lock here: a long script may hold it.
fn cut_tracking_table_back(engine: &Engine, worker: &mut Worker) {
    let shards = engine.keyspace.shard_count();
    let first = worker.random.usize(..shards);
    let mut left = KEYS_PER_COMMAND;
    for shard in (first..shards).chain(0..first) {
        let too_many = engine.tracking.keys_beyond(engine.settings.tracking_table_max_keys()).min(left);
        if too_many == 0 {
            break;
        }
        let Some(mut locked) = engine.keyspace.try_lock_shard(shard) else { continue };
        let mut keys = own_changes::own_changes(engine, worker, locked.lend(), 0);
        left -= keys.forget_readers(too_many);
        keys.finish();
        commit::commit(engine, worker, None, &mut locked);
    }
}
