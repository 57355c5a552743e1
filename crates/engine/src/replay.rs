//! Brings back what the journal and its snapshots have kept: decode, then apply. No handlers, no clock, no chance.
//! Knows which part of a snapshot is older than a batch; refuses to know files.

use crate::engine::Engine;
use crate::walk::{Part, Placement};
use keyspace::apply::Thresholds;
use keyspace::codec::{BadEffect, Decoder};
use keyspace::table::NameHasher;
use keyspace::{Effect, Key, Locked, Usage};

/// Rebuilds a keyspace, from the parts of a snapshot and then from batches in their order.
pub struct Replay<'e> {
    engine: &'e Engine,
    thresholds: Thresholds,
    stamps: Stamps,
    /// When keys count as used that come back, and in what form that is kept: no part of the state.
    used: (u64, Usage),
}

impl<'e> Replay<'e> {
    /// A replay into an engine whose keyspace is empty, of a snapshot whose keys were placed so, or of no snapshot.
    pub fn new(engine: &'e Engine, placement: Option<Placement>) -> Replay<'e> {
        let used = (engine.clock.unix_us() / 1000, engine.usage(&mut fastrand::Rng::with_seed(0)));
        Replay { engine, thresholds: engine.thresholds(), stamps: Stamps::new(placement), used }
    }

    /// Applies a part of the snapshot. Parts of a shard come in their order.
    pub fn part(&mut self, part: Part, keys: &[u8]) -> Result<(), BadEffect> {
        self.stamps.add(part)?;
        let mut effects = Decoder::new(keys);
        while let Some((db, effect)) = effects.next()? {
            let keyspace = &self.engine.keyspace;
            let locked = match effect {
                Effect::Put { key, .. } => keyspace.lock_key(key),
                Effect::LibrarySet { .. } | Effect::IndexSet { .. } => keyspace.lock_all(),
                _ => return Err(BadEffect::OutOfRange),
            };
            self.used_now(locked).apply(db, &effect, self.thresholds);
        }
        Ok(())
    }

    /// Applies a batch, as far as the snapshot does not have it.
    pub fn batch(&mut self, sequence: u64, batch: &[u8]) -> Result<(), BadEffect> {
        let in_part = sequence <= self.stamps.newest;
        let mut effects = Decoder::new(batch);
        while let Some((db, effect)) = effects.next()? {
            if in_part { self.apply_where_newer(sequence, db, &effect)? } else { self.apply(db, &effect)? }
        }
        Ok(())
    }

    /// Applies an effect to those keys that the snapshot has from before it.
    fn apply_where_newer(&self, sequence: u64, db: usize, effect: &Effect<'_>) -> Result<(), BadEffect> {
        let is_newer = |name: &[u8]| sequence > self.stamps.of(name);
        match *effect {
            Effect::FlushDb | Effect::FlushAll | Effect::SwapDb { .. } => {
                self.used_now(self.engine.keyspace.lock_all()).apply_where(db, effect, is_newer);
                Ok(())
            }
            _ if effect.is_definition() => match sequence > self.stamps.of_definitions() {
                true => self.apply(db, effect),
                false => Ok(()),
            },
            // While a snapshot was written, no batch referred from one key to another: it has both or none.
            Effect::Rename { from, to } | Effect::Copy { from, to, .. } if is_newer(from.name) != is_newer(to.name) => {
                Err(BadEffect::OutOfRange)
            }
            _ => match main_key(effect) {
                Some(key) if !is_newer(key.name) => Ok(()),
                _ => self.apply(db, effect),
            },
        }
    }

    fn apply(&self, db: usize, effect: &Effect<'_>) -> Result<(), BadEffect> {
        let keyspace = &self.engine.keyspace;
        let mut locked = self.used_now(match (*effect, main_key(effect)) {
            (Effect::Rename { from, to } | Effect::Copy { from, to, .. }, _) => {
                keyspace.lock_keys([from, to].into_iter())
            }
            (_, Some(key)) => keyspace.lock_key(key),
            (_, None) => keyspace.lock_all(),
        });
        if !fits(&locked, db, effect) {
            return Err(BadEffect::WrongType);
        }
        locked.apply(db, effect, self.thresholds);
        Ok(())
    }

    fn used_now<'l>(&self, locked: Locked<'l>) -> Locked<'l> {
        let (now_ms, usage) = self.used;
        locked.at(now_ms, usage)
    }
}

/// The key that an effect is about, if it is about one.
fn main_key<'a>(effect: &Effect<'a>) -> Option<Key<'a>> {
    match *effect {
        Effect::StringSet { key, .. }
        | Effect::StringWrite { key, .. }
        | Effect::HashSet { key, .. }
        | Effect::HashDelete { key, .. }
        | Effect::HashDeadline { key, .. }
        | Effect::SortedSetAdd { key, .. }
        | Effect::SortedSetRemove { key, .. }
        | Effect::Delete { key, .. }
        | Effect::Deadline { key, .. }
        | Effect::Rename { from: key, .. }
        | Effect::Copy { from: key, .. }
        | Effect::Move { key, .. }
        | Effect::Put { key, .. } => Some(key),
        Effect::FlushDb
        | Effect::FlushAll
        | Effect::SwapDb { .. }
        | Effect::LibrarySet { .. }
        | Effect::LibraryDelete { .. }
        | Effect::IndexSet { .. }
        | Effect::IndexDelete { .. } => None,
    }
}

/// The longest string that an effect may make. Commands have their own limit, which can be set.
const STRING_BYTES_MAX: usize = u32::MAX as usize;

/// True when the effect can be applied to what its key holds. Recorded effects always can; bytes from a disk that
/// only look like them must not end the server.
fn fits(locked: &Locked<'_>, db: usize, effect: &Effect<'_>) -> bool {
    let (key, type_name) = match *effect {
        Effect::HashSet { key, .. } | Effect::HashDelete { key, .. } | Effect::HashDeadline { key, .. } => {
            (key, "hash")
        }
        Effect::SortedSetAdd { key, .. } | Effect::SortedSetRemove { key, .. } => (key, "zset"),
        Effect::StringWrite { key, offset, bytes } if offset.saturating_add(bytes.len()) <= STRING_BYTES_MAX => {
            (key, "string")
        }
        Effect::StringWrite { .. } => return false,
        _ => return true,
    };
    let db = locked.db(db, key);
    db.entry(key).is_none_or(|entry| db.value(entry, 0).type_name() == type_name)
}

/// Which batch each part of a snapshot is complete up to.
struct Stamps {
    hasher: NameHasher,
    /// By shard of the process that wrote it: the last position of each part, and its sequence number.
    shards: Vec<Vec<(u32, u64)>>,
    /// The newest sequence number of any part.
    newest: u64,
}

impl Stamps {
    fn new(placement: Option<Placement>) -> Stamps {
        let (seed, shards) = placement.map_or((0, 1), |placement| (placement.seed, placement.shards as usize));
        Stamps { hasher: NameHasher::with_seed(seed), shards: vec![Vec::new(); shards], newest: 0 }
    }

    fn add(&mut self, part: Part) -> Result<(), BadEffect> {
        let shard = self.shards.get_mut(part.shard as usize).ok_or(BadEffect::OutOfRange)?;
        if shard.last().is_some_and(|(end, _)| *end >= part.end) {
            return Err(BadEffect::OutOfRange);
        }
        shard.push((part.end, part.sequence));
        self.newest = self.newest.max(part.sequence);
        Ok(())
    }

    /// The number of the batch up to which the snapshot has what is no key: that of its first part.
    fn of_definitions(&self) -> u64 {
        self.shards[0].first().map_or(0, |(_, sequence)| *sequence)
    }

    /// The number of the batch up to which the snapshot has a key, if it has it.
    fn of(&self, name: &[u8]) -> u64 {
        let key = Key::hashed_by(&self.hasher, name);
        let shard = &self.shards[key.shard(self.shards.len())];
        let part = shard.partition_point(|(end, _)| *end < key.hash.position());
        shard.get(part).map_or(0, |(_, sequence)| *sequence)
    }
}
