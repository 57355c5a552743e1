//! REG.RESTORE: sets registers from a snapshot. The whole blob is checked before anything is changed. It is applied in
//! one batch, or, for many registers, in slices that the next start finishes if necessary
//! (`execution::register_restores`).

use crate::shared::options::{argument, error, once, unknown_option};
use crate::shared::slices::{run, take_token};
use execution::args::is_word;
use execution::batch_limit;
use execution::commit;
use execution::conditions;
use execution::context::ScriptCx;
use execution::database_tokens::{DatabaseToken, changed};
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult, DEMOTED};
use execution::forks::WalkPlace;
use execution::gates;
use execution::indexes::is_index;
use execution::own_changes;
use execution::register_restores;
use execution::register_restores::{Piece, is_register, take_step};
use execution::slices::TimeSlice;
use execution::worker::Worker;
use keyspace::types::register::checkpoint::{Checkpoint, Scope};
use keyspace::types::register::plan::{Step, Steps};
use keyspace::types::string;
use keyspace::{Key, Locked, ValueType};
use resp::Reply;
use std::collections::HashSet;

/// The most registers that are set and dropped in one batch, under all locks; more are restored in slices.
const AT_ONCE_MAX: usize = 10_000;
/// About the size of a piece of a restore in slices: a few hundred small registers.
const PIECE_BYTES: usize = 16 * 1024;
/// Steps that are checked between two checks of the clock.
const STEPS_PER_LOOK: usize = 64;

pub(super) fn restore(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let (db, first) = (cx.client.db, argument(&mut cx.args, "the snapshot")?);
    let from = match is_word(first, "FROM") {
        true => Some(argument(&mut cx.args, "the key behind FROM")?),
        false => None,
    };
    let (mut merges, mut into) = (None, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "MERGE") {
            once(&mut merges, true, "the policy")?;
        } else if is_word(word, "REPLACE") {
            once(&mut merges, false, "the policy")?;
        } else if is_word(word, "INTO") {
            once(&mut into, argument(&mut cx.args, "the prefix behind INTO")?, "INTO")?;
        } else {
            return Err(unknown_option(&cx.args));
        }
    }
    let how = RestoreHow { merges: merges.unwrap_or(false), into: into.map(<[u8]>::to_vec) };
    if let Some(held) = &cx.held {
        let blob = from.map(|from| stored(held, db, from, cx.worker.now_ms)).transpose()?;
        return restore_at_once(cx, db, &how, blob.as_deref().unwrap_or(first));
    }
    let (blob, token) = match from {
        None => (first.to_vec(), take_token(cx)?),
        Some(from) => {
            let engine = cx.engine;
            let locked =
                engine.keyspace.lock_key_unless_busy(Key::new(from)).ok_or_else(|| conditions::busy(engine))?;
            (stored(&locked, db, from, cx.worker.now_ms)?, engine.databases.take_token(&locked, db))
        }
    };
    let job = RestoreJob { db, how, blob, plan: Plan::default(), set: 0, stage: RestoreStage::Read };
    run(cx, token, job, RestoreJob::step, reply_restored)
}

/// How the registers of a blob are set.
struct RestoreHow {
    /// A register that has the same version or a newer one stays.
    merges: bool,
    /// The prefix under which they are set instead of their own.
    into: Option<Vec<u8>>,
}

/// The blob at a key, which is locked.
fn stored(locked: &Locked<'_>, db: usize, from: &[u8], now_ms: u64) -> Result<Vec<u8>, CommandError> {
    let key = Key::new(from);
    let entry = locked.db(db, key).entry(key);
    match entry.filter(|entry| !keyspace::db::Db::is_expired(entry, now_ms)) {
        None => Err(error("there is no key of that name to restore from: REG.SNAPSHOT … STORE makes one".into())),
        Some(entry) if ValueType::of(entry).is(&string::TYPE) => Ok(string::scalar(entry).bytes().into_owned()),
        Some(entry) => Err(CommandError::wrong_type(ValueType::of(entry))),
    }
}

/// How many registers were set, and the position in the blob.
type Restored = (u64, Option<Vec<u8>>);

fn reply_restored((count, position): Restored, reply: &mut Reply<'_>) {
    reply.array(2);
    reply.integer(count as i64);
    match position {
        Some(position) => reply.bulk(&position),
        None => reply.null(),
    }
}

/// The steps of a restore.
#[derive(Default)]
struct Plan {
    position: Option<Vec<u8>>,
    /// Which registers that are not in the blob are dropped; `None` for none.
    scope: Option<Scope>,
    /// The steps for the keys of each shard: see [`Steps`].
    shards: Vec<Vec<u8>>,
    /// How many steps there are.
    steps: usize,
}

impl Plan {
    /// Plans to set the registers of a blob. An error for a damaged blob, and for one that has no prefix where another
    /// one is to take its place.
    fn of(engine: &Engine, blob: &[u8], how: &RestoreHow) -> Result<Plan, CommandError> {
        let checkpoint = Checkpoint::check(blob).map_err(|bad| error(bad.to_string()))?;
        let (scope, moved) = match (&how.into, checkpoint.scope.clone()) {
            (None, scope) => (scope, None),
            (Some(into), Scope::Prefix(prefix)) => (Scope::Prefix(into.clone()), Some((prefix.len(), into))),
            (Some(_), Scope::Everything | Scope::Keys(_)) => {
                return Err(error(
                    "INTO needs a snapshot of a prefix, and this one is of all registers or of keys: leave INTO out"
                        .into(),
                ));
            }
        };
        let mut plan = Plan {
            position: checkpoint.position.map(<[u8]>::to_vec),
            scope: None,
            shards: vec![Vec::new(); engine.keyspace.shard_count()],
            steps: 0,
        };
        let mut name = Vec::new();
        for mut saved in checkpoint.registers() {
            if let Some((prefix_len, into)) = moved {
                name.clear();
                name.extend_from_slice(into);
                name.extend_from_slice(&saved.name[prefix_len..]);
                saved.name = &name;
            }
            plan.add(engine, if how.merges { Step::Merge(saved) } else { Step::Set(saved) });
        }
        plan.scope = Some(scope).filter(|_| !how.merges);
        Ok(plan)
    }

    fn add(&mut self, engine: &Engine, step: Step<'_>) {
        step.encode(&mut self.shards[engine.keyspace.shard_of(step.name())]);
        self.steps += 1;
    }

    fn bytes(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }

    /// The names in the blob that belong to a shard.
    fn names(&self, shard: usize) -> HashSet<Vec<u8>> {
        Steps::of(&self.shards[shard]).map(|step| step.name().to_vec()).collect()
    }

    /// Plans to drop the registers of these names that are not in the blob.
    fn drop_names(&mut self, engine: &Engine, names: &[Vec<u8>]) {
        let in_blob: Vec<HashSet<Vec<u8>>> = (0..self.shards.len()).map(|shard| self.names(shard)).collect();
        for name in names.iter().filter(|name| !in_blob[engine.keyspace.shard_of(name)].contains(*name)) {
            self.add(engine, Step::Drop(name));
        }
    }
}

/// Refuses a restore because of the value at one of its names. The key is locked.
fn pass_step(engine: &Engine, locked: &Locked<'_>, db: usize, now_ms: u64, step: Step<'_>) -> CommandResult {
    let key = Key::new(step.name());
    engine.forks.pass_name(db, key.name)?;
    let saved = match step {
        // A value of another type stays.
        Step::Drop(_) => return Ok(()),
        Step::Set(saved) | Step::Merge(saved) => saved,
    };
    if saved.deadline.is_some_and(|deadline| deadline <= now_ms) {
        return Ok(());
    }
    if engine.indexes.has_any_of(std::iter::once(key.name)) {
        return Err(is_index(key.name));
    }
    let entry = locked.db(db, key).entry(key).filter(|entry| !keyspace::db::Db::is_expired(entry, now_ms));
    match entry.filter(|entry| !is_register(entry, now_ms)) {
        Some(entry) => Err(CommandError::wrong_type(ValueType::of(entry))),
        None => Ok(()),
    }
}

/// Applies all steps. An error changes nothing. Everything is locked; the caller commits.
fn do_at_once(
    engine: &Engine,
    worker: &mut Worker,
    locked: &mut Locked<'_>,
    db: usize,
    plan: &Plan,
) -> Result<u64, CommandError> {
    let steps = || plan.shards.iter().flat_map(|shard| Steps::of(shard));
    steps().try_for_each(|step| pass_step(engine, locked, db, worker.now_ms, step))?;
    batch_limit::pass_batch_bytes(engine, plan.bytes() + plan.steps * 32)?;
    let mut keys = own_changes::own_changes(engine, worker, locked.lend(), db);
    let (dropped, others): (Vec<_>, Vec<_>) = steps().partition(|step| matches!(step, Step::Drop(_)));
    let set = dropped.into_iter().chain(others).filter(|step| take_step(&mut keys, *step)).count();
    let garbage = keys.finish().take_garbage();
    engine.free(garbage);
    Ok(set as u64)
}

/// Restores in one step, in a transaction or script, which holds all locks.
fn restore_at_once(cx: &mut ScriptCx<'_, '_>, db: usize, how: &RestoreHow, blob: &[u8]) -> CommandResult {
    let (engine, now_ms) = (cx.engine, cx.worker.now_ms);
    let mut plan = Plan::of(engine, blob, how)?;
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

/// A restore in progress.
struct RestoreJob {
    db: usize,
    how: RestoreHow,
    blob: Vec<u8>,
    plan: Plan,
    /// How many registers were set so far.
    set: u64,
    stage: RestoreStage,
}

/// The next step of a restore.
enum RestoreStage {
    /// Parse the blob.
    Read,
    /// Find registers that the scope covers and the blob does not have, from that position on.
    Cover(WalkPlace, HashSet<Vec<u8>>),
    /// Apply everything in one batch.
    AtOnce,
    /// Check for obstacles, from that shard and byte on.
    Check(usize, usize),
    /// Add the remaining pieces to the journal. `pieces` of them were added.
    Note {
        shard: usize,
        at: usize,
        pieces: u32,
    },
    Begin {
        pieces: u32,
    },
    /// Apply that piece.
    Do {
        piece: u32,
        pieces: u32,
    },
    /// It cannot begin: remove the pieces from the journal.
    Forget(CommandError),
}

type Outcome = Option<Result<Restored, CommandError>>;

impl RestoreJob {
    /// Does one slice of the work. Returns the reply after the last slice.
    fn step(&mut self, engine: &Engine, worker: &mut Worker, token: &DatabaseToken) -> Outcome {
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
    ) -> Outcome {
        let stage = std::mem::replace(&mut self.stage, RestoreStage::Read);
        if engine.restrictions.is_following() {
            // The next writer forgets or completes it.
            match stage {
                RestoreStage::Read | RestoreStage::Cover(..) | RestoreStage::AtOnce => {}
                RestoreStage::Check(..)
                | RestoreStage::Note { .. }
                | RestoreStage::Begin { .. }
                | RestoreStage::Do { .. }
                | RestoreStage::Forget(_) => engine.restores.end(self.db),
            }
            return Some(Err(CommandError::fixed(DEMOTED)));
        }
        let next = match stage {
            RestoreStage::Read => self.read(engine),
            RestoreStage::Cover(place, names) => self.cover(engine, worker, token, slice, place, names),
            RestoreStage::AtOnce => match self.at_once(engine, worker, token) {
                Some(outcome) => return Some(outcome),
                None => Ok(RestoreStage::AtOnce),
            },
            RestoreStage::Check(shard, at) => {
                let checked = self.check(engine, worker, token, slice, shard, at);
                checked.inspect_err(|_| engine.restores.end(self.db))
            }
            RestoreStage::Note { shard, at, pieces } => {
                Ok(self.note(engine, worker, shard, at, pieces).unwrap_or_else(RestoreStage::Forget))
            }
            RestoreStage::Begin { pieces } => {
                match register_restores::note_restore_begun(engine, worker, self.db, token) {
                    Ok(true) => Ok(RestoreStage::Do { piece: 0, pieces }),
                    Ok(false) => Ok(RestoreStage::Begin { pieces }),
                    Err(error) => Ok(RestoreStage::Forget(error)),
                }
            }
            RestoreStage::Do { piece, pieces } => match self.do_piece(engine, worker, piece, pieces) {
                Ok(stage) => Ok(stage),
                Err(outcome) => return Some(outcome),
            },
            RestoreStage::Forget(error) => {
                if engine.restrictions.pass_write().is_ok()
                    && register_restores::forget_restore(engine, worker, self.db)
                {
                    engine.restores.end(self.db);
                    return Some(Err(error));
                }
                Ok(RestoreStage::Forget(error))
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

    fn read(&mut self, engine: &Engine) -> Result<RestoreStage, CommandError> {
        let blob = std::mem::take(&mut self.blob);
        self.plan = Plan::of(engine, &blob, &self.how)?;
        match self.plan.scope.take() {
            None => self.planned(engine),
            Some(Scope::Keys(names)) => {
                self.plan.drop_names(engine, &names);
                self.planned(engine)
            }
            Some(scope) => {
                self.plan.scope = Some(scope);
                Ok(RestoreStage::Cover(WalkPlace::default(), self.plan.names(0)))
            }
        }
    }

    /// Finds registers to drop. `names` are the names of the blob in the shard.
    fn cover(
        &mut self,
        engine: &Engine,
        worker: &Worker,
        token: &DatabaseToken,
        slice: &TimeSlice<'_>,
        mut place: WalkPlace,
        names: HashSet<Vec<u8>>,
    ) -> Result<RestoreStage, CommandError> {
        let Plan { scope, shards, steps, .. } = &mut self.plan;
        let scope = scope.as_ref().expect("without a scope nothing is looked for");
        let Some(locked) = engine.keyspace.lock_shard_unless_busy(place.shard) else {
            return Ok(RestoreStage::Cover(place, names));
        };
        token.pass(&locked)?;
        let (_, shard) = locked.shards().next().expect("it was just locked");
        let (shard, db, number) = (&mut shards[place.shard], shard.db(self.db), place.shard);
        loop {
            let end = db.range_end(place.position);
            db.visit_range(place.position, end, |entry| {
                let is_covered = scope.covers(entry.name()) && is_register(entry, worker.now_ms);
                if is_covered && !names.contains(entry.name()) {
                    Step::Drop(entry.name()).encode(shard);
                    *steps += 1;
                }
            });
            place = place.behind(end);
            // Checked after some work: the slice may have been over at its start.
            if place.shard != number || slice.is_over() {
                break;
            }
        }
        drop(locked);
        if place.shard == number {
            return Ok(RestoreStage::Cover(place, names));
        }
        if place.shard < engine.keyspace.shard_count() {
            return Ok(RestoreStage::Cover(place, self.plan.names(place.shard)));
        }
        self.planned(engine)
    }

    /// The stage after planning.
    fn planned(&self, engine: &Engine) -> Result<RestoreStage, CommandError> {
        if self.plan.steps <= AT_ONCE_MAX {
            return Ok(RestoreStage::AtOnce);
        }
        // A snapshot has all noted pieces in one part.
        batch_limit::pass_batch_bytes(engine, self.plan.bytes())?;
        engine.restores.begin(self.db)?;
        Ok(RestoreStage::Check(0, 0))
    }

    /// Applies everything in one batch. `None` when the locks are not available now.
    fn at_once(&mut self, engine: &Engine, worker: &mut Worker, token: &DatabaseToken) -> Outcome {
        let mut locked = engine.keyspace.lock_all_unless_busy()?;
        let passed = token.pass(&locked).and_then(|()| engine.restrictions.pass_write());
        let passed = passed.and_then(|()| gates::pass_memory_limit(engine));
        let set = passed.and_then(|()| do_at_once(engine, worker, &mut locked, self.db, &self.plan));
        if set.is_ok() {
            commit::commit(engine, worker, None, &mut locked);
        }
        locked.release_fairly();
        Some(set.map(|set| (set, self.plan.position.take())))
    }

    fn check(
        &self,
        engine: &Engine,
        worker: &Worker,
        token: &DatabaseToken,
        slice: &TimeSlice<'_>,
        shard: usize,
        mut at: usize,
    ) -> Result<RestoreStage, CommandError> {
        let Some(bytes) = self.plan.shards.get(shard) else {
            return Ok(RestoreStage::Note { shard: 0, at: 0, pieces: 0 });
        };
        let Some(locked) = engine.keyspace.lock_shard_unless_busy(shard) else {
            return Ok(RestoreStage::Check(shard, at));
        };
        token.pass(&locked)?;
        let mut steps = Steps::of(&bytes[at..]);
        for (count, step) in (1..).zip(steps.by_ref()) {
            pass_step(engine, &locked, self.db, worker.now_ms, step)?;
            if count % STEPS_PER_LOOK == 0 && slice.is_over() {
                break;
            }
        }
        at = bytes.len() - steps.bytes_left();
        if at < bytes.len() { Ok(RestoreStage::Check(shard, at)) } else { Ok(RestoreStage::Check(shard + 1, 0)) }
    }

    /// Adds the next piece to the journal.
    fn note(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        shard: usize,
        at: usize,
        pieces: u32,
    ) -> Result<RestoreStage, CommandError> {
        let Some(bytes) = self.plan.shards.get_mut(shard) else { return Ok(RestoreStage::Begin { pieces }) };
        if at == bytes.len() {
            // They are in the journal's definitions now.
            *bytes = Vec::new();
            return Ok(RestoreStage::Note { shard: shard + 1, at: 0, pieces });
        }
        engine.restrictions.pass_write()?;
        gates::pass_memory_limit(engine)?;
        let (mut steps, mut end) = (Steps::of(&bytes[at..]), at);
        while end - at < PIECE_BYTES && steps.by_ref().take(1).count() > 0 {
            end = bytes.len() - steps.bytes_left();
        }
        Ok(match register_restores::note_restore_piece(engine, worker, self.db, pieces, &bytes[at..end]) {
            true => RestoreStage::Note { shard, at: end, pieces: pieces + 1 },
            false => RestoreStage::Note { shard, at, pieces },
        })
    }

    /// Applies a piece. The error is the reply, when the restore is complete.
    fn do_piece(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        piece: u32,
        pieces: u32,
    ) -> Result<RestoreStage, Result<Restored, CommandError>> {
        let stage = RestoreStage::Do { piece, pieces };
        if engine.restrictions.pass_write().is_err() {
            // It continues when writes are accepted again.
            return Ok(stage);
        }
        let is_last = piece + 1 == pieces;
        match register_restores::do_restore_piece(engine, worker, self.db, piece, is_last) {
            Piece::Busy => Ok(stage),
            Piece::Done(set) => {
                self.set += set;
                if !is_last {
                    return Ok(RestoreStage::Do { piece: piece + 1, pieces });
                }
                engine.restores.end(self.db);
                Err(Ok((self.set, self.plan.position.take())))
            }
            Piece::Gone => {
                engine.restores.end(self.db);
                Err(Err(changed()))
            }
        }
    }
}
