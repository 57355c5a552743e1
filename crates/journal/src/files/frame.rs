//! One batch on disk: a header of 28 bytes and the payload. Knows nothing of files.
//!
//! ```text
//!  0        4        8        12               20               28
//!  | length |  crc   | epoch  |    sequence    |    durable     |  payload: length bytes ...
//! ```
//!
//! `durable` is the highest sequence that was known to be synced when the batch was appended. It is how recovery
//! tells a torn tail from damage: whatever a later frame calls durable must be there.

use crate::epoch::Epoch;
use crate::sequence::Sequence;

pub(crate) const HEADER_LEN: usize = 28;

/// The longest batch, by the width of its length field.
pub(crate) const BATCH_BYTES_MAX: usize = u32::MAX as usize;

/// What the log says of a batch beside its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The epoch it was written in.
    pub(crate) epoch: Epoch,
    pub(crate) sequence: Sequence,
    pub(crate) durable: Sequence,
}

impl Place {
    const LEN: usize = 20;

    fn encode(&self) -> [u8; Place::LEN] {
        let mut bytes = [0; Place::LEN];
        bytes[0..4].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.sequence.0.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.durable.0.to_le_bytes());
        bytes
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) crc: u32,
    pub(crate) place: Place,
}

impl FrameHeader {
    /// The header of a payload whose own checksum is known. The checksum goes over the payload first, so that only
    /// the header's few bytes are left to do once the sequence is known, under the tail's lock.
    pub(crate) fn seal(length: usize, payload_crc: u32, place: Place) -> FrameHeader {
        assert!(length <= BATCH_BYTES_MAX, "a batch of {length} bytes is longer than a frame can be");
        let length = length as u32;
        FrameHeader { length, crc: finish_crc(payload_crc, length, &place), place }
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.crc.to_le_bytes());
        bytes[8..].copy_from_slice(&self.place.encode());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_LEN]) -> FrameHeader {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let place = Place { epoch: Epoch(u32_at(8)), sequence: Sequence(u64_at(12)), durable: Sequence(u64_at(20)) };
        FrameHeader { length: u32_at(0), crc: u32_at(4), place }
    }

    pub(crate) fn matches(&self, payload_crc: u32) -> bool {
        self.crc == finish_crc(payload_crc, self.length, &self.place)
    }
}

/// Appends a whole frame to `frames`.
pub(crate) fn push(frames: &mut Vec<u8>, batch: &[u8], payload_crc: u32, place: Place) {
    frames.reserve(HEADER_LEN + batch.len());
    frames.extend_from_slice(&FrameHeader::seal(batch.len(), payload_crc, place).encode());
    frames.extend_from_slice(batch);
}

fn finish_crc(payload_crc: u32, length: u32, place: &Place) -> u32 {
    let mut bytes = [0; 4 + Place::LEN];
    bytes[0..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..].copy_from_slice(&place.encode());
    crc32c::crc32c_append(payload_crc, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_pinned() {
        let mut frames = Vec::new();
        let place = Place { epoch: Epoch(3), sequence: Sequence(7), durable: Sequence(5) };
        push(&mut frames, b"hold fast", crc32c::crc32c(b"hold fast"), place);
        let expected = crc32c::crc32c(b"hold fast\x09\0\0\0\x03\0\0\0\x07\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0");
        assert_eq!(frames[0..4], [9, 0, 0, 0]);
        assert_eq!(frames[4..8], expected.to_le_bytes());
        assert_eq!(frames[8..12], 3u32.to_le_bytes());
        assert_eq!(frames[12..20], 7u64.to_le_bytes());
        assert_eq!(frames[20..28], 5u64.to_le_bytes());
        assert_eq!(&frames[28..], b"hold fast");
        let header = FrameHeader::decode(frames[..28].try_into().unwrap());
        assert_eq!(header.place, place);
        assert!(header.matches(crc32c::crc32c(b"hold fast")));
        assert!(!header.matches(crc32c::crc32c(b"hold fest")));
    }

    #[test]
    fn an_empty_batch_is_not_the_end_of_data() {
        let place = Place { epoch: Epoch(1), sequence: Sequence(1), durable: Sequence::NONE };
        let header = FrameHeader::seal(0, crc32c::crc32c(b""), place);
        assert_ne!(header.encode(), [0; HEADER_LEN]);
    }
}
