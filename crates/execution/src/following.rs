//! Promotion of a follower: it stops following and takes the leader's place.

use crate::engine::Engine;
use crate::forks;
use crate::register_restores;
use crate::waiting;
use crate::worker::Worker;

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
