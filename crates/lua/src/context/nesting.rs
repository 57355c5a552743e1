//! A table that an encoder or decoder has open. Kept in a list, not on the C stack: how deep data nests is the sender's
//! choice.

use std::ffi::c_int;

use crate::vm::Cursor;

pub(crate) struct Nesting {
    pub(crate) kind: Kind,
    /// Values still to come (MessagePack), or elements in all (arrays).
    pub(crate) left: usize,
    /// The array position used last.
    pub(crate) position: c_int,
    /// How far a map or set was walked.
    pub(crate) cursor: Cursor,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    Map,
    Set,
}

impl Nesting {
    pub(crate) fn new(kind: Kind, left: usize) -> Self {
        Nesting { kind, left, position: 0, cursor: Cursor::default() }
    }

    pub(crate) fn is_map(&self) -> bool {
        self.kind == Kind::Map
    }
}
