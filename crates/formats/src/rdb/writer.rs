//! Writes values in Redis's RDB encoding. Knows lengths, strings and footers; refuses to know types.

use super::CHECKSUM;
use crate::packed::lzf;
use numbers::parse_i64;

/// Redis 7.0's version, the first one with the times at which consumers of streams were active (Redis 7.2), and the
/// first one with field deadlines (Redis 7.4): the newest we read.
pub(crate) const VERSION_PLAIN: u16 = 10;
pub(crate) const VERSION_ACTIVE: u16 = 11;
pub(crate) const VERSION_FIELD_DEADLINES: u16 = 12;

/// Redis refuses to let a listpack grow past this; a larger value becomes a table even if the caller asks for the
/// packed form.
pub(crate) const LISTPACK_BYTES_MAX: usize = 1 << 30;

/// The type byte of strings.
pub(crate) const STRING: u8 = 0;

pub(crate) fn encode_string(bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(STRING);
    writer.string(bytes);
    writer.finish(VERSION_PLAIN)
}

/// A payload being written.
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
    compressor: lzf::Compressor,
}

impl Writer {
    pub(crate) fn new(kind: u8) -> Self {
        Self::behind(vec![kind])
    }

    /// Starts a payload of about `bytes` bytes.
    pub(crate) fn with_capacity(kind: u8, bytes: usize) -> Self {
        let mut payload = Vec::with_capacity(bytes);
        payload.push(kind);
        Self::behind(payload)
    }

    /// Starts a payload after these bytes.
    pub(crate) fn behind(bytes: Vec<u8>) -> Self {
        Self { bytes, compressor: lzf::Compressor::default() }
    }

    pub(crate) fn length(&mut self, length: u64) {
        put_length(length, &mut self.bytes);
    }

    /// Inserts a length before everything written since `at`.
    pub(crate) fn insert_length(&mut self, at: usize, length: u64) {
        let mut bytes = Vec::new();
        put_length(length, &mut bytes);
        self.bytes.splice(at..at, bytes);
    }

    /// Writes a string as Redis does: short numbers as numbers, longer texts compressed where that saves space.
    pub(crate) fn string(&mut self, bytes: &[u8]) {
        const NUMBER_CHARS_MAX: usize = 11;
        const COMPRESS_ABOVE: usize = 20;
        const SAVED_MIN: usize = 4;
        if bytes.len() <= NUMBER_CHARS_MAX
            && let Some(number) = parse_i64(bytes)
            && self.number(number)
        {
            return;
        }
        if bytes.len() > COMPRESS_ABOVE
            && let Some(packed) = self.compressor.compress(bytes, bytes.len() - SAVED_MIN)
        {
            self.bytes.push(0xc3);
            put_length(packed.len() as u64, &mut self.bytes);
            put_length(bytes.len() as u64, &mut self.bytes);
            self.bytes.extend_from_slice(packed);
            return;
        }
        self.length(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn number(&mut self, number: i64) -> bool {
        if let Ok(number) = i8::try_from(number) {
            self.bytes.push(0xc0);
            self.bytes.extend(number.to_le_bytes());
        } else if let Ok(number) = i16::try_from(number) {
            self.bytes.push(0xc1);
            self.bytes.extend(number.to_le_bytes());
        } else if let Ok(number) = i32::try_from(number) {
            self.bytes.push(0xc2);
            self.bytes.extend(number.to_le_bytes());
        } else {
            return false;
        }
        true
    }

    pub(crate) fn finish(mut self, version: u16) -> Vec<u8> {
        self.bytes.extend(version.to_le_bytes());
        let checksum = CHECKSUM.checksum(&self.bytes);
        self.bytes.extend(checksum.to_le_bytes());
        self.bytes
    }
}

fn put_length(length: u64, out: &mut Vec<u8>) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend((length as u16 | 0x4000).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            out.push(0x80);
            out.extend((length as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend(length.to_be_bytes());
        }
    }
}
