//! Writes values in Redis's RDB encoding. Knows lengths, strings and footers; refuses to know types.

use super::CHECKSUM;
use crate::packed::lzf;
use numbers::parse_i64;

/// Redis 7.0's version, and the first one with field deadlines (Redis 7.4): the newest we read.
pub(super) const VERSION_PLAIN: u16 = 10;
pub(super) const VERSION_FIELD_DEADLINES: u16 = 12;

/// Redis refuses to let a listpack grow past this; a larger value becomes a table whatever the caller asked for.
pub(super) const LISTPACK_BYTES_MAX: usize = 1 << 30;

/// The type byte of strings.
pub(super) const STRING: u8 = 0;

pub(super) fn encode_string(bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(STRING);
    writer.string(bytes);
    writer.finish(VERSION_PLAIN)
}

/// A payload being written.
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new(kind: u8) -> Self {
        Self { bytes: vec![kind] }
    }

    pub(super) fn length(&mut self, length: u64) {
        match length {
            0..0x40 => self.bytes.push(length as u8),
            0x40..0x4000 => self.bytes.extend((length as u16 | 0x4000).to_be_bytes()),
            0x4000..=0xffff_ffff => {
                self.bytes.push(0x80);
                self.bytes.extend((length as u32).to_be_bytes());
            }
            _ => {
                self.bytes.push(0x81);
                self.bytes.extend(length.to_be_bytes());
            }
        }
    }

    /// As Redis does: short numbers as numbers, longer texts compressed where that saves something.
    pub(super) fn string(&mut self, bytes: &[u8]) {
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
            && let Some(packed) = lzf::compress(bytes, bytes.len() - SAVED_MIN)
        {
            self.bytes.push(0xc3);
            self.length(packed.len() as u64);
            self.length(bytes.len() as u64);
            self.bytes.extend(packed);
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

    pub(super) fn finish(mut self, version: u16) -> Vec<u8> {
        self.bytes.extend(version.to_le_bytes());
        let checksum = CHECKSUM.checksum(&self.bytes);
        self.bytes.extend(checksum.to_le_bytes());
        self.bytes
    }
}
