//! The basics of Redis's RDB encoding: lengths, strings, checksums, read and written. Refuses to know types of values,
//! payloads and files.

pub(crate) mod reader;
pub(crate) mod writer;

use crate::packed::Malformed;

/// Why a payload was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPayload {
    /// Redis says: DUMP payload version or checksum are wrong.
    Footer,
    /// Redis says: Bad data format.
    Format,
    /// Its compressed parts would decompress to more than allowed.
    TooLarge,
    /// A type that is not supported, by Redis's name for it.
    Unsupported(&'static str),
}

impl From<Malformed> for BadPayload {
    fn from(Malformed: Malformed) -> Self {
        Self::Format
    }
}

/// Sixteen tables: 32 KiB for a checksum that runs at memory speed.
pub(crate) static CHECKSUM: crc::Crc<u64, crc::Table<16>> = crc::Crc::<u64, crc::Table<16>>::new(&crc::CRC_64_REDIS);
