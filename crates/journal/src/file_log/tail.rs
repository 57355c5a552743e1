//! The batches that are appended but not yet written: frames in memory. Knows nothing of files.

use crate::epoch::Epoch;
use crate::files::frame::{self, Place};
use crate::sequence::Sequence;

/// A buffer that grew beyond this is given back once it is written.
const BUFFER_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) struct Tail {
    epoch: Epoch,
    /// Whole frames, ready to be written.
    frames: Vec<u8>,
    /// The last batch that was numbered, and the last that will be written.
    last: Sequence,
    last_stored: Sequence,
    /// The log has failed or ended: number batches, but do not keep them.
    is_dropping: bool,
}

impl Tail {
    pub(super) fn new(epoch: Epoch, last: Sequence) -> Tail {
        Tail { epoch, frames: Vec::new(), last, last_stored: last, is_dropping: false }
    }

    pub(super) fn push(&mut self, batch: &[u8], payload_crc: u32, durable: Sequence) -> Sequence {
        self.last = self.last.next();
        if !self.is_dropping {
            let place = Place { epoch: self.epoch, sequence: self.last, durable };
            frame::push(&mut self.frames, batch, payload_crc, place);
            self.last_stored = self.last;
        }
        self.last
    }

    /// Keeps no batch from here on, and returns the last one that is.
    pub(super) fn end(&mut self) -> Sequence {
        self.is_dropping = true;
        self.last_stored
    }

    /// Swaps the frames for the buffer of those written before, and says what the last batch in them is.
    pub(super) fn take(&mut self, written: &mut Vec<u8>) -> Sequence {
        give_back(written);
        std::mem::swap(&mut self.frames, written);
        self.last_stored
    }

    pub(super) fn drop_batches(&mut self) {
        self.frames = Vec::new();
        self.is_dropping = true;
    }

    /// Drops what was not written, and says where a new segment begins.
    ///
    /// One number is left out, so that the segment has a name that no earlier one, not even one whose creation
    /// failed half way, can have.
    pub(super) fn restart(&mut self) -> Sequence {
        self.frames.clear();
        self.is_dropping = false;
        self.last = self.last.next();
        self.last_stored = self.last;
        self.last.next()
    }
}

/// Empties a buffer whose frames are written. A huge one is freed: the next huge batch may be long in coming.
pub(super) fn give_back(written: &mut Vec<u8>) {
    match written.capacity() > BUFFER_KEPT_BYTES_MAX {
        true => *written = Vec::new(),
        false => written.clear(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_buffers_take_turns_and_a_huge_one_is_given_back() {
        let mut tail = Tail::new(Epoch(1), Sequence(4));
        let mut written = Vec::new();
        let huge = vec![1; BUFFER_KEPT_BYTES_MAX + 1];
        assert_eq!(tail.push(&huge, 0, Sequence::NONE), Sequence(5));
        assert_eq!(tail.take(&mut written), Sequence(5));
        assert_eq!(written.len(), frame::HEADER_LEN + huge.len());
        tail.push(b"x", 0, Sequence::NONE);
        assert_eq!(tail.take(&mut written), Sequence(6));
        assert_eq!(written.len(), frame::HEADER_LEN + 1);
        assert_eq!(tail.frames.capacity(), 0);
    }

    #[test]
    fn a_failed_tail_numbers_and_drops() {
        let mut tail = Tail::new(Epoch(1), Sequence::NONE);
        tail.push(b"lost", 0, Sequence::NONE);
        tail.drop_batches();
        assert_eq!(tail.push(b"lost", 0, Sequence::NONE), Sequence(2));
        let mut written = Vec::new();
        assert_eq!(tail.take(&mut written), Sequence(1));
        assert!(written.is_empty());
        assert_eq!(tail.restart(), Sequence(4));
        assert_eq!(tail.push(b"kept", 0, Sequence::NONE), Sequence(4));
    }
}
