//! The records that a range over an index has returned in earlier slices. A record whose score changes between two
//! slices may be met again, and is returned once. Knows names; refuses to know what is returned of a record.

use super::name_set::NameSet;
use crate::execution::indexes::Slice;
use keyspace::IndexRef;

/// Names of records, looked for only if a record has moved since the first slice.
#[derive(Default)]
pub(crate) struct Returned {
    names: NameSet,
    /// The last change of the index, as of the latest slice.
    last_change: u64,
    /// A record may have moved since the first slice.
    is_searched: bool,
}

impl Returned {
    /// Prepares the next slice. False when the slice is over with that: there are many names to prepare.
    pub(crate) fn begin_slice(&mut self, index: &IndexRef<'_>, slice: Option<Slice<'_>>) -> bool {
        let last_change = index.last_change();
        // What was returned since the latest change cannot have moved.
        if !self.names.is_empty() && self.last_change != last_change {
            if !self.names.hash_new(|| slice.is_some_and(|slice| slice.is_over())) {
                return false;
            }
            self.is_searched = true;
        }
        self.last_change = last_change;
        true
    }

    /// True when an earlier slice has returned a record.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.is_searched && self.names.contains(name)
    }

    /// Adds the records of a slice that has ended.
    pub(crate) fn add(&mut self, names: &[&[u8]]) {
        names.iter().for_each(|name| self.names.add_new(name));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
