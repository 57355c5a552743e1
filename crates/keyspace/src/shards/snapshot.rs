//! Describes the parts of a snapshot: the keys of each, the batch that it is complete up to, and the placement of keys
//! by the process that wrote it. Knows positions and sequence numbers; refuses to know files.

use crate::storage::NameHasher;

/// One part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotPart {
    pub shard: u32,
    /// The last position of its range; the range begins after that of the previous part of the shard.
    pub end: u32,
    /// The batch that the part is complete up to.
    pub sequence: u64,
    pub keys: u32,
}

/// How a process places keys: its hash function and the number of its shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub family: u8,
    pub seed: u64,
    pub shards: u32,
}

impl Placement {
    const BYTES: usize = 13;

    /// Encodes it, for the header of a snapshot.
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = vec![self.family];
        bytes.extend_from_slice(&self.seed.to_le_bytes());
        bytes.extend_from_slice(&self.shards.to_le_bytes());
        bytes
    }

    /// Decodes it; `None` when this version does not know that placement.
    pub fn decode(bytes: &[u8]) -> Option<Placement> {
        let bytes: &[u8; Placement::BYTES] = bytes.try_into().ok()?;
        let seed = u64::from_le_bytes(bytes[1..9].try_into().ok()?);
        let shards = u32::from_le_bytes(bytes[9..].try_into().ok()?);
        let known = (1..=NameHasher::FAMILY).contains(&bytes[0]) && shards.is_power_of_two() && shards <= 512;
        known.then_some(Placement { family: bytes[0], seed, shards })
    }
}
