//! The id of an epoch, which tells apart epochs of one number in copies of one directory. Knows nothing of files.

use std::fmt;
use std::io;

use super::directory_id::{DirectoryId, random_bytes};
use crate::epoch::Epoch;

/// A random id, made when an epoch begins. Each epoch names the id of the one before it. Two copies of one directory
/// that were both written have epochs of the same number and different ids, so that their files cannot be mixed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochId(pub(crate) [u8; EpochId::LEN]);

impl EpochId {
    pub(crate) const LEN: usize = 16;

    /// The id of an epoch of format 2, which had none, and of the one before the first.
    pub const NONE: EpochId = EpochId([0; EpochId::LEN]);

    pub(crate) fn random() -> io::Result<EpochId> {
        random_bytes().map(EpochId)
    }

    /// The id at the start of `bytes`, which must be long enough.
    pub(crate) fn decode(bytes: &[u8]) -> EpochId {
        EpochId(bytes[..EpochId::LEN].try_into().expect("the slice has this length"))
    }

    /// True when both are known and differ.
    pub(crate) fn contradicts(self, other: EpochId) -> bool {
        self != other && self != EpochId::NONE && other != EpochId::NONE
    }
}

/// What a writer puts into every file that it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriterIdentity {
    pub(crate) directory: DirectoryId,
    pub(crate) epoch: Epoch,
    pub(crate) epoch_id: EpochId,
    /// The id of the epoch before.
    pub(crate) previous_id: EpochId,
}

impl fmt::Display for EpochId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
