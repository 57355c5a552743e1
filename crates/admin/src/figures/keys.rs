//! One look at all shards: how many keys each database has, and how many records each index, due ones among them. Locks one
//! shard at a time, and visits no key; refuses to know how figures are shown.

use engine::Engine;
use keyspace::DATABASES;
use keyspace::shard::Shard;
use keyspace::types::TYPES;
use keyspace::types::run::RunStatus;
use std::collections::BTreeMap;

/// The lowest score that is a time in unix milliseconds: September 2001. A lower one is something else, such as a priority.
pub(super) const TIME_MS_MIN: f64 = 1e12;

/// Figures of a database.
#[derive(Clone, Copy, Default)]
pub(super) struct DbFigures {
    pub(super) keys: u64,
    pub(super) with_deadline: u64,
    pub(super) with_field_deadlines: u64,
    pub(super) table_bytes: u64,
    pub(super) sessions: u64,
    pub(super) open_runs: u64,
    /// Keys by type, in the order of the types.
    pub(super) by_type: [u64; TYPES.len()],
    /// Runs by status.
    pub(super) runs: [u64; RunStatus::ALL.len()],
    left_ms_sum: u128,
}

impl DbFigures {
    /// The average time to live of keys with a deadline.
    pub(super) fn left_seconds(&self) -> f64 {
        (self.left_ms_sum / u128::from(self.with_deadline.max(1))) as f64 / 1000.0
    }

    fn add(&mut self, other: &DbFigures) {
        self.keys += other.keys;
        self.with_deadline += other.with_deadline;
        self.with_field_deadlines += other.with_field_deadlines;
        self.table_bytes += other.table_bytes;
        self.sessions += other.sessions;
        self.open_runs += other.open_runs;
        self.by_type.iter_mut().zip(other.by_type).for_each(|(sum, count)| *sum += count);
        self.runs.iter_mut().zip(other.runs).for_each(|(sum, count)| *sum += count);
        self.left_ms_sum += other.left_ms_sum;
    }
}

/// Figures of an index in one database.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct IndexFigures {
    pub(super) entries: u64,
    /// Records whose score is not later than now.
    pub(super) due: u64,
    /// The earliest score among them that is a time.
    pub(super) oldest_due_ms: Option<u64>,
    pub(super) bytes: u64,
    pub(super) waiting: u64,
}

impl IndexFigures {
    pub(super) fn add(&mut self, other: &IndexFigures) {
        self.entries += other.entries;
        self.due += other.due;
        self.oldest_due_ms = self.oldest_due_ms.into_iter().chain(other.oldest_due_ms).min();
        self.bytes += other.bytes;
        self.waiting += other.waiting;
    }
}

/// An index by name, and a database.
pub(super) type IndexAt = (Vec<u8>, usize);

/// What was found in one shard.
#[derive(Clone, Default)]
struct ShardFigures {
    dbs: [DbFigures; DATABASES],
    indexes: BTreeMap<IndexAt, IndexFigures>,
    pending: u64,
}

/// What was found in all shards.
pub(super) struct Keys {
    shards: Vec<ShardFigures>,
    pub(super) dbs: [DbFigures; DATABASES],
    pub(super) indexes: BTreeMap<IndexAt, IndexFigures>,
    /// Changes of records that were not in the trees of indexes yet.
    pub(super) pending: u64,
}

impl Keys {
    pub(super) fn new(shards: usize) -> Keys {
        Keys {
            shards: vec![ShardFigures::default(); shards],
            dbs: Default::default(),
            indexes: BTreeMap::new(),
            pending: 0,
        }
    }

    /// Looks at all shards. One that a long script holds stays as it was found the last time; so do all while the data is
    /// loading.
    pub(super) fn look(&mut self, engine: &Engine) {
        if engine.restrictions.is_loading() {
            return;
        }
        let now_ms = engine.clock.unix_us() / 1000;
        for (number, figures) in self.shards.iter_mut().enumerate() {
            let Some(mut locked) = engine.keyspace.lock_shard_unless_busy(number) else { continue };
            let pending = |db: usize| locked.pending_changes(db);
            let waiting: Vec<(usize, usize)> =
                (0..DATABASES).map(|db| (db, pending(db))).filter(|(_, pending)| *pending > 0).collect();
            // A few thousand at most: a part of an index applies them itself when there are more.
            waiting.iter().for_each(|(db, _)| locked.apply_pending(*db));
            let (_, shard) = locked.shards().next().expect("the shard was just locked");
            *figures = of_shard(shard, now_ms);
            figures.pending = waiting.iter().map(|(_, pending)| *pending as u64).sum();
            locked.release_fairly();
        }
        self.add_up();
        for index in engine.indexes.list().iter() {
            for db in 0..DATABASES {
                let (waiting, bytes) = (index.waiting(db) as u64, index.groups.heap_bytes(db) as u64);
                if waiting > 0 || bytes > 0 {
                    let figures = self.indexes.entry((index.name.clone(), db)).or_default();
                    figures.waiting = waiting;
                    figures.bytes += bytes;
                    self.dbs[db].table_bytes += bytes;
                }
            }
        }
    }

    fn add_up(&mut self) {
        self.dbs = Default::default();
        self.indexes.clear();
        self.pending = 0;
        for figures in &self.shards {
            self.dbs.iter_mut().zip(&figures.dbs).for_each(|(sum, db)| sum.add(db));
            for (at, index) in &figures.indexes {
                match self.indexes.get_mut(at) {
                    Some(sum) => sum.add(index),
                    None => drop(self.indexes.insert(at.clone(), *index)),
                }
            }
            self.pending += figures.pending;
        }
    }

    /// All databases together.
    pub(super) fn total(&self) -> DbFigures {
        self.dbs.iter().fold(DbFigures::default(), |mut sum, db| {
            sum.add(db);
            sum
        })
    }
}

fn of_shard(shard: &Shard, now_ms: u64) -> ShardFigures {
    let mut figures = ShardFigures::default();
    for (number, found) in figures.dbs.iter_mut().enumerate() {
        let db = shard.db(number);
        *found = DbFigures {
            keys: db.len() as u64,
            with_deadline: db.with_deadline() as u64,
            with_field_deadlines: db.with_field_deadlines() as u64,
            table_bytes: db.overhead_bytes() as u64,
            sessions: db.session_count() as u64,
            open_runs: db.open_run_count() as u64,
            by_type: std::array::from_fn(|position| db.count_of_type(TYPES[position]) as u64),
            runs: RunStatus::ALL.map(|status| db.run_count(status) as u64),
            left_ms_sum: db.time_left_sum(now_ms),
        };
        for (position, index) in db.indexes().iter().enumerate() {
            let found = db.part(position).map(|records| {
                let due = records.partition_point(|(score, _)| *score <= now_ms as f64);
                let first_time = records.partition_point(|(score, _)| *score < TIME_MS_MIN);
                let oldest = records.get(first_time).filter(|_| first_time < due);
                IndexFigures {
                    entries: records.len() as u64,
                    due: due as u64,
                    oldest_due_ms: oldest.map(|(score, _)| score as u64),
                    bytes: db.part_bytes(position) as u64,
                    waiting: 0,
                }
            });
            let found = found.unwrap_or_default();
            // The first database has all indexes, so that none is missing when it has no record.
            if found.entries == 0 && number > 0 {
                continue;
            }
            figures.indexes.insert((index.name.clone(), number), found);
        }
    }
    figures
}
