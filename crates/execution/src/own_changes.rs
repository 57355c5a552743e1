//! Changes that the server makes itself, without a command. Refuses to know why.

use crate::commit;
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::forks::WalkPlace;
use crate::recorder::Recorder;
use crate::settings::events::Events;
use crate::view::View;
use crate::worker::Worker;
use keyspace::{Cause, Effect, Entry, Key, Locked};

/// A recorder for changes that the server makes itself, in one database.
pub fn own_changes<'a>(engine: &'a Engine, worker: &'a mut Worker, locked: Locked<'a>, db: usize) -> Recorder<'a> {
    let usage = engine.usage(&mut worker.random);
    let mut view = View::new(locked, db, worker.now_ms, usage, &worker.metrics.stats).without_touching();
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    view.into_recorder(engine, &mut worker.batch.effects)
}

/// Which keys a walk removes, and the event that it publishes for each.
pub struct Removal<W> {
    pub db: usize,
    pub event: (Events, &'static str),
    /// True for the keys to remove.
    pub wanted: W,
}

/// Removes the next keys of one shard, as one batch. Returns how many it removed and where to continue: `place` itself
/// when a long script holds the lock. `pass` may refuse the removal, under the lock.
pub fn remove_some(
    engine: &Engine,
    worker: &mut Worker,
    removal: &Removal<impl Fn(&Entry) -> bool>,
    place: WalkPlace,
    is_over: impl Fn() -> bool,
    pass: impl FnOnce(&Locked<'_>) -> CommandResult,
) -> Result<(u64, WalkPlace), CommandError> {
    let Some(mut locked) = engine.keyspace.lock_shard_unless_busy(place.shard) else { return Ok((0, place)) };
    pass(&locked)?;
    let (db, (class, event)) = (removal.db, removal.event);
    let (mut next, mut removed) = (place, 0);
    let mut keys = own_changes(engine, worker, locked.lend(), db);
    while next.shard == place.shard {
        let (mut names, mut end) = (Vec::new(), u32::MAX);
        if let Some((_, shard)) = keys.view().locked().shards().next() {
            end = shard.db(db).range_end(next.position);
            shard.db(db).visit_range(next.position, end, |entry| {
                if (removal.wanted)(entry) {
                    names.push(entry.name().to_vec());
                }
            });
        }
        for name in &names {
            let key = Key::new(name);
            keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            keys.notify(class, event, key);
            removed += 1;
        }
        next = next.behind(end);
        if is_over() {
            break;
        }
    }
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, None, &mut locked);
    locked.release_fairly();
    engine.free(garbage);
    Ok((removed, next))
}
