//! Indexes of records by a field: definitions, and the index parts of one database of one shard. Knows hashes; refuses
//! to know databases, shards and commands.

pub mod definition;
mod difference;
pub mod groups;
pub mod heads;
pub(crate) mod item;
pub(crate) mod parts;

pub use definition::{Condition, Definition, HeldWhere, INDEXES_MAX, Index, Indexes, number};
pub use heads::{Head, Heads};
