//! Which epoch has the right to write a directory: one word that all processes of the machine share. Knows nothing of
//! files, and refuses to lower the word.
//!
//! Two writers decide with it who has a batch, as in Dekker's algorithm. The old writer writes a batch, *then* reads
//! the fence, and confirms the batch only if the fence is not raised. The new writer raises the fence, *then* reads the
//! log to its end. So either the old writer sees the fence, or the new one sees the batch.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::epoch::Epoch;
use crate::failure::Failure;

/// The highest epoch that has the right to write a directory. Clones share one word. It survives the process, and need
/// not survive a power failure, which ends all writers.
#[derive(Clone)]
pub struct Fence {
    word: Word,
}

#[derive(Clone)]
enum Word {
    Mapped(&'static AtomicU64),
    Memory(Arc<AtomicU64>),
    /// Of this process alone.
    Unshared(Arc<AtomicU64>),
}

impl Fence {
    /// The fence in a file that is mapped into memory. Fails if the word is damaged.
    pub(crate) fn mapped(word: &'static AtomicU64) -> io::Result<Fence> {
        match is_good(word.load(Ordering::SeqCst)) {
            true => Ok(Fence { word: Word::Mapped(word) }),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, WORD_DAMAGED)),
        }
    }

    /// Returns the word of a fence that gives the right to write to this epoch.
    pub(crate) fn word_of(epoch: Epoch) -> u64 {
        encode(epoch)
    }

    /// Returns why no writer can begin with this word, or `None` if one can.
    pub(crate) fn problem_of(word: u64) -> Option<&'static str> {
        match is_good(word) {
            false => Some(WORD_DAMAGED),
            true => (decode(word) == Epoch::LAST).then_some("its epoch is the last one there is"),
        }
    }

    /// The fence of a directory in memory.
    pub(crate) fn in_memory(word: Arc<AtomicU64>) -> Fence {
        Fence { word: Word::Memory(word) }
    }

    /// A fence that no other process sees, for a directory whose files cannot be mapped.
    pub(crate) fn unshared() -> Fence {
        Fence { word: Word::Unshared(Arc::default()) }
    }

    /// True when all processes that use the directory see it.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self.word, Word::Unshared(_))
    }

    /// The epoch that has the right to write. A single load.
    #[inline]
    pub fn highest(&self) -> Epoch {
        decode(self.word().load(Ordering::SeqCst))
    }

    /// Raises the fence above `newest` and all that it was before, and returns the epoch that has the right now. No
    /// two calls return the same one. Returns `None`, and changes nothing, if there is no higher epoch.
    pub fn raise_above(&self, newest: Epoch) -> Option<Epoch> {
        let mut found = self.word().load(Ordering::SeqCst);
        loop {
            let epoch = decode(found).max(newest).checked_next()?;
            match self.word().compare_exchange(found, encode(epoch), Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Some(epoch),
                Err(other) => found = other,
            }
        }
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        match &self.word {
            Word::Mapped(word) => word,
            Word::Memory(word) | Word::Unshared(word) => word,
        }
    }
}

const WORD_DAMAGED: &str = "its contents are damaged";

/// An epoch and its complement, so that damage is noticed.
fn encode(epoch: Epoch) -> u64 {
    u64::from(!epoch.0) << 32 | u64::from(epoch.0)
}

fn decode(word: u64) -> Epoch {
    Epoch(word as u32)
}

/// Zero is a fence that was never raised.
fn is_good(word: u64) -> bool {
    word == 0 || word == encode(decode(word))
}

/// The right of one writer to write a directory, until the fence is raised above its epoch.
#[derive(Clone)]
pub(crate) struct WriteRight {
    fence: Fence,
    own: Epoch,
}

impl WriteRight {
    pub(crate) fn new(fence: Fence, own: Epoch) -> WriteRight {
        WriteRight { fence, own }
    }

    /// True when a later writer has the right. A single load.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.fence.highest() > self.own
    }

    /// Fails when a later writer has the right.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.fence.highest() {
            by if by > self.own => Err(Failure::Fenced { own: self.own, by }),
            _ => Ok(()),
        }
    }

    /// As [`WriteRight::check`], after a write: if it succeeds, the next writer finds what was written.
    pub(crate) fn check_written(&self) -> Result<(), Failure> {
        // IMPORTANT: without it, the load could come before the bytes of the write are visible to another process.
        std::sync::atomic::fence(Ordering::SeqCst);
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_only_rises_and_gives_each_epoch_out_once() {
        let fence = Fence::in_memory(Arc::default());
        assert_eq!(fence.highest(), Epoch::NONE);
        let right = WriteRight::new(fence.clone(), fence.raise_above(Epoch(4)).unwrap());
        assert_eq!((fence.highest(), right.is_lost()), (Epoch(5), false));
        assert_eq!(fence.raise_above(Epoch(2)), Some(Epoch(6)));
        assert!(matches!(right.check(), Err(Failure::Fenced { own: Epoch(5), by: Epoch(6) })));
        let raised = std::thread::scope(|scope| {
            let raise = || (0..500).map(|_| fence.raise_above(Epoch(3)).unwrap().0).collect::<Vec<u32>>();
            let threads = [scope.spawn(raise), scope.spawn(raise)];
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<std::collections::BTreeSet<u32>>()
        });
        assert_eq!(raised.len(), 1000);
    }

    #[test]
    fn there_is_no_epoch_behind_the_last() {
        let fence = Fence::in_memory(Arc::default());
        assert_eq!(fence.raise_above(Epoch(u32::MAX - 1)), Some(Epoch::LAST));
        assert_eq!((fence.raise_above(Epoch(3)), fence.highest()), (None, Epoch::LAST));
        assert!(Fence::problem_of(Fence::word_of(Epoch::LAST)).is_some());
        assert!(Fence::problem_of(Fence::word_of(Epoch(7))).is_none());
    }

    #[test]
    fn the_word_is_pinned_and_damage_is_noticed() {
        assert_eq!(encode(Epoch(6)), 0xffff_fff9_0000_0006);
        assert_eq!(decode(encode(Epoch(u32::MAX))), Epoch(u32::MAX));
        assert!(is_good(0) && is_good(encode(Epoch(7))) && !is_good(7) && !is_good(encode(Epoch(7)) ^ 1));
    }
}
