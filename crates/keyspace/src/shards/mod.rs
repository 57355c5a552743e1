//! All state, in shards behind locks: databases, their keys, and definitions. Knows how effects are applied; refuses to
//! know commands and clients.

pub mod apply;
pub mod db;
pub mod definitions;
pub mod detached;
pub mod garbage;
mod held;
#[cfg(test)]
mod index_tests;
pub mod locked;
mod rates;
#[cfg(test)]
mod same_hash_tests;
pub mod shard;
pub mod snapshot;
