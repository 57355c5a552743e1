//! Batches that are appended but not written yet: frames in memory. Knows nothing of files.

use crate::epoch::Epoch;
use crate::files::frame::{self, Place};
use crate::sequence::Sequence;

/// A larger buffer is freed once it is written.
const BUFFER_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) struct Tail {
    epoch: Epoch,
    /// Whole frames, ready to be written.
    frames: Vec<u8>,
    /// The last batch that was numbered, and the last that will be written.
    last: Sequence,
    last_stored: Sequence,
    /// The time of the last batch. It never decreases.
    time_ms: u64,
    /// The log has failed or ended: batches are numbered and dropped.
    is_dropping: bool,
    /// The log has ended: the numbers of later batches belong to another writer.
    has_ended: bool,
    /// A batch came after that.
    has_lost: bool,
}

impl Tail {
    pub(super) fn new(epoch: Epoch, last: Sequence, time_ms: u64) -> Tail {
        Tail {
            epoch,
            frames: Vec::new(),
            last,
            last_stored: last,
            time_ms,
            is_dropping: false,
            has_ended: false,
            has_lost: false,
        }
    }

    pub(super) fn push(&mut self, batch: &[u8], payload_crc: u32, durable: Sequence, time_ms: u64) -> Sequence {
        if self.has_ended {
            self.has_lost = true;
            return Sequence::LOST;
        }
        self.last = self.last.next();
        if !self.is_dropping {
            self.time_ms = self.time_ms.max(time_ms);
            let place = Place { epoch: self.epoch, sequence: self.last, durable, time_ms: self.time_ms };
            frame::push(&mut self.frames, batch, payload_crc, place);
            self.last_stored = self.last;
        }
        self.last
    }

    /// Drops all later batches, and returns the last one that was stored.
    pub(super) fn end(&mut self) -> Sequence {
        (self.is_dropping, self.has_ended) = (true, true);
        self.last_stored
    }

    /// True when a batch was dropped that came after the end.
    pub(super) fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Swaps the frames with the buffer of those written before, and returns the last batch in them with its time.
    pub(super) fn take(&mut self, written: &mut Vec<u8>) -> (Sequence, u64) {
        give_back(written);
        std::mem::swap(&mut self.frames, written);
        (self.last_stored, self.time_ms)
    }

    /// The bytes of the frames, and of the memory for them.
    pub(super) fn buffer(&self) -> (usize, usize) {
        (self.frames.len(), self.frames.capacity())
    }

    pub(super) fn drop_batches(&mut self) {
        self.frames = Vec::new();
        self.is_dropping = true;
    }

    /// Drops unwritten batches, and returns the first sequence of the new segment.
    ///
    /// One number is skipped, so that the segment's name is new even if the creation of an earlier one failed half way.
    pub(super) fn restart(&mut self) -> Sequence {
        self.frames.clear();
        self.is_dropping = false;
        self.last = self.last.next();
        self.last_stored = self.last;
        self.last.next()
    }
}

/// Empties a buffer whose frames are written. A huge one is freed: the next huge batch may come much later.
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
        let mut tail = Tail::new(Epoch(1), Sequence(4), 0);
        let mut written = Vec::new();
        let huge = vec![1; BUFFER_KEPT_BYTES_MAX + 1];
        assert_eq!(tail.push(&huge, 0, Sequence::NONE, 50), Sequence(5));
        assert_eq!(tail.take(&mut written), (Sequence(5), 50));
        assert_eq!(written.len(), frame::HEADER_LEN + huge.len());
        tail.push(b"x", 0, Sequence::NONE, 40);
        assert_eq!(tail.take(&mut written), (Sequence(6), 50), "a clock that goes back stops time");
        assert_eq!(written.len(), frame::HEADER_LEN + 1);
        assert_eq!(tail.frames.capacity(), 0);
    }

    #[test]
    fn a_failed_tail_numbers_and_drops() {
        let mut tail = Tail::new(Epoch(1), Sequence::NONE, 0);
        tail.push(b"lost", 0, Sequence::NONE, 1);
        tail.drop_batches();
        assert_eq!(tail.push(b"lost", 0, Sequence::NONE, 2), Sequence(2));
        let mut written = Vec::new();
        assert_eq!(tail.take(&mut written), (Sequence(1), 1));
        assert!(written.is_empty());
        assert_eq!(tail.restart(), Sequence(4));
        assert_eq!(tail.push(b"kept", 0, Sequence::NONE, 3), Sequence(4));
    }
}
