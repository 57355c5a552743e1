//! The number of a batch. Knows only how to count.

use std::fmt;

/// The number of a batch in the journal. The first batch has number 1; [`Sequence::NONE`] stands before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Before the first batch: what a mark says when there is nothing yet.
    pub const NONE: Sequence = Sequence(0);

    pub fn next(self) -> Sequence {
        Sequence(self.0 + 1)
    }

    /// The number before this one; [`Sequence::NONE`] has none and stays.
    pub fn previous(self) -> Sequence {
        Sequence(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
