//! Values too large or too rich to lie inline in their entry.

use super::hash::FieldTable;

/// A value behind a pointer.
pub enum Object {
    /// A long string, with room to grow.
    Bytes(Vec<u8>),
    /// A large hash, or one with field deadlines.
    Hash(FieldTable),
}
