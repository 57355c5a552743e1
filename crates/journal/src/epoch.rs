//! The number of a period of writing. Knows only how to count.

use std::fmt;

/// The number of a period of writing: one writer owns the log from the moment it opens it until the log is closed, lost
/// or taken over. The next writer has a higher number, so the epochs of batches never decrease, and a batch is
/// identified by its epoch and sequence even if a torn tail made a sequence number be assigned twice.
///
/// The first epoch is 1; [`Epoch::NONE`] comes before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Epoch(pub u32);

impl Epoch {
    /// Before the first epoch: no batch has it.
    pub const NONE: Epoch = Epoch(0);

    /// No epoch comes after it.
    pub const LAST: Epoch = Epoch(u32::MAX);

    pub fn next(self) -> Epoch {
        self.checked_next().expect("a directory is not opened four billion times")
    }

    /// Returns the epoch after this one, or `None` for [`Epoch::LAST`].
    pub fn checked_next(self) -> Option<Epoch> {
        self.0.checked_add(1).map(Epoch)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
