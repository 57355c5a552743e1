//! One segment file: its name, its header and its frames. Knows nothing of other segments.
//!
//! ```text
//!  0          8         12      16      24        32   48      52    56         72         88     96     100
//!  | HFSEGMNT | version | flags | first | durable | id | epoch | crc | epoch id | previous | time | crc 2 | frames ...
//! ```
//!
//! Format 2 ends with the first checksum, at 56. It stays where it was, so that a version that knows only format 2 can
//! tell a newer format from damage.

use std::io;
use std::ops::Range;

use thiserror::Error;

use super::checksums::Checksums;
use super::directory_id::DirectoryId;
use super::epoch_id::EpochId;
use super::frame::{self, FrameHeader, Layout};
use crate::epoch::Epoch;
use crate::sequence::Sequence;
use crate::storage::{StorageFile, read_full_at};

/// The length of a header in the format that is written.
pub(crate) const HEADER_LEN: u64 = 100;
const HEADER_LEN_2: u64 = 56;
const MAGIC: &[u8; 8] = b"HFSEGMNT";
const VERSION: u32 = 3;
const VERSION_2: u32 = 2;
/// The following batches count only together with a snapshot all of whose parts reach to just before this segment.
const FLAG_BREAK: u32 = 1;

/// How much of a file is held in memory while it is read, unless a single batch is longer.
const WINDOW_BYTES: usize = 256 * 1024;

pub(crate) fn file_name(first: Sequence) -> String {
    format!("journal-{:020}.seg", first.0)
}

/// The name of a segment while it is created. It gets its final name when it is complete, so an unfinished one is never
/// mistaken for a segment. Like all temporary names it has the epoch of its writer, so no two writers share one.
pub(crate) fn temporary_name(epoch: Epoch) -> String {
    format!("journal-next-{epoch}.tmp")
}

/// The name of a file with reserved space that waits to become a segment.
pub(crate) fn prepared_name(epoch: Epoch) -> String {
    format!("journal-prepared-{epoch}.tmp")
}

/// The name of a copy that will replace a segment.
pub(crate) fn copy_name(epoch: Epoch) -> String {
    format!("journal-copy-{epoch}.tmp")
}

/// True for a file that was to become a segment. Older versions put no epoch into the name.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with("journal-") && name.ends_with(".tmp")
}

pub(crate) fn parse_file_name(name: &str) -> Option<Sequence> {
    let digits = name.strip_prefix("journal-")?.strip_suffix(".seg")?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok().map(Sequence))?
        .filter(|first| *first > Sequence::NONE)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The directory it belongs to.
    pub(crate) id: DirectoryId,
    /// The sequence of the first batch in this segment.
    pub(crate) first: Sequence,
    /// The highest sequence known to be synced when the segment was begun.
    pub(crate) durable: Sequence,
    /// The epoch of every batch in it: each epoch begins with a new segment.
    pub(crate) epoch: Epoch,
    pub(crate) epoch_id: EpochId,
    /// The id of the epoch before.
    pub(crate) previous_id: EpochId,
    /// The time of the last batch before this segment, in unix milliseconds.
    pub(crate) time_ms: u64,
    /// How its frames are laid out.
    pub(crate) layout: Layout,
    /// The journal was restarted here; see [`FLAG_BREAK`].
    pub(crate) is_break: bool,
}

#[derive(Debug, Error)]
pub(crate) enum HeaderError {
    #[error("the header is cut short")]
    Short,
    #[error("the header is damaged")]
    Damaged,
    #[error("the file is of format {0}")]
    Newer(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN as usize] {
        let mut bytes = [0; HEADER_LEN as usize];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(if self.is_break { FLAG_BREAK } else { 0 }).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.durable.0.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.id.0);
        bytes[48..52].copy_from_slice(&self.epoch.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..52]);
        bytes[52..56].copy_from_slice(&crc.to_le_bytes());
        bytes[56..72].copy_from_slice(&self.epoch_id.0);
        bytes[72..88].copy_from_slice(&self.previous_id.0);
        bytes[88..96].copy_from_slice(&self.time_ms.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..96]);
        bytes[96..100].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Where its frames begin.
    pub(crate) fn len(&self) -> u64 {
        match self.layout {
            Layout::Two => HEADER_LEN_2,
            Layout::Three => HEADER_LEN,
        }
    }

    /// `named` is the sequence in the file's name: a header with another one belongs to another file.
    pub(crate) fn decode(bytes: &[u8], named: Sequence) -> Result<SegmentHeader, HeaderError> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        if bytes.len() < HEADER_LEN_2 as usize {
            return Err(HeaderError::Short);
        }
        // The version is checked after the checksum: a flipped bit must not look like a newer format.
        if &bytes[..8] != MAGIC || crc32c::crc32c(&bytes[..52]) != u32_at(52) {
            return Err(HeaderError::Damaged);
        }
        let (version, flags) = (u32_at(8), u32_at(12));
        if !matches!(version, VERSION | VERSION_2) || flags & !FLAG_BREAK != 0 {
            return Err(HeaderError::Newer(version));
        }
        let layout = if version == VERSION_2 { Layout::Two } else { Layout::Three };
        if layout == Layout::Three {
            if bytes.len() < HEADER_LEN as usize {
                return Err(HeaderError::Short);
            }
            if crc32c::crc32c(&bytes[..96]) != u32_at(96) {
                return Err(HeaderError::Damaged);
            }
        }
        let first = Sequence(u64_at(16));
        if first != named {
            return Err(HeaderError::Damaged);
        }
        Ok(SegmentHeader {
            id: DirectoryId::decode(&bytes[32..]),
            first,
            durable: Sequence(u64_at(24)),
            epoch: Epoch(u32_at(48)),
            epoch_id: if layout == Layout::Two { EpochId::NONE } else { EpochId::decode(&bytes[56..]) },
            previous_id: if layout == Layout::Two { EpochId::NONE } else { EpochId::decode(&bytes[72..]) },
            time_ms: if layout == Layout::Two { 0 } else { u64_at(88) },
            layout,
            is_break: flags & FLAG_BREAK != 0,
        })
    }
}

/// Reads the frames of one segment in order, a window at a time.
pub(crate) struct SegmentReader {
    file: Box<dyn StorageFile>,
    len: u64,
    /// Where the next frame begins.
    offset: u64,
    /// The epoch of the header; frames of another epoch do not belong here.
    epoch: Epoch,
    layout: Layout,
    window: Vec<u8>,
    window_offset: u64,
    /// The payload of the last good frame, in the window.
    payload: Range<usize>,
}

pub(crate) enum Next {
    /// The expected frame; [`SegmentReader::payload`] has its payload.
    Frame(FrameHeader),
    /// The end of the data: the end of the file, or zeros that were written ahead.
    End,
    /// Bytes that are not the expected frame.
    Bad(&'static str),
}

impl SegmentReader {
    /// Starts before the header.
    pub(crate) fn new(file: Box<dyn StorageFile>) -> io::Result<SegmentReader> {
        let len = file.len()?;
        Ok(SegmentReader {
            file,
            len,
            offset: 0,
            epoch: Epoch::NONE,
            layout: Layout::Three,
            window: Vec::new(),
            window_offset: 0,
            payload: 0..0,
        })
    }

    pub(crate) fn file(&self) -> &dyn StorageFile {
        &*self.file
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Sets the limit up to which the file is read and does not change any more. It never decreases.
    pub(crate) fn limit_to(&mut self, len: u64) {
        self.len = len;
    }

    /// Looks at a file again that another process writes: its length may be another, and what follows the last good
    /// frame.
    pub(crate) fn look_again(&mut self, len: u64) {
        let read = (self.offset - self.window_offset) as usize;
        self.window.truncate(read);
        self.len = len.max(self.offset);
    }

    /// Reads the header; on success the first frame is next.
    pub(crate) fn header(&mut self, named: Sequence) -> io::Result<Result<SegmentHeader, HeaderError>> {
        let available = self.len.min(HEADER_LEN) as usize;
        self.fill(available)?;
        let header = SegmentHeader::decode(self.at_offset(available), named);
        if let Ok(header) = &header {
            self.offset = header.len();
            self.epoch = header.epoch;
            self.layout = header.layout;
        }
        Ok(header)
    }

    /// Reads the next frame, which must have the sequence `expected`. Advances only past a good frame.
    pub(crate) fn next(&mut self, expected: Sequence) -> io::Result<Next> {
        let header_len = self.layout.header_len();
        let rest = self.len - self.offset;
        if rest < header_len as u64 {
            self.fill(rest as usize)?;
            let is_zero = self.at_offset(rest as usize).iter().all(|byte| *byte == 0);
            return Ok(if is_zero { Next::End } else { Next::Bad("the batch is cut short") });
        }
        self.fill(header_len)?;
        let bytes = self.at_offset(header_len);
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Next::End);
        }
        let header = FrameHeader::decode(self.layout, bytes);
        // The length is checked against the file before memory is allocated for it.
        if u64::from(header.length) > rest - header_len as u64 {
            return Ok(Next::Bad("the batch is cut short or its length is damaged"));
        }
        let frame_len = header_len + header.length as usize;
        self.fill(frame_len)?;
        let (bytes, payload) = self.at_offset(frame_len).split_at(header_len);
        if !frame::matches(bytes, crc32c::crc32c(payload)) {
            return Ok(Next::Bad("the checksum of the batch does not match"));
        }
        if header.place.sequence != expected {
            return Ok(Next::Bad("the batch has the wrong sequence number"));
        }
        if header.place.epoch != self.epoch {
            return Ok(Next::Bad("the batch is of another epoch than its segment"));
        }
        let start = (self.offset - self.window_offset) as usize;
        self.offset += frame_len as u64;
        self.payload = start + header_len..start + frame_len;
        Ok(Next::Frame(header))
    }

    /// The payload of the frame that [`SegmentReader::next`] returned last.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.window[self.payload.clone()]
    }

    fn at_offset(&self, count: usize) -> &[u8] {
        let start = (self.offset - self.window_offset) as usize;
        &self.window[start..start + count]
    }

    /// Fills the window with `count` bytes from `offset` on, which the file must have.
    fn fill(&mut self, count: usize) -> io::Result<()> {
        let consumed = (self.offset - self.window_offset) as usize;
        if self.window.len().saturating_sub(consumed) >= count {
            return Ok(());
        }
        self.window.drain(..consumed.min(self.window.len()));
        self.window_offset = self.offset;
        let held = self.window.len();
        let wanted = count.max(WINDOW_BYTES).min((self.len - self.offset) as usize);
        self.window.resize(wanted, 0);
        let read = read_full_at(&*self.file, &mut self.window[held..], self.offset + held as u64)?;
        self.window.truncate(held + read);
        if self.window.len() < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// What lies after the end of a segment's frames.
#[derive(Debug)]
pub(crate) struct Remains {
    /// The position of a frame that proves that the requested sequence, or a later one, was durable.
    pub(crate) mark_offset: Option<u64>,
    /// The position after the last byte that is not zero; where the search began if all are zero.
    pub(crate) data_end: u64,
}

/// Searches a segment from `from` on, byte by byte, for a good frame that proves that `lost` was durable. Stops at the
/// first one.
///
/// Cheap, because almost no eight bytes are a plausible `durable`: it must be `lost` or later, and lower than any
/// number that this segment can have assigned so far. Where a client has written many that are, it still takes a time
/// in proportion to the file ([`Checksums`]).
pub(crate) fn search_remains(
    file: &dyn StorageFile,
    layout: Layout,
    len: u64,
    from: u64,
    first: Sequence,
    lost: Sequence,
) -> io::Result<Remains> {
    let header_len = layout.header_len();
    let mut remains = Remains { mark_offset: None, data_end: from };
    let mut checksums = Checksums::new(file, from, len);
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = from;
    while offset < len {
        let wanted = window.len().min((len - offset) as usize);
        let held = read_full_at(file, &mut window[..wanted], offset)?;
        let data = without_trailing_zeros(&window[..held]);
        if !data.is_empty() {
            remains.data_end = offset + data.len() as u64;
        }
        if held < header_len {
            break;
        }
        let candidates = held - header_len + 1;
        // A header of zeros proves nothing.
        for at in 0..candidates.min(data.len()) {
            let bytes = &window[at..at + header_len];
            let header = FrameHeader::decode(layout, bytes);
            let place = header.place;
            if place.durable < lost || place.durable >= place.sequence {
                continue;
            }
            let frame_offset = offset + at as u64;
            let sequence_max = first.0.saturating_add(frame_offset / header_len as u64);
            let is_plausible =
                place.sequence.0 <= sequence_max && u64::from(header.length) <= len - frame_offset - header_len as u64;
            let payload_offset = frame_offset + header_len as u64;
            if is_plausible && frame::matches(bytes, checksums.of(payload_offset, header.length)?) {
                remains.mark_offset = Some(frame_offset);
                return Ok(remains);
            }
        }
        offset += candidates as u64;
    }
    Ok(remains)
}

fn without_trailing_zeros(mut bytes: &[u8]) -> &[u8] {
    // Whole blocks first: a torn tail is often followed by zeros that were written ahead.
    const BLOCK: [u8; 4096] = [0; 4096];
    while let Some(rest) = bytes.strip_suffix(&BLOCK) {
        bytes = rest;
    }
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

#[cfg(test)]
mod tests {
    use super::super::frame::Place;
    use super::*;
    use crate::storage::{FaultyStorage, Storage, write_all_at};

    const ID: DirectoryId = DirectoryId([9; DirectoryId::LEN]);
    const EPOCH: Epoch = Epoch(6);
    const HEADER: SegmentHeader = SegmentHeader {
        id: ID,
        first: Sequence(1),
        durable: Sequence(0),
        epoch: EPOCH,
        epoch_id: EpochId([3; EpochId::LEN]),
        previous_id: EpochId([2; EpochId::LEN]),
        time_ms: 0x0504,
        layout: Layout::Three,
        is_break: false,
    };

    fn frames(from: u64, count: u64, durable: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for sequence in from..from + count {
            let crc = crc32c::crc32c(payload);
            let place = Place { epoch: EPOCH, sequence: Sequence(sequence), durable: Sequence(durable), time_ms: 7 };
            frame::push(&mut bytes, payload, crc, place);
        }
        bytes
    }

    #[test]
    fn names_sort_as_sequences_do() {
        assert_eq!(file_name(Sequence(42)), "journal-00000000000000000042.seg");
        assert_eq!(parse_file_name(&file_name(Sequence(u64::MAX))), Some(Sequence(u64::MAX)));
        for wrong in ["journal-42.seg", "journal-+0000000000000000042.seg", "journal-00000000000000000000.seg"] {
            assert_eq!(parse_file_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_header_layout_is_pinned() {
        let header = SegmentHeader { first: Sequence(258), durable: Sequence(255), is_break: true, ..HEADER };
        let bytes = header.encode();
        assert_eq!(bytes[..32], *b"HFSEGMNT\x03\0\0\0\x01\0\0\0\x02\x01\0\0\0\0\0\0\xff\0\0\0\0\0\0\0");
        assert_eq!(bytes[32..52], [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 6, 0, 0, 0]);
        assert_eq!(bytes[52..56], crc32c::crc32c(&bytes[..52]).to_le_bytes());
        assert_eq!((&bytes[56..72], &bytes[72..88]), (&[3; 16][..], &[2; 16][..]));
        assert_eq!(bytes[88..96], [4, 5, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[96..], crc32c::crc32c(&bytes[..96]).to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes, Sequence(258)).unwrap(), header);
        assert!(matches!(SegmentHeader::decode(&bytes, Sequence(259)), Err(HeaderError::Damaged)));
        assert!(matches!(SegmentHeader::decode(&bytes[..99], Sequence(258)), Err(HeaderError::Short)));
        let mut newer = bytes;
        newer[8] = 4;
        assert!(matches!(SegmentHeader::decode(&newer, Sequence(258)), Err(HeaderError::Damaged)), "a flipped bit");
        let crc = crc32c::crc32c(&newer[..52]);
        newer[52..56].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(SegmentHeader::decode(&newer, Sequence(258)), Err(HeaderError::Newer(4))));
    }

    #[test]
    fn a_header_of_format_2_is_read() {
        let mut bytes = b"HFSEGMNT\x02\0\0\0\x01\0\0\0\x02\x01\0\0\0\0\0\0\xff\0\0\0\0\0\0\0".to_vec();
        bytes.extend([9; 16]);
        bytes.extend([6, 0, 0, 0]);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        let header = SegmentHeader::decode(&bytes, Sequence(258)).unwrap();
        let (epoch_id, previous_id) = (EpochId::NONE, EpochId::NONE);
        let expected = SegmentHeader {
            first: Sequence(258),
            durable: Sequence(255),
            epoch_id,
            previous_id,
            time_ms: 0,
            layout: Layout::Two,
            is_break: true,
            ..HEADER
        };
        assert_eq!((header, header.len()), (expected, 56));
    }

    #[test]
    fn frames_longer_than_the_window_are_read() {
        let storage = FaultyStorage::new();
        let file = storage.create("s").unwrap();
        let long = vec![7; WINDOW_BYTES * 2 + 5];
        let mut bytes = HEADER.encode().to_vec();
        bytes.extend(frames(1, 1, 0, b"a"));
        bytes.extend(frames(2, 2, 0, &long));
        bytes.extend([0; 30]);
        write_all_at(&*file, &bytes, 0).unwrap();
        let mut reader = SegmentReader::new(file).unwrap();
        reader.header(Sequence(1)).unwrap().unwrap();
        for (sequence, len) in [(1, 1), (2, long.len()), (3, long.len())] {
            assert!(matches!(reader.next(Sequence(sequence)).unwrap(), Next::Frame(_)));
            assert_eq!(reader.payload().len(), len);
        }
        assert!(matches!(reader.next(Sequence(4)).unwrap(), Next::End));
    }

    #[test]
    fn a_mark_is_found_wherever_it_starts_and_only_if_it_proves_the_loss() {
        for junk in [0, 1, 23, WINDOW_BYTES - 30, WINDOW_BYTES - 1, WINDOW_BYTES + 3] {
            let storage = FaultyStorage::new();
            let file = storage.create("s").unwrap();
            let mut bytes = vec![0x55; junk + 40];
            bytes.extend(frames(2, 1, 1, b"payload"));
            bytes.extend([0; 100]);
            write_all_at(&*file, &bytes, 0).unwrap();
            let len = bytes.len() as u64;
            let found = search_remains(&*file, Layout::Three, len, 40, Sequence(1), Sequence(1)).unwrap();
            assert_eq!(found.mark_offset, Some(junk as u64 + 40));
            let none = search_remains(&*file, Layout::Three, len, 40, Sequence(1), Sequence(2)).unwrap();
            assert_eq!((none.mark_offset, none.data_end), (None, len - 100));
        }
    }
    /// A file that counts the bytes that are read.
    struct Counted {
        file: Box<dyn StorageFile>,
        bytes_read: std::sync::atomic::AtomicU64,
    }

    impl StorageFile for Counted {
        fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
            self.file.write_at(bytes, offset)
        }

        fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
            self.bytes_read.fetch_add(bytes.len() as u64, std::sync::atomic::Ordering::Relaxed);
            self.file.read_at(bytes, offset)
        }

        fn sync(&self) -> io::Result<()> {
            self.file.sync()
        }

        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.file.set_len(len)
        }

        fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
            self.file.reserve(offset, len)
        }
    }

    /// A value that a client has made of plausible headers, each with a length of half of the file.
    #[test]
    fn a_search_reads_each_byte_a_few_times_whatever_lengths_it_meets() {
        let storage = FaultyStorage::new();
        let file = storage.create("s").unwrap();
        let len: u64 = 512 * 1024;
        let place = Place { epoch: EPOCH, sequence: Sequence(10), durable: Sequence(9), time_ms: 7 };
        let mut header = Vec::new();
        frame::push(&mut header, &[0; 8], 0, place);
        header[..4].copy_from_slice(&(len as u32 / 2).to_le_bytes());
        let bytes: Vec<u8> = header.iter().copied().cycle().take(len as usize).collect();
        write_all_at(&*file, &bytes, 0).unwrap();
        let counted = Counted { file, bytes_read: 0.into() };
        let remains = search_remains(&counted, Layout::Three, len, 0, Sequence(1), Sequence(2)).unwrap();
        assert_eq!(remains.mark_offset, None);
        let read = counted.bytes_read.into_inner();
        assert!(read < len * 64, "{read} bytes were read of a file with {len}");
    }
}
