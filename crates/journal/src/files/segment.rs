//! One segment file: its name, its header, and the frames in it. Knows nothing of the segments beside it.
//!
//! ```text
//!  0           8         12      16        24         32     48      52      56
//!  | HFSEGMNT  | version | flags |  first  | durable  |  id  | epoch |  crc  |  frames ...
//! ```

use std::io;
use std::ops::Range;

use thiserror::Error;

use super::directory_id::DirectoryId;
use super::frame::{self, FrameHeader};
use crate::epoch::Epoch;
use crate::sequence::Sequence;
use crate::storage::{StorageFile, read_full_at};

pub(crate) const HEADER_LEN: u64 = 56;
const MAGIC: &[u8; 8] = b"HFSEGMNT";
const VERSION: u32 = 2;
/// What follows counts only together with a snapshot all of whose parts reach to just before this segment.
const FLAG_BREAK: u32 = 1;

/// How much of a file is held in memory while it is read, unless a single batch is longer.
const WINDOW_BYTES: usize = 256 * 1024;

pub(crate) fn file_name(first: Sequence) -> String {
    format!("journal-{:020}.seg", first.0)
}

/// What the next segment is called while it is made. It gets its name once all that it needs is there, so one that
/// could not be finished is never taken for a segment.
pub(crate) const TEMPORARY_NAME: &str = "journal-next.tmp";

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
    /// The epoch of every batch in it: each epoch begins with a segment of its own.
    pub(crate) epoch: Epoch,
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
        bytes
    }

    /// `named` is the sequence in the file's name: a header that says otherwise belongs to another file.
    pub(crate) fn decode(bytes: &[u8], named: Sequence) -> Result<SegmentHeader, HeaderError> {
        let Some(bytes) = bytes.get(..HEADER_LEN as usize) else { return Err(HeaderError::Short) };
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        if &bytes[..8] != MAGIC || crc32c::crc32c(&bytes[..52]) != u32_at(52) {
            return Err(HeaderError::Damaged);
        }
        let (version, flags) = (u32_at(8), u32_at(12));
        if version != VERSION || flags & !FLAG_BREAK != 0 {
            return Err(HeaderError::Newer(version));
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
    /// What the header says; frames of another epoch do not belong here.
    epoch: Epoch,
    window: Vec<u8>,
    window_offset: u64,
    /// Where in the window the payload of the last good frame is.
    payload: Range<usize>,
}

pub(crate) enum Next {
    /// The frame that belongs here; [`SegmentReader::payload`] has its payload.
    Frame(FrameHeader),
    /// Nothing more was written here: the end of the file, or zeros that were written ahead.
    End,
    /// What is here is not the frame that belongs here.
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

    /// Reads no further than `len`: up to there the file is known not to change any more. Never less than before.
    pub(crate) fn limit_to(&mut self, len: u64) {
        self.len = len;
    }

    /// Reads the header, and on success stands before the first frame.
    pub(crate) fn header(&mut self, named: Sequence) -> io::Result<Result<SegmentHeader, HeaderError>> {
        let available = self.len.min(HEADER_LEN) as usize;
        self.fill(available)?;
        let header = SegmentHeader::decode(self.at_offset(available), named);
        if let Ok(header) = &header {
            self.offset = HEADER_LEN;
            self.epoch = header.epoch;
        }
        Ok(header)
    }

    /// The next frame, which must have the sequence `expected`. Moves on only past a good frame.
    pub(crate) fn next(&mut self, expected: Sequence) -> io::Result<Next> {
        let rest = self.len - self.offset;
        if rest < frame::HEADER_LEN as u64 {
            self.fill(rest as usize)?;
            let is_zero = self.at_offset(rest as usize).iter().all(|byte| *byte == 0);
            return Ok(if is_zero { Next::End } else { Next::Bad("the batch is cut short") });
        }
        self.fill(frame::HEADER_LEN)?;
        let bytes: &[u8; frame::HEADER_LEN] = self.at_offset(frame::HEADER_LEN).try_into().unwrap();
        if *bytes == [0; frame::HEADER_LEN] {
            return Ok(Next::End);
        }
        let header = FrameHeader::decode(bytes);
        // The length is checked against the file before any memory is set aside for it.
        if u64::from(header.length) > rest - frame::HEADER_LEN as u64 {
            return Ok(Next::Bad("the batch is cut short or its length is damaged"));
        }
        let frame_len = frame::HEADER_LEN + header.length as usize;
        self.fill(frame_len)?;
        let payload_crc = crc32c::crc32c(&self.at_offset(frame_len)[frame::HEADER_LEN..]);
        if !header.matches(payload_crc) {
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
        self.payload = start + frame::HEADER_LEN..start + frame_len;
        Ok(Next::Frame(header))
    }

    /// The payload of the frame that [`SegmentReader::next`] gave last.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.window[self.payload.clone()]
    }

    fn at_offset(&self, count: usize) -> &[u8] {
        let start = (self.offset - self.window_offset) as usize;
        &self.window[start..start + count]
    }

    /// Sees to it that the window holds `count` bytes from `offset` on, which the file must have.
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

/// What lies behind the point where a segment's frames stop.
#[derive(Debug)]
pub(crate) struct Remains {
    /// Where a frame was found that says a sequence no lower than the one asked for was durable.
    pub(crate) mark_offset: Option<u64>,
    /// Behind the last byte that is not zero; where the search began if all are.
    pub(crate) data_end: u64,
}

/// Searches a segment from `from` on, byte by byte, for a good frame that proves that `lost` was durable. Stops at
/// the first one.
///
/// Cheap, because almost no eight bytes are a plausible `durable`: it must be `lost` or later, and lower than any
/// number this segment can have given out so far.
pub(crate) fn search_remains(
    file: &dyn StorageFile,
    len: u64,
    from: u64,
    first: Sequence,
    lost: Sequence,
) -> io::Result<Remains> {
    let mut remains = Remains { mark_offset: None, data_end: from };
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = from;
    while offset < len {
        let wanted = window.len().min((len - offset) as usize);
        let held = read_full_at(file, &mut window[..wanted], offset)?;
        let data = without_trailing_zeros(&window[..held]);
        if !data.is_empty() {
            remains.data_end = offset + data.len() as u64;
        }
        if held < frame::HEADER_LEN {
            break;
        }
        let candidates = held - frame::HEADER_LEN + 1;
        // A header that is all zeros claims nothing.
        for at in 0..candidates.min(data.len()) {
            let bytes: &[u8; frame::HEADER_LEN] = window[at..at + frame::HEADER_LEN].try_into().unwrap();
            let header = FrameHeader::decode(bytes);
            let place = header.place;
            if place.durable < lost || place.durable >= place.sequence {
                continue;
            }
            let frame_offset = offset + at as u64;
            let sequence_max = first.0.saturating_add(frame_offset / frame::HEADER_LEN as u64);
            let is_plausible = place.sequence.0 <= sequence_max
                && u64::from(header.length) <= len - frame_offset - frame::HEADER_LEN as u64;
            if is_plausible && header.matches(payload_crc(file, frame_offset, header.length)?) {
                remains.mark_offset = Some(frame_offset);
                return Ok(remains);
            }
        }
        offset += candidates as u64;
    }
    Ok(remains)
}

fn without_trailing_zeros(mut bytes: &[u8]) -> &[u8] {
    // Whole blocks first: behind a torn tail there is often nothing but zeros that were written ahead.
    const BLOCK: [u8; 4096] = [0; 4096];
    while let Some(rest) = bytes.strip_suffix(&BLOCK) {
        bytes = rest;
    }
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

fn payload_crc(file: &dyn StorageFile, frame_offset: u64, length: u32) -> io::Result<u32> {
    let mut crc = 0;
    let mut chunk = vec![0; WINDOW_BYTES.min(length as usize)];
    let mut offset = frame_offset + frame::HEADER_LEN as u64;
    let end = offset + u64::from(length);
    while offset < end {
        let wanted = chunk.len().min((end - offset) as usize);
        if read_full_at(file, &mut chunk[..wanted], offset)? < wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        crc = crc32c::crc32c_append(crc, &chunk[..wanted]);
        offset += wanted as u64;
    }
    Ok(crc)
}

#[cfg(test)]
mod tests {
    use super::super::frame::Place;
    use super::*;
    use crate::storage::{FaultyStorage, Storage, write_all_at};

    const ID: DirectoryId = DirectoryId([9; DirectoryId::LEN]);
    const EPOCH: Epoch = Epoch(6);

    fn frames(from: u64, count: u64, durable: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for sequence in from..from + count {
            let crc = crc32c::crc32c(payload);
            let place = Place { epoch: EPOCH, sequence: Sequence(sequence), durable: Sequence(durable) };
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
        let header =
            SegmentHeader { id: ID, first: Sequence(258), durable: Sequence(255), epoch: EPOCH, is_break: true };
        let bytes = header.encode();
        assert_eq!(bytes[..32], *b"HFSEGMNT\x02\0\0\0\x01\0\0\0\x02\x01\0\0\0\0\0\0\xff\0\0\0\0\0\0\0");
        assert_eq!(bytes[32..52], [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 6, 0, 0, 0]);
        assert_eq!(SegmentHeader::decode(&bytes, Sequence(258)).unwrap(), header);
        assert!(matches!(SegmentHeader::decode(&bytes, Sequence(259)), Err(HeaderError::Damaged)));
        assert!(matches!(SegmentHeader::decode(&bytes[..55], Sequence(258)), Err(HeaderError::Short)));
    }

    #[test]
    fn frames_longer_than_the_window_are_read() {
        let storage = FaultyStorage::new();
        let file = storage.create("s").unwrap();
        let long = vec![7; WINDOW_BYTES * 2 + 5];
        let header = SegmentHeader { id: ID, first: Sequence(1), durable: Sequence(0), epoch: EPOCH, is_break: false };
        let mut bytes = header.encode().to_vec();
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
            let found = search_remains(&*file, len, 40, Sequence(1), Sequence(1)).unwrap();
            assert_eq!(found.mark_offset, Some(junk as u64 + 40));
            let none = search_remains(&*file, len, 40, Sequence(1), Sequence(2)).unwrap();
            assert_eq!((none.mark_offset, none.data_end), (None, len - 100));
        }
    }
}
