//! Reads a snapshot part by part and checks that it is complete. Knows nothing of the contents of parts.

use std::io;

use thiserror::Error;

use super::format::{self, Header, HeaderError, PartHeader, SnapshotName, Stamp, Totals};
use super::info::SnapshotInfo;
use crate::failure::Operation;
use crate::files::{DirectoryId, EpochId};
use crate::storage::{Storage, StorageFile, read_full_at};

/// A snapshot being read. [`SnapshotReader::next_part`] reports the end only if all parts were there.
pub struct SnapshotReader {
    directory: DirectoryId,
    epoch_id: EpochId,
    file: Box<dyn StorageFile>,
    info: SnapshotInfo,
    meta: Vec<u8>,
    footer: Totals,
    offset: u64,
    totals: Totals,
    payload: Vec<u8>,
}

/// One part, as it was passed to [`super::SnapshotWriter::part`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredPart<'a> {
    pub stamp: Stamp,
    pub entries: u32,
    pub payload: &'a [u8],
}

#[derive(Debug, Error)]
pub enum SnapshotReadError {
    #[error("{target} is damaged at offset {offset}: {detail}")]
    Damaged { target: String, offset: u64, detail: &'static str },
    #[error("{target} was written by a newer version of Holdfast (format {version})")]
    NewerFormat { target: String, version: u32 },
    #[error("{operation} {target} failed at offset {offset}")]
    Io { operation: Operation, target: String, offset: u64, source: io::Error },
}

impl SnapshotReader {
    /// Opens a snapshot and checks its header and its footer.
    pub fn open(storage: &dyn Storage, name: &str) -> Result<SnapshotReader, SnapshotReadError> {
        let failed =
            |operation| move |source| SnapshotReadError::Io { operation, target: name.to_owned(), offset: 0, source };
        let damaged = |offset, detail| Err(SnapshotReadError::Damaged { target: name.to_owned(), offset, detail });
        let file = storage.open(name).map_err(failed(Operation::Open))?;
        let len = file.len().map_err(failed(Operation::Read))?;
        let least = (format::HEADER_LEN + format::FOOTER_LEN) as u64;
        if len < least {
            return damaged(len, "the file is cut short");
        }

        let mut header_bytes = [0; format::HEADER_LEN];
        read_exact(&*file, name, &mut header_bytes, 0)?;
        let refused = |error: HeaderError| match error {
            HeaderError::Damaged => {
                SnapshotReadError::Damaged { target: name.to_owned(), offset: 0, detail: "the header is damaged" }
            }
            HeaderError::Newer(version) => SnapshotReadError::NewerFormat { target: name.to_owned(), version },
        };
        let header = Header::decode(&header_bytes).map_err(refused)?;
        if u64::from(header.meta_len) + header.end_len as u64 > len - least {
            return damaged(0, "the file is cut short or the length of its meta is damaged");
        }
        let mut meta = vec![0; header.meta_len as usize + header.end_len];
        read_exact(&*file, name, &mut meta, format::HEADER_LEN as u64)?;
        let epoch_id = header.check(&header_bytes, &meta).map_err(refused)?;
        let offset = (format::HEADER_LEN + meta.len()) as u64;
        meta.truncate(header.meta_len as usize);

        let footer_offset = len - format::FOOTER_LEN as u64;
        let mut footer_bytes = [0; format::FOOTER_LEN];
        read_exact(&*file, name, &mut footer_bytes, footer_offset)?;
        let Some(footer) = Totals::decode(&footer_bytes) else {
            return damaged(footer_offset, "the footer is missing or damaged");
        };
        if SnapshotName::parse(name).is_some_and(|named| named.max != footer.max) {
            return damaged(footer_offset, "the footer does not agree with the file's name");
        }
        let info = SnapshotInfo {
            name: name.to_owned(),
            created_ms: header.created_ms,
            parts: footer.parts,
            entries: footer.entries,
            min: footer.min,
            max: footer.max,
            epoch: footer.epoch,
            bytes: len,
        };
        Ok(SnapshotReader {
            directory: header.id,
            epoch_id,
            file,
            info,
            meta,
            footer,
            offset,
            totals: Totals { epoch: footer.epoch, ..Totals::EMPTY },
            payload: Vec::new(),
        })
    }

    /// The directory it was written in.
    pub fn directory_id(&self) -> DirectoryId {
        self.directory
    }

    /// The epoch of the writer that made it.
    pub(crate) fn epoch_id(&self) -> EpochId {
        self.epoch_id
    }

    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    pub fn meta(&self) -> &[u8] {
        &self.meta
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next part; `None` when all parts were read and match the footer.
    pub fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, SnapshotReadError> {
        let footer_offset = self.info.bytes - format::FOOTER_LEN as u64;
        if self.offset == footer_offset {
            return match self.totals == self.footer {
                true => Ok(None),
                false => Err(self.damaged("the parts are not those that the footer counts")),
            };
        }
        let rest = footer_offset - self.offset;
        if rest < format::PART_HEADER_LEN as u64 {
            return Err(self.damaged("the part is cut short"));
        }
        let mut encoded = [0; format::PART_HEADER_LEN];
        read_exact(&*self.file, &self.info.name, &mut encoded, self.offset)?;
        let Some(header) = PartHeader::decode(&encoded) else {
            return Err(self.damaged("there is no part where one should be"));
        };
        // The length is checked against the file before memory is allocated for it.
        if u64::from(header.length) > rest - format::PART_HEADER_LEN as u64 {
            return Err(self.damaged("the part is cut short or its length is damaged"));
        }
        self.payload.resize(header.length as usize, 0);
        let payload_offset = self.offset + format::PART_HEADER_LEN as u64;
        read_exact(&*self.file, &self.info.name, &mut self.payload, payload_offset)?;
        if header.encode(&self.payload) != encoded {
            return Err(self.damaged("the checksum of the part does not match"));
        }
        self.totals.add(&header, &encoded);
        self.offset = payload_offset + u64::from(header.length);
        Ok(Some(StoredPart { stamp: header.stamp, entries: header.entries, payload: &self.payload }))
    }

    /// Reads the rest, only to check it.
    pub fn verify(mut self) -> Result<SnapshotInfo, SnapshotReadError> {
        while self.next_part()?.is_some() {}
        Ok(self.info)
    }

    fn damaged(&self, detail: &'static str) -> SnapshotReadError {
        SnapshotReadError::Damaged { target: self.info.name.clone(), offset: self.offset, detail }
    }
}

fn read_exact(file: &dyn StorageFile, name: &str, bytes: &mut [u8], offset: u64) -> Result<(), SnapshotReadError> {
    let failed = |source| SnapshotReadError::Io { operation: Operation::Read, target: name.to_owned(), offset, source };
    match read_full_at(file, bytes, offset) {
        Ok(read) if read == bytes.len() => Ok(()),
        Ok(_) => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        Err(error) => Err(failed(error)),
    }
}
