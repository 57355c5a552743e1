//! A table that a decoder or encoder has open. Kept in a list, not on the C stack: how deep data nests is the sender's choice.

use std::ffi::c_int;

pub(crate) struct Nesting {
    /// Values still to come (MessagePack), or elements in all (JSON arrays).
    pub(crate) left: usize,
    /// The array position used last.
    pub(crate) position: c_int,
    pub(crate) map: bool,
}

impl Nesting {
    pub(crate) fn array(left: usize) -> Self {
        Nesting { left, position: 0, map: false }
    }

    pub(crate) fn map(left: usize) -> Self {
        Nesting { left, position: 0, map: true }
    }
}
