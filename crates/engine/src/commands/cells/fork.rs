//! CELL.FORK: copies all cells under a prefix to another one, as they are at one instant, in slices on the background
//! thread. What keeps that exact while others write is in `execution::forks`. A client that goes away does not end its fork.

use crate::commands::shared::options::{argument, error, shown};
use crate::commands::shared::slices::{reply_integer, run};
use crate::error::{CommandError, CommandResult};
use crate::execution::context::ScriptCx;
use crate::execution::engine::Engine;
use crate::execution::forks::{ForkId, WalkPlace, contain_each_other, definition_name, is_cell};
use crate::execution::indexes::Slice;
use crate::execution::worker::Worker;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::footprint::bytes_of;
use keyspace::types::cell;
use keyspace::{Effect, Entry, Image, Key, NameHash};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// The most cells that are copied under one set of locks, and about how many bytes.
const COPIES_MAX: usize = 128;
const COPIES_BYTES: usize = 512 * 1024;
/// Elements of a large value that are looked at to judge its size.
const SAMPLES: usize = 8;
/// Cells between two looks at the clock.
const CELLS_PER_LOOK: usize = 16;

pub(super) fn fork(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let from = argument(&mut cx.args, "the prefix to copy from")?;
    let to = argument(&mut cx.args, "the prefix to copy to")?;
    if contain_each_other(from, to) {
        let text = "one prefix contains the other: a fork would copy its own cells";
        return Err(error(format!("{text} ({} and {})", shown(from), shown(to))));
    }
    pass_cell_name(to)?;
    if cx.held.is_some() {
        return fork_at_once(cx, from, to);
    }
    let (engine, db) = (cx.engine, cx.client.db);
    let id = engine.forks.reserve(db, from, to)?;
    // IMPORTANT: after the reservation: a restore looks for forks when it begins, and one of the two finds the other.
    if let Err(error) = engine.restores.pass_database(db) {
        drop(engine.forks.release(id));
        return Err(error);
    }
    let job =
        ForkJob { id, db, from: from.to_vec(), to: to.to_vec(), stage: Stage::Check(WalkPlace::default()), copied: 0 };
    run(cx, job, ForkJob::step, reply_integer)
}

/// Refuses what no name of a cell can begin with, or be.
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
    error(format!("there is a key under {} already", shown(to)))
}

/// In a transaction or script, which holds all locks: everything in one step.
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
    if bytes > engine.batch_bytes_max.load(Relaxed) {
        return Err(error("its cells are larger than one batch of the journal can be".into()));
    }
    let mut keys = engine.own_changes(cx.worker, held.lend(), db);
    for (name, copy) in &names {
        keys.record(&Effect::Copy { from: Key::new(name), to: Key::new(copy), to_db: db });
        keys.notify(Events::MODULE, "cell.fork", Key::new(copy));
    }
    keys.finish();
    cx.reply.integer(names.len() as i64);
    Ok(())
}

/// A fork under way.
struct ForkJob {
    id: ForkId,
    db: usize,
    from: Vec<u8>,
    to: Vec<u8>,
    stage: Stage,
    copied: u64,
}

/// What is done next.
enum Stage {
    /// The names are reserved: is there a key among them?
    Check(WalkPlace),
    /// The instant.
    Begin,
    Copy(WalkPlace),
    /// What was put aside.
    Aside,
    End,
    /// It cannot go on: removes what it has made.
    Undo(WalkPlace, CommandError),
}

impl ForkJob {
    /// Does a slice of the work; the reply, when all is done.
    fn step(&mut self, engine: &Engine, worker: &mut Worker) -> Option<Result<i64, CommandError>> {
        let slice = Slice::begin(engine);
        loop {
            let outcome = self.advance(engine, worker, &slice);
            if outcome.is_some() || slice.is_over() {
                return outcome;
            }
        }
    }

    /// Does some of the work, under one set of locks.
    fn advance(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        slice: &Slice<'_>,
    ) -> Option<Result<i64, CommandError>> {
        if !matches!(self.stage, Stage::Check(_) | Stage::Begin) && engine.pass_write_restrictions().is_err() {
            // It goes on, or is undone, when writes are taken again.
            return None;
        }
        let outcome = match self.stage {
            Stage::Check(place) => self.check(engine, worker, place, slice),
            Stage::Begin => self.begin(engine, worker),
            Stage::Copy(place) => self.copy(engine, worker, place, slice),
            Stage::Aside => self.copy_aside(engine, worker),
            Stage::End => return self.end(engine, worker),
            Stage::Undo(place, ref error) => {
                let error = error.clone();
                return self.undo(engine, worker, place, slice, error);
            }
        };
        match outcome {
            Ok(stage) => {
                self.stage = stage;
                None
            }
            // Nothing was made yet.
            Err(error) if matches!(self.stage, Stage::Check(_) | Stage::Begin) => {
                drop(engine.forks.release(self.id));
                Some(Err(error))
            }
            Err(error) => {
                self.stage = Stage::Undo(WalkPlace::default(), error);
                None
            }
        }
    }

    fn check(
        &self,
        engine: &Engine,
        worker: &Worker,
        mut place: WalkPlace,
        slice: &Slice<'_>,
    ) -> Result<Stage, CommandError> {
        while place.shard < engine.keyspace.shard_count() {
            let Some(locked) = engine.keyspace.lock_shard_unless_busy(place.shard) else { break };
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
            true => Ok(Stage::Check(place)),
            false => Ok(Stage::Begin),
        }
    }

    fn begin(&self, engine: &Engine, worker: &mut Worker) -> Result<Stage, CommandError> {
        engine.pass_write_restrictions()?;
        let begin = |worker: &Worker| {
            engine.forks.begin(self.id, worker.now_ms);
            true
        };
        match engine.note_fork(worker, &definition_name(self.db, &self.to), true, begin) {
            true => Ok(Stage::Copy(WalkPlace::default())),
            false => Ok(Stage::Begin),
        }
    }

    /// Why the fork cannot go on, if it cannot. IMPORTANT: what would be changed is locked.
    fn pass_failure(&self, engine: &Engine) -> CommandResult {
        engine.forks.failure(self.id).map_or(Ok(()), |why| Err(CommandError::fixed(why)))
    }

    /// Copies some cells of one shard.
    fn copy(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        place: WalkPlace,
        slice: &Slice<'_>,
    ) -> Result<Stage, CommandError> {
        engine.pass_memory_limit()?;
        if place.shard >= engine.keyspace.shard_count() {
            return Ok(Stage::Aside);
        }
        let Some(found) = self.find(engine, worker, place, slice)? else { return Ok(Stage::Copy(place)) };
        if found.cells.is_empty() {
            // Whatever comes into being there meanwhile was put aside.
            engine.forks.pass(self.id, found.next);
            return Ok(Stage::Copy(found.next));
        }
        let names = || found.cells.iter().flat_map(|cell| [&cell.name, &cell.copy]);
        let shards: SmallVec<[usize; 16]> = names().map(|name| engine.keyspace.shard_of(name)).collect();
        let Some(mut locked) = engine.keyspace.lock_shards_unless_busy(shards) else { return Ok(Stage::Copy(place)) };
        self.pass_failure(engine)?;
        let mut keys = engine.own_changes(worker, locked.lend(), self.db);
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
            // What was put aside is copied later; what has gone meanwhile was put aside, or has expired.
            let is_there = keys.entry(from).is_some_and(|entry| is_cell(entry, keys.now_ms));
            if is_there && !engine.forks.is_aside(self.id, from.name) {
                keys.record(&Effect::Copy { from, to, to_db: self.db });
                keys.notify(Events::MODULE, "cell.fork", to);
                copied += 1;
            }
        }
        keys.finish();
        engine.forks.pass(self.id, next);
        engine.commit(worker, None, &mut locked);
        locked.release_fairly();
        self.copied += copied;
        Ok(Stage::Copy(next))
    }

    /// The next cells of a shard, in the order of their positions. `None` when its lock cannot be had now.
    fn find(
        &self,
        engine: &Engine,
        worker: &Worker,
        place: WalkPlace,
        slice: &Slice<'_>,
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

    fn copy_aside(&mut self, engine: &Engine, worker: &mut Worker) -> Result<Stage, CommandError> {
        engine.pass_memory_limit()?;
        let aside = engine.forks.take_aside(self.id, COPIES_MAX);
        if aside.is_empty() {
            return Ok(Stage::End);
        }
        let now_ms = worker.now_ms;
        let mut cells = Vec::new();
        for (name, aside) in aside {
            if let Some(aside) = aside.filter(|aside| aside.deadline.is_none_or(|deadline| deadline > now_ms)) {
                cells.push((copy_name(&name, &self.from, &self.to)?, aside));
            }
        }
        // The keyspace is busy for no longer than a script is; there is nowhere to put them back.
        let mut locked = engine.keyspace.lock_keys(cells.iter().map(|(copy, _)| Key::new(copy)));
        self.pass_failure(engine)?;
        let mut keys = engine.own_changes(worker, locked.lend(), self.db);
        for (copy, aside) in &cells {
            let (key, value) = (Key::new(copy), Image { value_type: &cell::TYPE, bytes: &aside.image });
            keys.record(&Effect::Put { key, value, deadline: aside.deadline });
            keys.notify(Events::MODULE, "cell.fork", key);
        }
        keys.finish();
        engine.commit(worker, None, &mut locked);
        locked.release_fairly();
        self.copied += cells.len() as u64;
        Ok(Stage::Aside)
    }

    fn end(&mut self, engine: &Engine, worker: &mut Worker) -> Option<Result<i64, CommandError>> {
        let (mut failure, mut rest) = (None, None);
        let release = |_: &Worker| {
            failure = engine.forks.failure(self.id);
            if failure.is_none() {
                rest = Some(engine.forks.release(self.id));
            }
            failure.is_none()
        };
        if !engine.note_fork(worker, &definition_name(self.db, &self.to), false, release) {
            return None;
        }
        match failure {
            None => Some(Ok(self.copied as i64)),
            Some(why) => {
                self.stage = Stage::Undo(WalkPlace::default(), CommandError::fixed(why));
                None
            }
        }
    }

    fn undo(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        place: WalkPlace,
        slice: &Slice<'_>,
        error: CommandError,
    ) -> Option<Result<i64, CommandError>> {
        if place.shard < engine.keyspace.shard_count() {
            let is_made = |entry: &Entry| entry.name().starts_with(&self.to);
            let event = (Events::GENERIC, "del");
            let (_, next) = engine.remove_some(worker, self.db, place, || slice.is_over(), event, is_made);
            self.stage = Stage::Undo(next, error);
            return None;
        }
        let mut rest = None;
        let release = |_: &Worker| {
            rest = Some(engine.forks.release(self.id));
            true
        };
        engine.note_fork(worker, &definition_name(self.db, &self.to), false, release).then_some(Err(error))
    }
}

/// Cells that are to be copied.
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
