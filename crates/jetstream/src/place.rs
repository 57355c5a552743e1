//! The log as a place that several processes use, and what a start reads of it. Knows the order of snapshot and frames;
//! refuses to know how they are stored.

use crate::context::{Context, LogProgress, Seen};
use crate::follower::StreamFollower;
use crate::frame::{Damage, Link, LogId, Position};
use crate::lease::{Timing, has_passed};
use crate::log::StreamLog;
use crate::mark::Mark;
use crate::objects::Objects;
use crate::snapshots::{self, StreamSnapshotReader, StreamSnapshots};
use crate::stream::{Extent, Found, Stream, Time, Unanswered};
use journal::{
    Batch, Claim, Failure, Follow, Follower, History, LockError, LogPlace, OpenedLog, Operation, ReadError,
    ReadProgress, ReadSnapshot, Reading, RecoveryError, SnapshotInfo, StoredPart, Warning,
};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// How long the stream may take to say where it ends, or to deliver the next message, while data is read.
const ANSWERS_WITHIN_NS: u64 = 10_000_000_000;
/// How long to wait before the same is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How a process uses the log.
pub struct Membership {
    /// What the log is called, for messages.
    pub name: String,
    pub log: LogId,
    pub partition: u32,
    /// The name of this process among those that use the log.
    pub member: String,
    /// Where clients reach this process.
    pub address: String,
    pub timing: Timing,
    /// What this process remembers of the log from before it was started again.
    pub known: Option<Mark>,
    /// Messages of others that are passed over.
    pub skip: BTreeSet<Position>,
}

/// A log on a stream, as one process uses it.
pub struct StreamPlace {
    context: Arc<Context>,
}

impl StreamPlace {
    pub fn new(
        membership: Membership,
        stream: Arc<dyn Stream>,
        objects: Arc<dyn Objects>,
        time: Arc<dyn Time>,
    ) -> StreamPlace {
        let Membership { name, log, partition, member, address, timing, known, skip } = membership;
        let known = known.filter(|known| known.log == log);
        let seen = Seen::nothing(stream.now_ns(), known);
        let context = Context {
            seen,
            name,
            stream,
            objects,
            time,
            log,
            partition,
            timing,
            member,
            address: Mutex::new(address),
            writer: Mutex::default(),
            successor: Mutex::default(),
            kept_from: AtomicU64::new(crate::context::NOTHING_KEPT),
            unreadable: Mutex::default(),
            skip,
        };
        StreamPlace { context: Arc::new(context) }
    }

    /// The furthest frame that this process knows of, to be remembered.
    pub fn mark(&self) -> Option<Mark> {
        self.context.seen.mark(self.context.log)
    }

    /// How far this process is.
    pub fn progress(&self) -> LogProgress {
        self.context.seen.progress(self.context.stream.now_ns())
    }
}

impl Context {
    /// A log that this process writes, with its snapshots.
    pub(crate) fn opened(self: &Arc<Context>, log: Arc<StreamLog>) -> OpenedLog {
        let snapshots = StreamSnapshots { context: self.clone(), log: Arc::downgrade(&log) };
        let closed = log.clone();
        OpenedLog {
            log: log.clone(),
            maintenance: log,
            snapshots: Arc::new(snapshots),
            follow_on: Box::new(move || closed.follow_on()),
        }
    }

    /// Where the stream begins and ends.
    fn extent(&self) -> Result<Extent, RecoveryError> {
        let found: Arc<Mutex<Option<Result<Extent, Unanswered>>>> = Arc::default();
        let began_ns = self.stream.now_ns();
        loop {
            let answer = found.clone();
            self.stream.extent(Box::new(move |extent| *answer.lock() = Some(extent)));
            let answer = loop {
                if let Some(answer) = found.lock().take() {
                    break answer;
                }
                if self.stream.now_ns() - began_ns > ANSWERS_WITHIN_NS {
                    break Err(Unanswered::new("the stream does not answer"));
                }
                self.stream.pause();
            };
            match answer {
                Ok(extent) => return Ok(extent),
                Err(unanswered) if unanswered.is_gone => return Err(self.damaged(&unanswered.reason)),
                Err(unanswered) if self.stream.now_ns() - began_ns > ANSWERS_WITHIN_NS => {
                    return Err(self.unreachable(&unanswered.reason));
                }
                Err(_) => self.stream.pause(),
            }
        }
    }

    /// Where the stream begins and ends, once it has this frame: a new leader may not have read all of its own files at first.
    fn extent_with(&self, needed: Position) -> Result<Extent, RecoveryError> {
        let began_ns = self.stream.now_ns();
        loop {
            let extent = self.extent()?;
            if extent.last >= needed {
                return Ok(extent);
            }
            if has_passed(self.stream.now_ns(), began_ns, self.timing.lost_after) {
                return Err(self.damaged(&Damage::Lost { last: extent.last, needed }.to_string()));
            }
            self.stream.pause();
        }
    }

    /// True when the stream has nothing at a position between others, however long it is asked.
    fn has_hole(&self, position: Position) -> bool {
        let began_ns = self.stream.now_ns();
        while !has_passed(self.stream.now_ns(), began_ns, self.timing.lost_after) {
            let found: Arc<Mutex<Option<Result<Found, Unanswered>>>> = Arc::default();
            let answer = found.clone();
            self.stream.read(position, Box::new(move |found| *answer.lock() = Some(found)));
            let asked_ns = self.stream.now_ns();
            let answer = loop {
                if let Some(answer) = found.lock().take() {
                    break answer;
                }
                if self.stream.now_ns() - asked_ns > ANSWERS_WITHIN_NS {
                    return false;
                }
                self.stream.pause();
            };
            if answer != Ok(Found::Missing) {
                return false;
            }
            self.rest();
        }
        true
    }

    /// Waits before the stream is asked once more.
    fn rest(&self) {
        let began_ns = self.stream.now_ns();
        while !has_passed(self.stream.now_ns(), began_ns, ASK_AGAIN_AFTER) {
            self.stream.pause();
        }
    }

    fn unreachable(&self, reason: &str) -> RecoveryError {
        let source = io::Error::new(io::ErrorKind::TimedOut, reason.to_owned());
        Failure::io(Operation::Read, &self.name, &source).into()
    }

    pub(crate) fn damaged(&self, reason: &str) -> RecoveryError {
        Failure::Damaged { detail: format!("{}: {reason}", self.name).into() }.into()
    }
}

impl LogPlace for StreamPlace {
    fn name(&self) -> String {
        self.context.name.clone()
    }

    /// Nothing is locked: the stream decides, at the first frame of an epoch, who writes.
    fn acquire(&self, _claim: Claim) -> Result<(), LockError> {
        Ok(())
    }

    fn release(&self) {}

    fn read(&self) -> Result<Box<dyn Reading>, RecoveryError> {
        self.read_live()
    }

    fn read_live(&self) -> Result<Box<dyn Reading>, RecoveryError> {
        Ok(Box::new(StreamReading::new(&self.context)?))
    }

    fn elects(&self) -> bool {
        true
    }

    fn name_successor(&self, member: &str) {
        *self.context.successor.lock() = member.to_owned();
    }

    fn writer(&self) -> Option<String> {
        Some(self.context.writer.lock().clone()).filter(|writer| !writer.is_empty())
    }
}

/// What is stored, being read from the newest snapshot on.
struct StreamReading {
    context: Arc<Context>,
    snapshot: Option<StreamSnapshotReader>,
    follower: StreamFollower,
    /// Where the stream ended when reading began.
    end: u64,
    batch: Option<Batch>,
}

impl StreamReading {
    fn new(context: &Arc<Context>) -> Result<StreamReading, RecoveryError> {
        let began_ns = context.stream.now_ns();
        let (snapshot, link, last) = loop {
            let snapshot = match snapshots::newest(context) {
                // The stream has everything from its first message on.
                Err(error) if context.extent()?.first <= 1 => {
                    tracing::warn!(%error, "no snapshot can be read: the whole log is read instead");
                    None
                }
                found => found?,
            };
            let link = snapshot.as_ref().map_or(Link::START, StreamSnapshotReader::link);
            // IMPORTANT: a log that has lost its end, or its beginning, must not be taken for a short one.
            let needed = context.seen.furthest().max(link.position);
            let Extent { first, last } = context.extent_with(needed)?;
            if last == 0 || first <= link.position + 1 {
                break (snapshot, link, last);
            }
            // Its writer may have published newer snapshots since, and removed what they replace. A NATS server that was cut
            // off may not know them at first.
            let newest = snapshots::newest(context)?.map_or(Link::START, |reader| reader.link());
            if newest.position > link.position {
                continue;
            }
            if has_passed(context.stream.now_ns(), began_ns, context.timing.lost_after) {
                return Err(context.damaged(&Damage::Purged { first, needed: link.position + 1 }.to_string()));
            }
            context.rest();
        };
        let follower = StreamFollower::new(context, link);
        Ok(StreamReading { context: context.clone(), snapshot, follower, end: last, batch: None })
    }

    /// The next batch, up to where the stream ended when reading began.
    fn advance(&mut self) -> Result<Option<Batch>, RecoveryError> {
        let mut waits_since_ns = self.context.stream.now_ns();
        loop {
            let before = self.follower.link().position;
            match self.follower.try_next() {
                Ok(Some(batch)) => return Ok(Some(batch)),
                Ok(None) => {}
                // IMPORTANT: what was not purged is missing. Without this, the log would be read again and again.
                Err(ReadError::Forgotten { .. }) if self.context.has_hole(self.follower.link().position + 1) => {
                    let hole = Damage::Hole { position: self.follower.link().position + 1 };
                    return Err(self.context.damaged(&hole.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
            let position = self.follower.link().position;
            if position >= self.end {
                break;
            }
            if position > before {
                waits_since_ns = self.context.stream.now_ns();
            }
            if self.context.stream.now_ns() - waits_since_ns > ANSWERS_WITHIN_NS {
                return Err(self.context.unreachable("no more messages are delivered"));
            }
            self.context.stream.pause();
        }
        // What the snapshot contains was acknowledged.
        if let Some(snapshot) = &self.snapshot
            && self.follower.link().sequence < snapshot.info().max
        {
            let reason = format!(
                "the snapshot has batch {}, and the stream ends with batch {}: part of the log is lost",
                snapshot.info().max,
                self.follower.link().sequence
            );
            return Err(self.context.damaged(&reason));
        }
        Ok(None)
    }
}

impl History for StreamReading {
    fn snapshot(&self) -> Option<&SnapshotInfo> {
        self.snapshot.as_ref().map(ReadSnapshot::info)
    }

    fn meta(&self) -> Option<&[u8]> {
        self.snapshot.as_ref().map(ReadSnapshot::meta)
    }

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, RecoveryError> {
        match &mut self.snapshot {
            Some(snapshot) => Ok(snapshot.next_part()?),
            None => Ok(None),
        }
    }

    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError> {
        self.batch = self.advance()?;
        Ok(self.batch.as_ref().map(|Batch { epoch, sequence, time_ms, payload }| Batch {
            epoch: *epoch,
            sequence: *sequence,
            time_ms: *time_ms,
            payload: payload.as_slice(),
        }))
    }

    fn reached(&self) -> journal::Sequence {
        self.follower.reached()
    }

    fn progress(&self) -> ReadProgress {
        let (read, total) =
            self.snapshot.as_ref().map_or((0, 0), |snapshot| (snapshot.bytes_read(), snapshot.info().bytes));
        // The stream says how many messages there are, not how long they are.
        let bytes = self.follower.bytes();
        let (position, begin) =
            (self.follower.link().position, self.snapshot.as_ref().map_or(0, |s| s.link().position));
        let expected = match position - begin {
            0 => 0,
            passed => bytes / passed * (self.end.saturating_sub(begin)),
        };
        ReadProgress { bytes_read: read + bytes, bytes_total: total + expected.max(bytes) }
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

impl Reading for StreamReading {
    fn into_log(mut self: Box<Self>) -> Result<OpenedLog, RecoveryError> {
        while self.next_batch()?.is_some() {}
        let mut follower = Box::new(self.follower);
        follower.begin_epoch()?;
        match follower.try_next()? {
            Some(_) => Err(RecoveryError::Unfinished),
            None => follower.into_log(),
        }
    }

    fn into_follower(mut self: Box<Self>) -> Result<Box<dyn Follower>, RecoveryError> {
        self.follower.note_applied();
        Ok(Box::new(self.follower))
    }
}
