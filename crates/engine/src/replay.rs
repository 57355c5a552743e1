//! Brings back what the journal and its snapshots have kept: decode, then apply. No handlers, no clock, no chance.
//! Knows which part of a snapshot is older than a batch; refuses to know files.

use crate::engine::Engine;
use crate::walk::{Part, Placement};
use keyspace::effects::codec::Decoder;
use keyspace::{BadEffect, Effect, Key, Locked, NameHasher, Thresholds, Touches, Usage};

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
                Effect::Define { .. } => keyspace.lock_all(),
                _ => return Err(BadEffect::OutOfRange),
            };
            self.used_now(locked).apply(db, &effect, &self.thresholds);
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
        match effect.touches(db) {
            Touches::Keys(touches) => {
                let newer = touches.iter().filter(|touch| is_newer(touch.key.name)).count();
                match newer {
                    0 => Ok(()),
                    // While a snapshot was written, no batch referred from one key to another: it has both or none.
                    newer if newer < touches.len() => Err(BadEffect::OutOfRange),
                    _ => self.apply(db, effect),
                }
            }
            Touches::Emptied(_) | Touches::Swapped(..) => {
                self.used_now(self.engine.keyspace.lock_all()).apply_where(db, effect, is_newer);
                Ok(())
            }
            Touches::Definition => match sequence > self.stamps.of_definitions() {
                true => self.apply(db, effect),
                false => Ok(()),
            },
        }
    }

    fn apply(&self, db: usize, effect: &Effect<'_>) -> Result<(), BadEffect> {
        let keyspace = &self.engine.keyspace;
        let mut locked = self.used_now(match effect.touches(db) {
            Touches::Keys(touches) => keyspace.lock_keys(touches.iter().map(|touch| touch.key)),
            Touches::Emptied(_) | Touches::Swapped(..) | Touches::Definition => keyspace.lock_all(),
        });
        if !locked.fits(db, effect) {
            return Err(BadEffect::WrongType);
        }
        locked.apply(db, effect, &self.thresholds);
        Ok(())
    }

    fn used_now<'l>(&self, locked: Locked<'l>) -> Locked<'l> {
        let (now_ms, usage) = self.used;
        locked.at(now_ms, usage)
    }
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
