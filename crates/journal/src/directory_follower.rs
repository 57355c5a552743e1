//! Reads the batches of a log that another process writes, from its directory, and waits for more; and takes the
//! directory over. Takes no lock, and while it follows it writes nothing; refuses to repair anything, and to decide what
//! is lost: that is up to [`crate::Recovery`].

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::fence::Fence;
use crate::file_log::{FileLog, FileLogOptions, LogEnd};
use crate::files::EpochId;
use crate::files::segment::{self, Next, SegmentHeader, SegmentReader};
use crate::log::{Batch, Follow, Followed, ReadError, Stopper};
use crate::recovery::{DirectoryError, FollowedTo, Recovery, RecoveryError, SegmentEnd, Survey, open_fence};
use crate::sequence::Sequence;
use crate::storage::Storage;

/// How often it looks for more: at the segment, and at the directory for a later one.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// Follows the written batches of a directory, whatever becomes of its writer. It never ends by itself: after a writer
/// another may come. [`crate::Recovery::into_follower`] makes one, behind what was read.
///
/// A batch counts as written when all of its frame is there. What a crash of the writer's process leaves is kept by the
/// next writer, so a batch that was read once stays; only a power failure, which ends the reader too, can take it back.
///
/// To take the directory over, while its writer may still run or wake up at any time:
///
/// 1. [`crate::DirectoryLock::acquire_for_takeover`], so that only one process does this.
/// 2. [`DirectoryFollower::raise_fence`]. From here on the writer confirms nothing that is not in the files.
/// 3. [`Follow::try_next`] until it returns `None`: now the caller has all that was ever confirmed. On an error, load
///    again, with [`Recovery::open_live`], and begin with step 2.
/// 4. [`DirectoryFollower::into_log`], then [`crate::DirectoryLock::settle`].
pub struct DirectoryFollower {
    storage: Arc<dyn Storage>,
    /// The batch to return next.
    expected: Sequence,
    /// The epoch of the last segment that was read.
    epoch: Option<(Epoch, EpochId)>,
    /// The time of the last batch.
    time_ms: u64,
    /// The highest sequence that something on disk calls durable.
    proven: Sequence,
    current: Option<OpenSegment>,
    takeover: Option<Takeover>,
    stop: Arc<Stop>,
    is_over: bool,
}

/// What has happened since the fence was raised.
struct Takeover {
    fence: Fence,
    /// The epoch for which it was raised.
    epoch: Epoch,
    /// Everything was read since.
    is_drained: bool,
    /// A restart that has no snapshot, and gets none that counts any more.
    abandoned_break: Option<Sequence>,
}

/// The segment that is being read.
struct OpenSegment {
    first: Sequence,
    name: String,
    reader: SegmentReader,
    is_break: bool,
    /// The sequence of the next frame in it.
    at: Sequence,
}

#[derive(Default)]
struct Stop {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl Recovery {
    /// Reads on in a directory that another process may be writing, behind the last batch. Changes nothing.
    pub fn into_follower(self) -> Result<DirectoryFollower, RecoveryError> {
        self.into_end().map(DirectoryFollower::behind)
    }
}

impl DirectoryFollower {
    /// Begins behind the end of a log.
    fn behind(end: LogEnd) -> DirectoryFollower {
        let LogEnd { storage, reached, epoch, time_ms, proven } = end;
        DirectoryFollower {
            storage,
            expected: reached.next(),
            epoch,
            time_ms,
            proven,
            current: None,
            takeover: None,
            stop: Arc::default(),
            is_over: false,
        }
    }

    /// Reads on in the directory behind the last batch of a log of this process, after it was closed: the batches of the
    /// writer that comes next. `None` if it was not closed without failure, or if batches were appended since: then its
    /// caller has a state that is in no file.
    pub fn behind_closed(log: &FileLog) -> Option<DirectoryFollower> {
        log.closed_end().map(DirectoryFollower::behind)
    }

    /// The last batch that was returned or passed over.
    pub fn reached(&self) -> Sequence {
        self.expected.previous()
    }

    /// The time of the last batch, in unix milliseconds.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The epoch of the last segment that was read.
    pub fn epoch(&self) -> Option<Epoch> {
        self.epoch.map(|(epoch, _)| epoch)
    }

    /// Takes the right to write from the writer of the directory, and returns the epoch that has it now. The writer
    /// confirms no batch any more that is not in its files already.
    ///
    /// IMPORTANT: only under a lock of [`crate::DirectoryLock::acquire_for_takeover`].
    pub fn raise_fence(&mut self) -> Result<Epoch, RecoveryError> {
        self.raise(open_fence(&*self.storage)?)
    }

    /// As [`DirectoryFollower::raise_fence`], if the writer has ended or can be fenced.
    pub(crate) fn raise_fence_over(&mut self, has_ended: bool) -> Result<Epoch, RecoveryError> {
        let fence = open_fence(&*self.storage)?;
        if !has_ended && !fence.is_shared() {
            let reason = "this file system cannot share a mapped file, and the other writer still runs";
            let source = std::io::Error::new(ErrorKind::Unsupported, reason);
            let (operation, file) = (Operation::Map, "FENCE".to_owned());
            return Err(DirectoryError::Io { operation, file, offset: 0, source }.into());
        }
        self.raise(fence)
    }

    fn raise(&mut self, fence: Fence) -> Result<Epoch, RecoveryError> {
        let epoch = Survey::of(&*self.storage)?.raise(&fence)?;
        self.takeover = Some(Takeover { fence, epoch, is_drained: false, abandoned_break: None });
        Ok(epoch)
    }

    /// Begins the epoch of [`DirectoryFollower::raise_fence`] behind the last batch, after all batches were read since.
    /// Does what [`Recovery::into_log`] does, without reading the journal again, and writes to no file that the writer
    /// before may have open: what it writes when it wakes up is never read.
    pub fn into_log(self, options: FileLogOptions) -> Result<FileLog, RecoveryError> {
        let Some(takeover) = self.takeover.filter(|takeover| takeover.is_drained && !self.is_over) else {
            return Err(RecoveryError::Unfinished);
        };
        let Takeover { fence, epoch: own, abandoned_break, .. } = takeover;
        let by = fence.highest();
        if by > own {
            return Err(Failure::Fenced { own, by }.into());
        }
        let segment = self.current.map(|current| SegmentEnd {
            first: current.first,
            offset: current.reader.offset(),
            last_stored: (current.at > current.first || !current.is_break).then(|| current.at.previous()),
        });
        let reached = self.expected.previous();
        let followed = FollowedTo { reached, time_ms: self.time_ms, proven: self.proven, segment, abandoned_break };
        Recovery::at_end_of(self.storage, followed)?.take_over(options, fence, own)
    }

    /// The next batch that is there; `None` if none is.
    fn advance(&mut self) -> Result<Option<Batch>, ReadError> {
        let batch = self.look()?;
        if self.takeover.is_some() && batch.is_none() {
            self.check_snapshots()?;
        }
        if let Some(takeover) = &mut self.takeover {
            takeover.is_drained = batch.is_none();
        }
        Ok(batch)
    }

    /// Before the directory is taken over: an error if a snapshot has more than the journal. A writer may publish one
    /// after its journal has failed.
    fn check_snapshots(&self) -> Result<(), ReadError> {
        let survey = self.survey()?;
        let abandoned = self.takeover.as_ref().and_then(|takeover| takeover.abandoned_break);
        match survey.snapshot_min >= self.expected && abandoned.is_none() {
            true => Err(ReadError::Restarted { first: survey.snapshot_min.next() }),
            false => Ok(()),
        }
    }

    fn look(&mut self) -> Result<Option<Batch>, ReadError> {
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
                |source| ReadError::Io { operation: Operation::Read, target: current.name.clone(), offset, source };
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
                    self.time_ms = self.time_ms.max(header.place.time_ms);
                    self.proven = self.proven.max(header.place.durable);
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

    fn survey(&self) -> Result<Survey, ReadError> {
        Survey::of(&*self.storage).map_err(|error| match error {
            DirectoryError::Io { operation, file, offset, source } => {
                ReadError::Io { operation, target: file, offset, source }
            }
            error => {
                ReadError::Damaged { target: "the data directory".to_owned(), offset: 0, detail: error.to_string() }
            }
        })
    }

    /// The first sequences of all segments, ascending.
    fn segments(&self) -> Result<Vec<Sequence>, ReadError> {
        let names = self.storage.list().map_err(|source| ReadError::Io {
            operation: Operation::List,
            target: "the data directory".to_owned(),
            offset: 0,
            source,
        })?;
        let mut firsts: Vec<Sequence> = names.iter().filter_map(|name| segment::parse_file_name(name)).collect();
        firsts.sort_unstable();
        Ok(firsts)
    }

    /// The segment after the current one.
    fn following(&mut self) -> Result<Option<Sequence>, ReadError> {
        let current = self.current.as_ref().map_or(Sequence::NONE, |current| current.first);
        for first in self.segments()?.into_iter().filter(|first| *first > current) {
            if self.is_left_behind(first)? {
                continue;
            }
            return Ok((!self.is_abandoned_break(first)?).then_some(first));
        }
        Ok(None)
    }

    /// True for a segment that a writer has begun after it had lost the directory.
    fn is_left_behind(&self, first: Sequence) -> Result<bool, ReadError> {
        let Some((epoch, _)) = self.epoch else { return Ok(false) };
        Ok(self.open(first)?.is_some_and(|(_, header)| header.epoch < epoch))
    }

    /// True for a restart whose writer has lost the directory before there was a snapshot for it: nothing in it was
    /// ever confirmed.
    fn is_abandoned_break(&mut self, first: Sequence) -> Result<bool, ReadError> {
        if self.takeover.is_none() || first <= self.expected {
            return Ok(false);
        }
        let is_break = self.open(first)?.is_some_and(|(_, header)| header.is_break);
        // Only a snapshot that counts: one that was left behind says nothing.
        let is_abandoned = is_break && !self.survey()?.has_snapshot_of(first.previous());
        if let Some(takeover) = self.takeover.as_mut().filter(|_| is_abandoned) {
            takeover.abandoned_break = Some(first);
        }
        Ok(is_abandoned)
    }

    /// Opens the segment with the expected batch. False if there is no segment at all that counts.
    fn open_newest(&mut self) -> Result<bool, ReadError> {
        let firsts = self.segments()?;
        for first in firsts.iter().rev().filter(|first| **first <= self.expected) {
            if !self.is_left_behind(*first)? {
                return self.enter(*first).map(|()| true);
            }
        }
        let expected = self.expected;
        for first in firsts.into_iter().filter(|first| *first > expected) {
            if self.is_left_behind(first)? {
                continue;
            }
            if self.is_abandoned_break(first)? {
                break;
            }
            // A journal that was restarted at a later number, or forgotten up to there.
            return Err(ReadError::Forgotten { oldest: first });
        }
        self.current = None;
        Ok(false)
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
                return Err(ReadError::Damaged { target: opened.name, offset: 0, detail });
            }
            // Of an epoch that begins before what was read, the batches read since never happened.
            if header.epoch > epoch && first < self.expected {
                return Err(ReadError::Rewritten { first });
            }
        }
        self.epoch = Some((header.epoch, header.epoch_id));
        self.time_ms = self.time_ms.max(header.time_ms);
        self.proven = self.proven.max(header.durable);
        self.current = Some(opened);
        Ok(())
    }

    fn open(&self, first: Sequence) -> Result<Option<(OpenSegment, SegmentHeader)>, ReadError> {
        let name = segment::file_name(first);
        let failed = |operation| {
            let file = name.clone();
            move |source| ReadError::Io { operation, target: file, offset: 0, source }
        };
        let file = match self.storage.open(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed(Operation::Open))?,
        };
        let mut reader = SegmentReader::new(file).map_err(failed(Operation::Read))?;
        match reader.header(first).map_err(failed(Operation::Read))? {
            Ok(header) => {
                let is_break = header.is_break;
                Ok(Some((OpenSegment { first, name, reader, is_break, at: first }, header)))
            }
            Err(error) => Err(ReadError::Damaged { target: name, offset: 0, detail: error.to_string() }),
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
