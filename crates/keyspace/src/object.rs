//! Values too large or too rich to lie inline in their entry.

use super::hash::FieldTable;
use super::sorted_set::SortedSet;

/// A value behind a pointer.
pub enum Object {
    /// A long string, with room to grow.
    Bytes(Vec<u8>),
    /// A large hash, or one with field deadlines.
    Hash(FieldTable),
    /// A large sorted set.
    SortedSet(SortedSet),
}
