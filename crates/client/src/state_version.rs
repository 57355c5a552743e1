//! Versions of updates, and what became of an update. Knows how versions are written and compared; refuses to know what
//! they are versions of.

use std::fmt::{self, Display, Formatter};

/// The version of an update: a number, or an epoch and a round. A number is a round of epoch 0; epochs are compared
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateVersion {
    /// Compared before the round.
    pub epoch: u64,
    /// Within the epoch.
    pub round: u64,
}

impl From<u64> for StateVersion {
    fn from(round: u64) -> StateVersion {
        StateVersion { epoch: 0, round }
    }
}

impl From<(u64, u64)> for StateVersion {
    fn from((epoch, round): (u64, u64)) -> StateVersion {
        StateVersion { epoch, round }
    }
}

/// The shorter form: without an epoch where it is 0.
impl Display for StateVersion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.epoch {
            0 => write!(f, "{}", self.round),
            epoch => write!(f, "{epoch}.{}", self.round),
        }
    }
}

impl StateVersion {
    pub(crate) fn parse(text: &str) -> Option<StateVersion> {
        let (epoch, round) = text.split_once('.').unwrap_or(("0", text));
        Some(StateVersion { epoch: epoch.parse().ok()?, round: round.parse().ok()? })
    }
}

/// The version of an update that is applied in order. The first one of a key decides which kind the key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderedVersion {
    /// 1, 2, 3…: applied one by one. One that is ahead is buffered until the gap closes.
    Number(u64),
    /// An epoch and a round, which have no next one: all are buffered until the key is sealed above them.
    Pair(u64, u64),
}

impl From<u64> for OrderedVersion {
    fn from(number: u64) -> OrderedVersion {
        OrderedVersion::Number(number)
    }
}

impl From<(u64, u64)> for OrderedVersion {
    fn from((epoch, round): (u64, u64)) -> OrderedVersion {
        OrderedVersion::Pair(epoch, round)
    }
}

impl From<OrderedVersion> for StateVersion {
    fn from(version: OrderedVersion) -> StateVersion {
        match version {
            OrderedVersion::Number(round) => round.into(),
            OrderedVersion::Pair(epoch, round) => (epoch, round).into(),
        }
    }
}

/// A pair is written with its dot, also in epoch 0.
impl Display for OrderedVersion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            OrderedVersion::Number(number) => write!(f, "{number}"),
            OrderedVersion::Pair(epoch, round) => write!(f, "{epoch}.{round}"),
        }
    }
}

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was applied now.
    Applied,
    /// It was applied before.
    Duplicate,
    /// Another update was applied, or is buffered, with this version. This one was not applied.
    Mismatch,
    /// A newer version was applied before. This one was not applied, or long ago.
    Stale,
    /// It is buffered until all versions before it have arrived.
    Buffered,
}

/// A checkpoint that was restored or merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The input position that the state belongs to, if the checkpoint has one.
    pub position: Option<Vec<u8>>,
}
