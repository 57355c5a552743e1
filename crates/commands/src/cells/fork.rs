//! CELL.FORK: copies all cells under a prefix to another prefix, as they are at one instant, in slices on the
//! background thread. `execution::forks` keeps the copy exact while clients write. A fork continues when its client
//! disconnects.

use super::branch;
use crate::shared::options::{error, shown};
use crate::shared::slices::{reply_integer, run, take_token};
use execution::commit;
use execution::context::ScriptCx;
use execution::database_tokens::DatabaseToken;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult, DEMOTED};
use execution::forks;
use execution::forks::{ForkId, WalkPlace, contain_each_other, definition_name, is_cell};
use execution::gates;
use execution::own_changes::{self, Removal};
use execution::settings::events::Events;
use execution::slices::TimeSlice;
use execution::worker::Worker;
use keyspace::db::Db;
use keyspace::footprint::bytes_of;
use keyspace::types::cell;
use keyspace::{Effect, Entry, Image, Key, Locked, NameHash};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// The most cells, and about how many bytes, that are copied under one set of locks.
const COPIES_MAX: usize = 128;
const COPIES_BYTES: usize = 512 * 1024;
/// Elements of a large value that are sampled to estimate its size.
const SAMPLES: usize = 8;
/// Cells between two checks of the clock.
const CELLS_PER_LOOK: usize = 16;

pub(super) fn fork(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let from = branch(&mut cx.args, "the prefix to copy from")?;
    let to = branch(&mut cx.args, "the prefix to copy to")?;
    if contain_each_other(from, to) {
        let text = "one prefix contains the other, and a fork would copy its own cells: choose another";
        return Err(error(format!("{text} ({} and {})", shown(from), shown(to))));
    }
    // The shortest name that a cell could have there.
    pass_cell_name(&[to, b"x"].concat())?;
    if cx.held.is_some() {
        return fork_at_once(cx, from, to);
    }
    let (engine, db) = (cx.engine, cx.client.db);
    let token = take_token(cx)?;
    let id = engine.forks.reserve(db, from, to)?;
    // IMPORTANT: after the reservation. A restore checks for forks when it begins, so one of the two finds the other.
    if let Err(error) = engine.restores.pass_database(db) {
        drop(engine.forks.release(id));
        return Err(error);
    }
    let job = ForkJob {
        id,
        db,
        from: from.to_vec(),
        to: to.to_vec(),
        stage: ForkStage::Check(WalkPlace::default()),
        copied: 0,
    };
    run(cx, token, job, ForkJob::step, reply_integer)
}

/// Refuses a prefix or name that no cell can have.
fn pass_cell_name(name: &[u8]) -> CommandResult {
    match cell::name_error(name) {
        Some(why) => Err(error(why.into())),
        None => Ok(()),
    }
}

/// The name of a cell's copy.
fn copy_name(name: &[u8], from: &[u8], to: &[u8]) -> Result<Vec<u8>, CommandError> {
    let copy = [to, &name[from.len()..]].concat();
    pass_cell_name(&copy)?;
    Ok(copy)
}

fn taken(to: &[u8]) -> CommandError {
    error(format!("there is a key under {} already: fork to another prefix, or CELL.DROP this one first", shown(to)))
}

/// Forks in one step, in a transaction or script, which holds all locks.
fn fork_at_once(cx: &mut ScriptCx<'_, '_>, from: &[u8], to: &[u8]) -> CommandResult {
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    let held = cx.held.as_mut().expect("the caller has looked");
    engine.forks.pass_prefix(db, from)?;
    engine.forks.pass_prefix(db, to)?;
    let (mut names, mut bytes) = (Vec::new(), 0);
    for (_, shard) in held.shards() {
        for entry in shard.db(db).iter(now_ms) {
            if entry.name().starts_with(to) {
                return Err(taken(to));
            }
            if entry.name().starts_with(from) && is_cell(entry, now_ms) {
                names.push((entry.name().to_vec(), copy_name(entry.name(), from, to)?));
                bytes += bytes_of(entry, SAMPLES);
            }
        }
    }
    if bytes > engine.debug.batch_bytes_max.load(Relaxed) {
        return Err(error(
            "its cells are larger than one batch of the journal can be: fork outside of MULTI and scripts".into(),
        ));
    }
    let mut keys = own_changes::own_changes(engine, cx.worker, held.lend(), db);
    for (name, copy) in &names {
        keys.record(&Effect::Copy { from: Key::new(name), to: Key::new(copy), to_db: db });
        keys.notify(Events::MODULE, "cell.fork", Key::new(copy));
    }
    keys.finish();
    cx.reply.integer(names.len() as i64);
    Ok(())
}

/// A fork in progress.
struct ForkJob {
    id: ForkId,
    db: usize,
    from: Vec<u8>,
    to: Vec<u8>,
    stage: ForkStage,
    copied: u64,
}

/// The next step of a fork.
enum ForkStage {
    /// The names are reserved: check whether a key has one of them.
    Check(WalkPlace),
    /// Set the instant.
    Begin,
    Copy(WalkPlace),
    /// Copy the cells that were put aside.
    Aside,
    End,
    /// It cannot continue: remove its copies.
    Undo(WalkPlace, CommandError),
}

impl ForkJob {
    /// Does one slice of the work. Returns the reply after the last slice.
    fn step(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
    ) -> Option<Result<i64, CommandError>> {
        let slice = TimeSlice::begin(engine);
        loop {
            let outcome = self.advance(engine, worker, token, &slice);
            if outcome.is_some() || slice.is_over() {
                return outcome;
            }
        }
    }

    /// Does one step, under one set of locks.
    fn advance(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
        slice: &TimeSlice<'_>,
    ) -> Option<Result<i64, CommandError>> {
        if engine.restrictions.is_following() {
            // The next writer undoes it.
            drop(engine.forks.release(self.id));
            return Some(Err(CommandError::fixed(DEMOTED)));
        }
        if !matches!(self.stage, ForkStage::Check(_) | ForkStage::Begin) && engine.restrictions.pass_write().is_err() {
            // It continues, or is undone, when writes are accepted again.
            return None;
        }
        let outcome = match self.stage {
            ForkStage::Check(place) => self.check(engine, worker, token, place, slice),
            ForkStage::Begin => self.begin(engine, worker, token),
            ForkStage::Copy(place) => self.copy(engine, worker, token, place, slice),
            ForkStage::Aside => self.copy_aside(engine, worker, token),
            ForkStage::End => return self.end(engine, worker, token),
            ForkStage::Undo(place, ref error) => {
                let error = error.clone();
                return self.undo(engine, worker, place, slice, error);
            }
        };
        match outcome {
            Ok(stage) => {
                self.stage = stage;
                None
            }
            // It has copied nothing yet.
            Err(error) if matches!(self.stage, ForkStage::Check(_) | ForkStage::Begin) => {
                drop(engine.forks.release(self.id));
                Some(Err(error))
            }
            Err(error) => {
                self.stage = ForkStage::Undo(WalkPlace::default(), error);
                None
            }
        }
    }

    fn check(
        &self,
        engine: &Engine,
        worker: &Worker,
        token: &DatabaseToken,
        mut place: WalkPlace,
        slice: &TimeSlice<'_>,
    ) -> Result<ForkStage, CommandError> {
        while place.shard < engine.keyspace.shard_count() {
            let Some(locked) = engine.keyspace.lock_shard_unless_busy(place.shard) else { break };
            token.pass(&locked)?;
            let (_, shard) = locked.shards().next().expect("it was just locked");
            let db = shard.db(self.db);
            let (end, mut found) = (db.range_end(place.position), false);
            db.visit_range(place.position, end, |entry| {
                found |= entry.name().starts_with(&self.to) && !Db::is_expired(entry, worker.now_ms);
            });
            if found {
                return Err(taken(&self.to));
            }
            place = place.behind(end);
            if slice.is_over() {
                break;
            }
        }
        match place.shard < engine.keyspace.shard_count() {
            true => Ok(ForkStage::Check(place)),
            false => Ok(ForkStage::Begin),
        }
    }

    fn begin(&self, engine: &Engine, worker: &mut Worker, token: &DatabaseToken) -> Result<ForkStage, CommandError> {
        engine.restrictions.pass_write()?;
        let mut passed = Ok(());
        let begin = |worker: &Worker, locked: &Locked<'_>| {
            passed = token.pass(locked);
            if passed.is_ok() {
                engine.forks.begin(self.id, worker.now_ms);
            }
            passed.is_ok()
        };
        let is_locked = forks::note_fork(engine, worker, &definition_name(self.db, &self.to), true, begin);
        passed?;
        Ok(if is_locked { ForkStage::Copy(WalkPlace::default()) } else { ForkStage::Begin })
    }

    /// Copies some cells of one shard.
    fn copy(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
        place: WalkPlace,
        slice: &TimeSlice<'_>,
    ) -> Result<ForkStage, CommandError> {
        gates::pass_memory_limit(engine)?;
        if place.shard >= engine.keyspace.shard_count() {
            return Ok(ForkStage::Aside);
        }
        let Some(found) = self.find(engine, worker, place, slice)? else { return Ok(ForkStage::Copy(place)) };
        if found.cells.is_empty() {
            // The absence of names that are created there meanwhile was put aside.
            engine.forks.pass(self.id, found.next);
            return Ok(ForkStage::Copy(found.next));
        }
        let names = || found.cells.iter().flat_map(|cell| [&cell.name, &cell.copy]);
        let shards: SmallVec<[usize; 16]> = names().map(|name| engine.keyspace.shard_of(name)).collect();
        let Some(mut locked) = engine.keyspace.lock_shards_unless_busy(shards) else {
            return Ok(ForkStage::Copy(place));
        };
        token.pass(&locked)?;
        let mut keys = own_changes::own_changes(engine, worker, locked.lend(), self.db);
        let (mut next, mut copied) = (found.next, 0);
        let mut before = None;
        for (at, found) in found.cells.iter().enumerate() {
            // Cells of one position are never split.
            if at % CELLS_PER_LOOK == CELLS_PER_LOOK - 1 && before < Some(found.position) && slice.is_over() {
                next = WalkPlace { shard: place.shard, position: found.position };
                break;
            }
            before = Some(found.position);
            let (from, to) = (Key::new(&found.name), Key::new(&found.copy));
            // Cells that were put aside are copied later. A cell that is gone was put aside or has expired.
            let is_there = keys.view().entry(from).is_some_and(|entry| is_cell(entry, keys.now_ms()));
            if is_there && !engine.forks.is_aside(self.id, from.name) {
                keys.record(&Effect::Copy { from, to, to_db: self.db });
                keys.notify(Events::MODULE, "cell.fork", to);
                copied += 1;
            }
        }
        keys.finish();
        engine.forks.pass(self.id, next);
        commit::commit(engine, worker, None, &mut locked);
        locked.release_fairly();
        self.copied += copied;
        Ok(ForkStage::Copy(next))
    }

    /// The next cells of a shard, in the order of their positions. `None` when its lock is not available now.
    fn find(
        &self,
        engine: &Engine,
        worker: &Worker,
        place: WalkPlace,
        slice: &TimeSlice<'_>,
    ) -> Result<Option<Found>, CommandError> {
        let Some(locked) = engine.keyspace.lock_shard_unless_busy(place.shard) else { return Ok(None) };
        let (_, shard) = locked.shards().next().expect("it was just locked");
        let db = shard.db(self.db);
        let (mut cells, mut next, mut bytes) = (Vec::new(), place, 0);
        while next.shard == place.shard && cells.is_empty() {
            let (end, mut failure) = (db.range_end(next.position), None);
            let mut some = Vec::new();
            db.visit_range(next.position, end, |entry| {
                if entry.name().starts_with(&self.from) && is_cell(entry, worker.now_ms) {
                    match copy_name(entry.name(), &self.from, &self.to) {
                        Ok(copy) => {
                            let (name, position) = (entry.name().to_vec(), NameHash::of(entry.name()).position());
                            some.push((FoundCell { name, copy, position }, bytes_of(entry, SAMPLES)));
                        }
                        Err(error) => failure = Some(error),
                    }
                }
            });
            if let Some(error) = failure {
                return Err(error);
            }
            some.sort_unstable_by_key(|(cell, _)| cell.position);
            next = next.behind(end);
            for (cell, cell_bytes) in some {
                // Cells of one position are never split.
                let is_full = cells.len() >= COPIES_MAX || bytes >= COPIES_BYTES;
                if is_full && cells.last().is_some_and(|last: &FoundCell| last.position < cell.position) {
                    next = WalkPlace { shard: place.shard, position: cell.position };
                    break;
                }
                bytes += cell_bytes;
                cells.push(cell);
            }
            if slice.is_over() {
                break;
            }
        }
        Ok(Some(Found { cells, next }))
    }

    fn copy_aside(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
    ) -> Result<ForkStage, CommandError> {
        gates::pass_memory_limit(engine)?;
        let aside = engine.forks.take_aside(self.id, COPIES_MAX);
        if aside.is_empty() {
            return Ok(ForkStage::End);
        }
        let now_ms = worker.now_ms;
        let mut cells = Vec::new();
        for (name, aside) in aside {
            if let Some(aside) = aside.filter(|aside| aside.deadline.is_none_or(|deadline| deadline > now_ms)) {
                cells.push((copy_name(&name, &self.from, &self.to)?, aside));
            }
        }
        if cells.is_empty() {
            // All of them were absent, or have expired since.
            return Ok(ForkStage::Aside);
        }
        // Block here: there is nowhere to put the cells back, and no lock is held for longer than a script runs.
        let mut locked = engine.keyspace.lock_keys(cells.iter().map(|(copy, _)| Key::new(copy)));
        token.pass(&locked)?;
        let mut keys = own_changes::own_changes(engine, worker, locked.lend(), self.db);
        for (copy, aside) in &cells {
            let (key, value) = (Key::new(copy), Image { value_type: &cell::TYPE, bytes: &aside.image });
            keys.record(&Effect::Put { key, value, deadline: aside.deadline });
            keys.notify(Events::MODULE, "cell.fork", key);
        }
        keys.finish();
        commit::commit(engine, worker, None, &mut locked);
        locked.release_fairly();
        self.copied += cells.len() as u64;
        Ok(ForkStage::Aside)
    }

    fn end(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
    ) -> Option<Result<i64, CommandError>> {
        let (mut passed, mut rest) = (Ok(()), None);
        let release = |_: &Worker, locked: &Locked<'_>| {
            passed = token.pass(locked);
            if passed.is_ok() {
                rest = Some(engine.forks.release(self.id));
            }
            passed.is_ok()
        };
        if !forks::note_fork(engine, worker, &definition_name(self.db, &self.to), false, release) {
            return None;
        }
        match passed {
            Ok(()) => Some(Ok(self.copied as i64)),
            Err(error) => {
                self.stage = ForkStage::Undo(WalkPlace::default(), error);
                None
            }
        }
    }

    fn undo(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        place: WalkPlace,
        slice: &TimeSlice<'_>,
        error: CommandError,
    ) -> Option<Result<i64, CommandError>> {
        if place.shard < engine.keyspace.shard_count() {
            let wanted = |entry: &Entry| entry.name().starts_with(&self.to);
            let removal = Removal { db: self.db, event: (Events::GENERIC, "del"), wanted };
            // Even in a database that was emptied since: the names are reserved until the end.
            let step = own_changes::remove_some(engine, worker, &removal, place, || slice.is_over(), |_| Ok(()));
            let (_, next) = step.expect("nothing refuses it");
            self.stage = ForkStage::Undo(next, error);
            return None;
        }
        let mut rest = None;
        let release = |_: &Worker, _: &Locked<'_>| {
            rest = Some(engine.forks.release(self.id));
            true
        };
        forks::note_fork(engine, worker, &definition_name(self.db, &self.to), false, release).then_some(Err(error))
    }
}

/// Cells to copy.
struct Found {
    cells: Vec<FoundCell>,
    next: WalkPlace,
}

struct FoundCell {
    name: Vec<u8>,
    /// The name of its copy.
    copy: Vec<u8>,
    position: u32,
}
