//! CELL.DROP: removes all cells under a prefix, in slices on the background thread. Other keys stay.

use crate::commands::shared::options::argument;
use crate::commands::shared::slices::{reply_integer, run};
use crate::error::{CommandError, CommandResult};
use crate::execution::context::ScriptCx;
use crate::execution::engine::Engine;
use crate::execution::forks::{WalkPlace, is_cell};
use crate::execution::indexes::Slice;
use crate::execution::worker::Worker;
use crate::settings::events::Events;
use keyspace::{Cause, Effect, Entry, Key};

const EVENT: (Events, &str) = (Events::MODULE, "cell.drop");

pub(super) fn drop_cells(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let prefix = argument(&mut cx.args, "the prefix")?;
    cx.engine.forks.pass_prefix(cx.client.db, prefix)?;
    if cx.held.is_some() {
        return drop_at_once(cx, prefix);
    }
    let job = DropJob { db: cx.client.db, prefix: prefix.to_vec(), place: WalkPlace::default(), dropped: 0 };
    run(cx, job, DropJob::step, reply_integer)
}

/// In a transaction or script, which holds all locks: everything in one step.
fn drop_at_once(cx: &mut ScriptCx<'_, '_>, prefix: &[u8]) -> CommandResult {
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    let held = cx.held.as_mut().expect("the caller has looked");
    let cells = held.shards().flat_map(|(_, shard)| shard.db(db).iter(now_ms)).filter(|entry| is_cell(entry, now_ms));
    let cells = cells.filter(|entry| entry.name().starts_with(prefix));
    let names: Vec<Vec<u8>> = cells.map(|entry| entry.name().to_vec()).collect();
    let mut keys = engine.own_changes(cx.worker, held.lend(), db);
    for name in &names {
        keys.record(&Effect::Delete { key: Key::new(name), cause: Cause::Deleted });
        keys.notify(EVENT.0, EVENT.1, Key::new(name));
    }
    let garbage = keys.finish().take_garbage();
    engine.free(garbage);
    cx.reply.integer(names.len() as i64);
    Ok(())
}

/// A drop under way.
struct DropJob {
    db: usize,
    prefix: Vec<u8>,
    place: WalkPlace,
    dropped: u64,
}

impl DropJob {
    /// Does a slice of the work; the reply, when all is done.
    fn step(&mut self, engine: &Engine, worker: &mut Worker) -> Option<Result<i64, CommandError>> {
        let (slice, now_ms) = (Slice::begin(engine), worker.now_ms);
        while self.place.shard < engine.keyspace.shard_count() {
            if let Err(error) = engine.pass_write_restrictions() {
                return Some(Err(error));
            }
            // A fork may have begun meanwhile, whose cells stay.
            let is_free = |entry: &Entry| engine.forks.pass_name(self.db, entry.name()).is_ok();
            let wanted =
                |entry: &Entry| entry.name().starts_with(&self.prefix) && is_cell(entry, now_ms) && is_free(entry);
            let (dropped, next) = engine.remove_some(worker, self.db, self.place, || slice.is_over(), EVENT, wanted);
            (self.place, self.dropped) = (next, self.dropped + dropped);
            if slice.is_over() {
                return None;
            }
        }
        Some(Ok(self.dropped as i64))
    }
}
