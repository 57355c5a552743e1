//! Reads the batches of a journal that is in use, from its segments. Refuses to repair anything.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::failure::Operation;
use crate::journal::ReadError;
use crate::segment::{self, Next, SegmentReader};
use crate::sequence::Sequence;
use crate::storage::Storage;

pub(crate) struct StoredBatches {
    storage: Arc<dyn Storage>,
    /// The first sequences of the segments still to be opened.
    segments: VecDeque<Sequence>,
    current: Option<(String, SegmentReader)>,
    /// The next frame's sequence.
    expected: Sequence,
    from: Sequence,
    upto: Sequence,
    is_over: bool,
}

impl StoredBatches {
    /// `segments` are in ascending order. Reads from `from` up to `upto`.
    pub(crate) fn new(storage: Arc<dyn Storage>, segments: Vec<Sequence>, from: Sequence, upto: Sequence) -> Self {
        let start = segments.partition_point(|first| *first <= from).saturating_sub(1);
        let segments: VecDeque<Sequence> = segments.into_iter().skip(start).collect();
        let expected = segments.front().copied().unwrap_or(from);
        StoredBatches { storage, segments, current: None, expected, from, upto, is_over: false }
    }

    fn advance(&mut self) -> Result<Option<(Sequence, Vec<u8>)>, ReadError> {
        if self.expected > self.from && self.current.is_none() {
            return Err(ReadError::Forgotten { oldest: self.expected });
        }
        while self.expected <= self.upto {
            let Some((name, reader)) = &mut self.current else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            let offset = reader.offset();
            let damaged = |detail: &str| ReadError::Damaged { file: name.clone(), offset, detail: detail.to_owned() };
            let next = reader.next(self.expected).map_err(|source| ReadError::Io {
                operation: Operation::Read,
                file: name.clone(),
                offset,
                source,
            })?;
            match next {
                Next::Frame(header) => {
                    self.expected = self.expected.next();
                    if header.sequence >= self.from && !reader.payload().is_empty() {
                        return Ok(Some((header.sequence, reader.payload().to_vec())));
                    }
                }
                // A segment that was given up by a restart may end in anything; the next one's header says so.
                Next::Bad(_) | Next::End if !self.segments.is_empty() => {
                    self.open_next()?;
                }
                Next::Bad(detail) => return Err(damaged(detail)),
                Next::End => return Err(damaged("a batch is missing")),
            }
        }
        Ok(None)
    }

    fn open_next(&mut self) -> Result<bool, ReadError> {
        let Some(first) = self.segments.pop_front() else { return Ok(false) };
        let name = segment::file_name(first);
        let failed = |operation| {
            let file = name.clone();
            move |source| ReadError::Io { operation, file, offset: 0, source }
        };
        let file = self.storage.open(&name).map_err(failed(Operation::Open))?;
        let mut reader = SegmentReader::new(file).map_err(failed(Operation::Read))?;
        let header = match reader.header(first).map_err(failed(Operation::Read))? {
            Ok(header) => header,
            Err(error) => return Err(ReadError::Damaged { file: name, offset: 0, detail: error.to_string() }),
        };
        if first > self.expected {
            let detail = format!("batch {} should come before it and is missing", self.expected);
            return Err(match header.is_break {
                true => ReadError::Restarted { first },
                false => ReadError::Damaged { file: name, offset: 0, detail },
            });
        }
        if first < self.expected && self.current.is_some() {
            let detail = format!("it overlaps the segment before it, which reaches {}", self.expected.previous());
            return Err(ReadError::Damaged { file: name, offset: 0, detail });
        }
        self.current = Some((name, reader));
        Ok(true)
    }
}

impl Iterator for StoredBatches {
    type Item = Result<(Sequence, Vec<u8>), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let item = self.advance().transpose();
        self.is_over = !matches!(item, Some(Ok(_)));
        item
    }
}
