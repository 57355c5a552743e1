//! The records that a range over an index has returned in earlier slices. A record whose score changes between two
//! slices may be found again, and must be returned once. Knows names; refuses to know what is returned.

use super::name_set::NameSet;
use execution::slices::TimeSlice;
use keyspace::IndexRef;

/// Names of records. They are searched only if a record has moved since the first slice.
#[derive(Default)]
pub(crate) struct Returned {
    names: NameSet,
    /// The last change of the index at the latest slice.
    last_change: u64,
    /// A record may have moved since the first slice.
    is_searched: bool,
}

impl Returned {
    /// Prepares the next slice. False when preparing many names has used up the slice.
    pub(crate) fn begin_slice(&mut self, index: &IndexRef<'_>, slice: Option<TimeSlice<'_>>) -> bool {
        let last_change = index.last_change();
        // Records that were returned since the latest change cannot have moved.
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
