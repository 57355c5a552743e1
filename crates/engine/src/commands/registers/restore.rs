//! REG.RESTORE: sets registers from a snapshot. The blob is checked whole before anything is changed. What it says becomes true in
//! one batch, or, for many registers, in slices that the next start finishes (`execution::register_restores`).

use crate::args::is_word;
use crate::commands::shared::options::{argument, error, once, unknown_option};
use crate::commands::shared::slices::run;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::ScriptCx;
use crate::execution::engine::Engine;
use crate::execution::forks::WalkPlace;
use crate::execution::indexes::{Slice, is_index};
use crate::execution::register_restores::{Piece, emptied, is_register, take_step};
use crate::execution::worker::Worker;
use keyspace::types::register::checkpoint::{Checkpoint, Scope};
use keyspace::types::register::plan::{Step, Steps};
use keyspace::types::string;
use keyspace::{Key, Locked, ValueType};
use resp::Reply;
use std::collections::HashSet;

/// So many registers are set and dropped in one batch, under all locks; more are in slices.
const AT_ONCE_MAX: usize = 10_000;
/// About how long a piece of a restore in slices is: a few hundred small registers.
const PIECE_BYTES: usize = 16 * 1024;
/// So many steps are checked between two looks at the clock.
const STEPS_PER_LOOK: usize = 64;

pub(super) fn restore(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let (db, first) = (cx.client.db, argument(&mut cx.args, "the snapshot")?);
    let from = match is_word(first, "FROM") {
        true => Some(argument(&mut cx.args, "the key behind FROM")?),
        false => None,
    };
    let mut merges = None;
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "MERGE") {
            once(&mut merges, true, "the policy")?;
        } else if is_word(word, "REPLACE") {
            once(&mut merges, false, "the policy")?;
        } else {
            return Err(unknown_option(word));
        }
    }
    let blob = match from {
        None => first.to_vec(),
        Some(from) => stored(cx, db, from)?,
    };
    let merges = merges.unwrap_or(false);
    if cx.held.is_some() {
        return restore_at_once(cx, db, merges, &blob);
    }
    let job = RestoreJob { db, merges, blob, plan: Plan::default(), set: 0, stage: Stage::Read };
    run(cx, job, RestoreJob::step, reply_restored)
}

/// The blob that a key holds.
fn stored(cx: &mut ScriptCx<'_, '_>, db: usize, from: &[u8]) -> Result<Vec<u8>, CommandError> {
    let (key, now_ms) = (Key::new(from), cx.worker.now_ms);
    let read = |locked: &Locked<'_>| {
        let entry = locked.db(db, key).entry(key);
        match entry.filter(|entry| !keyspace::db::Db::is_expired(entry, now_ms)) {
            None => Err(error("there is no key of that name to restore from".into())),
            Some(entry) if ValueType::of(entry).is(&string::TYPE) => Ok(string::scalar(entry).bytes().into_owned()),
            Some(_) => Err(CommandError::WrongType),
        }
    };
    match &cx.held {
        Some(held) => read(held),
        None => read(&cx.engine.keyspace.lock_key_unless_busy(key).ok_or_else(|| cx.engine.busy())?),
    }
}

/// How many registers were set, and the position that the blob has.
type Restored = (u64, Option<Vec<u8>>);

fn reply_restored((count, position): Restored, reply: &mut Reply<'_>) {
    reply.array(2);
    reply.integer(count as i64);
    match position {
        Some(position) => reply.bulk(&position),
        None => reply.null(),
    }
}

/// What a restore is to do.
#[derive(Default)]
struct Plan {
    position: Option<Vec<u8>>,
    /// Which registers are dropped that are not in the blob; `None` when none are.
    scope: Option<Scope>,
    /// The steps for the keys of each shard: see [`Steps`].
    shards: Vec<Vec<u8>>,
    /// How many steps there are.
    steps: usize,
}

impl Plan {
    /// Sets what a blob has. An error for a blob that is damaged.
    fn of(engine: &Engine, blob: &[u8], merges: bool) -> Result<Plan, CommandError> {
        let checkpoint = Checkpoint::check(blob).map_err(|bad| error(bad.to_string()))?;
        let mut plan = Plan {
            position: checkpoint.position.map(<[u8]>::to_vec),
            scope: None,
            shards: vec![Vec::new(); engine.keyspace.shard_count()],
            steps: 0,
        };
        for saved in checkpoint.registers() {
            plan.add(engine, if merges { Step::Merge(saved) } else { Step::Set(saved) });
        }
        plan.scope = Some(checkpoint.scope).filter(|_| !merges);
        Ok(plan)
    }

    fn add(&mut self, engine: &Engine, step: Step<'_>) {
        step.encode(&mut self.shards[engine.keyspace.shard_of(step.name())]);
        self.steps += 1;
    }

    fn bytes(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }

    /// The names of a shard that are in the blob.
    fn names(&self, shard: usize) -> HashSet<Vec<u8>> {
        Steps::of(&self.shards[shard]).map(|step| step.name().to_vec()).collect()
    }

    /// Drops the registers of these names that are not in the blob.
    fn drop_names(&mut self, engine: &Engine, names: &[Vec<u8>]) {
        let in_blob: Vec<HashSet<Vec<u8>>> = (0..self.shards.len()).map(|shard| self.names(shard)).collect();
        for name in names.iter().filter(|name| !in_blob[engine.keyspace.shard_of(name)].contains(*name)) {
            self.add(engine, Step::Drop(name));
        }
    }
}

/// Refuses a restore because of what is at one of its names. The key is locked.
fn pass_step(engine: &Engine, locked: &Locked<'_>, db: usize, now_ms: u64, step: Step<'_>) -> CommandResult {
    let key = Key::new(step.name());
    engine.forks.pass_name(db, key.name)?;
    let saved = match step {
        // Another type than a register stays.
        Step::Drop(_) => return Ok(()),
        Step::Set(saved) | Step::Merge(saved) => saved,
    };
    if saved.deadline.is_some_and(|deadline| deadline <= now_ms) {
        return Ok(());
    }
    if engine.any_is_index(std::iter::once(key.name)) {
        return Err(is_index(key.name));
    }
    let entry = locked.db(db, key).entry(key).filter(|entry| !keyspace::db::Db::is_expired(entry, now_ms));
    if entry.is_some_and(|entry| !is_register(entry, now_ms)) { Err(CommandError::WrongType) } else { Ok(()) }
}

/// Does all that is planned. An error changes nothing. Everything is locked; the caller commits.
fn do_at_once(
    engine: &Engine,
    worker: &mut Worker,
    locked: &mut Locked<'_>,
    db: usize,
    plan: &Plan,
) -> Result<u64, CommandError> {
    let steps = || plan.shards.iter().flat_map(|shard| Steps::of(shard));
    steps().try_for_each(|step| pass_step(engine, locked, db, worker.now_ms, step))?;
    engine.pass_batch_bytes(plan.bytes() + plan.steps * 32)?;
    let mut keys = engine.own_changes(worker, locked.lend(), db);
    let (dropped, others): (Vec<_>, Vec<_>) = steps().partition(|step| matches!(step, Step::Drop(_)));
    let set = dropped.into_iter().chain(others).filter(|step| take_step(&mut keys, *step)).count();
    let garbage = keys.finish().take_garbage();
    engine.free(garbage);
    Ok(set as u64)
}

/// In a transaction or script, which holds all locks: everything in one step.
fn restore_at_once(cx: &mut ScriptCx<'_, '_>, db: usize, merges: bool, blob: &[u8]) -> CommandResult {
    let (engine, now_ms) = (cx.engine, cx.worker.now_ms);
    let mut plan = Plan::of(engine, blob, merges)?;
    let held = cx.held.as_mut().expect("the caller has looked");
    if let Some(scope) = plan.scope.take() {
        let entries = held.shards().flat_map(|(_, shard)| shard.db(db).iter(now_ms));
        let covered = entries.filter(|entry| scope.covers(entry.name()) && is_register(entry, now_ms));
        let covered: Vec<Vec<u8>> = covered.map(|entry| entry.name().to_vec()).collect();
        plan.drop_names(engine, &covered);
    }
    let set = do_at_once(engine, cx.worker, held, db, &plan)?;
    reply_restored((set, plan.position), &mut cx.reply);
    Ok(())
}

/// A restore under way.
struct RestoreJob {
    db: usize,
    merges: bool,
    blob: Vec<u8>,
    plan: Plan,
    /// How many registers were set so far.
    set: u64,
    stage: Stage,
}

/// What is done next.
enum Stage {
    /// Reads the blob.
    Read,
    /// Looks for registers that the scope covers and the blob has not, from that place on.
    Cover(WalkPlace, HashSet<Vec<u8>>),
    /// Does all in one batch.
    AtOnce,
    /// Looks whether something is in the way, from that shard and byte on.
    Check(usize, usize),
    /// Gives the journal the rest of what is to be done: so many pieces were noted.
    Note {
        shard: usize,
        at: usize,
        pieces: u32,
    },
    Begin {
        pieces: u32,
    },
    /// Does that piece.
    Do {
        piece: u32,
        pieces: u32,
    },
    /// It cannot be begun: the journal forgets it.
    Forget(CommandError),
}

type Outcome = Option<Result<Restored, CommandError>>;

impl RestoreJob {
    /// Does a slice of the work; the reply, when all is done.
    fn step(&mut self, engine: &Engine, worker: &mut Worker) -> Outcome {
        let slice = Slice::begin(engine);
        loop {
            let outcome = self.advance(engine, worker, &slice);
            if outcome.is_some() || slice.is_over() {
                return outcome;
            }
        }
    }

    /// Does some of the work, under one set of locks.
    fn advance(&mut self, engine: &Engine, worker: &mut Worker, slice: &Slice<'_>) -> Outcome {
        let stage = std::mem::replace(&mut self.stage, Stage::Read);
        let next = match stage {
            Stage::Read => self.read(engine),
            Stage::Cover(place, names) => self.cover(engine, worker, slice, place, names),
            Stage::AtOnce => match self.at_once(engine, worker) {
                Some(outcome) => return Some(outcome),
                None => Ok(Stage::AtOnce),
            },
            Stage::Check(shard, at) => {
                let checked = self.check(engine, worker, slice, shard, at);
                checked.inspect_err(|_| engine.restores.end(self.db))
            }
            Stage::Note { shard, at, pieces } => {
                Ok(self.note(engine, worker, shard, at, pieces).unwrap_or_else(Stage::Forget))
            }
            Stage::Begin { pieces } => match engine.note_restore_begun(worker, self.db) {
                Ok(true) => Ok(Stage::Do { piece: 0, pieces }),
                Ok(false) => Ok(Stage::Begin { pieces }),
                Err(error) => Ok(Stage::Forget(error)),
            },
            Stage::Do { piece, pieces } => match self.do_piece(engine, worker, piece, pieces) {
                Ok(stage) => Ok(stage),
                Err(outcome) => return Some(outcome),
            },
            Stage::Forget(error) => {
                if engine.pass_write_restrictions().is_ok() && engine.forget_restore(worker, self.db) {
                    engine.restores.end(self.db);
                    return Some(Err(error));
                }
                Ok(Stage::Forget(error))
            }
        };
        match next {
            Ok(stage) => {
                self.stage = stage;
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn read(&mut self, engine: &Engine) -> Result<Stage, CommandError> {
        let blob = std::mem::take(&mut self.blob);
        self.plan = Plan::of(engine, &blob, self.merges)?;
        match self.plan.scope.take() {
            None => self.planned(engine),
            Some(Scope::Keys(names)) => {
                self.plan.drop_names(engine, &names);
                self.planned(engine)
            }
            Some(scope) => {
                self.plan.scope = Some(scope);
                Ok(Stage::Cover(WalkPlace::default(), self.plan.names(0)))
            }
        }
    }

    /// Looks for registers that are to be dropped. `names` are those of the blob in the shard.
    fn cover(
        &mut self,
        engine: &Engine,
        worker: &Worker,
        slice: &Slice<'_>,
        mut place: WalkPlace,
        names: HashSet<Vec<u8>>,
    ) -> Result<Stage, CommandError> {
        let Plan { scope, shards, steps, .. } = &mut self.plan;
        let scope = scope.as_ref().expect("without a scope nothing is looked for");
        let Some(locked) = engine.keyspace.lock_shard_unless_busy(place.shard) else {
            return Ok(Stage::Cover(place, names));
        };
        let (_, shard) = locked.shards().next().expect("it was just locked");
        let (shard, db, number) = (&mut shards[place.shard], shard.db(self.db), place.shard);
        while place.shard == number && !slice.is_over() {
            let end = db.range_end(place.position);
            db.visit_range(place.position, end, |entry| {
                let is_covered = scope.covers(entry.name()) && is_register(entry, worker.now_ms);
                if is_covered && !names.contains(entry.name()) {
                    Step::Drop(entry.name()).encode(shard);
                    *steps += 1;
                }
            });
            place = place.behind(end);
        }
        drop(locked);
        if place.shard == number {
            return Ok(Stage::Cover(place, names));
        }
        if place.shard < engine.keyspace.shard_count() {
            return Ok(Stage::Cover(place, self.plan.names(place.shard)));
        }
        self.planned(engine)
    }

    /// All that is to be done is known.
    fn planned(&self, engine: &Engine) -> Result<Stage, CommandError> {
        if self.plan.steps <= AT_ONCE_MAX {
            return Ok(Stage::AtOnce);
        }
        // A snapshot has all pieces that are noted in one part.
        engine.pass_batch_bytes(self.plan.bytes())?;
        engine.restores.begin(self.db)?;
        Ok(Stage::Check(0, 0))
    }

    /// Does everything in one batch. `None` when the locks cannot be had now.
    fn at_once(&mut self, engine: &Engine, worker: &mut Worker) -> Outcome {
        let mut locked = engine.keyspace.lock_all_unless_busy()?;
        let passed = engine.pass_write_restrictions().and_then(|()| engine.pass_memory_limit());
        let set = passed.and_then(|()| do_at_once(engine, worker, &mut locked, self.db, &self.plan));
        if set.is_ok() {
            engine.commit(worker, None, &mut locked);
        }
        locked.release_fairly();
        Some(set.map(|set| (set, self.plan.position.take())))
    }

    fn check(
        &self,
        engine: &Engine,
        worker: &Worker,
        slice: &Slice<'_>,
        shard: usize,
        mut at: usize,
    ) -> Result<Stage, CommandError> {
        let Some(bytes) = self.plan.shards.get(shard) else { return Ok(Stage::Note { shard: 0, at: 0, pieces: 0 }) };
        let Some(locked) = engine.keyspace.lock_shard_unless_busy(shard) else { return Ok(Stage::Check(shard, at)) };
        let mut steps = Steps::of(&bytes[at..]);
        for (count, step) in (1..).zip(steps.by_ref()) {
            pass_step(engine, &locked, self.db, worker.now_ms, step)?;
            if count % STEPS_PER_LOOK == 0 && slice.is_over() {
                break;
            }
        }
        at = bytes.len() - steps.bytes_left();
        if at < bytes.len() { Ok(Stage::Check(shard, at)) } else { Ok(Stage::Check(shard + 1, 0)) }
    }

    /// Gives the journal the next piece.
    fn note(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        shard: usize,
        at: usize,
        pieces: u32,
    ) -> Result<Stage, CommandError> {
        let Some(bytes) = self.plan.shards.get_mut(shard) else { return Ok(Stage::Begin { pieces }) };
        if at == bytes.len() {
            // The journal's definitions have them now.
            *bytes = Vec::new();
            return Ok(Stage::Note { shard: shard + 1, at: 0, pieces });
        }
        engine.pass_write_restrictions()?;
        engine.pass_memory_limit()?;
        let (mut steps, mut end) = (Steps::of(&bytes[at..]), at);
        while end - at < PIECE_BYTES && steps.by_ref().take(1).count() > 0 {
            end = bytes.len() - steps.bytes_left();
        }
        Ok(match engine.note_restore_piece(worker, self.db, pieces, &bytes[at..end]) {
            true => Stage::Note { shard, at: end, pieces: pieces + 1 },
            false => Stage::Note { shard, at, pieces },
        })
    }

    /// Does a piece. An error is what to reply, when there is nothing more to be done.
    fn do_piece(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        piece: u32,
        pieces: u32,
    ) -> Result<Stage, Result<Restored, CommandError>> {
        let stage = Stage::Do { piece, pieces };
        if engine.pass_write_restrictions().is_err() {
            // It goes on when writes are taken again.
            return Ok(stage);
        }
        let is_last = piece + 1 == pieces;
        match engine.do_restore_piece(worker, self.db, piece, is_last) {
            Piece::Busy => Ok(stage),
            Piece::Done(set) => {
                self.set += set;
                if !is_last {
                    return Ok(Stage::Do { piece: piece + 1, pieces });
                }
                engine.restores.end(self.db);
                Err(Ok((self.set, self.plan.position.take())))
            }
            Piece::Gone => {
                engine.restores.end(self.db);
                Err(Err(emptied()))
            }
        }
    }
}
