//! Procedures of forks that need the engine: the check of a command's names, the notes in the journal, the removal of
//! incomplete forks.

use super::WalkPlace;
use crate::command::CommandRow;
use crate::commit;
use crate::engine::Engine;
use crate::error::CommandResult;
use crate::own_changes::{Removal, own_changes, remove_some};
use crate::settings::events::Events;
use crate::worker::Worker;
use keyspace::{Definable, Effect, Entry, Locked};
use resp::Request;

/// Refuses a command that writes names which a fork creates.
#[inline]
pub fn pass_forks(engine: &Engine, db: usize, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    if engine.forks.any() { pass_forks_by_key(engine, db, row, request) } else { Ok(()) }
}

#[cold]
fn pass_forks_by_key(engine: &Engine, db: usize, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    let found = row.found_keys(request);
    let written = found.ranges.iter().filter(|range| range.flags.writes());
    written.flat_map(|range| range.positions()).try_for_each(|at| engine.forks.pass_name(db, request.arg(at)))
}

/// Notes in the journal that a fork has begun or ended. False when the locks are not available now. Calls `then` while
/// everything is locked; when it returns false, nothing is noted.
pub fn note_fork(
    engine: &Engine,
    worker: &mut Worker,
    name: &[u8],
    has_begun: bool,
    then: impl FnOnce(&Worker, &Locked<'_>) -> bool,
) -> bool {
    let Some(mut locked) = engine.keyspace.lock_all_unless_busy() else { return false };
    if then(worker, &locked) {
        let mut keys = own_changes(engine, worker, locked.lend(), 0);
        keys.record(&match has_begun {
            true => Effect::Define { what: Definable::Fork, name, definition: b"" },
            false => Effect::Undefine { what: Definable::Fork, name },
        });
        keys.finish();
        commit::commit(engine, worker, None, &mut locked);
    }
    true
}

/// Removes the cells of incomplete forks, after a start or when a follower is promoted. No fork of this server has
/// begun yet. Returns how many keys were removed.
pub fn undo_forks(engine: &Engine, worker: &mut Worker) -> u64 {
    let names: Vec<Vec<u8>> = {
        let locked = engine.keyspace.lock_shard(0);
        locked.definitions().forks().map(<[u8]>::to_vec).collect()
    };
    let mut removed = 0;
    for name in names {
        engine.begin(worker);
        if let Some((&db, to)) = name.split_first().filter(|(db, _)| usize::from(**db) < keyspace::DATABASES) {
            let mut place = WalkPlace::default();
            let wanted = |entry: &Entry| entry.name().starts_with(to);
            let removal = Removal { db: usize::from(db), event: (Events::GENERIC, "del"), wanted };
            while place.shard < engine.keyspace.shard_count() {
                let step = remove_some(engine, worker, &removal, place, || true, |_| Ok(()));
                let (some, next) = step.expect("nothing refuses it");
                (place, removed) = (next, removed + some);
            }
        }
        // A read-only script may be running for long on a follower.
        while !note_fork(engine, worker, &name, false, |_, _| true) {}
    }
    removed
}
