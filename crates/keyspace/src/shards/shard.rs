//! One shard of the keyspace: the part of all databases that one lock guards.

use super::db::Db;
use super::definitions::Definitions;
use crate::effects::{DATABASES, Effect, codec};
use crate::index::parts::Place;
use crate::interest::readers::Tracked;
use crate::interest::waiters::Awaited;
use crate::interest::watchers::Watched;
use crate::storage::{Key, NameHash};

/// The databases of one shard.
///
/// The order of fields matters: the fields that every write changes share a cache line with the lock.
#[repr(C)]
pub struct Shard {
    /// The number of the last batch that changed it; not part of the state.
    pub(super) changed_by: u64,
    pub(super) dbs: [Db; DATABASES],
    /// State that is not a key; in the first shard only.
    pub(super) definitions: Definitions,
    /// Keys that clients watch; not part of the state either.
    pub watched: Watched,
    /// Keys that tracking clients have read.
    pub tracked: Tracked,
    /// Keys that clients wait for.
    pub awaited: Awaited,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard {
            dbs: std::array::from_fn(|_| Db::default()),
            definitions: Definitions::default(),
            changed_by: 0,
            watched: Watched::default(),
            tracked: Tracked::default(),
            awaited: Awaited::default(),
        }
    }
}

impl Shard {
    /// Creates an empty shard, number `number` of `shard_count`.
    pub(super) fn new(number: usize, shard_count: usize) -> Shard {
        let mut shard = Shard::default();
        for (db, within) in shard.dbs.iter_mut().enumerate() {
            within.set_place(Place { db: db as u16, shard: number as u16, shard_count: shard_count as u16 });
        }
        shard
    }

    /// Exchanges two databases.
    pub(super) fn swap_dbs(&mut self, a: usize, b: usize) {
        let (place_a, place_b) = (self.dbs[a].place(), self.dbs[b].place());
        self.dbs.swap(a, b);
        self.dbs[a].set_place(place_a);
        self.dbs[b].set_place(place_b);
    }

    /// Appends the keys of all databases at positions from `from` on, as effects that create them, until there are
    /// about `count`. Returns the last complete position, and how many keys were appended.
    ///
    /// A snapshot part covers all databases, since SWAPDB and MOVE move keys between them. Definitions are in the first
    /// part.
    pub fn image_from(&self, from: u32, count: u32, bytes_max: usize, out: &mut Vec<u8>) -> (u32, u32) {
        let (end, keys) = self.keys_from(from, count, bytes_max, out);
        for (number, db) in self.dbs.iter().enumerate() {
            for (name, until_ns) in db.rates(from, end) {
                codec::encode(number, &Effect::Rate { key: Key::new(name), until_ns, now_ns: 0 }, out);
            }
        }
        (end, keys)
    }

    /// As [`image_from`](Shard::image_from), without the states of rates.
    fn keys_from(&self, from: u32, count: u32, bytes_max: usize, out: &mut Vec<u8>) -> (u32, u32) {
        let (mut from, mut done, began_at) = (from, 0, out.len());
        if from == 0 {
            self.definitions.encode(out);
        }
        let used = || self.dbs.iter().enumerate().filter(|(_, db)| !db.is_empty());
        loop {
            let end = used().map(|(_, db)| db.table.range_end(from)).min().unwrap_or(u32::MAX);
            let (done_before, out_before, mut too_much) = (done, out.len(), false);
            for (number, db) in used() {
                db.table.visit_range(from, end, |entry| {
                    // The limit is reached: the next key is too much.
                    too_much |= out.len() - began_at >= bytes_max;
                    if !too_much {
                        codec::encode_entry(number, entry, &db.shapes, out);
                        done += 1;
                    }
                });
            }
            if too_much {
                out.truncate(out_before);
                let (end, keys) = self.image_in_order(from, end, began_at, bytes_max, out);
                return (end, done_before + keys);
            }
            match end.checked_add(1) {
                Some(next) if done < count && out.len() - began_at < bytes_max => from = next,
                _ => return (end, done),
            }
        }
    }

    /// As [`image_from`](Shard::image_from), for large values: appends keys in the order of their positions, so that it
    /// can end anywhere in the range. Keys at one position are never split, and so keys of one name are not either.
    fn image_in_order(&self, from: u32, to: u32, began_at: usize, bytes_max: usize, out: &mut Vec<u8>) -> (u32, u32) {
        let mut entries = Vec::new();
        for (number, db) in self.dbs.iter().enumerate() {
            db.table.visit_range(from, to, |entry| {
                entries.push((NameHash::of(entry.name()).position(), number, entry));
            });
        }
        entries.sort_unstable_by_key(|(position, number, _)| (*position, *number));
        let (mut keys, mut last) = (0, None);
        for (position, number, entry) in entries {
            if let Some(last) = last
                && last != position
                && out.len() - began_at >= bytes_max
            {
                return (last, keys);
            }
            codec::encode_entry(number, entry, &self.dbs[number].shapes, out);
            keys += 1;
            last = Some(position);
        }
        (to, keys)
    }

    /// Empties a database of a shard outside of any keyspace, and keeps the memory of its table. Its values are small.
    pub fn clear_db(&mut self, db: usize) {
        self.dbs[db].clear();
    }

    /// The database `index`.
    #[inline]
    pub fn db(&self, index: usize) -> &Db {
        &self.dbs[index]
    }
}
