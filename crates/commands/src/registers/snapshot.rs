//! REG.SNAPSHOT: registers as one blob, gathered in slices on the background thread. It contains every put that was
//! answered before; it may contain those that come meanwhile.

use crate::shared::options::{argument, error, names, once, unknown_option};
use crate::shared::slices::{run, take_token};
use execution::args::{Args, is_word};
use execution::batch_limit;
use execution::commit;
use execution::context::ScriptCx;
use execution::database_tokens::DatabaseToken;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::forks::WalkPlace;
use execution::gates;
use execution::indexes::is_index;
use execution::own_changes;
use execution::recorder::Recorder;
use execution::register_restores::is_register;
use execution::revealed;
use execution::settings::events::Events;
use execution::slices::TimeSlice;
use execution::worker::Worker;
use keyspace::db::Db;
use keyspace::types::register::checkpoint::{BESIDE_BYTES_MAX, Registers, Scope, written};
use keyspace::types::string;
use keyspace::{Effect, Entry, Key, Scalar, ValueType};
use resp::{Reply, Request};

/// About how many bytes are gathered under one lock.
const GATHERED_BYTES: usize = 256 * 1024;

pub(super) fn snapshot(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let Options { scope, position, store } = Options::take(&mut cx.args)?;
    let db = cx.client.db;
    if let Some(store) = &store
        && let Err(error) = pass_store(cx.engine, db, store)
    {
        revealed::await_definitions(cx)?;
        return Err(error);
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
    let token = take_token(cx)?;
    run(cx, token, job, SnapshotJob::step, reply_outcome)
}

/// True for a request that stores nothing.
pub(super) fn only_reads(request: Request<'_>) -> bool {
    Options::take(&mut Args::new(request, 1, None)).is_ok_and(|options| options.store.is_none())
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
                return Err(unknown_option(args));
            }
        }
        Ok(Options { scope: scope.unwrap_or(Scope::Everything), position, store })
    }
}

/// Refuses a name that no command may write.
fn pass_store(engine: &Engine, db: usize, store: &[u8]) -> CommandResult {
    if engine.indexes.has_any_of(std::iter::once(store)) {
        return Err(is_index(store));
    }
    engine.forks.pass_name(db, store)
}

/// The reply.
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

/// A snapshot in progress.
struct SnapshotJob {
    db: usize,
    scope: Scope,
    position: Option<Vec<u8>>,
    store: Option<Vec<u8>>,
    /// One part for each lock: no lock is held while a long blob is copied.
    parts: Vec<Registers>,
    bytes: usize,
    /// The position in a walk over all keys.
    place: WalkPlace,
    /// The position in a list of given keys.
    next_key: usize,
}

impl SnapshotJob {
    /// Does one slice of the work. Returns the reply after the last slice.
    fn step(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
    ) -> Option<Result<Outcome, CommandError>> {
        let slice = TimeSlice::begin(engine);
        while !self.is_gathered(engine) {
            if let Err(error) = self.gather(engine, worker, token, &slice) {
                return Some(Err(error));
            }
            if slice.is_over() {
                return None;
            }
        }
        match self.store.take() {
            None => Some(Ok(Outcome::Blob(self.blob()))),
            Some(store) => Some(self.store(engine, worker, token, &store)),
        }
    }

    fn is_gathered(&self, engine: &Engine) -> bool {
        match &self.scope {
            Scope::Keys(names) => self.next_key >= names.len(),
            Scope::Everything | Scope::Prefix(_) => self.place.shard >= engine.keyspace.shard_count(),
        }
    }

    /// Gathers some registers of one shard. Does nothing when its lock is not available now.
    fn gather(
        &mut self,
        engine: &Engine,
        worker: &Worker,
        token: &DatabaseToken,
        slice: &TimeSlice<'_>,
    ) -> CommandResult {
        let (shard, now_ms) = match &self.scope {
            Scope::Keys(names) => (engine.keyspace.shard_of(&names[self.next_key]), worker.now_ms),
            Scope::Everything | Scope::Prefix(_) => (self.place.shard, worker.now_ms),
        };
        let Some(locked) = engine.keyspace.lock_shard_unless_busy(shard) else { return Ok(()) };
        token.pass(&locked)?;
        let (_, found) = locked.shards().next().expect("it was just locked");
        let db = found.db(self.db);
        let mut part = Registers::default();
        match &self.scope {
            Scope::Keys(names) => {
                add_key(&mut part, db.entry(Key::new(&names[self.next_key])), now_ms)?;
                self.next_key += 1;
            }
            Scope::Everything | Scope::Prefix(_) => {
                loop {
                    let end = db.range_end(self.place.position);
                    db.visit_range(self.place.position, end, |entry| {
                        if self.scope.covers(entry.name()) && is_register(entry, now_ms) {
                            part.add(entry);
                        }
                    });
                    self.place = self.place.behind(end);
                    // Checked after some work: the slice may have been over at its start.
                    if self.place.shard != shard || part.len() >= GATHERED_BYTES || slice.is_over() {
                        break;
                    }
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
            return Err(error("the snapshot would be longer than a string can be (proto-max-bulk-len): take it by PREFIX or KEYS, in parts".into()));
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

    fn store(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        token: &DatabaseToken,
        store: &[u8],
    ) -> Result<Outcome, CommandError> {
        engine.restrictions.pass_write()?;
        gates::pass_memory_limit(engine)?;
        let (count, blob) = (self.count(), self.blob());
        batch_limit::pass_batch_bytes(engine, blob.len())?;
        let mut locked = engine.keyspace.lock_key(Key::new(store));
        token.pass(&locked)?;
        // An index or a fork may have been created meanwhile.
        pass_store(engine, self.db, store)?;
        let mut keys = own_changes::own_changes(engine, worker, locked.lend(), self.db);
        store_blob(&mut keys, store, &blob)?;
        let garbage = keys.finish().take_garbage();
        commit::commit(engine, worker, None, &mut locked);
        locked.release_fairly();
        engine.free(garbage);
        Ok(Outcome::Stored(count))
    }
}

fn add_key(part: &mut Registers, entry: Option<&Entry>, now_ms: u64) -> CommandResult {
    match entry.filter(|entry| !Db::is_expired(entry, now_ms)) {
        Some(entry) if is_register(entry, now_ms) => part.add(entry),
        Some(entry) => return Err(CommandError::wrong_type(ValueType::of(entry))),
        None => {}
    }
    Ok(())
}

fn store_blob(keys: &mut Recorder<'_>, store: &[u8], blob: &[u8]) -> CommandResult {
    let key = Key::new(store);
    keys.replace(&Effect::change(key, string::Change::Set { value: Scalar::Bytes(blob), deadline: None }))?;
    keys.notify(Events::MODULE, "reg.snapshot", key);
    Ok(())
}

/// Takes a snapshot in one step, in a transaction or script, which holds all locks.
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
            let mut keys = own_changes::own_changes(engine, cx.worker, held.lend(), job.db);
            store_blob(&mut keys, &store, &blob)?;
            let garbage = keys.finish().take_garbage();
            engine.free(garbage);
            cx.reply.integer(count as i64);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::OwnedRequest;

    #[test]
    fn a_snapshot_that_is_not_stored_only_reads() {
        let only_reads = |line: &str| {
            let words: OwnedRequest = line.split(' ').map(str::as_bytes).collect();
            only_reads(words.as_request())
        };
        for line in ["REG.SNAPSHOT", "REG.SNAPSHOT PREFIX STORE", "REG.SNAPSHOT KEYS 2 STORE k POSITION store"] {
            assert!(only_reads(line), "{line}");
        }
        for line in ["REG.SNAPSHOT STORE k", "REG.SNAPSHOT PREFIX a STORE PREFIX", "REG.SNAPSHOT nonsense"] {
            assert!(!only_reads(line), "{line}");
        }
    }
}
