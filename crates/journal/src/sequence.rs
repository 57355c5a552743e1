//! The number of a batch. Knows only how to count.

use std::fmt;

/// The number of a batch in the journal. The first batch has number 1; [`Sequence::NONE`] comes before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Before the first batch; the value of a mark when there is no batch.
    pub const NONE: Sequence = Sequence(0);

    /// The number of every batch that is appended to a log after its end.
    pub const LOST: Sequence = Sequence(u64::MAX);

    pub fn next(self) -> Sequence {
        Sequence(self.0 + 1)
    }

    /// The previous number; [`Sequence::NONE`] stays the same.
    pub fn previous(self) -> Sequence {
        Sequence(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
