//! The basics of Redis's RDB encoding: lengths, strings, checksums, read and written. Refuses to know types of values,
//! payloads and files.

pub(crate) mod reader;
pub(crate) mod writer;

use crate::packed::Malformed;

/// Whose encoding it is. Since Redis 7.4 and Valkey 9 the same type bytes stand for different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Redis, and Valkey up to 8.
    Redis,
    Valkey,
}

impl Dialect {
    /// Valkey counts its own versions from here; Redis's are below.
    const VALKEY_VERSION_MIN: u16 = 80;
    /// Valkey 9.0's and 9.1's, the newest that is read.
    const VALKEY_VERSION_MAX: u16 = 80;

    /// The dialect of a payload's version, which no magic word precedes; `None` for an unknown one.
    pub(crate) fn of_payload(version: u16) -> Option<Dialect> {
        match version {
            0..=writer::VERSION_FIELD_DEADLINES => Some(Dialect::Redis),
            _ => Dialect::is_valkey(version.into()).then_some(Dialect::Valkey),
        }
    }

    /// True for a version of Valkey's that is known.
    pub(crate) fn is_valkey(version: u32) -> bool {
        (u32::from(Self::VALKEY_VERSION_MIN)..=u32::from(Self::VALKEY_VERSION_MAX)).contains(&version)
    }
}

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
