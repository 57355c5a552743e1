//! One batch on disk: a header of 24 bytes and the payload. Knows nothing of files.
//!
//! ```text
//!  0        4        8                16               24
//!  | length |  crc   |    sequence    |    durable     |  payload: length bytes ...
//! ```
//!
//! `durable` is the highest sequence that was known to be synced when the batch was appended. It is how recovery
//! tells a torn tail from damage: whatever a later frame calls durable must be there.

use crate::sequence::Sequence;

pub(crate) const HEADER_LEN: usize = 24;

/// The longest batch, by the width of its length field.
pub(crate) const BATCH_BYTES_MAX: usize = u32::MAX as usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) crc: u32,
    pub(crate) sequence: Sequence,
    pub(crate) durable: Sequence,
}

impl FrameHeader {
    /// The header of a payload whose own checksum is known. The checksum goes over the payload first, so that only
    /// the header's few bytes are left to do once the sequence is known, under the tail's lock.
    pub(crate) fn seal(length: usize, payload_crc: u32, sequence: Sequence, durable: Sequence) -> FrameHeader {
        assert!(length <= BATCH_BYTES_MAX, "a batch of {length} bytes is longer than a frame can be");
        let length = length as u32;
        FrameHeader { length, crc: finish_crc(payload_crc, length, sequence, durable), sequence, durable }
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.crc.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.durable.0.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_LEN]) -> FrameHeader {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        FrameHeader { length: u32_at(0), crc: u32_at(4), sequence: Sequence(u64_at(8)), durable: Sequence(u64_at(16)) }
    }

    pub(crate) fn matches(&self, payload_crc: u32) -> bool {
        self.crc == finish_crc(payload_crc, self.length, self.sequence, self.durable)
    }
}

/// Appends a whole frame to `frames`.
pub(crate) fn push(frames: &mut Vec<u8>, batch: &[u8], payload_crc: u32, sequence: Sequence, durable: Sequence) {
    frames.reserve(HEADER_LEN + batch.len());
    frames.extend_from_slice(&FrameHeader::seal(batch.len(), payload_crc, sequence, durable).encode());
    frames.extend_from_slice(batch);
}

fn finish_crc(payload_crc: u32, length: u32, sequence: Sequence, durable: Sequence) -> u32 {
    let mut bytes = [0; 20];
    bytes[0..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..12].copy_from_slice(&sequence.0.to_le_bytes());
    bytes[12..20].copy_from_slice(&durable.0.to_le_bytes());
    crc32c::crc32c_append(payload_crc, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_pinned() {
        let mut frames = Vec::new();
        push(&mut frames, b"hold fast", crc32c::crc32c(b"hold fast"), Sequence(7), Sequence(5));
        let expected = crc32c::crc32c(b"hold fast\x09\0\0\0\x07\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0");
        assert_eq!(frames[0..4], [9, 0, 0, 0]);
        assert_eq!(frames[4..8], expected.to_le_bytes());
        assert_eq!(frames[8..16], 7u64.to_le_bytes());
        assert_eq!(frames[16..24], 5u64.to_le_bytes());
        assert_eq!(&frames[24..], b"hold fast");
        let header = FrameHeader::decode(frames[..24].try_into().unwrap());
        assert!(header.matches(crc32c::crc32c(b"hold fast")));
        assert!(!header.matches(crc32c::crc32c(b"hold fest")));
    }

    #[test]
    fn an_empty_batch_is_not_the_end_of_data() {
        let header = FrameHeader::seal(0, crc32c::crc32c(b""), Sequence(1), Sequence::NONE);
        assert_ne!(header.encode(), [0; HEADER_LEN]);
    }
}
