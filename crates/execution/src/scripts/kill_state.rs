//! Whether a long script can be killed: it has only read, has written, or is killed. Refuses to know what runs.

use crate::sync::atomic::{AtomicU8, Ordering::Relaxed, Ordering::SeqCst};

/// The script's first write and a kill are one atomic step each, so exactly one of them wins.
pub(super) struct KillState(AtomicU8);

/// It has only read.
const READING: u8 = 0;
/// It has changed something: stopping it would leave a partial change.
const WRITTEN: u8 = 1;
/// It ends at its next step.
const KILLED: u8 = 2;

impl KillState {
    pub(super) fn new(has_written: bool) -> KillState {
        KillState(AtomicU8::new(if has_written { WRITTEN } else { READING }))
    }

    /// Notes that the script is about to write. False when it was killed before, and must not write.
    pub(super) fn note_written(&self) -> bool {
        self.0.compare_exchange(READING, WRITTEN, SeqCst, SeqCst) != Err(KILLED)
    }

    /// Kills the script. False when it has written, and continues.
    pub(super) fn kill(&self) -> bool {
        self.0.compare_exchange(READING, KILLED, SeqCst, SeqCst) != Err(WRITTEN)
    }

    pub(super) fn is_killed(&self) -> bool {
        self.0.load(Relaxed) == KILLED
    }

    pub(super) fn has_written(&self) -> bool {
        self.0.load(Relaxed) == WRITTEN
    }
}
