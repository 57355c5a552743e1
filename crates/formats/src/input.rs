//! Buffered reading of a foreign file. Tracks the offset, the checksum, and what was being read when an error occurs.
//! Knows `std::io::Read`; refuses to know paths, and what the bytes mean.

use crate::rdb::reader::Source;
use crate::rdb::{BadPayload, CHECKSUM};
use resp::ProtocolError;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};

/// Why a file could not be read further: where, in what, and what is wrong.
#[derive(Debug)]
pub struct FileError {
    /// How many bytes had been read.
    pub offset: u64,
    /// What was being read.
    pub reading: String,
    /// Where that begins.
    pub began: u64,
    pub trouble: Trouble,
}

/// What can be wrong with a file.
#[derive(Debug)]
pub enum Trouble {
    Io(io::Error),
    /// The file ends too early.
    Ended,
    /// Bytes that Redis never writes.
    Malformed,
    /// Its compressed parts would decompress to more than the caller allows.
    TooLarge,
    /// The checksum at the end differs from that of the bytes.
    Checksum {
        stated: u64,
        computed: u64,
    },
    /// The beginning is not that of a Redis file.
    NotRedis,
    /// An unknown version of the format.
    Version(u32),
    /// An unknown type of value: its end cannot be found.
    Type(u8),
    /// A value of a module of Redis 4's release candidates: only that module can find its end.
    OldModule,
    /// A malformed command in an append-only file.
    Command(ProtocolError),
    /// The byte that was found instead of a command.
    NotCommand(u8),
    /// A command with more bytes than the caller allows.
    CommandTooLong(usize),
    /// MULTI inside MULTI.
    Nested,
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.trouble {
            Trouble::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}, in {}", self.offset, self.trouble, self.reading)?;
        if self.began < self.offset { write!(f, " that begins at byte {}", self.began) } else { Ok(()) }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Io(_) => f.write_str("the file cannot be read"),
            Trouble::Ended => f.write_str("the file ends too early"),
            Trouble::Malformed => f.write_str("damaged bytes"),
            Trouble::TooLarge => f.write_str("compressed text that would become larger than allowed"),
            Trouble::Checksum { stated, computed } => {
                write!(f, "the checksum is {computed:016x} where the file says {stated:016x}: it is damaged somewhere")
            }
            Trouble::NotRedis => f.write_str("not a file of Redis"),
            Trouble::Version(version) => write!(f, "version {version} of the RDB format, which is not known here"),
            Trouble::Type(kind) => write!(f, "a value of type {kind}, which is not known here"),
            Trouble::OldModule => f.write_str("a module's value in the old form, which only that module can read"),
            Trouble::Command(error) => write!(f, "{error}"),
            Trouble::NotCommand(byte) => write!(f, "'{}' where a command should begin", byte.escape_ascii()),
            Trouble::CommandTooLong(bytes) => write!(f, "more than {bytes} bytes, which is not allowed here"),
            Trouble::Nested => f.write_str("MULTI inside of a transaction"),
        }
    }
}

/// The size of one read, and the size to which the buffer shrinks after a large value.
const BUFFER_BYTES: usize = 64 << 10;
/// A buffer that became larger than this is freed.
const BUFFER_BYTES_KEPT: usize = 4 << 20;
/// How much of a key's name an error shows.
const KEY_BYTES_SHOWN: usize = 64;

/// A file being read.
pub(super) struct Input<R> {
    read: R,
    /// `start..end` has been read from the file and is not used yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of `buffer[start]` in the file.
    offset: u64,
    /// The checksum of everything used up to `buffer[summed]`, while it is needed. Updated lazily, in one long run
    /// rather than many short ones.
    sum: Option<crc::Digest<'static, u64, crc::Table<16>>>,
    summed: usize,
    /// For errors: what is being read, under which key, and where it began.
    reading: &'static str,
    key: Option<Vec<u8>>,
    began: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(read: R) -> Input<R> {
        Input {
            read,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            sum: None,
            summed: 0,
            reading: "the file",
            key: None,
            began: 0,
        }
    }

    /// How many bytes have been used.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    // What is being read ----------------------------------------------------------------------------------------------

    /// Notes what is being read from here on, for errors.
    pub(super) fn begin(&mut self, reading: &'static str) {
        self.reading = reading;
        self.key = None;
        self.began = self.offset;
    }

    /// Where that began.
    pub(super) fn began(&self) -> u64 {
        self.began
    }

    /// Changes what is being read, for errors.
    pub(super) fn now_reading(&mut self, reading: &'static str) {
        self.reading = reading;
    }

    pub(super) fn now_key(&mut self, key: &[u8]) {
        self.key = Some(key[..key.len().min(KEY_BYTES_SHOWN)].to_vec());
    }

    pub(super) fn error(&self, trouble: Trouble) -> FileError {
        let reading = match &self.key {
            None => self.reading.to_string(),
            Some(key) => format!("{} of the key \"{}\"", self.reading, key.escape_ascii()),
        };
        FileError { offset: self.offset, reading, began: self.began, trouble }
    }

    // Checksum --------------------------------------------------------------------------------------------------------

    /// Starts a checksum.
    pub(super) fn start_sum(&mut self) {
        self.sum = Some(CHECKSUM.digest());
        self.summed = self.start;
    }

    /// Returns the checksum since the start, and stops computing it.
    pub(super) fn end_sum(&mut self) -> u64 {
        self.sum_up();
        self.sum.take().map_or(0, |sum| sum.finalize())
    }

    fn sum_up(&mut self) {
        if let Some(sum) = &mut self.sum {
            sum.update(&self.buffer[self.summed..self.start]);
        }
        self.summed = self.start;
    }

    // Bytes -----------------------------------------------------------------------------------------------------------

    /// The buffered bytes.
    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Uses `len` of the buffered bytes.
    pub(super) fn consume(&mut self, len: usize) {
        debug_assert!(len <= self.end - self.start);
        self.start += len;
        self.offset += len as u64;
    }

    /// Reads more bytes to the end of the buffer; false at the end of the file. The buffer grows only when it is full.
    pub(super) fn more(&mut self) -> Result<bool, FileError> {
        if self.end == self.buffer.len() || self.start == self.end {
            self.make_room();
        }
        loop {
            match self.read.read(&mut self.buffer[self.end..]) {
                Ok(len) => {
                    self.end += len;
                    return Ok(len > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(Trouble::Io(error))),
            }
        }
    }

    fn make_room(&mut self) {
        self.sum_up();
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end, self.summed) = (0, self.end - self.start, 0);
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        } else if self.end <= BUFFER_BYTES / 2 && self.buffer.len() > BUFFER_BYTES_KEPT {
            self.buffer.truncate(BUFFER_BYTES);
            self.buffer.shrink_to_fit();
        }
    }

    /// Buffers at least `len` bytes; false if the file ends before.
    pub(super) fn want(&mut self, len: usize) -> Result<bool, FileError> {
        while self.unread().len() < len {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Skips `len` bytes.
    pub(super) fn skip(&mut self, mut len: u64) -> Result<(), FileError> {
        loop {
            let here = usize::try_from(len).unwrap_or(usize::MAX).min(self.unread().len());
            self.consume(here);
            len -= here as u64;
            if len == 0 {
                return Ok(());
            }
            if !self.more()? {
                return Err(self.error(Trouble::Ended));
            }
        }
    }
}

impl<R: Read> Source<'static> for Input<R> {
    type Error = FileError;

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], FileError> {
        loop {
            if let Some(array) = self.unread().first_chunk::<N>() {
                let array = *array;
                self.consume(N);
                return Ok(array);
            }
            if !self.more()? {
                return Err(self.error(Trouble::Ended));
            }
        }
    }

    fn bytes(&mut self, len: u64) -> Result<Cow<'static, [u8]>, FileError> {
        let here = usize::try_from(len).unwrap_or(usize::MAX).min(self.unread().len());
        let mut bytes = self.unread()[..here].to_vec();
        self.consume(here);
        let missing = len - here as u64;
        if missing > 0 {
            // Bypasses the buffer, which is empty now. Memory is allocated as bytes arrive.
            self.sum_up();
            let result = self.read.by_ref().take(missing).read_to_end(&mut bytes);
            self.offset += (bytes.len() - here) as u64;
            result.map_err(|error| self.error(Trouble::Io(error)))?;
            if let Some(sum) = &mut self.sum {
                sum.update(&bytes[here..]);
            }
            if (bytes.len() as u64) < len {
                return Err(self.error(Trouble::Ended));
            }
        }
        Ok(bytes.into())
    }

    fn entries_likely(&self) -> usize {
        128
    }

    fn refusal(&self, why: BadPayload) -> FileError {
        self.error(match why {
            BadPayload::Footer | BadPayload::Format | BadPayload::Unsupported(_) => Trouble::Malformed,
            BadPayload::TooLarge => Trouble::TooLarge,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn an_error_does_not_repeat_its_source() {
        let trouble = Trouble::Io(io::Error::other("the disk is gone"));
        let error = FileError { offset: 7, reading: "a length".into(), began: 3, trouble };
        assert_eq!(error.to_string(), "at byte 7: the file cannot be read, in a length that begins at byte 3");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the disk is gone"));
    }
}
