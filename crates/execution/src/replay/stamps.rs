//! Which part of a snapshot is older than a batch. Refuses to know what either contains.

use crate::walk::{Placement, SnapshotPart};
use keyspace::{BadEffect, Key, NameHasher};

/// The sequence numbers up to which the parts of a snapshot are complete.
pub(super) struct Stamps {
    hasher: NameHasher,
    /// By shard of the process that wrote it: the last position of each part, and its sequence number.
    shards: Vec<Vec<(u32, u64)>>,
    /// The newest sequence number of any part.
    pub(super) newest: u64,
}

impl Stamps {
    pub(super) fn new(placement: Option<Placement>) -> Stamps {
        let placement = placement.unwrap_or(Placement { family: NameHasher::FAMILY, seed: 0, shards: 1 });
        let hasher = NameHasher::of_family(placement.family, placement.seed);
        let hasher = hasher.expect("a placement that was decoded is of a known family");
        Stamps { hasher, shards: vec![Vec::new(); placement.shards as usize], newest: 0 }
    }

    pub(super) fn add(&mut self, part: SnapshotPart) -> Result<(), BadEffect> {
        let shard = self.shards.get_mut(part.shard as usize).ok_or(BadEffect::OutOfRange)?;
        if shard.last().is_some_and(|(end, _)| *end >= part.end) {
            return Err(BadEffect::OutOfRange);
        }
        shard.push((part.end, part.sequence));
        self.newest = self.newest.max(part.sequence);
        Ok(())
    }

    /// The sequence number up to which the snapshot has definitions: that of its first part.
    pub(super) fn of_definitions(&self) -> u64 {
        self.shards[0].first().map_or(0, |(_, sequence)| *sequence)
    }

    /// The sequence number up to which the snapshot has a key.
    pub(super) fn of(&self, name: &[u8]) -> u64 {
        let key = Key::hashed_by(&self.hasher, name);
        let shard = &self.shards[key.shard(self.shards.len())];
        let part = shard.partition_point(|(end, _)| *end < key.hash.position());
        shard.get(part).map_or(0, |(_, sequence)| *sequence)
    }
}
