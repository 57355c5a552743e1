//! Reads the batches of a log that is in use from its segments, and waits for more. Refuses to repair anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::core::Core;
use super::sync_state::Phase;
use crate::failure::{Failure, Operation};
use crate::files::segment::{self, Next, SegmentHeader, SegmentReader};
use crate::log::{Batch, Follow, FollowUpTo, Followed, ReadError, Stopper};
use crate::sequence::Sequence;

pub(super) struct FileFollower {
    core: Arc<Core>,
    upto: FollowUpTo,
    /// The batch to return next.
    expected: Sequence,
    current: Option<OpenSegment>,
    is_stopped: Arc<AtomicBool>,
    is_over: bool,
}

/// The segment that is being read.
struct OpenSegment {
    first: Sequence,
    name: String,
    reader: SegmentReader,
    /// The sequence of the next frame in it.
    at: Sequence,
}

/// What a reader can do now.
enum Available {
    Batch,
    Nothing,
    Closed,
}

impl FileFollower {
    pub(super) fn new(core: Arc<Core>, from: Sequence, upto: FollowUpTo) -> FileFollower {
        FileFollower { core, upto, expected: from, current: None, is_stopped: Arc::default(), is_over: false }
    }

    fn mark(&self) -> Sequence {
        match self.upto {
            FollowUpTo::Written => self.core.written(),
            FollowUpTo::Durable => self.core.durable(),
        }
    }

    /// Reads the state of the log. With `waits`, blocks until there is something to do.
    fn look(&self, waits: bool) -> Result<Available, ReadError> {
        let mut sync = self.core.sync.lock();
        loop {
            if waits && self.is_stopped.load(Ordering::Acquire) {
                return Ok(Available::Nothing);
            }
            if let Phase::Failed(Failure::Fenced { by, .. }) = sync.phase {
                return Err(ReadError::Fenced { by });
            }
            // Before the marks are read: they reach the restart when its snapshot is accepted, and the batches in
            // between, which were dropped, are in no segment.
            let first = sync.break_first;
            if first > self.expected && self.core.written() >= first.previous() {
                return Err(ReadError::Restarted { first });
            }
            if self.expected <= self.mark() {
                return Ok(Available::Batch);
            }
            if sync.stop {
                return Ok(Available::Closed);
            }
            if !waits {
                return Ok(Available::Nothing);
            }
            // Counted under the lock under which the mark moves; otherwise a write in between would be missed.
            let is_counted = self.upto == FollowUpTo::Written;
            if is_counted {
                self.core.written_waiters.fetch_add(1, Ordering::Relaxed);
            }
            self.core.advanced.wait(&mut sync);
            if is_counted {
                self.core.written_waiters.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Reads the batch `expected`, which exists; `None` if it is not shown to readers.
    fn read(&mut self) -> Result<Option<Batch>, ReadError> {
        let (first, data_end) = self.locate()?;
        if self.current.as_ref().is_none_or(|current| current.first != first) {
            let (opened, _) = self.open(first, data_end).map_err(|error| self.restart_or(error))?;
            self.current = Some(opened);
        }
        let current = self.current.as_mut().expect("it was opened");
        current.reader.limit_to(data_end);
        loop {
            let offset = current.reader.offset();
            let next = current.reader.next(current.at).map_err(|source| ReadError::Io {
                operation: Operation::Read,
                target: current.name.clone(),
                offset,
                source,
            })?;
            let detail = match next {
                Next::Frame(header) => {
                    current.at = current.at.next();
                    if header.place.sequence < self.expected {
                        continue;
                    }
                    self.expected = current.at;
                    let payload = current.reader.payload();
                    return Ok((!payload.is_empty()).then(|| Batch {
                        epoch: header.place.epoch,
                        sequence: header.place.sequence,
                        time_ms: header.place.time_ms,
                        payload: payload.to_vec(),
                    }));
                }
                Next::Bad(detail) => detail,
                Next::End => "a batch is missing",
            };
            let damaged = ReadError::Damaged { target: current.name.clone(), offset, detail: detail.to_owned() };
            return Err(self.restart_or(damaged));
        }
    }

    /// Why the batch `expected` cannot be read. Batches before a restart may be lost in a power failure; no start needs
    /// them, because the snapshot of the restart contains them.
    fn restart_or(&self, damaged: ReadError) -> ReadError {
        if !matches!(damaged, ReadError::Damaged { .. }) {
            return damaged;
        }
        let firsts: Vec<Sequence> = self.core.segments.lock().iter().map(|segment| segment.first).collect();
        for first in firsts.into_iter().filter(|first| *first > self.expected) {
            if matches!(self.open(first, segment::HEADER_LEN), Ok((_, header)) if header.is_break) {
                return ReadError::Restarted { first };
            }
        }
        damaged
    }

    /// The segment with the batch `expected`, and where its data ends.
    fn locate(&self) -> Result<(Sequence, u64), ReadError> {
        let segments = self.core.segments.lock();
        let after = segments.partition_point(|segment| segment.first <= self.expected);
        match after.checked_sub(1).map(|at| &segments[at]) {
            Some(segment) => Ok((segment.first, segment.bytes)),
            None => {
                Err(ReadError::Forgotten { oldest: segments.first().map_or(self.expected, |segment| segment.first) })
            }
        }
    }

    fn open(&self, first: Sequence, data_end: u64) -> Result<(OpenSegment, SegmentHeader), ReadError> {
        let name = segment::file_name(first);
        let failed = |operation| {
            let file = name.clone();
            move |source| ReadError::Io { operation, target: file, offset: 0, source }
        };
        let file = match self.core.storage.open(&name) {
            // Removed since it was looked up: then it is no longer in the list.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.locate().and_then(|_| Err(failed(Operation::Open)(error)))?
            }
            opened => opened.map_err(failed(Operation::Open))?,
        };
        let mut reader = SegmentReader::new(file).map_err(failed(Operation::Read))?;
        // IMPORTANT: before anything is read. Bytes after the data may be overwritten by the next batch.
        reader.limit_to(data_end.min(reader.len()));
        match reader.header(first).map_err(failed(Operation::Read))? {
            Ok(header) => Ok((OpenSegment { first, name, reader, at: first }, header)),
            Err(error) => Err(ReadError::Damaged { target: name, offset: 0, detail: error.to_string() }),
        }
    }

    fn advance(&mut self, waits: bool) -> Result<Followed, ReadError> {
        loop {
            match self.look(waits)? {
                Available::Batch => {
                    if let Some(batch) = self.read()? {
                        return Ok(Followed::Batch(batch));
                    }
                }
                Available::Nothing => return Ok(Followed::Stopped),
                Available::Closed => return Ok(Followed::Closed),
            }
        }
    }
}

impl Follow for FileFollower {
    fn next(&mut self) -> Result<Followed, ReadError> {
        if self.is_over {
            return Ok(Followed::Closed);
        }
        self.advance(true).inspect_err(|_| self.is_over = true)
    }

    fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        if self.is_over {
            return Ok(None);
        }
        match self.advance(false) {
            Ok(Followed::Batch(batch)) => Ok(Some(batch)),
            Ok(Followed::Stopped | Followed::Closed) => Ok(None),
            Err(error) => {
                self.is_over = true;
                Err(error)
            }
        }
    }

    fn stopper(&self) -> Stopper {
        let (core, is_stopped) = (Arc::downgrade(&self.core), self.is_stopped.clone());
        Stopper::new(move || {
            is_stopped.store(true, Ordering::Release);
            if let Some(core) = core.upgrade() {
                // Under the lock: a reader that has just found it unset is waiting by now.
                let _sync = core.sync.lock();
                core.advanced.notify_all();
            }
        })
    }
}
