//! REG.RESTORE: sets registers from a snapshot. The blob is checked whole before anything is changed, and what it says becomes true in one
//! batch.

use super::snapshot::is_register;
use crate::args::is_word;
use crate::commands::shared::options::{argument, error, once, unknown_option};
use crate::commands::shared::slices::run;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::ScriptCx;
use crate::execution::engine::Engine;
use crate::execution::forks::WalkPlace;
use crate::execution::indexes::{Slice, is_index};
use crate::execution::worker::Worker;
use crate::settings::events::Events;
use keyspace::types::register::checkpoint::{Checkpoint, Saved, Scope, version};
use keyspace::types::{register, string};
use keyspace::{Cause, Effect, Image, Key, Locked, ValueType};
use resp::Reply;
use std::collections::HashSet;

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
    let job = RestoreJob { db, merges, blob, scope: None, place: WalkPlace::default(), covered: Vec::new() };
    if cx.held.is_some() {
        return restore_at_once(cx, job);
    }
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

/// A restore under way.
struct RestoreJob {
    db: usize,
    merges: bool,
    blob: Vec<u8>,
    /// The scope of the blob, once that was checked.
    scope: Option<Scope>,
    /// Where the search for registers that the scope covers goes on.
    place: WalkPlace,
    /// The names of those that were found.
    covered: Vec<Vec<u8>>,
}

impl RestoreJob {
    /// Does a slice of the work; the reply, when all is done.
    fn step(&mut self, engine: &Engine, worker: &mut Worker) -> Option<Result<Restored, CommandError>> {
        let slice = Slice::begin(engine);
        let scope = match self.scope.take() {
            Some(scope) => scope,
            None => match Checkpoint::check(&self.blob) {
                Ok(checkpoint) => checkpoint.scope,
                Err(bad) => return Some(Err(error(bad.to_string()))),
            },
        };
        let is_found = self.merges || self.find_covered(engine, worker, &slice, &scope);
        self.scope = Some(scope);
        if is_found { self.apply(engine, worker) } else { None }
    }

    /// Makes it true, in one batch. `None` when the locks cannot be had now.
    fn apply(&mut self, engine: &Engine, worker: &mut Worker) -> Option<Result<Restored, CommandError>> {
        let checkpoint = Checkpoint::check(&self.blob).expect("it was checked");
        let mut locked = engine.keyspace.lock_all_unless_busy()?;
        let passed = engine.pass_write_restrictions().and_then(|()| engine.pass_memory_limit());
        if let Err(error) = passed {
            return Some(Err(error));
        }
        let set = set_registers(engine, worker, &mut locked, self.db, self.merges, &checkpoint, &self.covered);
        let set = match set {
            Ok(set) => set,
            Err(error) => return Some(Err(error)),
        };
        let garbage = locked.take_garbage();
        engine.commit(worker, None, &mut locked);
        locked.release_fairly();
        engine.free(garbage);
        Some(Ok((set, checkpoint.position.map(<[u8]>::to_vec))))
    }

    /// Looks for registers that the scope of the blob covers. True when all are found.
    fn find_covered(&mut self, engine: &Engine, worker: &Worker, slice: &Slice<'_>, scope: &Scope) -> bool {
        if let Scope::Keys(names) = scope {
            self.covered = names.clone();
            return true;
        }
        while self.place.shard < engine.keyspace.shard_count() {
            let Some(locked) = engine.keyspace.lock_shard_unless_busy(self.place.shard) else { return false };
            let (_, shard) = locked.shards().next().expect("it was just locked");
            let db = shard.db(self.db);
            let end = db.range_end(self.place.position);
            db.visit_range(self.place.position, end, |entry| {
                if scope.covers(entry.name()) && is_register(entry, worker.now_ms) {
                    self.covered.push(entry.name().to_vec());
                }
            });
            self.place = self.place.behind(end);
            if slice.is_over() && self.place.shard < engine.keyspace.shard_count() {
                return false;
            }
        }
        true
    }
}

/// Sets the registers of a blob, and drops those of `covered` that are not in it. An error changes nothing. Everything is locked.
fn set_registers(
    engine: &Engine,
    worker: &mut Worker,
    locked: &mut Locked<'_>,
    db: usize,
    merges: bool,
    checkpoint: &Checkpoint<'_>,
    covered: &[Vec<u8>],
) -> Result<u64, CommandError> {
    let now_ms = worker.now_ms;
    let is_there = |saved: &&Saved<'_>| saved.deadline.is_none_or(|deadline| deadline > now_ms);
    let mut to_set: Vec<&Saved<'_>> = Vec::new();
    for saved in checkpoint.registers.iter().filter(is_there) {
        let key = Key::new(saved.name);
        engine.forks.pass_name(db, saved.name)?;
        if engine.any_is_index(std::iter::once(saved.name)) {
            return Err(is_index(saved.name));
        }
        let entry = locked.db(db, key).entry(key).filter(|entry| !keyspace::db::Db::is_expired(entry, now_ms));
        match entry {
            Some(entry) if !is_register(entry, now_ms) => return Err(CommandError::WrongType),
            // Of two of one version, the one that is there stays: it may have been put to use.
            Some(entry) if merges && saved.version <= version(entry) => {}
            Some(_) | None => to_set.push(saved),
        }
    }
    let kept: HashSet<&[u8]> = to_set.iter().map(|saved| saved.name).collect();
    let dropped: Vec<Key<'_>> = match merges {
        true => Vec::new(),
        false => covered.iter().map(|name| Key::new(name)).filter(|key| !kept.contains(key.name)).collect(),
    };
    for key in &dropped {
        engine.forks.pass_name(db, key.name)?;
    }
    engine.pass_batch_bytes(to_set.iter().map(|saved| saved.name.len() + saved.image.len() + 32).sum())?;
    let mut keys = engine.own_changes(worker, locked.lend(), db);
    for key in dropped {
        if keys.entry(key).is_some_and(|entry| is_register(entry, now_ms)) {
            keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            keys.notify(Events::MODULE, "reg.restore", key);
        }
    }
    for saved in &to_set {
        let (key, value) = (Key::new(saved.name), Image { value_type: &register::TYPE, bytes: saved.image });
        keys.record(&Effect::Put { key, value, deadline: saved.deadline });
        keys.notify(Events::MODULE, "reg.restore", key);
    }
    keys.finish();
    Ok(to_set.len() as u64)
}

/// In a transaction or script, which holds all locks: everything in one step.
fn restore_at_once(cx: &mut ScriptCx<'_, '_>, job: RestoreJob) -> CommandResult {
    let (engine, now_ms) = (cx.engine, cx.worker.now_ms);
    let checkpoint = Checkpoint::check(&job.blob).map_err(|bad| error(bad.to_string()))?;
    let held = cx.held.as_mut().expect("the caller has looked");
    let mut covered = Vec::new();
    if !job.merges {
        for entry in held.shards().flat_map(|(_, shard)| shard.db(job.db).iter(now_ms)) {
            if checkpoint.scope.covers(entry.name()) && is_register(entry, now_ms) {
                covered.push(entry.name().to_vec());
            }
        }
    }
    let set = set_registers(engine, cx.worker, held, job.db, job.merges, &checkpoint, &covered)?;
    reply_restored((set, checkpoint.position.map(<[u8]>::to_vec)), &mut cx.reply);
    Ok(())
}
