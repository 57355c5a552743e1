//! REG.SNAPSHOT: registers as one blob, gathered in slices on the background thread. Every put that was answered before is in it;
//! one that comes meanwhile may be.

use crate::args::{Args, is_word};
use crate::commands::shared::options::{argument, error, names, once, unknown_option};
use crate::commands::shared::slices::run;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::ScriptCx;
use crate::execution::engine::Engine;
use crate::execution::forks::WalkPlace;
use crate::execution::indexes::{Slice, is_index};
use crate::execution::recorder::Recorder;
use crate::execution::register_restores::is_register;
use crate::execution::worker::Worker;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::types::register::checkpoint::{BESIDE_BYTES_MAX, Registers, Scope, written};
use keyspace::types::string;
use keyspace::{Effect, Entry, Key, Scalar};
use resp::Reply;

/// About how many bytes are gathered under one lock.
const GATHERED_BYTES: usize = 256 * 1024;

pub(super) fn snapshot(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let Options { scope, position, store } = Options::take(&mut cx.args)?;
    let db = cx.client.db;
    if let Some(store) = &store {
        pass_store(cx.engine, db, store)?;
    }
    let job = SnapshotJob {
        db,
        scope,
        position,
        store,
        parts: Vec::new(),
        bytes: 0,
        place: WalkPlace::default(),
        next_key: 0,
    };
    if cx.held.is_some() {
        return snapshot_at_once(cx, job);
    }
    run(cx, job, SnapshotJob::step, reply_outcome)
}

struct Options {
    scope: Scope,
    position: Option<Vec<u8>>,
    store: Option<Vec<u8>>,
}

impl Options {
    fn take(args: &mut Args<'_>) -> Result<Options, CommandError> {
        let (mut scope, mut position, mut store) = (None, None, None);
        while let Some(word) = args.try_next() {
            if is_word(word, "PREFIX") {
                once(&mut scope, Scope::Prefix(argument(args, "the prefix")?.to_vec()), "the scope")?;
            } else if is_word(word, "KEYS") {
                let mut names: Vec<Vec<u8>> = names(args, "KEYS")?.into_iter().map(<[u8]>::to_vec).collect();
                names.sort_unstable();
                names.dedup();
                once(&mut scope, Scope::Keys(names), "the scope")?;
            } else if is_word(word, "POSITION") {
                once(&mut position, argument(args, "the position")?.to_vec(), "POSITION")?;
            } else if is_word(word, "STORE") {
                once(&mut store, argument(args, "the key behind STORE")?.to_vec(), "STORE")?;
            } else {
                return Err(unknown_option(word));
            }
        }
        Ok(Options { scope: scope.unwrap_or(Scope::Everything), position, store })
    }
}

/// Refuses a name that no command can write.
fn pass_store(engine: &Engine, db: usize, store: &[u8]) -> CommandResult {
    if engine.any_is_index(std::iter::once(store)) {
        return Err(is_index(store));
    }
    engine.forks.pass_name(db, store)
}

/// What there is to reply.
enum Outcome {
    Blob(Vec<u8>),
    Stored(u64),
}

fn reply_outcome(outcome: Outcome, reply: &mut Reply<'_>) {
    match outcome {
        Outcome::Blob(blob) => reply.bulk(&blob),
        Outcome::Stored(count) => reply.integer(count as i64),
    }
}

/// A snapshot under way.
struct SnapshotJob {
    db: usize,
    scope: Scope,
    position: Option<Vec<u8>>,
    store: Option<Vec<u8>>,
    /// What was gathered under one lock each: no lock is held while a long blob is copied.
    parts: Vec<Registers>,
    bytes: usize,
    /// Where a walk over all keys goes on.
    place: WalkPlace,
    /// Where a walk over given keys goes on.
    next_key: usize,
}

impl SnapshotJob {
    /// Does a slice of the work; the reply, when all is done.
    fn step(&mut self, engine: &Engine, worker: &mut Worker) -> Option<Result<Outcome, CommandError>> {
        let slice = Slice::begin(engine);
        while !self.is_gathered(engine) {
            if let Err(error) = self.gather(engine, worker, &slice) {
                return Some(Err(error));
            }
            if slice.is_over() {
                return None;
            }
        }
        match self.store.take() {
            None => Some(Ok(Outcome::Blob(self.blob()))),
            Some(store) => Some(self.store(engine, worker, &store)),
        }
    }

    fn is_gathered(&self, engine: &Engine) -> bool {
        match &self.scope {
            Scope::Keys(names) => self.next_key >= names.len(),
            Scope::Everything | Scope::Prefix(_) => self.place.shard >= engine.keyspace.shard_count(),
        }
    }

    /// Gathers some registers of one shard. Nothing, when its lock cannot be had now.
    fn gather(&mut self, engine: &Engine, worker: &Worker, slice: &Slice<'_>) -> CommandResult {
        let (shard, now_ms) = match &self.scope {
            Scope::Keys(names) => (engine.keyspace.shard_of(&names[self.next_key]), worker.now_ms),
            Scope::Everything | Scope::Prefix(_) => (self.place.shard, worker.now_ms),
        };
        let Some(locked) = engine.keyspace.lock_shard_unless_busy(shard) else { return Ok(()) };
        let (_, found) = locked.shards().next().expect("it was just locked");
        let db = found.db(self.db);
        let mut part = Registers::default();
        match &self.scope {
            Scope::Keys(names) => {
                add_key(&mut part, db.entry(Key::new(&names[self.next_key])), now_ms)?;
                self.next_key += 1;
            }
            Scope::Everything | Scope::Prefix(_) => {
                while self.place.shard == shard && part.len() < GATHERED_BYTES && !slice.is_over() {
                    let end = db.range_end(self.place.position);
                    db.visit_range(self.place.position, end, |entry| {
                        if self.scope.covers(entry.name()) && is_register(entry, now_ms) {
                            part.add(entry);
                        }
                    });
                    self.place = self.place.behind(end);
                }
            }
        }
        drop(locked);
        self.take_part(engine, part)
    }

    fn take_part(&mut self, engine: &Engine, part: Registers) -> CommandResult {
        self.bytes += part.len();
        let scope_bytes = match &self.scope {
            Scope::Everything => 0,
            Scope::Prefix(prefix) => prefix.len(),
            Scope::Keys(names) => names.iter().map(|name| name.len() + BESIDE_BYTES_MAX).sum(),
        };
        let beside = scope_bytes + self.position.as_ref().map_or(0, Vec::len) + BESIDE_BYTES_MAX;
        if (self.bytes + beside) as u64 > engine.settings.proto_max_bulk_len() {
            return Err(error("the snapshot would be longer than a string can be (proto-max-bulk-len)".into()));
        }
        if !part.is_empty() {
            self.parts.push(part);
        }
        Ok(())
    }

    fn count(&self) -> u64 {
        self.parts.iter().map(Registers::count).sum()
    }

    fn blob(&mut self) -> Vec<u8> {
        written(&self.scope, self.position.as_deref(), &std::mem::take(&mut self.parts))
    }

    fn store(&mut self, engine: &Engine, worker: &mut Worker, store: &[u8]) -> Result<Outcome, CommandError> {
        engine.pass_write_restrictions()?;
        engine.pass_memory_limit()?;
        let (count, blob) = (self.count(), self.blob());
        engine.pass_batch_bytes(blob.len())?;
        let mut locked = engine.keyspace.lock_key(Key::new(store));
        // An index, or a fork, may have been made meanwhile.
        pass_store(engine, self.db, store)?;
        let mut keys = engine.own_changes(worker, locked.lend(), self.db);
        store_blob(&mut keys, store, &blob);
        let garbage = keys.finish().take_garbage();
        engine.commit(worker, None, &mut locked);
        locked.release_fairly();
        engine.free(garbage);
        Ok(Outcome::Stored(count))
    }
}

fn add_key(part: &mut Registers, entry: Option<&Entry>, now_ms: u64) -> CommandResult {
    match entry.filter(|entry| !Db::is_expired(entry, now_ms)) {
        Some(entry) if is_register(entry, now_ms) => part.add(entry),
        Some(_) => return Err(CommandError::WrongType),
        None => {}
    }
    Ok(())
}

fn store_blob(keys: &mut Recorder<'_>, store: &[u8], blob: &[u8]) {
    let key = Key::new(store);
    keys.record(&Effect::change(key, string::Change::Set { value: Scalar::Bytes(blob), deadline: None }));
    keys.notify(Events::MODULE, "reg.snapshot", key);
}

/// In a transaction or script, which holds all locks: everything in one step.
fn snapshot_at_once(cx: &mut ScriptCx<'_, '_>, mut job: SnapshotJob) -> CommandResult {
    let (engine, now_ms) = (cx.engine, cx.worker.now_ms);
    let held = cx.held.as_mut().expect("the caller has looked");
    let mut part = Registers::default();
    match &job.scope {
        Scope::Keys(names) => {
            for name in names {
                let key = Key::new(name);
                add_key(&mut part, held.db(job.db, key).entry(key), now_ms)?;
            }
        }
        Scope::Everything | Scope::Prefix(_) => {
            for entry in held.shards().flat_map(|(_, shard)| shard.db(job.db).iter(now_ms)) {
                if job.scope.covers(entry.name()) && is_register(entry, now_ms) {
                    part.add(entry);
                }
            }
        }
    }
    job.take_part(engine, part)?;
    let (count, blob) = (job.count(), job.blob());
    match job.store {
        None => cx.reply.bulk(&blob),
        Some(store) => {
            let mut keys = engine.own_changes(cx.worker, held.lend(), job.db);
            store_blob(&mut keys, &store, &blob);
            let garbage = keys.finish().take_garbage();
            engine.free(garbage);
            cx.reply.integer(count as i64);
        }
    }
    Ok(())
}
