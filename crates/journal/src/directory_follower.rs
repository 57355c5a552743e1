//! Reads the batches of a log that another process writes, from its directory, and waits for more. Takes no lock and
//! writes nothing; refuses to repair anything, and to decide what is lost.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::files::EpochId;
use crate::files::segment::{self, Next, SegmentHeader, SegmentReader};
use crate::log::{Batch, Follow, Followed, ReadError, Stopper};
use crate::sequence::Sequence;
use crate::storage::Storage;

/// How often it looks for more: at the segment, and at the directory for a later one.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// Follows the written batches of a directory, whatever becomes of its writer. It never ends by itself: after a writer
/// another may come. [`crate::Recovery::into_follower`] makes one, behind what was read.
///
/// A batch counts as written when all of its frame is there. What a crash of the writer's process leaves is kept by the
/// next writer, so a batch that was read once stays; only a power failure, which ends the reader too, can take it back.
pub struct DirectoryFollower {
    storage: Arc<dyn Storage>,
    /// The batch to return next.
    expected: Sequence,
    /// The epoch of the last segment that was read.
    epoch: Option<(Epoch, EpochId)>,
    current: Option<OpenSegment>,
    stop: Arc<Stop>,
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

#[derive(Default)]
struct Stop {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl DirectoryFollower {
    /// Begins after `reached`, which is of that epoch.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        reached: Sequence,
        epoch: Option<(Epoch, EpochId)>,
    ) -> DirectoryFollower {
        let expected = reached.next();
        DirectoryFollower { storage, expected, epoch, current: None, stop: Arc::default(), is_over: false }
    }

    /// The last batch that was returned or passed over.
    pub fn reached(&self) -> Sequence {
        self.expected.previous()
    }

    /// The next batch that is there; `None` if none is.
    fn advance(&mut self) -> Result<Option<Batch>, ReadError> {
        loop {
            // A segment without a batch may be removed, and another of its name begun, by the next writer.
            let is_certain = self.current.as_ref().is_some_and(|current| current.at > current.first);
            if !is_certain && !self.open_newest()? {
                return Ok(None);
            }
            if let Some(batch) = self.read()? {
                return Ok(Some(batch));
            }
            // IMPORTANT: in this order. A segment is begun after the last batch of the one before it was written.
            let Some(following) = self.following()? else { return Ok(None) };
            if let Some(batch) = self.read()? {
                return Ok(Some(batch));
            }
            self.enter(following)?;
        }
    }

    /// Reads the next batch of the segment, if it is there.
    fn read(&mut self) -> Result<Option<Batch>, ReadError> {
        let Some(current) = &mut self.current else { return Ok(None) };
        let mut has_looked = false;
        loop {
            let offset = current.reader.offset();
            let failed =
                |source| ReadError::Io { operation: Operation::Read, file: current.name.clone(), offset, source };
            let next = match current.reader.next(current.at) {
                // The writer has cut off zeros behind the data since the length was read.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Next::End,
                next => next.map_err(failed)?,
            };
            match next {
                Next::Frame(header) => {
                    current.at = current.at.next();
                    if header.place.sequence < self.expected {
                        continue;
                    }
                    self.expected = current.at;
                    if header.length == 0 {
                        continue;
                    }
                    return Ok(Some(Batch {
                        epoch: header.place.epoch,
                        sequence: header.place.sequence,
                        time_ms: header.place.time_ms,
                        payload: current.reader.payload().to_vec(),
                    }));
                }
                // What was read ahead is not a whole frame. It may be one by now.
                Next::End | Next::Bad(_) if !has_looked => {
                    let len = current.reader.file().len().map_err(failed)?;
                    current.reader.look_again(len);
                    has_looked = true;
                }
                Next::End | Next::Bad(_) => return Ok(None),
            }
        }
    }

    /// The first sequences of all segments, ascending.
    fn segments(&self) -> Result<Vec<Sequence>, ReadError> {
        let names = self.storage.list().map_err(|source| ReadError::Io {
            operation: Operation::List,
            file: "the data directory".to_owned(),
            offset: 0,
            source,
        })?;
        let mut firsts: Vec<Sequence> = names.iter().filter_map(|name| segment::parse_file_name(name)).collect();
        firsts.sort_unstable();
        Ok(firsts)
    }

    /// The segment after the current one.
    fn following(&self) -> Result<Option<Sequence>, ReadError> {
        let current = self.current.as_ref().map_or(Sequence::NONE, |current| current.first);
        Ok(self.segments()?.into_iter().find(|first| *first > current))
    }

    /// Opens the segment with the expected batch. False if there is no segment at all.
    fn open_newest(&mut self) -> Result<bool, ReadError> {
        let firsts = self.segments()?;
        match firsts.iter().rev().find(|first| **first <= self.expected) {
            Some(first) => self.enter(*first).map(|()| true),
            None if firsts.is_empty() => Ok(false),
            // A journal that was restarted at a later number, or forgotten up to there.
            None => Err(ReadError::Forgotten { oldest: firsts[0] }),
        }
    }

    /// Goes on in a segment. An error if it does not continue what was read.
    fn enter(&mut self, first: Sequence) -> Result<(), ReadError> {
        let Some((opened, header)) = self.open(first)? else {
            // Removed, or not complete, since it was listed: the next look finds out.
            return Ok(());
        };
        if first > self.expected {
            return Err(match header.is_break {
                true => ReadError::Restarted { first },
                false => ReadError::Forgotten { oldest: first },
            });
        }
        if let Some((epoch, id)) = self.epoch {
            let is_next = header.epoch == Epoch(epoch.0.saturating_add(1));
            let diverged = header.epoch < epoch
                || header.epoch == epoch && header.epoch_id.contradicts(id)
                || is_next && header.previous_id.contradicts(id);
            if diverged {
                let detail = format!("it is of epoch {}, which does not follow epoch {epoch}", header.epoch);
                return Err(ReadError::Damaged { file: opened.name, offset: 0, detail });
            }
            // Of an epoch that begins before what was read, the batches read since never happened.
            if header.epoch > epoch && first < self.expected {
                return Err(ReadError::Rewritten { first });
            }
        }
        self.epoch = Some((header.epoch, header.epoch_id));
        self.current = Some(opened);
        Ok(())
    }

    fn open(&self, first: Sequence) -> Result<Option<(OpenSegment, SegmentHeader)>, ReadError> {
        let name = segment::file_name(first);
        let failed = |operation| {
            let file = name.clone();
            move |source| ReadError::Io { operation, file, offset: 0, source }
        };
        let file = match self.storage.open(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed(Operation::Open))?,
        };
        let mut reader = SegmentReader::new(file).map_err(failed(Operation::Read))?;
        match reader.header(first).map_err(failed(Operation::Read))? {
            Ok(header) => Ok(Some((OpenSegment { first, name, reader, at: first }, header))),
            Err(error) => Err(ReadError::Damaged { file: name, offset: 0, detail: error.to_string() }),
        }
    }
}

impl Follow for DirectoryFollower {
    fn next(&mut self) -> Result<Followed, ReadError> {
        if self.is_over {
            return Ok(Followed::Closed);
        }
        loop {
            if *self.stop.is_stopped.lock() {
                return Ok(Followed::Stopped);
            }
            if let Some(batch) = self.advance().inspect_err(|_| self.is_over = true)? {
                return Ok(Followed::Batch(batch));
            }
            let mut is_stopped = self.stop.is_stopped.lock();
            if !*is_stopped {
                self.stop.changed.wait_for(&mut is_stopped, LOOK_EVERY);
            }
        }
    }

    fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        if self.is_over {
            return Ok(None);
        }
        self.advance().inspect_err(|_| self.is_over = true)
    }

    fn stopper(&self) -> Stopper {
        let stop = self.stop.clone();
        Stopper::new(move || {
            *stop.is_stopped.lock() = true;
            stop.changed.notify_all();
        })
    }
}
