//! One batch on disk: a header and the payload. Knows nothing of files.
//!
//! ```text
//!  0        4        8        12               20            24               32
//!  | length |  crc   | epoch  |    sequence    | undurable   |      time      |  payload: length bytes ...
//! ```
//!
//! `undurable` is how many batches up to this one were not known to be synced when it was appended. With it recovery
//! tells a torn tail from damage: a batch that a later frame calls durable must exist. `time` is in unix milliseconds
//! and never decreases.
//!
//! Format 2 had the number of the last durable batch, in 8 bytes, in place of `undurable` and `time`.

use crate::epoch::Epoch;
use crate::sequence::Sequence;

/// The length of a header in the format that is written.
pub(crate) const HEADER_LEN: usize = 32;
/// The shortest header of all formats that are read.
pub(crate) const HEADER_LEN_MIN: usize = 28;

/// The longest batch, by the width of its length field.
pub(crate) const BATCH_BYTES_MAX: usize = u32::MAX as usize;

/// How a format lays out a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    Two,
    Three,
}

impl Layout {
    pub(crate) fn header_len(self) -> usize {
        match self {
            Layout::Two => HEADER_LEN_MIN,
            Layout::Three => HEADER_LEN,
        }
    }
}

/// The header fields of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The epoch it was written in.
    pub(crate) epoch: Epoch,
    pub(crate) sequence: Sequence,
    pub(crate) durable: Sequence,
    /// Unix milliseconds; 0 in format 2, which had no times.
    pub(crate) time_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) place: Place,
}

impl FrameHeader {
    /// `bytes` has the length of a header in this layout.
    pub(crate) fn decode(layout: Layout, bytes: &[u8]) -> FrameHeader {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let sequence = Sequence(u64_at(12));
        let (durable, time_ms) = match layout {
            Layout::Two => (Sequence(u64_at(20)), 0),
            // A count that does not fit is the largest one, and says nothing.
            Layout::Three => match u32_at(20) {
                u32::MAX => (Sequence::NONE, u64_at(24)),
                undurable => (Sequence(sequence.0.saturating_sub(undurable.into())), u64_at(24)),
            },
        };
        FrameHeader { length: u32_at(0), place: Place { epoch: Epoch(u32_at(8)), sequence, durable, time_ms } }
    }
}

/// The header for a payload whose checksum is known. The payload's checksum is computed first, so that only a few bytes
/// of the header remain once the sequence is known, under the tail's lock.
fn seal(length: usize, payload_crc: u32, place: Place) -> [u8; HEADER_LEN] {
    assert!(length <= BATCH_BYTES_MAX, "a batch of {length} bytes is longer than a frame can be");
    let undurable = u32::try_from(place.sequence.0 - place.durable.0).unwrap_or(u32::MAX);
    let mut bytes = [0; HEADER_LEN];
    bytes[0..4].copy_from_slice(&(length as u32).to_le_bytes());
    bytes[8..12].copy_from_slice(&place.epoch.0.to_le_bytes());
    bytes[12..20].copy_from_slice(&place.sequence.0.to_le_bytes());
    bytes[20..24].copy_from_slice(&undurable.to_le_bytes());
    bytes[24..32].copy_from_slice(&place.time_ms.to_le_bytes());
    let crc = checksum(&bytes, payload_crc);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// True when a header, in any layout, belongs to a payload with this checksum.
pub(crate) fn matches(header: &[u8], payload_crc: u32) -> bool {
    header[4..8] == checksum(header, payload_crc).to_le_bytes()
}

/// The checksum of the payload, then of the header without its place for the checksum.
fn checksum(header: &[u8], payload_crc: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(payload_crc, &header[0..4]), &header[8..])
}

/// Appends a whole frame to `frames`.
pub(crate) fn push(frames: &mut Vec<u8>, batch: &[u8], payload_crc: u32, place: Place) {
    frames.reserve(HEADER_LEN + batch.len());
    frames.extend_from_slice(&seal(batch.len(), payload_crc, place));
    frames.extend_from_slice(batch);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_pinned() {
        let mut frames = Vec::new();
        let place = Place { epoch: Epoch(3), sequence: Sequence(7), durable: Sequence(5), time_ms: 0x0102 };
        push(&mut frames, b"hold fast", crc32c::crc32c(b"hold fast"), place);
        let fields = b"\x03\0\0\0\x07\0\0\0\0\0\0\0\x02\0\0\0\x02\x01\0\0\0\0\0\0";
        let crc = crc32c::crc32c(&[&b"hold fast\x09\0\0\0"[..], fields].concat());
        assert_eq!(frames, [&[9, 0, 0, 0], &crc.to_le_bytes()[..], fields, b"hold fast"].concat());
        let header = FrameHeader::decode(Layout::Three, &frames[..HEADER_LEN]);
        assert_eq!((header.length, header.place), (9, place));
        assert!(matches(&frames[..HEADER_LEN], crc32c::crc32c(b"hold fast")));
        assert!(!matches(&frames[..HEADER_LEN], crc32c::crc32c(b"hold fest")));
    }

    #[test]
    fn format_2_is_read() {
        let fields = b"\x03\0\0\0\x07\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0";
        let crc = crc32c::crc32c(&[&b"hold fast\x09\0\0\0"[..], fields].concat());
        let bytes = [&[9, 0, 0, 0], &crc.to_le_bytes()[..], fields].concat();
        let place = Place { epoch: Epoch(3), sequence: Sequence(7), durable: Sequence(5), time_ms: 0 };
        assert_eq!(FrameHeader::decode(Layout::Two, &bytes), FrameHeader { length: 9, place });
        assert!(matches(&bytes, crc32c::crc32c(b"hold fast")));
    }

    #[test]
    fn a_distance_that_does_not_fit_proves_nothing() {
        let place = Place { epoch: Epoch(1), sequence: Sequence(1 << 33), durable: Sequence(9), time_ms: 1 };
        let decoded = FrameHeader::decode(Layout::Three, &seal(0, 0, place)).place;
        assert_eq!(decoded, Place { durable: Sequence::NONE, ..place });
    }

    #[test]
    fn an_empty_batch_is_not_the_end_of_data() {
        let place = Place { epoch: Epoch(1), sequence: Sequence(1), durable: Sequence::NONE, time_ms: 0 };
        assert_ne!(seal(0, crc32c::crc32c(b""), place), [0; HEADER_LEN]);
    }
}
