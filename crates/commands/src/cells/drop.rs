//! CELL.DROP: removes all cells under a prefix, in slices on the background thread. Other keys stay.

use super::branch;
use crate::shared::slices::{reply_integer, run, take_token};
use execution::context::ScriptCx;
use execution::database_tokens::DatabaseToken;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::forks::{WalkPlace, is_cell};
use execution::own_changes::{self, Removal};
use execution::settings::events::Events;
use execution::slices::TimeSlice;
use execution::worker::Worker;
use keyspace::{Cause, Effect, Entry, Key, Locked};

const EVENT: (Events, &str) = (Events::MODULE, "cell.drop");

pub(super) fn drop_cells(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let prefix = branch(&mut cx.args, "the prefix")?;
    cx.engine.forks.pass_prefix(cx.client.db, prefix)?;
    if cx.held.is_some() {
        return drop_at_once(cx, prefix);
    }
    let job = DropJob { db: cx.client.db, prefix: prefix.to_vec(), place: WalkPlace::default(), dropped: 0 };
    let token = take_token(cx)?;
    run(cx, token, job, DropJob::step, reply_integer)
}

/// Drops all cells in one step, in a transaction or script, which holds all locks.
fn drop_at_once(cx: &mut ScriptCx<'_, '_>, prefix: &[u8]) -> CommandResult {
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    let held = cx.held.as_mut().expect("the caller has looked");
    let cells = held.shards().flat_map(|(_, shard)| shard.db(db).iter(now_ms)).filter(|entry| is_cell(entry, now_ms));
    let cells = cells.filter(|entry| entry.name().starts_with(prefix));
    let names: Vec<Vec<u8>> = cells.map(|entry| entry.name().to_vec()).collect();
    let mut keys = own_changes::own_changes(engine, cx.worker, held.lend(), db);
    for name in &names {
        keys.record(&Effect::Delete { key: Key::new(name), cause: Cause::Deleted });
        keys.notify(EVENT.0, EVENT.1, Key::new(name));
    }
    let garbage = keys.finish().take_garbage();
    engine.free(garbage);
    cx.reply.integer(names.len() as i64);
    Ok(())
}

/// A drop in progress.
struct DropJob {
    db: usize,
    prefix: Vec<u8>,
    place: WalkPlace,
    dropped: u64,
}

impl DropJob {
    /// Does one slice of the work. Returns the reply after the last slice.
    fn step(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
    ) -> Option<Result<i64, CommandError>> {
        let (slice, now_ms) = (TimeSlice::begin(engine), worker.now_ms);
        while self.place.shard < engine.keyspace.shard_count() {
            if let Err(error) = engine.restrictions.pass_write() {
                return Some(Err(error));
            }
            // A fork may have begun meanwhile; its cells stay.
            let is_free = |entry: &Entry| engine.forks.pass_name(self.db, entry.name()).is_ok();
            let wanted =
                |entry: &Entry| entry.name().starts_with(&self.prefix) && is_cell(entry, now_ms) && is_free(entry);
            let pass = |locked: &Locked<'_>| token.pass(locked);
            let removal = Removal { db: self.db, event: EVENT, wanted };
            match own_changes::remove_some(engine, worker, &removal, self.place, || slice.is_over(), pass) {
                Ok((dropped, next)) => (self.place, self.dropped) = (next, self.dropped + dropped),
                Err(error) => return Some(Err(error)),
            }
            if slice.is_over() {
                return None;
            }
        }
        Some(Ok(self.dropped as i64))
    }
}
