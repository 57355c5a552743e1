//! A server that begins to follow another, begins anew, or takes its place. Refuses to know how batches arrive.

use crate::clients::wait_state::Unblock;
use crate::engine::Engine;
use crate::forks;
use crate::register_restores;
use crate::replay::Replay;
use crate::sessions::lookup::{Found, find};
use crate::waiting;
use crate::worker::Worker;
use keyspace::effects::codec;
use keyspace::{DATABASES, Definable, Effect, Key};
use smallvec::smallvec;

/// Makes a writer a follower. Writes are refused from now on, but one that has passed the gates may still be executed:
/// the caller finds it in the journal. Clients that wait for keys and records get an error: what they wait for is the
/// writer's to give.
pub fn begin_following(engine: &Engine) {
    engine.restrictions.set_following(true);
    for client in engine.clients.all() {
        client.unblock(Unblock::Demotion);
    }
    stop_clocks(engine);
}

/// Stops the clocks of all sessions: they are renewed at the writer, which does not say so. Whoever writes next gives each
/// its full TTL again.
fn stop_clocks(engine: &Engine) {
    for shard in 0..engine.keyspace.shard_count() {
        let locked = engine.keyspace.lock_shards(smallvec![shard]);
        for db in 0..DATABASES {
            let Some((_, within)) = locked.shards().next() else { continue };
            for name in within.db(db).sessions_due(u64::MAX, usize::MAX) {
                if let Ok(Found::Alive(session)) = find(&locked, db, Key::new(&name), 0) {
                    session.stop_clock();
                }
            }
        }
    }
}

/// Removes all keys and definitions, so that a follower can load its state anew. Clients are told of it as of FLUSHALL.
pub fn empty(engine: &Engine, worker: Worker) {
    let mut batch = Vec::new();
    codec::encode(0, &Effect::FlushAll, &mut batch);
    let locked = engine.keyspace.lock_all();
    let definitions = locked.definitions();
    let names = |what: Definable, names: Vec<&[u8]>, batch: &mut Vec<u8>| {
        names.into_iter().for_each(|name| codec::encode(0, &Effect::Undefine { what, name }, batch));
    };
    names(Definable::Library, definitions.libraries().map(|(name, _)| name).collect(), &mut batch);
    names(Definable::Index, definitions.indexes().map(|(name, _)| name).collect(), &mut batch);
    names(Definable::Fork, definitions.forks().collect(), &mut batch);
    names(Definable::Restore, definitions.restores().collect(), &mut batch);
    names(Definable::Hook, definitions.hooks().collect(), &mut batch);
    drop(locked);
    let emptied = Replay::new(engine, None).go_live(worker).batch(1, &batch);
    emptied.expect("effects that were just encoded fit any state");
    // No reply depends on a batch before the next one that is applied.
    let mut locked = engine.keyspace.lock_all();
    locked.set_changed_by(0);
    // The keys of a snapshot are loaded without effects, so nothing could be kept from now on.
    let garbage = engine.instants.lose_all();
    drop(locked);
    engine.free(garbage);
}

/// Promotes a follower: it applies no more batches of the leader. Removes the results of the leader's incomplete forks
/// and completes its restores, as after a start; serves waiters that were already queued. `worker` serves nothing else
/// meanwhile. Returns how many keys were changed.
pub fn end_following(engine: &Engine, worker: &mut Worker) -> u64 {
    // IMPORTANT: while writes are still refused; otherwise a client could write names that are about to be removed.
    let changed = if engine.restrictions.is_following() {
        forks::undo_forks(engine, worker) + register_restores::finish_restores(engine, worker)
    } else {
        0
    };
    engine.restrictions.set_following(false);
    waiting::queueing::defer_all_waiters(engine);
    changed
}
