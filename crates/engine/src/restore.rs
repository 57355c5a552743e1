//! Values that come whole, with their deadlines: out of a RESTORE, or out of another server's file. Knows which effects
//! say so; refuses to know how such values are spelled.

use crate::context::{Recorder, View};
use crate::engine::{Engine, Worker};
use formats::rdb::{HashEntry, SortedSetEntry};
use keyspace::shard::DATABASES;
use keyspace::sorted_set;
use keyspace::{Cause, Effect, Image, Key, Scalar};

/// A value that can be kept here.
#[derive(Clone, Copy)]
pub enum Restored<'a> {
    String(&'a [u8]),
    /// No field twice.
    Hash(&'a [HashEntry]),
    /// No member twice.
    SortedSet(&'a [SortedSetEntry]),
}

/// What became of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// False when all of it was past its time.
    pub key: bool,
    /// Fields that were past theirs.
    pub fields_expired: usize,
}

/// There is no such database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchDatabase;

impl Engine {
    /// Gives a key a value, in place of whatever it had. What is past its time at `now_ms` is left out; at zero
    /// nothing is, for values whose history goes on and may yet give them more time.
    pub fn restore(
        &self,
        worker: &mut Worker,
        db: u64,
        key: &[u8],
        value: Restored<'_>,
        deadline: Option<u64>,
        now_ms: u64,
    ) -> Result<Kept, NoSuchDatabase> {
        let db = usize::try_from(db).ok().filter(|db| *db < self.settings.databases().min(DATABASES));
        let db = db.ok_or(NoSuchDatabase)?;
        let key = Key::new(key);
        let usage = self.usage(&mut worker.random);
        let view = View::new(self.keyspace.lock_key(key), db, worker.now_ms, usage, &worker.books.stats);
        let mut keys = view.without_touching().into_recorder(self, &mut worker.effects);
        // Whether it is past its time does not matter: it goes.
        if keys.locked().db(db, key).entry(key).is_some() {
            keys.record(&Effect::Delete { key, cause: Cause::Deleted });
        }
        let kept = record(&mut keys, key, value, deadline, now_ms);
        worker.books.stats.changes.add(keys.changes);
        keys.hand_over();
        drop(keys.take_garbage());
        Ok(kept)
    }

    /// After values and commands from a time that has passed were let in as if it had not: removes everything that is
    /// past its time now, and notes what is left as used now. How many keys and fields were removed.
    pub fn settle(&self, worker: &mut Worker) -> (u64, u64) {
        const LONG_NS: u64 = 1 << 60;
        self.begin(worker);
        let removed = |worker: &Worker| {
            let stats = &worker.books.stats;
            (stats.expired_keys.get(), stats.expired_fields.get())
        };
        let before = removed(worker);
        while self.expire_cycle(worker, 0, 1, LONG_NS) {}
        let after = removed(worker);
        for shard in 0..self.keyspace.shard_count() {
            let usage = self.usage(&mut worker.random);
            let locked = self.keyspace.lock_shard(shard);
            for db in locked.shards().flat_map(|(_, shard)| (0..DATABASES).map(|db| shard.db(db))) {
                db.iter(worker.now_ms).for_each(|entry| entry.touch(usage.fresh(worker.now_ms)));
            }
        }
        (after.0 - before.0, after.1 - before.1)
    }
}

/// Records a value under a name that is free. What is past its time at `now_ms` is left out.
pub(crate) fn record(
    keys: &mut Recorder<'_>,
    key: Key<'_>,
    value: Restored<'_>,
    deadline: Option<u64>,
    now_ms: u64,
) -> Kept {
    if deadline.is_some_and(|deadline| deadline <= now_ms) {
        return Kept::default();
    }
    match value {
        Restored::String(bytes) => {
            keys.record(&Effect::StringSet { key, value: Scalar::of(bytes), deadline });
            Kept { key: true, fields_expired: 0 }
        }
        Restored::Hash(fields) => record_hash(keys, key, fields, deadline, now_ms),
        Restored::SortedSet(members) => {
            let mut members: Vec<(f64, &[u8])> = members.iter().map(|(name, score)| (*score, &**name)).collect();
            // Files have them in any order; in their own they are kept much faster.
            members.sort_unstable_by(|a, b| sorted_set::compare(*a, *b));
            let value = Image::SortedSet { members: &members, form: keys.form_of_sorted_set(&members) };
            keys.record(&Effect::Put { key, value, deadline });
            Kept { key: true, fields_expired: 0 }
        }
    }
}

/// Fields whose time has come are left out, and the hash if none is left.
fn record_hash(
    keys: &mut Recorder<'_>,
    key: Key<'_>,
    fields: &[HashEntry],
    deadline: Option<u64>,
    now_ms: u64,
) -> Kept {
    let alive = || fields.iter().filter(|(.., deadline)| deadline.is_none_or(|deadline| deadline > now_ms));
    let pairs: Vec<(&[u8], &[u8])> = alive().map(|(field, value, _)| (&**field, &**value)).collect();
    let kept = Kept { key: !pairs.is_empty(), fields_expired: fields.len() - pairs.len() };
    if !kept.key {
        return kept;
    }
    keys.record(&Effect::HashSet { key, fields: &pairs, keep_deadlines: false });
    for (field, _, deadline) in alive().filter(|(.., deadline)| deadline.is_some()) {
        keys.record(&Effect::HashDeadline { key, field, deadline: *deadline });
    }
    if deadline.is_some() {
        keys.record(&Effect::Deadline { key, deadline });
    }
    kept
}
