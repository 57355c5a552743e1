//! The bytes of a snapshot: names, header, part headers, footer. Knows nothing of files.
//!
//! ```text
//!  header   0          8         12      16           24   40         44    48         48 + meta_len
//!           | HFSNAPSH | version | flags | created_ms | id | meta_len | crc | meta ... | epoch id | crc 2 |
//!  part     0          4        8       12    16         24        28    32
//!           | kind = 1 | length | shard | end | sequence | entries | crc | payload ...
//!  footer   0          4       8       16        24    32    40      44    48
//!           | kind = 2 | epoch | parts | entries | min | max | chain | crc |
//! ```
//!
//! In format 2 the parts begin after the meta.

use crate::epoch::Epoch;
use crate::files::{DirectoryId, EpochId, WriterIdentity};
use crate::sequence::Sequence;

/// The length of a header before its meta, and after it.
pub(super) const HEADER_LEN: usize = 48;
const HEADER_END_LEN: usize = 20;
pub(super) const PART_HEADER_LEN: usize = 32;
pub(super) const FOOTER_LEN: usize = 48;

const MAGIC: &[u8; 8] = b"HFSNAPSH";
const VERSION: u32 = 3;
const VERSION_2: u32 = 2;
const KIND_PART: u32 = 1;
const KIND_FOOTER: u32 = 2;

/// What a part covers, and the sequence up to which it is complete. Every shard needs a part, if only an empty one:
/// keys without a part count as complete up to the lowest stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    pub shard: u32,
    /// Where in the shard, or among the shards, the part ends. Opaque: only the caller knows its meaning.
    pub end: u32,
    pub sequence: Sequence,
}

/// `snapshot-<generation>-<max>.snap`. The generation orders snapshots and is unique in a directory. The highest stamp
/// is in the name, so that even an unreadable snapshot proves how far the journal must reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotName {
    pub(crate) generation: u64,
    pub(crate) max: Sequence,
}

impl SnapshotName {
    pub(crate) fn file_name(&self) -> String {
        format!("snapshot-{:010}-{:020}.snap", self.generation, self.max.0)
    }

    pub(crate) fn parse(name: &str) -> Option<SnapshotName> {
        let (generation, max) = name.strip_prefix("snapshot-")?.strip_suffix(".snap")?.split_once('-')?;
        let all_digits = generation.bytes().chain(max.bytes()).all(|byte| byte.is_ascii_digit());
        (all_digits && generation.len() >= 10 && max.len() == 20)
            .then(|| Some(SnapshotName { generation: generation.parse().ok()?, max: Sequence(max.parse().ok()?) }))?
    }
}

/// The name of a snapshot while it is written. It has the epoch of its writer, so no two writers share one.
pub(super) fn temporary_name(generation: u64, epoch: Epoch) -> String {
    format!("snapshot-{generation:010}-{epoch}.tmp")
}

/// True for an unfinished snapshot.
pub(crate) fn is_temporary(name: &str) -> bool {
    temporary_generation(name).is_some()
}

pub(super) fn temporary_generation(name: &str) -> Option<u64> {
    let numbers = name.strip_prefix("snapshot-")?.strip_suffix(".tmp")?;
    // Older versions put no epoch into the name.
    let (generation, epoch) = numbers.split_once('-').unwrap_or((numbers, "0"));
    let all_digits = generation.bytes().chain(epoch.bytes()).all(|byte| byte.is_ascii_digit());
    all_digits.then(|| generation.parse().ok())?
}

pub(super) struct Header {
    /// The directory it belongs to.
    pub(super) id: DirectoryId,
    pub(super) created_ms: u64,
    pub(super) meta_len: u32,
    /// How many bytes follow its meta.
    pub(super) end_len: usize,
    crc: u32,
}

/// Why a header is refused.
pub(super) enum HeaderError {
    Damaged,
    Newer(u32),
}

impl Header {
    /// Encodes the header with its meta.
    pub(super) fn encode(identity: &WriterIdentity, created_ms: u64, meta: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + meta.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&0u32.to_le_bytes());
        bytes.extend_from_slice(&created_ms.to_le_bytes());
        bytes.extend_from_slice(&identity.directory.0);
        bytes.extend_from_slice(&(meta.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), meta);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(meta);
        bytes.extend_from_slice(&identity.epoch_id.0);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Header, HeaderError> {
        if &bytes[..8] != MAGIC {
            return Err(HeaderError::Damaged);
        }
        let end_len = if u32_at(bytes, 8) == VERSION_2 { 0 } else { HEADER_END_LEN };
        let (meta_len, crc) = (u32_at(bytes, 40), u32_at(bytes, 44));
        Ok(Header { id: DirectoryId::decode(&bytes[24..]), created_ms: u64_at(bytes, 16), meta_len, end_len, crc })
    }

    /// Checks the whole header after its rest was read, its meta and what follows it. Returns the id of the epoch. The
    /// version is checked after the checksum: a flipped bit must not look like a newer format.
    pub(super) fn check(&self, bytes: &[u8; HEADER_LEN], rest: &[u8]) -> Result<EpochId, HeaderError> {
        let (meta, end) = rest.split_at(self.meta_len as usize);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..44]), meta);
        if crc != self.crc {
            return Err(HeaderError::Damaged);
        }
        let (version, flags) = (u32_at(bytes, 8), u32_at(bytes, 12));
        if !matches!(version, VERSION | VERSION_2) || flags != 0 {
            return Err(HeaderError::Newer(version));
        }
        if end.is_empty() {
            return Ok(EpochId::NONE);
        }
        let whole = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(bytes), meta), &end[..EpochId::LEN]);
        if whole != u32_at(end, EpochId::LEN) {
            return Err(HeaderError::Damaged);
        }
        Ok(EpochId::decode(end))
    }
}

#[derive(Clone, Copy)]
pub(super) struct PartHeader {
    pub(super) stamp: Stamp,
    pub(super) length: u32,
    pub(super) entries: u32,
}

impl PartHeader {
    pub(super) fn encode(&self, payload: &[u8]) -> [u8; PART_HEADER_LEN] {
        let mut bytes = [0; PART_HEADER_LEN];
        bytes[0..4].copy_from_slice(&KIND_PART.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.stamp.shard.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.stamp.end.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stamp.sequence.0.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.entries.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..28]), payload);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a part header; `None` if it is not one. The payload is not checked yet.
    pub(super) fn decode(bytes: &[u8; PART_HEADER_LEN]) -> Option<PartHeader> {
        (u32_at(bytes, 0) == KIND_PART).then(|| PartHeader {
            length: u32_at(bytes, 4),
            stamp: Stamp { shard: u32_at(bytes, 8), end: u32_at(bytes, 12), sequence: Sequence(u64_at(bytes, 16)) },
            entries: u32_at(bytes, 24),
        })
    }
}

/// The totals of all parts. `chain` is a checksum over all part headers in order, each of which has the checksum of its
/// payload: so it covers the whole file, for a few bytes per part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Totals {
    /// The epoch of the writer.
    pub(super) epoch: Epoch,
    pub(super) parts: u64,
    pub(super) entries: u64,
    pub(super) min: Sequence,
    pub(super) max: Sequence,
    pub(super) chain: u32,
}

impl Totals {
    pub(super) const EMPTY: Totals =
        Totals { epoch: Epoch::NONE, parts: 0, entries: 0, min: Sequence(u64::MAX), max: Sequence::NONE, chain: 0 };

    pub(super) fn add(&mut self, part: &PartHeader, encoded: &[u8; PART_HEADER_LEN]) {
        self.parts += 1;
        self.entries += u64::from(part.entries);
        self.min = self.min.min(part.stamp.sequence);
        self.max = self.max.max(part.stamp.sequence);
        self.chain = crc32c::crc32c_append(self.chain, encoded);
    }

    /// The footer.
    pub(super) fn encode(&self) -> [u8; FOOTER_LEN] {
        let mut bytes = [0; FOOTER_LEN];
        bytes[0..4].copy_from_slice(&KIND_FOOTER.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.parts.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.entries.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.min.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.max.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.chain.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..44]);
        bytes[44..48].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes the footer; `None` if it is missing or damaged.
    pub(super) fn decode(bytes: &[u8; FOOTER_LEN]) -> Option<Totals> {
        let is_good = u32_at(bytes, 0) == KIND_FOOTER && crc32c::crc32c(&bytes[..44]) == u32_at(bytes, 44);
        is_good.then(|| Totals {
            epoch: Epoch(u32_at(bytes, 4)),
            parts: u64_at(bytes, 8),
            entries: u64_at(bytes, 16),
            min: Sequence(u64_at(bytes, 24)),
            max: Sequence(u64_at(bytes, 32)),
            chain: u32_at(bytes, 40),
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_are_written() {
        let name = SnapshotName { generation: 7, max: Sequence(123) };
        assert_eq!(name.file_name(), "snapshot-0000000007-00000000000000000123.snap");
        assert_eq!(SnapshotName::parse(&name.file_name()), Some(name));
        assert_eq!(SnapshotName::parse("snapshot-7-123.snap"), None);
        assert_eq!(temporary_generation(&temporary_name(7, Epoch(3))), Some(7));
        assert!(is_temporary("snapshot-0000000007.tmp") && !is_temporary("snapshot-x.tmp"));
    }

    #[test]
    fn the_layout_is_pinned() {
        let (directory, epoch_id) = (DirectoryId([9; 16]), EpochId([8; 16]));
        let identity = WriterIdentity { directory, epoch: Epoch(7), epoch_id, previous_id: EpochId::NONE };
        let header = Header::encode(&identity, 0x0102, b"meta");
        assert_eq!(header[..24], *b"HFSNAPSH\x03\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0");
        assert_eq!(header[24..44], [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 4, 0, 0, 0]);
        assert_eq!(header[44..48], crc32c::crc32c(&[&header[..44], b"meta"].concat()).to_le_bytes());
        assert_eq!((&header[48..52], &header[52..68]), (&b"meta"[..], &[8; 16][..]));
        assert_eq!(header[68..], crc32c::crc32c(&header[..68]).to_le_bytes());

        let stamp = Stamp { shard: 3, end: 4, sequence: Sequence(5) };
        let part = PartHeader { stamp, length: 2, entries: 6 }.encode(b"ab");
        assert_eq!(part[..28], *b"\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0");
        assert_eq!(part[28..32], crc32c::crc32c(&[&part[..28], b"ab"].concat()).to_le_bytes());

        let totals = Totals { epoch: Epoch(7), parts: 1, entries: 2, min: Sequence(3), max: Sequence(4), chain: 5 };
        let footer = totals.encode();
        assert_eq!(footer[..16], *b"\x02\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0");
        assert_eq!(footer[40..44], [5, 0, 0, 0]);
        assert_eq!(Totals::decode(&footer), Some(totals));
    }
}
